"""The reference semantics: what programs compute, and that everything forbidden is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import tir
from tensorexpr.tir.buffer import pointer_var
from tensorexpr.tir.dtype import to_numpy, wrap_int
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tests.effort import share_of

TRUE = tir.const(True)
i, j, k, n = tir.Var("i"), tir.Var("j"), tir.Var("k"), tir.SizeVar("n")
PARALLEL, VECTORIZED = tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED


def loop(var: tir.Var, extent: int | tir.PrimExpr, body: tir.Stmt, kind: tir.ForKind = tir.ForKind.SERIAL) -> tir.For:
    return tir.For(var, tir.const(0, var.dtype), tir.convert(extent), kind, body)


def store(buffer: tir.Buffer, value: Any, *indices: Any) -> tir.Stmt:
    return tir.BufferStore(buffer, tir.convert(value), tuple(map(tir.convert, indices)))


def func(buffers: list[tir.Buffer], body: tir.Stmt, *scalars: tir.Var) -> tir.PrimFunc:
    handles = [tir.Var(b.name, "handle") for b in buffers]
    return tir.PrimFunc((*handles, *scalars), body, None, dict(zip(handles, buffers, strict=True)))


def allocated(name: str, size: int, body: Callable[[tir.Buffer], tir.Stmt], dtype: str = "float32") -> tir.Stmt:
    buffer = tir.decl_buffer((size,), dtype, name, data=pointer_var(name, dtype))
    return tir.Allocate(buffer.data, dtype, (tir.const(size),), TRUE, body(buffer))


def ramp(base: Any, lanes: int, stride: int = 1) -> tir.PrimExpr:
    return tir.Ramp(tir.convert(base), tir.const(stride), lanes)


def evaluate(expr: tir.PrimExpr, *operands: tuple[tir.Var, Any]) -> Any:
    """The value of an expression, through a buffer that holds it."""
    lanes = tir.decl_buffer((1,), expr.dtype).access_dtype((tir.const(0),)).partition("x")[2]
    scalar = expr.dtype.partition("x")[0]
    size = int(lanes or 1)
    buffer = tir.decl_buffer((size,), scalar, "out")
    index = ramp(0, size) if size > 1 else tir.const(0)
    out = np.zeros(size, to_numpy(scalar))
    variables, values = [v for v, _ in operands], [value for _, value in operands]
    interpret(func([buffer], tir.BufferStore(buffer, expr, (index,)), *variables), [out, *values])
    return out if size > 1 else out[0]


def fails(program: tir.PrimFunc, args: list[Any], match: str, **options: Any) -> None:
    with pytest.raises(InterpreterError, match=match):
        interpret(program, args, **options)


# Programs of each phase.


def matmul_args() -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(0)
    return generator.random((4, 6), np.float32), generator.random((6, 5), np.float32), np.full((4, 5), 7, np.float32)


def test_multi_dimensional_reduction() -> None:
    a, b, c = tir.decl_buffer((4, 6), name="A"), tir.decl_buffer((6, 5), name="B"), tir.decl_buffer((4, 5), name="C")
    update = loop(k, 6, store(c, c[i, j] + a[i, k] * b[k, j], i, j))
    program = func([a, b, c], loop(i, 4, loop(j, 5, tir.stmt_seq(store(c, tir.const(0.0), i, j), update))))
    x, y, z = matmul_args()
    interpret(program, [x, y, z])
    expected = np.zeros((4, 5), np.float32)
    for step in range(6):
        expected += x[:, step : step + 1] * y[step]
    assert np.array_equal(z, expected)  # the same roundings in the same order


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
def test_flat_views_allocations_and_parallel_order(order: Any) -> None:
    a, c = tir.decl_buffer((4, 6), name="A"), tir.decl_buffer((4, 6), name="C")
    fa, fc = (tir.decl_buffer((24,), name=x.name, data=x.data) for x in (a, c))
    body = allocated(
        "t", 6, lambda t: tir.stmt_seq(loop(j, 6, store(t, fa[i * 6 + j] * 2.0, j)), loop(k, 6, store(fc, t[5 - k], i * 6 + k)))
    )
    x, z = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((4, 6), np.float32)
    interpret(func([a, c], loop(i, 4, body, PARALLEL)), [x, z], parallel_order=order)
    assert np.array_equal(z, x[:, ::-1] * 2)


def test_realized_box_counts_from_the_tensor_origin() -> None:
    a, t, c = (tir.decl_buffer((4, 4), name=name) for name in "ATC")
    box = (tir.Range.from_min_extent(i, tir.const(1)), tir.Range.from_min_extent(tir.const(1), tir.const(3)))
    inner = tir.stmt_seq(loop(j, 3, store(t, a[i, j + 1], i, j + 1)), loop(j, 3, store(c, t[i, j + 1], i, j)))
    program = func([a, c], loop(i, 4, tir.BufferRealize(t, box, TRUE, inner)))
    x, z = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    interpret(program, [x, z])
    assert np.array_equal(z[:, :3], x[:, 1:])


def test_a_parameter_may_be_realized() -> None:
    c = tir.decl_buffer((4,), name="C")
    program = func(
        [c], tir.BufferRealize(c, (tir.Range.from_min_extent(tir.const(0), tir.const(4)),), TRUE, loop(i, 4, store(c, tir.const(1.0), i)))
    )
    z = np.zeros(4, np.float32)
    interpret(program, [z])
    assert z.tolist() == [1, 1, 1, 1]


def test_vectors_registers_and_masks() -> None:
    a, c = tir.decl_buffer((10,), name="A"), tir.decl_buffer((10,), name="C")
    acc = tir.decl_buffer((2,), "float32x4", "acc", data=pointer_var("acc", "float32x4", "register"))
    at = ramp(i * 4, 4)
    mask = tir.LT(at, tir.Broadcast(tir.const(10), 4))
    body = tir.stmt_seq(
        store(acc, tir.Broadcast(tir.const(1.0), 4), 1),
        loop(i, 3, tir.stmt_seq(store(acc, acc[1] + tir.BufferLoad(a, (at,), mask), 1), tir.BufferStore(c, acc[1], (at,), mask))),
    )
    x, z = np.arange(10, dtype=np.float32), np.full(10, -1, np.float32)
    interpret(func([a, c], tir.Allocate(acc.data, "float32x4", (tir.const(2),), TRUE, body)), [x, z])
    sums = np.ones(4, np.float32)
    expected = []
    for row in np.pad(x, (0, 2)).reshape(3, 4):
        sums = sums + row
        expected.append(sums)
    assert z.tolist() == np.concatenate(expected)[:10].tolist()


def test_vector_condition_leaves_lanes_unread() -> None:
    a, c = tir.decl_buffer((4,), name="A"), tir.decl_buffer((8,), name="C")
    at = ramp(-2, 8)
    inside = tir.And(tir.GE(at, tir.Broadcast(tir.const(0), 8)), tir.LT(at, tir.Broadcast(tir.const(4), 8)))
    value = tir.Call("float32x8", "tir.if_then_else", (inside, a[at], tir.Broadcast(tir.const(9.0), 8)))
    x, z = np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    interpret(func([a, c], tir.BufferStore(c, value, (ramp(0, 8),))), [x, z])
    assert z.tolist() == [9, 9, 0, 1, 2, 3, 9, 9]
    fails(func([a, c], tir.BufferStore(c, tir.Select(inside, a[at], a[at]), (ramp(0, 8),))), [x, z], r"A\[\[-2, -1, 0.*out of bounds")


def test_strided_stores_and_shuffles() -> None:
    a, c = tir.decl_buffer((8,), "int32", "A"), tir.decl_buffer((8,), "int32", "C")
    body = tir.stmt_seq(
        tir.BufferStore(c, a[ramp(4, 4)], (ramp(0, 4, 2),)),
        tir.BufferStore(c, tir.Shuffle((a[ramp(0, 2)], a[ramp(2, 2)]), (3, 0, 1, 2)), (ramp(7, 4, -2),)),
        store(c, c[0] + tir.Shuffle((a[ramp(0, 8)],), (7,)), 0),
    )
    x, z = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    interpret(func([a, c], body), [x, z])
    assert z.tolist() == [11, 2, 5, 1, 6, 0, 7, 3]


def test_control_flow() -> None:
    c = tir.decl_buffer((6,), "int32", "C")
    v = tir.Var("v")
    thread = tir.IterVar(None, tir.Var("vt"), tir.IterVar.THREAD_INDEX, "vthread")
    body = tir.stmt_seq(
        store(c, 0, 0),
        tir.While(c[0] < 5, store(c, c[0] + 2, 0)),
        tir.LetStmt(v, c[0] * 2, tir.IfThenElse(v > 11, store(c, v, 1), store(c, -v, 1))),
        tir.AssertStmt(n > 2, tir.StringImm("too small"), tir.Evaluate(tir.const(1))),
        tir.AttrStmt(thread, "virtual_thread", tir.const(3), store(c, thread.var * 10, thread.var + 2)),
        tir.For(i, tir.const(5), tir.const(1), VECTORIZED, store(c, i, i)),
        tir.Evaluate(tir.call_intrin("int32", "tir.prefetch", 0)),
    )
    z = np.zeros(6, np.int32)
    interpret(func([c], body, n), [z, 3])
    assert z.tolist() == [6, 12, 0, 10, 20, 5]
    fails(func([c], body, n), [z, 2], "assert n > 2 failed: too small")


def test_extern_functions() -> None:
    c = tir.decl_buffer((2,), name="C")
    body = tir.stmt_seq(
        store(c, tir.call_pure_extern("float32", "half", 3.0), 0), tir.Evaluate(tir.call_extern("int32", "note", c.data, 5))
    )
    seen: list[Any] = []
    z = np.zeros(2, np.float32)
    interpret(func([c], body), [z], externs={"half": lambda v: v / 2, "note": lambda data, v: seen.append(v)})
    assert z[0] == 1.5 and seen == [5]
    fails(func([c], body), [z], "'half' can't be interpreted.*given: none")


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16"])
def test_linear_forms_wrap_as_their_steps_do(dtype: str) -> None:
    """Sums and multiples are one form for the interpreter, which wraps once where the machine does at each step."""
    kinds = {"add": (tir.Add, np.add), "sub": (tir.Sub, np.subtract), "mul": (tir.Mul, np.multiply)}
    names, top = [tir.Var(name, dtype) for name in "abc"], int(np.iinfo(dtype).max)
    for values in [(1, 2, 3), (top, top - 1, top), (top // 2, 0, 5), (0, top, top)]:
        expr: tir.PrimExpr = names[0]
        wanted = np.array([values[0]], dtype)
        for kind, operand in [
            ("mul", 7),
            ("sub", 1),
            ("mul", 90),
            ("add", 2),
            ("mul", 3),
            ("sub", 0),
            ("add", 11),
            ("mul", 101),
            ("sub", 2),
        ]:
            node, computed = kinds[kind]
            expr = node(expr, tir.const(operand, dtype) if kind == "mul" or operand > 2 else names[operand])
            wanted = computed(wanted, np.array([operand if kind == "mul" or operand > 2 else values[operand]], dtype))
        assert evaluate(expr, *zip(names, values, strict=True)) == wanted[0]


def test_deep_expressions_and_statements() -> None:
    c = tir.decl_buffer((1,), "int32", "C")
    deep: tir.PrimExpr = n
    for _ in range(3_000):
        deep = tir.Add(deep, n)
    body = store(c, deep, 0)
    for number in range(1_000):
        body = tir.BufferRealize(
            tir.decl_buffer((1,), name=f"t{number}"), (tir.Range.from_min_extent(tir.const(0), tir.const(1)),), TRUE, body
        )
    z = np.zeros(1, np.int32)
    interpret(func([c], body, n), [z, 2])
    assert z[0] == 6_002
    for _ in range(30_000):
        deep = tir.Max(deep, n)  # sums are one form, however deep they are
    fails(func([c], store(c, deep, 0), n), [z, 2], "nests deeper than")


# Scalars.

CASES = [
    (tir.FloorDiv, -7, 2, -4),
    (tir.FloorMod, -7, 2, 1),
    (tir.Div, -7, 2, -3),
    (tir.Mod, -7, 2, -1),
    (tir.Div, 7, -2, -3),
    (tir.Mod, 7, -2, 1),
    (tir.FloorMod, 7, -2, -1),
    (tir.Div, -(1 << 31), -1, -(1 << 31)),
    (tir.FloorDiv, -(1 << 31), -1, -(1 << 31)),
    (tir.Add, (1 << 31) - 1, 1, -(1 << 31)),
    (tir.Mul, 1 << 20, 1 << 12, 0),
]


@pytest.mark.parametrize(("op", "a", "b", "expected"), CASES)
def test_integers_wrap_and_divisions_round(op: Any, a: int, b: int, expected: int) -> None:
    assert evaluate(op(i, j), (i, a), (j, b)) == expected
    vector = op(tir.Broadcast(i, 4), tir.Broadcast(j, 4))
    assert evaluate(vector, (i, a), (j, b)).tolist() == [expected] * 4


INT_DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
OPS = (tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max, tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)


@settings(deadline=None, derandomize=True, max_examples=share_of(150))
@given(st.sampled_from(INT_DTYPES), st.sampled_from(OPS), st.integers(-(1 << 64), 1 << 64), st.integers(-(1 << 64), 1 << 64))
def test_scalars_and_lanes_agree_on_integers(dtype: str, op: Any, a: int, b: int) -> None:
    a, b = wrap_int(a, dtype), wrap_int(b, dtype) or 1
    p, q = tir.Var("p", dtype), tir.Var("q", dtype)
    scalar = evaluate(op(p, q), (p, a), (q, b))
    lanes = evaluate(op(tir.Broadcast(p, 2), tir.Broadcast(q, 2)), (p, a), (q, b))
    assert lanes.tolist() == [scalar, scalar]


def test_float32_rounds_after_every_operation() -> None:
    x = tir.Var("x", "float32")
    assert evaluate((x + 1.0) - x, (x, 2.0**24)) == 0  # 2**24 + 1 has no float32
    assert evaluate(x * x, (x, 1e30)) == np.inf
    lanes = tir.Broadcast(x, 2)
    assert evaluate((lanes + 1.0) - lanes, (x, 2.0**24)).tolist() == [0, 0]


def test_bfloat16_and_float16_round_too() -> None:
    for dtype, kind in (("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16)):
        x = tir.Var("x", dtype)
        for expr, value in ((x * x, kind(1.1) * kind(1.1)), (tir.exp(x), np.exp(np.float32(kind(1.1))))):
            assert evaluate(expr, (x, 1.1)) == kind(value)
        assert evaluate(x.astype("float32") * 3.0, (x, 1.1)) == np.float32(kind(1.1)) * np.float32(3)
        assert evaluate(tir.exp(tir.Broadcast(x, 2)), (x, 1.1)).tolist() == [kind(np.exp(np.float32(kind(1.1))))] * 2


def test_min_and_max_take_the_second_operand_on_nan() -> None:
    x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    for op in (tir.Min, tir.Max):
        assert evaluate(op(x, y), (x, float("nan")), (y, 1.0)) == 1
        assert np.isnan(evaluate(op(x, y), (x, 1.0), (y, float("nan"))))
        assert evaluate(op(tir.Broadcast(x, 2), tir.Broadcast(y, 2)), (x, float("nan")), (y, 1.0)).tolist() == [1, 1]


def test_casts() -> None:
    x, big, wide = tir.Var("x", "float32"), tir.Var("l", "int64"), tir.Var("u", "uint64")
    assert evaluate(x.astype("int32"), (x, -2.7)) == -2
    assert evaluate(x.astype("int32"), (x, 2.0**31 - 128)) == 2**31 - 128
    assert evaluate(x.astype("int32"), (x, 2.0**31)) in range(-(1 << 31), 1 << 31)  # undefined, but an int32
    assert evaluate(x.astype("int8"), (x, 100.9)) == 100
    assert evaluate(x.astype("bool"), (x, 0.5))
    assert evaluate(big.astype("int8"), (big, 200)) == -56
    assert evaluate(big.astype("float32"), (big, (1 << 60) + (1 << 36) + 1)) == np.int64((1 << 60) + (1 << 36) + 1).astype(np.float32)
    assert evaluate(wide.astype("float64"), (wide, (1 << 64) - 1)) == 2.0**64
    assert evaluate(tir.Broadcast(x, 2).astype("int32x2"), (x, -2.7)).tolist() == [-2, -2]
    assert evaluate((i < 3).astype("float32"), (i, 2)) == 1


def test_lazy_and_eager_conditions() -> None:
    assert evaluate(tir.if_then_else(i > 0, 10 // i, 7), (i, 0)) == 7
    assert evaluate(tir.And(i > 0, 10 // i > 1).astype("int32"), (i, 0)) == 0
    assert evaluate(tir.Or(i <= 0, 10 // i > 1).astype("int32"), (i, 0)) == 1
    with pytest.raises(InterpreterError, match=r"division of 10 by zero in 10 // i"):
        evaluate(tir.Select(i > 0, 10 // i, tir.const(7)), (i, 0))
    with pytest.raises(InterpreterError, match="division by zero in a lane"):
        evaluate(tir.FloorDiv(tir.Broadcast(j, 4), ramp(i, 4)), (i, -1), (j, 5))


def test_intrinsics_agree_between_scalars_and_lanes() -> None:
    x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    given_values = ((x, 0.75), (y, 0.5))
    for name in ("exp", "tanh", "erf", "sqrt", "round", "abs", "isnan", "sigmoid"):
        build = getattr(tir, name)
        assert evaluate(build(x), *given_values) == pytest.approx(evaluate(build(tir.Broadcast(x, 2)), *given_values)[1])
    assert evaluate(tir.power(x, y), *given_values) == pytest.approx(0.75**0.5)
    assert evaluate(tir.erf(x), *given_values) == pytest.approx(0.7111556)
    assert evaluate(tir.round(x * 2.0), *given_values) == 2
    assert evaluate(tir.fma(x, x, -(x * x)), *given_values) == 0
    assert evaluate(i << 3, (i, 1 << 29)) == 0
    assert evaluate(i >> 1, (i, -3)) == -2
    assert evaluate(~i ^ 5, (i, 9)) == ~9 ^ 5
    assert evaluate(tir.clz(i), (i, 1)) == 31
    assert evaluate(tir.popcount(i), (i, -1)) == 32
    assert evaluate(tir.reinterpret("int32", x), *given_values) == np.float32(0.75).view(np.int32)
    assert evaluate(tir.reinterpret("float32x2", tir.Broadcast(i, 2)), (i, 0x3F800000)).tolist() == [1, 1]


def test_let_expression() -> None:
    v = tir.Var("v")
    assert evaluate(tir.Let(v, i * i, v + v), (i, 3)) == 18


# Arguments.


def test_symbolic_shapes_are_bound_and_checked() -> None:
    m = tir.Var("m", "int64")
    a, c = tir.decl_buffer((n, 3), name="A"), tir.decl_buffer((m, n + 1), name="C", strides=[tir.Var("s"), 1])
    program = func([a, c], loop(i, n, store(c, a[i, 2], 1, i + 1)))
    x, z = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((4, 9), np.float32)
    interpret(program, [x, z[:, 2:5]])
    assert z[1].tolist() == [0, 0, 0, 2, 5, 0, 0, 0, 0]
    fails(program, [x, z], r"argument C: shape \(4, 9\) where \(4, 3\) is needed")
    fails(program, [x, np.zeros((4, 6), np.float32)[:, ::2]], r"argument C: strides \(6, 2\) where \(6, 1\)")


def test_wrong_arguments_are_refused() -> None:
    c = tir.decl_buffer((4,), name="C")
    program = func([c], store(c, tir.const(1.0), 0), n)
    good = np.zeros(4, np.float32)
    fails(program, [good], r"1 arguments for the 2 parameters \(C, n\)")
    fails(program, [np.zeros(4), 1], "argument C: a float32 array of rank 1 is needed, not float64 array of rank 1")
    fails(program, [[0] * 4, 1], "not list")
    fails(program, [np.zeros((4, 1), np.float32), 1], "rank 2")
    fails(program, [np.zeros(8, np.float32)[::2], 1], "strides")
    fails(program, [good[::-1], 1], "can't be interpreted; copy")
    fails(program, [good, 1.5], "argument n: 1.5 is no int32")
    fails(program, [good, 1 << 31], "is no int32")
    fails(program, [good, 1], "one of forward, reverse, shuffled", parallel_order="sideways")
    frozen = np.zeros(4, np.float32)
    frozen.setflags(write=False)
    fails(program, [frozen, 1], "C is written, but its array is read-only")


def test_empty_and_scalar_arrays() -> None:
    a, c = tir.decl_buffer((n,), name="A"), tir.decl_buffer((), name="C")
    program = func([a, c], tir.stmt_seq(store(c, tir.const(5.0)), loop(i, n, store(c, c[()] + a[i]))))
    z = np.zeros((), np.float32)
    interpret(program, [np.zeros(0, np.float32), z])
    assert z == 5
    interpret(program, [np.ones(3, np.float32), z])
    assert z == 8


# What must be caught.


def test_out_of_bounds() -> None:
    a, c = tir.decl_buffer((4, 4), name="A"), tir.decl_buffer((16,), name="C")
    x, z = np.zeros((4, 4), np.float32), np.zeros(16, np.float32)
    # The flat offset would be inside; the element is not.
    fails(func([a, c], store(c, a[0, i], 0), i), [x, z, 5], r"A\[0, 5\] is out of bounds; A has the elements \[0:4, 0:4\]")
    fails(func([a, c], store(c, a[i, 0], 0), i), [x, z, -1], r"A\[-1, 0\]")
    fails(func([a, c], store(c, tir.const(1.0), i), i), [x, z, 16], r"C\[16\] is out of bounds; C has the elements \[0:16\]")
    view = tir.decl_buffer((17,), name="A", data=a.data)
    fails(func([a, c], store(c, view[i], 0), i), [x, z, 16], r"A\[16\]")
    part = tir.decl_buffer((8,), name="A", data=a.data)
    fails(func([a, c], store(c, part[i], 0), i), [x, z, 8], r"A\[8\] is out of bounds; A has the elements \[0:8\]")
    fails(func([a, c], tir.BufferStore(c, view[ramp(i, 4)], (ramp(0, 4),)), i), [x, z, 13], r"A\[\[13, 14, 15, 16\]\]")
    box = (tir.Range.from_min_extent(tir.const(2), tir.const(3)),)
    t = tir.decl_buffer((8,), name="T")
    fails(
        func([c], tir.BufferRealize(t, box, TRUE, store(t, tir.const(0.0), i)), i),
        [z, 1],
        r"T\[1\] is out of bounds; T has the elements \[2:5\]",
    )
    with pytest.raises(InterpreterError, match="out of bounds"):
        interpret(func([c], tir.BufferStore(c, tir.Broadcast(tir.const(1.0), 4), (ramp(14, 4),))), [z])
    assert not z.any()


def test_uninitialised_reads() -> None:
    c = tir.decl_buffer((4,), name="C")
    z = np.zeros(4, np.float32)
    fails(func([c], allocated("t", 4, lambda t: tir.stmt_seq(store(t, tir.const(1.0), 1), store(c, t[2], 0)))), [z], r"t\[2\] is read")
    vector = allocated("t", 4, lambda t: tir.stmt_seq(store(t, tir.const(1.0), 0), tir.BufferStore(c, t[ramp(0, 4)], (ramp(0, 4),))))
    fails(func([c], vector), [z], r"t\[1\] is read, but nothing was written there")
    # Each turn of the loop has fresh storage.
    body = allocated("t", 1, lambda t: tir.stmt_seq(tir.IfThenElse(i < 1, store(t, tir.const(1.0), 0)), store(c, t[0], i)))
    fails(func([c], loop(i, 2, body)), [z], r"t\[0\] is read")
    t = tir.decl_buffer((4, 4), name="T")
    box = (tir.Range.from_min_extent(tir.const(1), tir.const(2)), tir.Range.from_min_extent(tir.const(2), tir.const(2)))
    realized = tir.BufferRealize(t, box, TRUE, tir.stmt_seq(store(t, tir.const(1.0), 1, 2), store(c, t[2, 3], 0)))
    fails(func([c], realized), [z], r"T\[2, 3\] is read")


def run_parallel(body: Callable[[tir.Buffer], tir.Stmt], order: Any = "forward") -> None:
    c = tir.decl_buffer((9,), name="C")
    interpret(func([c], loop(i, 4, body(c), PARALLEL)), [np.zeros(9, np.float32)], parallel_order=order)


ONE = tir.const(1.0)
RACES: dict[str, Callable[[tir.Buffer], tir.Stmt]] = {
    "write and write": lambda c: store(c, ONE, i // 2),
    "write and read": lambda c: store(c, c[i + 1], i),
    "read and write": lambda c: tir.stmt_seq(store(c, c[7], i), tir.IfThenElse(i > 2, store(c, ONE, 7))),
    "vector writes": lambda c: tir.BufferStore(c, tir.Broadcast(ONE, 2), (ramp(i, 2),)),
    "vector reads": lambda c: tir.BufferStore(c, c[ramp(i * 2 + 1, 2)], (ramp(i * 2, 2),)),
    "reduction": lambda c: store(c, c[0] + 1.0, 0),
}


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
@pytest.mark.parametrize("name", RACES)
def test_races(name: str, order: Any) -> None:
    with pytest.raises(InterpreterError, match=r"race in parallel loop i: iteration \d \w+ C\[\d\] and iteration \d \w+ it"):
        run_parallel(RACES[name], order)


def test_what_is_no_race() -> None:
    run_parallel(lambda c: store(c, c[i * 2 + 1], i * 2))
    run_parallel(lambda c: store(c, c[7] + c[i], i))  # all read what nobody writes
    run_parallel(lambda c: allocated("t", 1, lambda t: tir.stmt_seq(store(t, ONE, 0), store(c, t[0] + 1.0, i))))
    c = tir.decl_buffer((8,), name="C")
    twice = tir.stmt_seq(*(loop(j, 8, store(c, ONE, j), PARALLEL) for _ in range(2)))
    interpret(func([c], twice), [np.zeros(8, np.float32)])  # one loop after the other
    inner = loop(i, 4, loop(j, 2, store(c, ONE, i * 2 + j), PARALLEL), PARALLEL)
    interpret(func([c], inner), [np.zeros(8, np.float32)])


def test_storage_inside_a_parallel_loop_can_still_race_in_a_loop_further_inside() -> None:
    c = tir.decl_buffer((8,), name="C")
    body = allocated("t", 1, lambda t: loop(j, 2, store(t, tir.const(1.0), 0), PARALLEL))
    fails(func([c], loop(i, 2, body, PARALLEL)), [np.zeros(8, np.float32)], r"race in parallel loop j: iteration 0 writes t\[0\]")


def test_ill_formed_functions_are_refused() -> None:
    c = tir.decl_buffer((4,), name="C")
    z = np.zeros(4, np.float32)
    fails(func([c], store(c, tir.const(1.0), j)), [z], "nothing defines them: j")
    stray = tir.decl_buffer((4,), name="S")
    fails(func([c], store(c, stray[0], 0)), [z], "nothing defines them: S")
    wrong = tir.decl_buffer((4,), "int32", "C", data=c.data)
    fails(func([c], store(wrong, 1, 0)), [z], "buffer C reads memory of float32 as int32")
    tensor_level = tir.Reduce(tir.CommReducer((i,), (j,), (i + j,), (tir.const(0),)), (tir.const(1),), (), TRUE)
    fails(func([c], store(c, tensor_level.astype("float32"), 0)), [z], "Reduce belongs to a tensor computation")
    unknown = tir.Call("float32", "tir.no_such", ())
    fails(func([c], store(c, unknown, 0)), [z], "does not know the intrinsic tir.no_such")


def test_a_let_ends_with_its_body() -> None:
    a, x = tir.decl_buffer((1,), "int32", "A"), tir.Var("x")
    value = tir.Let(x, a[0] + 1, tir.Let(x, a[0] + 2, x * 10) + x)
    z = np.zeros(1, np.int32)
    interpret(func([a], store(a, value, 0)), [z])
    assert z.tolist() == [21]
