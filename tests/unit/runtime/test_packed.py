"""Python functions called from compiled code: their arguments, results, exceptions, and where they are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ArgumentError, CodegenError, LoweringError, TensorExprError
from tensorexpr.runtime.ndarray import NDArray
from tensorexpr.runtime.registry import remove_global_func

Register = Callable[[Callable[..., Any]], str]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers functions for one test; gives the name."""
    names: list[str] = []

    def add(function: Callable[..., Any]) -> str:
        names.append(f"tests.packed.{len(names)}")
        tvm.register_func(names[-1], function, override=True)
        return names[-1]

    yield add
    for name in names:
        remove_global_func(name)


def kernel(*statements: tir.Stmt | tir.PrimExpr, buffers: list[tir.Buffer], scalars: list[tir.Var] | None = None) -> tvm.runtime.Module:
    body = tir.stmt_seq(*(tir.Evaluate(s) if isinstance(s, tir.PrimExpr) else s for s in statements))
    handles = {tir.Var(buffer.name, "handle"): buffer for buffer in buffers}
    return tvm.build(tir.PrimFunc((*handles, *(scalars or ())), body, None, handles).with_attr("global_symbol", "main"))


def store(buffer: tir.Buffer, value: Any, *indices: Any) -> tir.Stmt:
    return tir.BufferStore(buffer, tir.convert(value), tuple(tir.const(i) if isinstance(i, int) else i for i in indices))


def test_arrays_share_memory_and_numbers_arrive(register: Register) -> None:
    seen: list[Any] = []

    def note(array: NDArray, *rest: Any) -> None:
        seen.append((array.shape, array.dtype, array[...].tolist(), *rest))
        array[0, 1] = 50

    a, n, x = tir.decl_buffer((2, 3), "int16", name="a"), tir.Var("n"), tir.Var("x", "float64")
    call = tir.call_packed(register(note), a, n + 1, x * 2.0, n > 3, "text", tir.const(-(2**62), "int64"))
    data = np.arange(6, dtype=np.int16).reshape(2, 3)
    kernel(call, store(a, a[0, 1] + tir.const(1, "int16"), 1, 2), buffers=[a], scalars=[n, x])(data, 7, 0.25)
    assert seen == [((2, 3), "int16", [[0, 1, 2], [3, 4, 5]], 8, 0.5, 1, "text", -(2**62))]
    assert data.tolist() == [[0, 50, 2], [3, 4, 51]]  # what the function wrote is read after it


def test_strided_arrays_and_offsets(register: Register) -> None:
    seen: list[Any] = []
    a = tir.decl_buffer((3, 2), "float32", "a", strides=[4, 1])
    call = tir.call_packed(register(lambda array: seen.append(array[...].tolist())), a)
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    kernel(call, buffers=[a])(data[:, :2])
    assert seen == [[[0, 1], [4, 5], [8, 9]]]


def test_what_was_stored_before_is_seen_and_results_count(register: Register) -> None:
    a = tir.decl_buffer((4,), "int32", name="a")
    i = tir.Var("i")
    name = register(lambda array, at: int(array[at]) * 10)
    body = tir.For(i, tir.const(0), tir.const(3), tir.ForKind.SERIAL, store(a, tir.call_packed(name, a, i) + 1, i + 1))
    data = np.array([1, 0, 0, 0], np.int32)
    kernel(body, buffers=[a])(data)
    assert data.tolist() == [1, 11, 111, 1111]


@pytest.mark.parametrize(("returned", "number"), [(None, 0), (True, 1), (2.9, 2), (np.int8(-3), -3), ("text", 0), (np.zeros(2), 0)])
def test_results_that_are_no_numbers_count_as_0(returned: Any, number: int, register: Register) -> None:
    a = tir.decl_buffer((1,), "int32", name="a")
    data = np.full(1, 9, np.int32)
    kernel(store(a, tir.call_packed(register(lambda: returned)), 0), buffers=[a])(data)
    assert data.tolist() == [number]


def test_an_exception_is_the_callers(register: Register) -> None:
    class Mine(Exception):
        pass

    def refuse(array: NDArray) -> None:
        raise Mine("stop")

    a = tir.decl_buffer((2,), "int32", name="a")
    module = kernel(store(a, 1, 0), tir.call_packed(register(refuse), a), store(a, 1, 1), buffers=[a])
    data = np.zeros(2, np.int32)
    for _ in range(2):
        with pytest.raises(Mine, match="stop"):
            module(data)
    assert data.tolist() == [1, 0]


