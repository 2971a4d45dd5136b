"""Folders, compilers, archives and libraries around compiled code."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.contrib import cblas, cc, clang, dlpack, random, tar, util, utils
from tensorexpr.errors import DeclarationError, TensorExprError

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def added() -> Any:
    """B = A + 1, built as "add_one"."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], name="add_one")


def adds(func: Any) -> bool:
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    func(x, y)
    return bool((y == x + 1).all())


def test_temporary_folders_go_away() -> None:
    with utils.tempdir() as folder:
        Path(folder.relpath("a.txt")).write_text("a")
        assert folder.listdir() == ["a.txt"]
        path = folder.temp_dir
    assert path is not None and not os.path.exists(path)
    with pytest.raises(TensorExprError, match="was removed"):
        folder.relpath("b")
    made = util.tempdir().path
    assert not os.path.exists(made), "nobody held it"
    with utils.TempDirectory.set_keep_for_debug():
        kept = utils.tempdir()
    path = kept.path
    with kept:
        pass
    assert os.path.exists(path)
    kept.remove()
    assert not os.path.exists(path)


def test_all_temporary_folders_can_be_removed_at_once() -> None:
    folder = utils.tempdir()
    path = folder.path
    assert path in utils.TempDirectory.TEMPDIRS
    utils.TempDirectory.remove_tempdirs()
    assert not os.path.exists(path) and not utils.TempDirectory.TEMPDIRS
    assert cc.py_str(b"text") == "text"


def test_random_arrays() -> None:
    drawn = [random.uniform(2.0, 3.0, (64, 8)), random.normal(5.0, 0.25, (64, 8)), random.randint(3, 7, (64, 8), "int8")]
    func = tvm.build(te.create_schedule([t.op for t in drawn]), drawn)

    def arrays() -> list[Any]:
        made = [np.zeros((64, 8), t.dtype) for t in drawn]
        tvm.get_global_func("tvm.contrib.random.seed")(4)
        func(*made)
        return made

    even, normal, whole = arrays()
    assert even.min() >= 2 and even.max() < 3 and abs(even.mean() - 2.5) < 0.1
    assert abs(normal.mean() - 5) < 0.1 and abs(normal.std() - 0.25) < 0.1
    assert set(whole.flat) == {3, 4, 5, 6}
    assert all((a == b).all() for a, b in zip((even, normal, whole), arrays(), strict=True)), "of one seed"
    refused: list[Callable[[], Any]] = [
        lambda: random.uniform(1.0, 0.0, (2,)),
        lambda: random.normal(0.0, -1.0, (2,)),
        lambda: random.randint(0, 300, (2,), "uint8"),
        lambda: random.randint(0, 3, (2,), "float32"),
    ]
    for wrong in refused:
        with pytest.raises(DeclarationError):
            wrong()


def test_locks_and_paths(tmp_path: Path) -> None:
    with utils.filelock(tmp_path / "lock"):
        pass
    source = tmp_path / "a.cc"
    source.write_text("int f();")
    assert utils.is_source_path(str(source)) and not utils.is_source_path("int f();") and utils.which("sh")


@needs_compiler
def test_a_library_linked_of_objects_can_be_loaded(tmp_path: Path) -> None:
    added().save(tmp_path / "add.o")
    cc.create_shared(tmp_path / "add.so", [tmp_path / "add.o"])
    assert adds(tvm.runtime.load_module(tmp_path / "add.so"))
    assert cc.get_global_symbol_section_map(tmp_path / "add.o")["add_one"] == "T"


@needs_compiler
def test_libraries_are_exported_through_any_linker(tmp_path: Path) -> None:
    module = added()
    module.export_library(tmp_path / "a.so", cc.create_shared)
    module.export_library(tmp_path / "b.so", fcompile=cc.cross_compiler("cc", ["-g"]))
    module.export_library(tmp_path / "c.so", cc="cc", options=["-g"])
    module.export_library(tmp_path / "d.tar", tar.tar)
    assert all(adds(tvm.runtime.load_module(tmp_path / name)) for name in ("a.so", "b.so", "c.so", "d.tar"))
    assert cc.cross_compiler("cc").get_target_triple()  # type: ignore[attr-defined]


