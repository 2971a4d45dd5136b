"""te.extern and te.extern_primfunc: what they declare, and how they run."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError
from tensorexpr.runtime.ndarray import NDArray
from tensorexpr.schedule.auto_inline import AutoInlineInjective
from tensorexpr.script import tir as T
from tensorexpr.te.dag_text import format_dag
from tensorexpr.te.extern import ExternOp
from tensorexpr.te.flops import flop_count
from tensorexpr.te.identity import dag_equal
from tensorexpr.te.reference import evaluate
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.interpreter import interpret

Buffers = list[tir.Buffer]


def prefix_sums(ins: Buffers, outs: Buffers) -> tir.Stmt:
    ib = tir.ir_builder.create()
    x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    y[0] = x[0]
    with ib.for_range(1, ins[0].shape[0], name="i") as i:
        y[i] = y[i - 1] + x[i]
    return ib.get()


def test_one_output() -> None:
    a = te.placeholder((5,), "int32", name="a")
    b = te.extern(a.shape, [a], prefix_sums, name="b")
    assert isinstance(b.op, ExternOp)
    assert (b.name, b.dtype, b.op.input_tensors, list(b.op.axis)) == ("b", "int32", (a,), [])
    (found,) = evaluate([b], {a: np.arange(5, dtype=np.int32)})
    assert found.tolist() == [0, 1, 3, 6, 10]
    assert_schedule_correct(te.create_schedule(b.op), [a, b])


def test_several_outputs_and_dtypes() -> None:
    a = te.placeholder((4,), name="a")

    def body(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, whole, part = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, 4, name="i") as i:
            whole[i] = tir.floor(x[i] * 10.0).astype("int32")
            part[0, i] = x[i] * 10.0 - tir.floor(x[i] * 10.0)
        return ib.get()

    whole, part = te.extern([(4,), (1, 4)], [a], body, name="parts", dtype=["int32", "float32"])
    assert (whole.name, part.name, whole.dtype, part.dtype) == ("parts.v0", "parts.v1", "int32", "float32")
    total = te.compute((4,), lambda i: whole[i].astype("float32") + part[0, i], name="total")
    schedule = te.create_schedule(total.op)
    _, inner = schedule[total].split(total.op.axis[0], 4)
    schedule[total].vectorize(inner)
    assert_schedule_correct(schedule, [a, total])


def test_symbolic_sizes_and_scalars() -> None:
    n, bias = te.size_var("n"), te.var("bias")
    a = te.placeholder((n,), "int32", name="a")

    def body(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, n, name="i", kind="parallel") as i:
            ib.buffer_ptr(outs[0])[i] = ib.buffer_ptr(ins[0])[n - 1 - i] + bias
        return ib.get()

    b = te.extern((n,), [a], body, name="b")
    c = te.compute((n,), lambda i: b[i] * 2, name="c")
    schedule = te.create_schedule(c.op)
    module = tvm.build(schedule, [a, c, bias])
    data = np.arange(7, dtype=np.int32)
    for count in (1, 7):
        out = np.zeros(count, np.int32)
        module(data[:count], out, 5)
        assert out.tolist() == [2 * (int(v) + 5) for v in reversed(data[:count])]
        (expected,) = evaluate([c], {a: data[:count], bias: 5})
        assert expected.tolist() == out.tolist()


def test_buffers_with_strides_of_their_own() -> None:
    a = te.placeholder((4, 3), name="a")
    b = te.compute((4, 3), lambda i, j: a[i, j] + 1.0, name="b")
    strides = [te.var("s0"), te.var("s1")]
    view = tir.decl_buffer((4, 3), "float32", "view", strides=strides, elem_offset=te.var("offset"))

    def body(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, 4, name="i") as i:
            ib.buffer_ptr(outs[0])[i] = ib.buffer_ptr(ins[0])[i, 2] * strides[0].astype("float32")
        return ib.get()

    c = te.extern((4,), [b], body, name="c", in_buffers=[view])
    schedule = te.create_schedule(c.op)
    assert_schedule_correct(schedule, [a, c])
    schedule[b].storage_align(b.op.axis[0], 8, 0)  # the strides that the body sees are those of the storage
    data, out = np.zeros((4, 3), np.float32), np.zeros(4, np.float32)
    tvm.build(schedule, [a, c])(data, out)
    assert out.tolist() == [8.0] * 4


def test_pointers_for_c_functions() -> None:
    a = te.placeholder((6,), name="a")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="b")

    def body(ins: Buffers, outs: Buffers) -> Any:
        return tir.call_extern("handle", "memcpy", outs[0].access_ptr("w"), ins[0].access_ptr("r"), tir.const(24, "int64"))

    c = te.extern((6,), [b], body, name="c")
    data, out = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    tvm.build(te.create_schedule(c.op), [a, c])(data, out)
    assert out.tolist() == (data + 1).tolist()


def test_cache_read_serves_an_extern() -> None:
    a = te.placeholder((5,), "int32", name="a")
    b = te.extern(a.shape, [a], prefix_sums, name="b")
    schedule = te.create_schedule(b.op)
    copy = schedule.cache_read(a, "local", [b])
    assert schedule[b].op.input_tensors == (copy,)
    assert_schedule_correct(schedule, [a, b])


def test_it_is_drawn_explained_and_counted() -> None:
    a = te.placeholder((5,), "int32", name="a")
    b = te.extern(a.shape, [a], prefix_sums, name="b", attrs={"FLOP": 4})
    schedule = te.create_schedule(b.op)
    assert "b = extern(a)" in str(schedule)
    assert "b: computed at the root; nothing else reads it\n  loops: those of its statement" in schedule.explain()
    assert format_dag([b]) == "a = PLACEHOLDER [5]\nb = extern(a)\n"
    assert flop_count([b]) == 4
    assert flop_count([te.extern(a.shape, [a], prefix_sums, name="b")]) == -1


def test_equality_is_that_of_the_statements() -> None:
    a = te.placeholder((5,), "int32", name="a")

    def twice(ins: Buffers, outs: Buffers) -> tir.Stmt:
        return tir.stmt_seq(prefix_sums(ins, outs), prefix_sums(ins, outs))

    first, second, third = (
        te.extern(a.shape, [a], body, name=name) for body, name in ((prefix_sums, "b"), (prefix_sums, "c"), (twice, "b"))
    )
    assert dag_equal([first], [second])
    assert not dag_equal([first], [third])


def test_rank_0() -> None:
    a = te.placeholder((), "int32", name="a")

    def body(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        ib.buffer_ptr(outs[0])[()] = ib.buffer_ptr(ins[0])[()] + 1
        return ib.get()

    b = te.extern((), [a], body, name="b")
    assert_schedule_correct(te.create_schedule(b.op), [a, b])


def scaled(rows: Any = 4) -> tir.PrimFunc:
    source, target = tir.decl_buffer((rows,), name="source"), tir.decl_buffer((rows,), name="target")
    ib = tir.ir_builder.create()
    with ib.for_range(0, rows, name="i") as i:
        ib.buffer_ptr(target)[i] = ib.buffer_ptr(source)[i] * 3.0
    params = {tir.Var("source", "handle"): source, tir.Var("target", "handle"): target}
    return tir.PrimFunc(tuple(params), ib.get(), None, params)


def test_a_function_as_a_stage_even_twice() -> None:
    a = te.placeholder((4,), name="a")
    func = scaled()
    b = te.extern_primfunc([a], func, name="b")
    c = te.extern_primfunc([b], func, name="c")
    (found,) = evaluate([c], {a: np.ones(4, np.float32)})
    assert found.tolist() == [9.0] * 4
    assert_schedule_correct(te.create_schedule(c.op), [a, c])


def test_symbolic_sizes_of_a_function_are_those_of_the_tensors() -> None:
    a = te.placeholder((6,), name="a")
    b = te.extern_primfunc([a], scaled(tir.Var("rows", "int32")), name="b")
    assert [int(extent) for extent in b.shape] == [6]
    assert_schedule_correct(te.create_schedule(b.op), [a, b])


@T.prim_func
def blocks(source: T.Buffer((4,), "float32"), total: T.Buffer((1,), "float32")) -> None:
    for i in range(4):
        with T.block("outer"):
            twice = T.alloc_buffer((1,))
            with T.block("twice"):
                twice[0] = source[i] * 2.0
            with T.block("total"):
                vi = T.axis.reduce(4, i)
                with T.init():
                    total[0] = 1.0
                total[0] = total[0] + twice[0]
                source[vi] = twice[0]


def test_a_function_of_blocks_as_a_stage_that_changes_its_input() -> None:
    a = te.placeholder((4,), name="a")
    b = te.extern_primfunc([a], blocks, name="b")
    c = te.compute((1,), lambda i: b[i] + 1.0, name="c")
    func = te.create_prim_func([a, c])
    assert "T.writes(a[0:4], b[0])" in func.script()
    for module in (tvm.lower(te.create_schedule(c.op), [a, c]), tvm.lower(func)):
        source, result = np.arange(4, dtype=np.float32), np.zeros(1, np.float32)
        interpret(module["main"], [source, result])
        assert source.tolist() == [0.0, 2.0, 4.0, 6.0] and result[0] == 14.0


@tvm.register_func("tests.extern.sorted", override=True)
def sort_rows(source: NDArray, target: NDArray) -> None:
    np.from_dlpack(target)[...] = np.sort(np.from_dlpack(source), axis=-1)


def test_a_python_function_as_a_stage() -> None:
    a = te.placeholder((3, 5), name="a")
    b = te.compute((3, 5), lambda i, j: a[i, j] * -1.0, name="b")
    c = te.extern((3, 5), [b], lambda ins, outs: tir.call_packed("tests.extern.sorted", ins[0], outs[0]), name="c")
    d = te.compute((3, 5), lambda i, j: c[i, j] * 2.0, name="d")
    assert_schedule_correct(te.create_schedule(d.op), [a, d])


@pytest.mark.parametrize("name", ["sqrtf", "cbrtf", "hypotf"])
def test_functions_of_the_math_library(name: str) -> None:
    a = te.placeholder((9,), name="a")
    args = 2 if name == "hypotf" else 1
    b = te.compute((9,), lambda i: tir.call_pure_extern("float32", name, *[te.abs(a[i])] * args), name="b")
    assert_schedule_correct(te.create_schedule(b.op), [a, b])
    data, out = np.linspace(0, 4, 9, dtype=np.float32), np.zeros(9, np.float32)
    tvm.build(te.create_schedule(b.op), [a, b])(data, out)
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * args
    assert out.tolist() == [function(*[float(v)] * args) for v in data]


def test_what_an_extern_reads_stays_when_others_are_inlined() -> None:
    a = te.placeholder((5,), "int32", name="a")
    read, inlined = te.compute((5,), lambda i: a[i] + 1, name="read"), te.compute((5,), lambda i: a[i] + 2, name="inlined")
    b = te.extern(a.shape, [read], prefix_sums, name="b")
    c = te.compute((5,), lambda i: b[i] + inlined[i], name="c")
    schedule = te.create_schedule(c.op)
    AutoInlineInjective(schedule)
    assert str(schedule).splitlines()[1] == "inlined: inlined"
    assert_schedule_correct(schedule, [a, c])


def test_derivatives_do_not_pass_through_an_extern() -> None:
    a, x = te.placeholder((5,), name="a"), te.placeholder((5,), name="x")
    b = te.extern(a.shape, [a], prefix_sums, name="b")
    c = te.compute((5,), lambda i: b[i] * x[i], name="c")
    with pytest.raises(DeclarationError, match="it depends on the inputs through the extern b, whose statement has no derivative"):
        te.gradient(c, [a])
    (change,) = te.gradient(c, [x])
    data = np.arange(5, dtype=np.float32)
    (found,) = evaluate([change], {a: data})
    assert np.diagonal(found.reshape(5, 5)).tolist() == np.cumsum(data).tolist()


def test_one_tensor_twice_and_none() -> None:
    a = te.placeholder((8,), "int32", name="a")

    def both(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, z, y = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, 8, "i", kind="vectorize") as i:
            y[i] = x[i] + z[7 - i]
        return ib.get()

    def numbers(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, 8, "i") as i:
            ib.buffer_ptr(outs[0])[i] = i
        return ib.get()

    b = te.extern((8,), [a, a], both, name="b")
    c = te.extern((8,), [], numbers, name="c", dtype="int32")
    d = te.compute((8,), lambda i: b[i] + c[i], name="d")
    assert_schedule_correct(te.create_schedule(d.op), [a, d])
    assert_schedule_correct(te.create_schedule(c.op), [c])


def test_what_happens_to_an_address_is_seen() -> None:
    a = te.placeholder((8,), "int32", name="a")

    def body(ins: Buffers, outs: Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("int32", (1,), "total", scope="local")  # would live in a register, but for its address
        total[0] = 0
        with ib.for_range(0, 8, "i") as i:
            ib.emit(tir.atomic_add(total[0], x[i]))
        y[0] = 0
        with ib.while_loop(y[0] < total[0]):
            y[0] = y[0] + tir.call_packed("tests.extern.three")
        return ib.get()

    tvm.register_func("tests.extern.three", lambda: 3, override=True)
    b = te.extern((1,), [a], body, name="b")
    assert_schedule_correct(te.create_schedule(b.op), [a, b])


def test_a_traced_value_behind_a_condition() -> None:
    seen: list[int] = []
    tvm.register_func("tests.extern.note", seen.append, override=True)
    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: te.if_then_else(i < 3, te.trace([a[i]], "tests.extern.note"), 0), name="b")
    out = np.full(8, 9, np.int32)
    tvm.build(te.create_schedule(b.op), [a, b])(np.arange(8, dtype=np.int32), out)
    assert (seen, out.tolist()) == ([0, 1, 2], [0, 1, 2, 0, 0, 0, 0, 0])