def test_an_unknown_function_is_named(register: Register) -> None:
    a = tir.decl_buffer((2,), "int32", name="a")
    module = kernel(tir.call_packed("tests.packed.nobody", a), buffers=[a])
    with pytest.raises(ArgumentError, match=r"no function 'tests.packed.nobody' is registered"):
        module(np.zeros(2, np.int32))


def test_workspaces_are_given_back_and_threads_do_not_mix(register: Register) -> None:
    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> Any:
        return tir.call_packed(name, ins[0], outs[0])

    def check(source: NDArray, target: NDArray) -> None:
        if source[0] < 0:
            raise ValueError(str(source[0]))
        target[...] = source[...]

    name = register(check)
    a = te.placeholder((50,), name="a")
    b = te.compute((50,), lambda i: a[i] + 1.0, name="b")
    c = te.extern((50,), [b], body, name="c")
    module = tvm.build(te.create_schedule(c.op), [a, c])
    wrong: list[str] = []

    def work(value: float) -> None:
        for _ in range(50):
            out = np.zeros(50, np.float32)
            try:
                module(np.full(50, value, np.float32), out)
                if value < -1 or (out != value + 1).any():
                    wrong.append(f"{value} went through")
            except ValueError as error:
                if str(error) != str(np.float32(value + 1)):
                    wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(value,)) for value in (3.0, -4.0, 5.0, -6.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_parallel_loop_refuses_it_when_lowered(register: Register) -> None:
    a, i = tir.decl_buffer((4,), "int32", name="a"), tir.Var("row")
    name = register(lambda *args: None)
    loop = tir.For(i, tir.const(0), tir.const(4), tir.ForKind.PARALLEL, tir.Evaluate(tir.call_packed(name, a, i)))
    handle = tir.Var("a", "handle")
    with pytest.raises(LoweringError, match=r"is called inside the parallel loop row.*make the loop serial"):
        tvm.lower(tir.PrimFunc((handle,), loop, None, {handle: a}))


def test_it_is_not_exported(register: Register, tmp_path: Path) -> None:
    a = tir.decl_buffer((4,), "int32", name="a")
    name = register(lambda *args: None)
    module = kernel(tir.call_packed(name, a), buffers=[a])
    for ending in ("so", "o", "tar"):
        with pytest.raises(TensorExprError, match=f"calls the Python function {name}, which lives in this process only"):
            module.export_library(str(tmp_path / f"x.{ending}"))
    with pytest.raises(TensorExprError, match="can't be exported"):
        module.save(str(tmp_path / "x.o"))


def test_an_unknown_c_function_is_named_when_built() -> None:
    a = tir.decl_buffer((4,), "int32", name="a")
    with pytest.raises(CodegenError, match="the external function nobody_has_this is in no library of this process; load it with ctypes"):
        kernel(tir.call_extern("int32", "nobody_has_this", a.data), buffers=[a])


def test_a_c_function_stays_undefined_in_an_object(tmp_path: Path) -> None:
    a = tir.decl_buffer((4,), "float32", name="a")
    module = kernel(store(a, tir.call_pure_extern("float32", "cbrtf", a[0]), 1), buffers=[a])
    path = tmp_path / "x.o"
    module.save(str(path))
    assert b"cbrtf" in path.read_bytes()
    data = np.array([27, 0, 0, 0], np.float32)
    tvm.runtime.load_module(path)(data)
    assert data.tolist() == [27, 3, 0, 0]


def test_trace_sees_values_and_may_replace_them(register: Register) -> None:
    seen: list[Any] = []

    def look(i: int, value: float) -> float | None:
        seen.append((i, value))
        return -1.0 if i == 2 else None

    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: te.trace([i, a[i] * 2.0], register(look)), name="b")
    out = np.zeros(4, np.float32)
    tvm.build(te.create_schedule(b.op), [a, b])(np.arange(4, dtype=np.float32), out)
    assert out.tolist() == [0, 2, -1, 6]
    assert seen == [(0, 0.0), (1, 2.0), (2, 4.0), (3, 6.0)]


def test_the_default_trace_prints(capsys: pytest.CaptureFixture[str]) -> None:
    a = te.placeholder((2,), "int32", name="a")
    b = te.compute((2,), lambda i: te.trace([a[i]]), name="b")
    out = np.zeros(2, np.int32)
    tvm.build(te.create_schedule(b.op), [a, b])(np.array([4, 5], np.int32), out)
    assert (capsys.readouterr().out, out.tolist()) == ("[4]\n[5]\n", [4, 5])
