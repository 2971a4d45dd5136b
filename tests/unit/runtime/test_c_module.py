"""Modules of target c: called, saved, exported, loaded again; and what they say where that can't be."""

from __future__ import annotations

import pickle
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.contrib import cc
from tensorexpr.errors import ArgumentError, TargetError, TensorExprError
from tensorexpr.runtime.c_module import CSourceModule
from tensorexpr.tir import intrin
from tensorexpr.tir.expr import Broadcast, Call, Cast, IntImm, StringImm, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import AssertStmt, ForKind, seq
from tests.c_compiler import COMPILER, C, in_c, needs_compiler, strictly
from tests.unit.codegen.harness import flat, load, loop, primfunc, ramp, store

__all__ = ["strictly"]
FLOATS = np.linspace(-3, 3, 16, dtype=np.float32)


def doubled(name: str = "twice") -> CSourceModule:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    module = tvm.build(te.create_schedule(b.op), [a, b], "c", name=name)
    assert isinstance(module, CSourceModule)
    return module


def narrow_floats() -> PrimFunc:
    a, half, brain, small = flat("a", 16), flat("h", 16, "float16"), flat("b", 16, "bfloat16"), flat("s", 16, "e4m3_float8")
    index = ramp(0, 16)
    return primfunc(
        [a, half, brain, small],
        seq(
            store(half, index, Cast("float16x16", load(a, index)) * Broadcast(tir.const(1.1, "float16"), 16)),
            store(brain, index, Cast("bfloat16x16", load(a, index))),
            store(small, index, Cast("e4m3_float8x16", load(a, index))),
        ),
    )


def strided() -> PrimFunc:
    n, step = Var("n", "int32"), Var("step", "int32")
    a = tir.decl_buffer((n,), "float32", "a", strides=(step,))
    out = flat("out", n)
    return primfunc([a, out], loop("i", n, lambda i: store(out, i, load(a, i * step))))


def checked() -> PrimFunc:
    """Each iteration asserts, in parallel, with memory of its own."""
    a, out, n = flat("a", 16), flat("out", 16), Var("n", "int32")
    space = flat("space", 1 << 15)

    def round_of(i: Var) -> tir.Stmt:
        body = seq(store(space, i, load(a, i)), AssertStmt(i < n, StringImm("too far"), store(out, i, load(space, i))))
        return tir.Allocate(space.data, "float32", (IntImm("int32", 1 << 15),), IntImm("bool", 1), body)

    return primfunc([a, out, n], loop("i", 16, round_of, ForKind.PARALLEL))


def foreign() -> PrimFunc:
    """A function of the math library, one of C source that comes along, and scaling by a power of two."""
    a, out = flat("a", 16), flat("out", 16)
    source = "static float seventh(float* x) { return x[0] / 7.0f; }"
    seventh = Call("float32", "tir.call_extern", (StringImm("seventh"), tir.address_of(load(a, 3))))
    value = Call("float32", "tir.call_pure_extern", (StringImm("cbrtf"), load(a, 2))) + seventh + intrin.ldexp(load(a, 1), 3)
    return primfunc([a, out], tir.AttrStmt(Var("i", "int32"), "pragma_import_c", StringImm(source), store(out, 0, value)))


def histogram() -> PrimFunc:
    """Counts by atomic additions of a parallel loop."""
    a, out = flat("a", 16, "int32"), flat("out", 4, "int32")
    return primfunc(
        [a, out],
        loop(
            "i",
            16,
            lambda i: tir.Evaluate(Call("int32", "tir.atomic_add", (tir.address_of(load(out, load(a, i))), IntImm("int32", 1)))),
            ForKind.PARALLEL,
        ),
    )


@pytest.fixture(scope="module")
def library() -> CSourceModule:
    """Several functions, compiled once."""
    kinds = {"narrow": narrow_floats, "strided": strided, "checked": checked, "foreign": foreign, "histogram": histogram}
    return in_c({name: make() for name, make in kinds.items()})


@needs_compiler
@pytest.mark.usefixtures("strictly")
def test_narrow_floats_are_rounded_as_everywhere(library: CSourceModule) -> None:
    dtypes = ("float16", "bfloat16", "e4m3_float8")
    got = [np.zeros(16, tvm.tir.dtype.to_numpy(dtype)) for dtype in dtypes]
    wanted = [array.copy() for array in got]
    library["narrow"](FLOATS, *got)
    tvm.build(narrow_floats(), target="llvm")(FLOATS, *wanted)
    for have, want in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(have.view(f"u{have.itemsize}"), want.view(f"u{want.itemsize}"))


@needs_compiler
def test_strides_and_extents_are_found_in_the_arrays(library: CSourceModule) -> None:
    out = np.zeros(8, np.float32)
    library["strided"](FLOATS[::2], out)
    np.testing.assert_array_equal(out, FLOATS[::2])
    with pytest.raises(ArgumentError, match="strided"):
        library["strided"](FLOATS, out)


@needs_compiler
def test_a_failed_assertion_is_an_error_with_its_message(library: CSourceModule) -> None:
    out = np.zeros(16, np.float32)
    library["checked"](FLOATS, out, 16)
    np.testing.assert_array_equal(out, FLOATS)
    with pytest.raises(ArgumentError, match="checked: too far"):
        library["checked"](FLOATS, out, 11)


@needs_compiler
def test_functions_of_others_are_called(library: CSourceModule) -> None:
    out = np.zeros(16, np.float32)
    library["foreign"](FLOATS, out)
    np.testing.assert_allclose(out[0], np.cbrt(FLOATS[2]) + FLOATS[3] / 7 + FLOATS[1] * 8, rtol=1e-6)


