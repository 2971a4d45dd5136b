"""Loops, branches, bindings, asserts, and the scoping of what is computed once."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tensorexpr.codegen.builder import OPEN_TO_VECTORS
from tensorexpr.errors import CodegenError
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir import intrin
from tensorexpr.tir.expr import Broadcast, Call, FloatImm, IntImm, Let, PrimExpr, Ramp, StringImm, Var
from tensorexpr.tir.stmt import (
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)

from .harness import compile_function, flat, load, loop, primfunc, store


def test_loops_from_any_start_of_any_extent_and_type() -> None:
    for dtype in ("int32", "int64", "uint8"):
        out, start, extent = flat("out", 40, "int32"), Var("start", dtype), Var("extent", dtype)
        i = Var("i", dtype)
        body = For(i, start, extent, ForKind.SERIAL, store(out, i, load(out, i) + ops.cast(i, "int32")))
        compiled = compile_function(primfunc([out, start, extent], body))
        for first, count in ((0, 0), (0, 1), (5, 7), (39, 1)):
            result = np.zeros(40, np.int32)
            compiled(result, first, count)
            assert result.tolist() == [j if first <= j < first + count else 0 for j in range(40)], dtype


def test_negative_starts_and_extents() -> None:
    out, n = flat("out", 20, "int32"), Var("n", "int32")
    i = Var("i", "int32")
    body = For(i, IntImm("int32", -5), n, ForKind.SERIAL, store(out, i + 5, i * 3))
    compiled = compile_function(primfunc([out, n], body))
    for extent in (-3, 0, 8):
        result = np.zeros(20, np.int32)
        compiled(result, extent)
        assert result.tolist() == [3 * (j - 5) if j < extent else 0 for j in range(20)]


def test_constant_extents_need_no_guard_and_empty_loops_no_code() -> None:
    out = flat("out", 8)
    assert compile_function(primfunc([out], loop("i", 8, lambda i: store(out, i, 1.0)))).text.count("br i1") == 1
    assert "store" not in compile_function(primfunc([out], loop("i", 0, lambda i: store(out, i, 1.0)))).text
    single = compile_function(primfunc([out], loop("i", 1, lambda i: store(out, i + 3, ops.cast(i + 2, "float32")))))
    assert "br i1" not in single.text
    result = np.zeros(8, np.float32)
    single(result)
    assert result[3] == 2.0


def test_loops_carry_hints_against_unrolling_and_vectorising() -> None:
    out = flat("out", 8)
    nest = loop("j", 2, lambda j: seq(*(loop("i", 4, lambda i: store(out, 4 * j + i, 1.0)) for _ in range(2))))
    text = compile_function(primfunc([out], nest)).text
    assert text.count("!llvm.loop !") == 3 and "llvm.loop.unroll.disable" in text and '!{!"llvm.loop.vectorize.enable", i1 false}' in text
    assert text.count("= distinct !{") == 3 and OPEN_TO_VECTORS not in text, "these are too short"


def test_llvm_may_vectorise_innermost_loops_that_no_schedule_decided_on() -> None:
    out = flat("out", 256)
    plain = loop("j", 2, lambda j: loop("i", 128, lambda i: store(out, 128 * j + i, 1.0)))
    text = compile_function(primfunc([out], plain)).text
    assert text.count("llvm.loop.vectorize.enable") == 1 and text.count(OPEN_TO_VECTORS) == 1, "the inner one alone"
    vectors = loop("j", 32, lambda j: BufferStore(out, Broadcast(FloatImm("float32", 1.0), 8), (Ramp(8 * j, ops.const(1, "int32"), 8),)))
    assert OPEN_TO_VECTORS not in compile_function(primfunc([out], vectors)).text


def test_one_variable_serves_loops_one_after_the_other_and_at_other_depths() -> None:
    """What was computed in front of the first loop, or for its variable, must not be taken for the second."""
    a, out = flat("a", 400, "int32"), flat("out", 400, "int32")
    i, j = Var("i", "int32"), Var("j", "int32")
    zero = IntImm("int32", 0)

    def copy(index: PrimExpr) -> Stmt:
        return store(out, index, load(a, index) + ops.floordiv(index, 3))

    shallow = For(i, zero, IntImm("int32", 20), ForKind.SERIAL, copy(i * 2))
    deep = For(j, zero, IntImm("int32", 5), ForKind.SERIAL, For(i, zero, IntImm("int32", 4), ForKind.SERIAL, copy(i * 50 + j * 7)))
    again = For(i, zero, IntImm("int32", 3), ForKind.SERIAL, For(j, zero, IntImm("int32", 4), ForKind.SERIAL, copy(i * 50 + j * 7 + 200)))
    data, result = np.arange(400, dtype=np.int32) * 10, np.zeros(400, np.int32)
    assert compile_function(primfunc([a, out], seq(shallow, deep, again)))(data, result) == 0
    expected = np.zeros(400, np.int32)
    touched = (
        [2 * x for x in range(20)]
        + [50 * x + 7 * y for x in range(4) for y in range(5)]
        + [50 * x + 7 * y + 200 for x in range(3) for y in range(4)]
    )
    expected[touched] = [data[t] + t // 3 for t in touched]
    assert (result == expected).all()


def test_invariants_are_hoisted_but_not_past_what_defines_them() -> None:
    a, out, n = flat("a", 4096), flat("out", 4096), Var("n", "int32")

    def inner(i: Var) -> Stmt:
        row = Var("row", "int32")
        return LetStmt(
            row, ops.floormod(i * 7, 8), loop("j", n, lambda j: store(out, i * 64 + j, load(a, row * 64 + ops.floordiv(row, 2) + j)))
        )

    compiled = compile_function(primfunc([a, out, n], loop("i", 8, inner)))
    data, result = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    compiled(data, result, 60)
    for i in range(8):
        row = i * 7 % 8
        assert (result[i * 64 : i * 64 + 60] == data[row * 64 + row // 2 :][:60]).all()
    body = compiled.text[compiled.text.index("for.j") :]
    assert "mul" not in body[body.index("phi") :]  # the row's address is computed outside the loop over j


def test_while() -> None:
    state = flat("state", 2, "int32")
    body = While(load(state, 0) > 0, seq(store(state, 1, load(state, 1) + load(state, 0)), store(state, 0, load(state, 0) - 1)))
    compiled = compile_function(primfunc([state], body))
    for n in (0, 1, 10):
        result = np.array([n, 0], np.int32)
        compiled(result)
        assert result.tolist() == [0, n * (n + 1) // 2]


def test_if_else_and_constant_conditions() -> None:
    out = flat("out", 12, "int32")

    def body(i: Var) -> Stmt:
        return IfThenElse(intrin.likely(i < 10), IfThenElse(i % 2 < 1, store(out, i, i * 2), store(out, i, 0 - i)))

    compiled = compile_function(primfunc([out], loop("i", 12, body)))
    assert "branch_weights" in compiled.text
    result = np.full(12, 99, np.int32)
    compiled(result)
    assert result.tolist() == [2 * i if i % 2 == 0 else -i for i in range(10)] + [99, 99]
    dead = primfunc([out], seq(IfThenElse(IntImm("bool", 0), store(out, 0, 1)), IfThenElse(IntImm("bool", 1), store(out, 1, 2))))
    result = np.zeros(12, np.int32)
    compile_function(dead)(result)
    assert result.tolist()[:2] == [0, 2]


def test_values_of_one_arm_are_not_used_in_the_other() -> None:
    a, out, n = flat("a", 8, "int32"), flat("out", 8, "int32"), Var("n", "int32")
    shared = ops.floordiv(n * 5 + 3, 7)
    body = seq(
        IfThenElse(n > 3, store(out, 0, shared + load(a, 1)), store(out, 1, shared * 2 + load(a, 1))),
        store(out, 2, shared + load(a, 1)),
    )
    compiled = compile_function(primfunc([a, out, n], body))
    for value in (2, 9):
        result = np.zeros(8, np.int32)
        compiled(np.arange(8, dtype=np.int32), result, value)
        expected = (value * 5 + 3) // 7
        assert result.tolist()[:3] == ([expected + 1, 0, expected + 1] if value > 3 else [0, expected * 2 + 1, expected + 1])


def test_let_as_statement_and_expression() -> None:
    out, n = flat("out", 4, "int32"), Var("n", "int32")
    v, w = Var("v", "int32"), Var("w", "int32")
    square = Let(w, n + 1, w * w)
    body = LetStmt(v, n * 3, seq(store(out, 0, v + 1), store(out, 1, square + v), store(out, 2, Let(w, v, w * w))))
    result = np.zeros(4, np.int32)
    compile_function(primfunc([out, n], body))(result, 5)
    assert result.tolist()[:3] == [16, 36 + 15, 225]


def test_asserts_return_the_number_of_their_message() -> None:
    out, n = flat("out", 2, "int32"), Var("n", "int32")
    inner = AssertStmt(n < 10, StringImm("n is too large"), store(out, 0, n))
    body = AssertStmt(n > 0, StringImm("n must be positive"), inner)
    compiled = compile_function(primfunc([out, n], body))
    assert compiled.signature.errors == ("n must be positive", "n is too large")
    result = np.zeros(2, np.int32)
    assert [compiled(result, value) for value in (5, 0, 12)] == [0, 1, 2]
    assert result[0] == 5


def test_attributes_and_views_are_only_their_body() -> None:
    out = flat("out", 2)
    view = flat("view", 2)
    alias = type(view)(out.data, "float32", view.shape, name="view")
    body = AttrStmt(None, "pragma_anything", IntImm("int32", 1), DeclBuffer(alias, store(alias, 1, 4.0)))
    result = np.zeros(2, np.float32)
    compile_function(primfunc([out], body))(result)
    assert result.tolist() == [0, 4]


def test_scalar_parameters_of_every_type() -> None:
    cases = (("int8", -5), ("uint8", 200), ("int32", -7), ("uint32", 4_000_000_000), ("int64", -(1 << 60)), ("bool", 1), ("float32", 1.5))
    for dtype, value in (*cases, ("float64", 0.1), ("float16", -2.5), ("bfloat16", 3.0)):
        x, out = Var("x", dtype), flat("out", 1, dtype)
        from tensorexpr.tir.dtype import to_numpy

        result = np.zeros(1, to_numpy(dtype))
        compile_function(primfunc([out, x], store(out, 0, x)))(result, value)
        assert result[0] == value, dtype


def test_extern_calls_keep_their_number_and_order() -> None:
    calls: list[int] = []

    def note(value: int) -> int:
        calls.append(value)
        return len(calls)

    import llvmlite.binding as llvm

    native = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(note)
    llvm.add_symbol("tensorexpr_test_note", ctypes.cast(native, ctypes.c_void_p).value)
    out = flat("out", 4, "int32")
    once = intrin.call_extern("int32", "tensorexpr_test_note", IntImm("int32", 7))
    twice = once + once
    result = np.zeros(4, np.int32)
    compile_function(primfunc([out], seq(Evaluate(once), store(out, 0, twice), store(out, 1, once))))(result)
    assert calls == [7, 7, 7, 7] and result.tolist() == [5, 4, 0, 0]


def test_extern_calls_of_floats_strings_and_pointers() -> None:
    a, out = flat("a", 2, "float64"), flat("out", 2, "float64")
    length = intrin.call_pure_extern("int64", "strlen", StringImm('four"\n'))
    body = seq(
        store(out, 0, intrin.call_pure_extern("float64", "fabs", load(a, 0)) + ops.cast(length, "float64")),
        Evaluate(Call("int64", "tir.call_extern", (StringImm("strlen"), a.data))),
    )
    result = np.zeros(2)
    compiled = compile_function(primfunc([a, out], body))
    assert compiled.signature.params[0].is_written  # type: ignore[union-attr]
    compiled(np.array([-2.5, 0.0]), result)
    assert result[0] == 8.5


def test_what_phases_should_have_removed_is_named() -> None:
    out = flat("out", 4)
    with pytest.raises(CodegenError, match="the loop over i is still vectorized; lower the function through phase 3"):
        compile_function(primfunc([out], loop("i", 4, lambda i: store(out, i, 1.0), ForKind.VECTORIZED)))
    with pytest.raises(CodegenError, match="BufferRealize has no code; lower the function"):
        compile_function(primfunc([out], BufferRealize(out, (), IntImm("bool", 1), store(out, 0, 1.0))))
    with pytest.raises(CodegenError, match="the variable ghost is used, but nothing defines it"):
        compile_function(primfunc([out], store(out, Var("ghost"), 1.0)))


def test_deep_expressions_survive() -> None:
    a, out = flat("a", 1, "int32"), flat("out", 1, "int32")
    value = load(a, 0)
    for k in range(3000):
        value = value + k if k % 2 else value * 3
    expected = 1
    for k in range(3000):
        expected = (expected + k if k % 2 else expected * 3) & 0xFFFFFFFF
    result = np.zeros(1, np.int32)
    compile_function(primfunc([a, out], store(out, 0, value)))(np.ones(1, np.int32), result)
    assert int(result[0]) & 0xFFFFFFFF == expected


def test_deep_loop_nests_survive() -> None:
    out = flat("out", 1, "int32")
    body: Stmt = store(out, 0, load(out, 0) + 1)
    for k in range(400):
        body = For(Var(f"i{k}"), IntImm("int32", 0), IntImm("int32", 2 if k % 50 == 0 else 1), ForKind.SERIAL, body)
    result = np.zeros(1, np.int32)
    compile_function(primfunc([out], body))(result)
    assert result[0] == 2**8