@needs_compiler
def test_programs_and_static_libraries(tmp_path: Path) -> None:
    added().save(tmp_path / "add.o")
    tar.tar(tmp_path / "objects.tar", [tmp_path / "add.o"])
    cc.create_staticlib(tmp_path / "libadd.a", [tmp_path / "objects.tar"])
    main = tmp_path / "main.c"
    main.write_text(
        "int add_one(const float*, float*); int main(void) { float a[8] = {1}, b[8]; add_one(a, b); return b[0] == 2.0f ? 0 : 1; }"
    )
    cc.create_executable(tmp_path / "main", [main, tmp_path / "libadd.a"], cc="cc")
    assert os.system(str(tmp_path / "main")) == 0
    with pytest.raises(TensorExprError, match=r"failed with code"):
        cc.create_shared(tmp_path / "x.so", [tmp_path / "missing.o"])


def test_a_compiler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TensorExprError, match="no program 'nocc'"):
        cc.create_shared(tmp_path / "x.so", [], cc="nocc")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for variable in ("CXX", "CC"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(TensorExprError, match="no clang is there"):
        clang.create_llvm("int f() { return 1; }")
    assert clang.find_clang(required=False) == []


def test_archives_stay_inside_their_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    tar.tar(tmp_path / "a.tar", [tmp_path / "a.txt"])
    tar.untar(tmp_path / "a.tar", tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "a"
    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        archive.add(tmp_path / "a.txt", arcname="../evil.txt")
    with pytest.raises(TensorExprError, match="no file inside the folder"):
        tar.untar(tmp_path / "evil.tar", tmp_path / "out")
    assert not (tmp_path / "evil.txt").exists()
    with pytest.raises(TensorExprError, match="no archive"):
        tar.untar(tmp_path / "a.txt", tmp_path / "out")
    with pytest.raises(TensorExprError, match="two files have one name"):
        tar.tar(tmp_path / "b.tar", [tmp_path / "a.txt", tmp_path / "out" / "a.txt"])


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_numpys_blas_are_stages(transposed: bool) -> None:
    a, b = te.placeholder((5, 3), name="A"), te.placeholder((4, 3) if transposed else (3, 4), name="B")
    c = cblas.matmul(a, b, transb=transposed)
    d = te.compute((5, 4), lambda i, j: c[i, j] + 1.0, name="D")
    func = tvm.build(te.create_schedule(d.op), [a, b, d])
    rng = np.random.default_rng(0)
    x, y, out = rng.random((5, 3), np.float32), rng.random((4, 3) if transposed else (3, 4), np.float32), np.zeros((5, 4), np.float32)
    func(x, y, out)
    np.testing.assert_allclose(out, x @ (y.T if transposed else y) + 1, rtol=1e-5)
    with pytest.raises(DeclarationError, match="both are float32"):
        cblas.matmul(a, te.placeholder((3, 4), "int8"))
    assert cblas.batch_matmul(te.placeholder((2, 5, 3)), te.placeholder((2, 3, 4))).shape[1] is c.shape[0]


@pytest.mark.parametrize(
    ("operator", "left", "right", "message"),
    [
        (cblas.matmul, (5, 3), (4, 6), "3 terms on the left, 4 on the right"),
        (cblas.matmul, (3,), (3, 4), "operands of 1 and 2 dimensions; both have 2"),
        (cblas.matmul, (2, 5, 3), (2, 3, 4), "both have 2"),
        (cblas.batch_matmul, (5, 3), (3, 4), "both have 3"),
        (cblas.batch_matmul, (2, 5, 3), (2, 4, 6), "3 terms on the left, 4 on the right"),
        (cblas.batch_matmul, (1, 5, 3), (2, 3, 4), "1 matrices on the left, 2 on the right"),
    ],
)
def test_products_that_do_not_fit_are_refused(operator: Any, left: tuple[int, ...], right: tuple[int, ...], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        operator(te.placeholder(left), te.placeholder(right))
    sizes = te.var("m"), te.var("n")
    assert str(cblas.matmul(te.placeholder((5, sizes[0])), te.placeholder((sizes[1], 4))).shape[0]) == "5"  # open sizes may agree


def test_functions_take_foreign_arrays() -> None:
    class Foreign:
        """An array of a framework."""

        def __init__(self, values: Any) -> None:
            self.values = values

    convert = dlpack.convert_func(added().entry_func, Foreign, lambda array: array.values.__dlpack__())
    x, y = Foreign(np.arange(8, dtype="float32")), Foreign(np.zeros(8, "float32"))
    convert(x, y)
    assert (y.values == x.values + 1).all()


def test_the_installation_describes_itself(capsys: pytest.CaptureFixture[str]) -> None:
    tvm.support.describe()
    assert "LLVM_VERSION: " in capsys.readouterr().out and tvm.support.GetLibInfo() == tvm.support.libinfo()
