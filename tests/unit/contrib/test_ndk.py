"""Libraries for Android are linked by the compiler that a variable names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorexpr.contrib import cc, ndk
from tensorexpr.errors import TensorExprError


def test_the_compiler_is_that_of_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    source, library = tmp_path / "one.c", str(tmp_path / "libone.so")
    source.write_text("int one(void) { return 1; }\n")
    with pytest.raises(TensorExprError, match="set TVM_NDK_CC"):
        ndk.create_shared(library, str(source))
    monkeypatch.setenv("TVM_NDK_CC", "no-such-compiler")
    with pytest.raises(TensorExprError, match="no program 'no-such-compiler'"):
        ndk.create_shared(library, str(source))
    compiler = cc.get_cc()
    if compiler is None:
        pytest.skip("no C compiler is there")
    monkeypatch.setenv("TVM_NDK_CC", compiler)
    ndk.create_shared(library, [str(source)], options=["-O1"])
    assert Path(library).exists()
