"""The pragma "import_llvm": code that a program brings along is linked with the code made for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.contrib import clang
from tensorexpr.errors import CodegenError

# float v09_scale(float x) { return x * factor; }, and a function that nothing calls.
SCALE = """
define float @v09_scale(float %x) {{
  %y = fmul float %x, {factor}
  ret float %y
}}
define void @v09_unused() {{
  ret void
}}
"""
TWICE, THRICE = SCALE.format(factor="2.0"), SCALE.format(factor="3.0")


def scaled(*imports: str) -> Any:
    """B[i, j] = v09_scale(A[i, j]), with one import for each loop."""
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: tir.call_pure_extern("float32", "v09_scale", a[i, j]), name="B")
    s = te.create_schedule(b.op)
    for axis, text in zip(b.op.axis, imports, strict=False):
        s[b].pragma(axis, "import_llvm", text)
    return tvm.build(s, [a, b])


def assert_scales(func: Any, factor: float) -> None:
    x, y = np.arange(16, dtype="float32").reshape(4, 4), np.zeros((4, 4), "float32")
    func(x, y)
    np.testing.assert_array_equal(y, factor * x)


def test_imported_functions_are_called() -> None:
    func = scaled(TWICE)
    assert_scales(func, 2.0)
    assert "@v09_scale" in func.get_source()


def test_of_two_imports_of_a_function_the_later_counts() -> None:
    assert_scales(scaled(TWICE, TWICE), 2.0)
    assert_scales(scaled(TWICE, THRICE), 3.0)


def test_an_import_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "scale.ll").write_text(TWICE)
    assert_scales(scaled(str(tmp_path / "scale.ll")), 2.0)


def test_an_import_that_is_no_code_is_refused() -> None:
    with pytest.raises(CodegenError, match="pragma import_llvm takes LLVM IR"):
        scaled("float f(float x);")


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler of C++")
def test_without_clang_imports_are_assembly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clang, "find_clang", lambda required=True: [])
    monkeypatch.setenv("CXX", "g++")
    source = 'extern "C" float v09_scale(float x) { for (int i = 0; x > 64; ++i) x -= i; return x * 4; }'
    code = clang.create_llvm(source, output=tmp_path / "scale.ll")
    assert (tmp_path / "scale.ll").read_text() == code
    other = clang.create_llvm('extern "C" int v09_other(int x) { for (int i = 0; x > 8; ++i) x -= i; return x; }')
    assert_scales(scaled(code, other), 4.0)  # both have labels of loops
    assert_scales(scaled(code, code), 4.0)