@needs_compiler
def test_threads_add_atomically(library: CSourceModule) -> None:
    values, counts = np.arange(16, dtype=np.int32) % 4, np.zeros(4, np.int32)
    library["histogram"](values, counts)
    assert counts.tolist() == [4, 4, 4, 4]


@needs_compiler
def test_python_functions_are_called_here_and_stay_here(tmp_path: Path) -> None:
    a, out = flat("a", 16), flat("out", 16)

    @tvm.register_func("tests.c_text.negate", override=True)
    def negate(x: Any, y: Any) -> None:
        y.copyfrom(-x.numpy())

    module = in_c({"f": primfunc([a, out], tir.Evaluate(tir.call_packed("tests.c_text.negate", a, out)))})
    got = np.zeros(16, np.float32)
    module(FLOATS, got)
    np.testing.assert_array_equal(got, -FLOATS)
    with pytest.raises(TensorExprError, match=r"calls the Python function tests.c_text.negate"):
        module.export_library(tmp_path / "f.so")


@needs_compiler
@pytest.mark.usefixtures("strictly")
def test_a_returned_number_comes_back_from_main() -> None:
    """Which is the name of another function in C."""
    n, result = Var("n", "int32"), flat("result", 16)
    func = primfunc([n, result], tir.Evaluate(tir.ret(load(result, n) * 3.0)))
    module = in_c({"main": func})
    assert module["main"](2, FLOATS) == FLOATS[2] * 3
    assert "int32_t __tvm_main__(void* args" in module.get_source()


@needs_compiler
def test_files_are_read_again(tmp_path: Path) -> None:
    module, got = doubled(), np.zeros(16, np.float32)
    for name in ("f.so", "f.o"):
        module.export_library(tmp_path / name)
        got[:] = 0
        tvm.runtime.load_module(str(tmp_path / name))(FLOATS, got)
        np.testing.assert_array_equal(got, FLOATS * 2)
    again = pickle.loads(pickle.dumps(module))
    assert again.get_source() == module.get_source()
    assert "int32_t twice(void* args" in (tmp_path / "f.h").read_text()


@needs_compiler
def test_c_programs_call_what_was_written(tmp_path: Path) -> None:
    """As C++ too, which `cc.create_shared` may make of it."""
    assert COMPILER is not None
    module = doubled()
    module.export_library(tmp_path / "twice.c")
    (tmp_path / "main.c").write_text(
        '#include "twice.c"\n#include "twice.h"\n'
        "int main(void) {\n"
        "  float x[3] = {1, 2, 3}, y[3];\n"
        "  int64_t shape[1] = {3};\n"
        "  DLTensor a = {0}, b = {0};\n"
        "  TVMValue values[2];\n"
        "  a.data = x; a.ndim = 1; a.shape = shape;\n"
        "  b.data = y; b.ndim = 1; b.shape = shape;\n"
        "  values[0].v_handle = &a; values[1].v_handle = &b;\n"
        "  return twice(values, 0, 2, 0, 0, 0) + (y[0] != 2 || y[2] != 6);\n"
        "}\n"
    )
    run = [COMPILER, "-std=c99", "-Wall", "-Werror", str(tmp_path / "main.c"), "-o", str(tmp_path / "main"), "-lm"]
    subprocess.run(run, check=True, capture_output=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0
    module.export_library(tmp_path / "twice.so", fcompile=cc.create_shared)
    got = np.zeros(16, np.float32)
    tvm.runtime.load_module(str(tmp_path / "twice.so"))(FLOATS, got)
    np.testing.assert_array_equal(got, FLOATS * 2)


def test_text_is_written_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    module = doubled()
    module.save(str(tmp_path / "f.c"))
    assert (tmp_path / "f.c").read_text() == module.get_source()
    module.export_library(tmp_path / "f.tar")
    with tarfile.open(tmp_path / "f.tar") as archive:
        assert archive.getnames() == ["f.c", "f.h"]
    with pytest.raises(TensorExprError, match=r"functions of target c run when a C compiler has compiled them, and there is no cc, gcc"):
        module(FLOATS, FLOATS)
    with pytest.raises(ArgumentError, match=r"no format 'ptx' of a module of target c; there are c and o"):
        module.save(str(tmp_path / "f.ptx"))
    with pytest.raises(TensorExprError, match="for 'll' and 'asm' build for target llvm"):
        _ = module.spills


def test_what_measures_is_told_what_takes_the_target() -> None:
    with pytest.raises(TargetError, match="`build` writes C text for it, and nothing else makes code of it"):
        C.check_built()
    assert tvm.runtime.enabled("c -keys=cpu")


@needs_compiler
def test_graphs_are_kernels_in_c(tmp_path: Path) -> None:
    from tensorexpr import relay
    from tensorexpr.contrib import graph_executor

    x = relay.var("x", shape=(2, 3))
    graph = tvm.IRModule.from_expr(relay.Function((x,), relay.nn.relu(x) + relay.const(1.0)))
    library = relay.build(graph, "c")
    data = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    library.export_library(str(tmp_path / "net.so"))
    for built in (library, tvm.runtime.load_module(str(tmp_path / "net.so"))):
        runner = graph_executor.GraphModule(built["default"](tvm.cpu()))
        runner.set_input("x", data)
        runner.run()
        np.testing.assert_array_equal(runner.get_output(0).numpy(), np.maximum(data, 0) + 1)
    library.lib.save(str(tmp_path / "model.c"))
    assert (tmp_path / "model.c").read_text() == library.lib.get_source()
