"""Expressions as text: precedence, constants, names, and the style of the compute DAG's listing."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import tir
from tensorexpr.tir.printer import legacy_expr
from tests.effort import share_of

i, j, k = tir.Var("i"), tir.Var("j"), tir.Var("k")
n = tir.SizeVar("n")
big = tir.Var("l", "int64")
x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
b, c = tir.Var("b", "bool"), tir.Var("c", "bool")
A = tir.decl_buffer((16, 16), name="A")
F = tir.decl_buffer((64,), name="F")


def f32(value: float) -> tir.PrimExpr:
    return tir.const(value, "float32")


SCRIPT = [
    (i * 8 + j, "i * 8 + j"),
    ((i + j) * 8, "(i + j) * 8"),
    (i - (j - k), "i - (j - k)"),
    ((i - j) - k, "i - j - k"),
    (i + (j + k), "i + (j + k)"),
    (i * (j * k), "i * (j * k)"),
    (i // (j * k), "i // (j * k)"),
    (i // j * k, "i // j * k"),
    (i // j % k, "i // j % k"),
    (i * (j % k), "i * (j % k)"),
    (x / (y * x), "x / (y * x)"),
    (i + -5, "i + -5"),
    (i * -5, "i * -5"),
    (-i, "0 - i"),
    (8 - i, "8 - i"),
    (tir.const(-5), "-5"),
    (big + 1, "l + T.int64(1)"),
    (tir.Add(tir.const(1), tir.const(2)), "T.Add(1, 2)"),
    (tir.FloorDiv(tir.Add(tir.const(1), tir.const(-2)), tir.const(2)), "T.Add(1, -2) // 2"),
    (tir.LT(tir.const(1), tir.const(2)), "T.LT(1, 2)"),
    (tir.Mul(tir.const(1, "int64"), tir.const(2, "int64")), "T.Mul(T.int64(1), T.int64(2))"),
    (tir.call_packed("f", i), 'T.call_packed("f", i)'),
    (tir.const(5, "uint8"), "T.uint8(5)"),
    (tir.const(True), "T.bool(True)"),
    (tir.const(-(1 << 63), "int64"), "T.int64(-9223372036854775808)"),
    (f32(0.0), "T.float32(0.0)"),
    (f32(-0.0), "T.float32(-0.0)"),
    (f32(0.1), "T.float32(0.1)"),
    (tir.const(0.1, "float64"), "T.float64(0.1)"),
    (tir.const(0.1, "float16"), "T.float16(0.1)"),
    (tir.const(3.0, "bfloat16"), "T.bfloat16(3.0)"),
    (f32(1e30), "T.float32(1000000000000000019884624838656.0)"),
    (f32(float("inf")), 'T.float32("inf")'),
    (f32(float("-inf")), 'T.float32("-inf")'),
    (f32(float("nan")), 'T.float32("nan")'),
    (tir.all(i < j, j < k), "i < j and j < k"),
    (tir.any(i < j, tir.all(j < k, b)), "i < j or j < k and b"),
    (tir.all(tir.any(i < j, b), c), "(i < j or b) and c"),
    (tir.Not(b), "not b"),
    (tir.Not(i < j), "not i < j"),
    (tir.Not(tir.And(b, c)), "not (b and c)"),
    (tir.And(tir.Not(b), c), "not b and c"),
    (tir.EQ(tir.Not(b), c), "(not b) == c"),
    (tir.EQ(tir.EQ(i, j), b), "(i == j) == b"),
    (tir.NE(b, tir.LE(i, j)), "b != (i <= j)"),
    (tir.Select(b, x, y), "T.Select(b, x, y)"),
    (tir.if_then_else(b, x, y) * 2.0, "T.if_then_else(b, x, y) * T.float32(2.0)"),
    (tir.min(i, j), "T.min(i, j)"),
    (tir.max(x, y), "T.max(x, y)"),
    (tir.exp(x), "T.exp(x)"),
    (i.astype("float32"), 'T.Cast("float32", i)'),
    (tir.truncdiv(i, j), "T.Div(i, j)"),
    (tir.truncmod(i, j), "T.truncmod(i, j)"),
    (tir.likely(i < j), "T.likely(i < j)"),
    ((i << 2) + 1, "T.shift_left(i, 2) + 1"),
    (tir.reinterpret("int32", x), 'T.reinterpret("int32", x)'),
    (tir.call_extern("int32", "foo", i, x), 'T.call_extern("int32", "foo", i, x)'),
    (A[i, j], "A[i, j]"),
    (tir.decl_buffer((), name="S")[()], "S[()]"),
    (F[tir.Ramp(j, tir.const(1), 8)], "F[j:j + 8]"),
    (F[tir.Ramp(tir.const(8), tir.const(1), 8)], "F[8:16]"),
    (F[tir.Ramp(j * 8, tir.const(2), 8)], "F[j * 8:j * 8 + 16:2]"),
    (F[tir.Broadcast(j, 8)], "F[T.Broadcast(j, 8)]"),
    (A.vload([i, j], "float32x4"), "A[i, j:j + 4]"),
    (tir.Ramp(i, tir.const(1), 8) + tir.Broadcast(j, 8), "T.Ramp(i, 1, 8) + T.Broadcast(j, 8)"),
    (tir.BufferLoad(F, (tir.Ramp(j, tir.const(1), 8),), tir.Broadcast(b, 8)), "F.vload([T.Ramp(j, 1, 8)], predicate=T.Broadcast(b, 8))"),
    (tir.Shuffle((x, y), (0, 1)), "T.Shuffle([x, y], [0, 1])"),
    (tir.Let(i, j + 1, i * 2), "T.Let(i * 2, where={i: j + 1})"),
    (tir.StringImm('say "hi"'), '"say \\"hi\\""'),
]


@pytest.mark.parametrize(("expr", "text"), SCRIPT, ids=[text for _, text in SCRIPT])
def test_script_expression(expr: tir.PrimExpr, text: str) -> None:
    assert str(expr) == text


def test_reduction_is_spelled_out() -> None:
    axis = tir.IterVar(tir.Range.from_min_extent(tir.const(0), tir.const(16)), k, tir.IterVar.COMM_REDUCE)
    lhs, rhs = tir.Var("x", "float32"), tir.Var("y", "float32")
    total = tir.CommReducer((lhs,), (rhs,), (lhs + rhs,), (f32(0.0),))
    reduce = tir.Reduce(total, (A[i, k],), (axis,), tir.const(True))
    assert str(reduce) == (
        "T.reduce(T.comm_reducer(lambda x, y: x + y, [T.float32(0.0)]), source=[A[i, k]], init=[], "
        'axis=[T.iter_var(k, T.Range(0, 16), "CommReduce", "")], condition=T.bool(True), value_index=0)'
    )


def test_two_variables_of_one_name_are_told_apart() -> None:
    other, dotted, keyword = tir.Var("i"), tir.Var("i.outer"), tir.Var("lambda")
    assert str(i + other * i + dotted + keyword) == "i + i_1 * i + i_outer + lambda_1"


LEGACY = [
    (A[i, j] * F[i] + A[j, i], "((A[i, j]*F[i]) + A[j, i])"),
    (x / y, "(x/y)"),
    (x - y * x - 1.0, "((x - (y*x)) - 1f)"),
    (tir.max(x, f32(0.0)), "max(x, 0f)"),
    (tir.exp(x), "tir.exp(x)"),
    (tir.Select(x > 0.0, x, y), "select((x > 0f), x, y)"),
    (tir.if_then_else(tir.all(i > 1, j < 3), x, f32(0.0)), "tir.if_then_else(((i > 1) && (j < 3)), x, 0f)"),
    (tir.any(i >= 1, tir.Not(b)), "((i >= 1) || !b)"),
    (i // 3 + i % 5, "(floordiv(i, 3) + floormod(i, 5))"),
    (tir.truncdiv(i, 3) + tir.truncmod(i, 5), "((i/3) + (i % 5))"),
    (i.astype("float32"), "float32(i)"),
    (big * 2 + 5, "((l*(int64)2) + (int64)5)"),
    (tir.const(True), "(bool)1"),
    (tir.const(2.5, "float64"), "2.5"),
    (tir.const(3.0, "float16"), "3h"),
    (f32(1e30), "1e+30f"),
    (f32(1.0 / 3), "0.333333f"),
    (f32(1e-5), "1e-05f"),
    (f32(12345678.0), "1.23457e+07f"),
    (f32(float("inf")), "inff"),
    (f32(float("-inf")), "-inff"),
    (f32(float("nan")), "nanf"),
    (tir.EQ(x, y), "(x == y)"),
    (tir.Let(x, y, x * x), "(let x = y in (x*x))"),
    (tir.Broadcast(f32(1.0), 4), "x4(1f)"),
    (n.astype("float32") + x, "(float32({n|n>=0}) + x)"),
    (tir.call_pure_extern("float32", "foo", x, 3), 'tir.call_pure_extern("foo", x, 3)'),
    (tir.StringImm('hi"x'), '"hi\\"x"'),
]


@pytest.mark.parametrize(("expr", "text"), LEGACY, ids=[text for _, text in LEGACY])
def test_legacy_expression(expr: tir.PrimExpr, text: str) -> None:
    assert legacy_expr(expr) == text


def test_very_deep_expressions_print() -> None:
    deep: tir.PrimExpr = i
    for _ in range(20_000):
        deep = tir.Add(deep, j)
    assert str(deep) == "i" + " + j" * 20_000
    right: tir.PrimExpr = i
    for _ in range(5_000):
        right = tir.Sub(j, right)
    assert str(right).endswith("j - (j - i)" + ")" * 4_998)


def test_an_expression_with_exponentially_long_text_is_cut() -> None:
    doubled: tir.PrimExpr = i
    for _ in range(200):
        doubled = tir.Add(doubled, doubled)
    assert str(doubled).endswith("...")


def test_very_deep_statements_print() -> None:
    body: tir.Stmt = tir.Evaluate(tir.const(0))
    for _ in range(3_000):
        body = tir.For(tir.Var("i"), tir.const(0), tir.const(2), tir.ForKind.UNROLLED, body)
    lines = str(body).splitlines()
    assert len(lines) == 3_001
    assert lines[-2].strip() == "for i_2999 in T.unroll(2):"


_BINARY: dict[type[ast.AST], Any] = {
    ast.Add: tir.Add,
    ast.Sub: tir.Sub,
    ast.Mult: tir.Mul,
    ast.FloorDiv: tir.FloorDiv,
    ast.Mod: tir.FloorMod,
    ast.Lt: tir.LT,
    ast.Eq: tir.EQ,
    ast.And: tir.And,
    ast.Or: tir.Or,
}


def parse(node: Any) -> Any:
    """The expression that Python's own grammar reads in a text."""
    match node:
        case ast.Name():
            return {"i": i, "j": j, "b": b}[node.id]
        case ast.Constant(value=int(value)):
            return tir.IntImm("int32", value)
        case ast.UnaryOp(op=ast.USub()):
            return tir.IntImm("int32", -parse(node.operand).value)
        case ast.UnaryOp(op=ast.Not()):
            return tir.Not(parse(node.operand))
        case ast.BinOp():
            return _BINARY[type(node.op)](parse(node.left), parse(node.right))
        case ast.Compare(ops=[op], comparators=[right]):
            return _BINARY[type(op)](parse(node.left), parse(right))
        case ast.Call(func=ast.Attribute(attr=kind)):
            return getattr(tir, kind)(*map(parse, node.args))
        case ast.BoolOp():
            first, *rest = map(parse, node.values)
            for operand in rest:
                first = _BINARY[type(node.op)](first, operand)
            return first
    raise AssertionError(ast.dump(node))


def _grow(kinds: list[type[tir.PrimExpr]], operands: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda kind, p, q: kind(p, q), st.sampled_from(kinds), operands, operands)


INTS = st.recursive(
    st.one_of(st.sampled_from([i, j]), st.integers(-9, 9).map(tir.const)),
    lambda inner: _grow([tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod], inner),
    max_leaves=8,
)
BOOLS = st.recursive(
    st.one_of(st.just(b), _grow([tir.LT, tir.EQ], INTS)),
    lambda inner: st.one_of(inner.map(tir.Not), _grow([tir.And, tir.Or, tir.EQ], inner)),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True, max_examples=share_of(300))
@given(st.one_of(INTS, BOOLS))
def test_python_reads_the_text_as_the_same_expression(expr: tir.PrimExpr) -> None:
    """Precedence: parsing what was printed gives the identical node, which hash consing makes one object."""
    assert parse(ast.parse(str(expr), mode="eval").body) is expr


def test_golden_programs_are_python() -> None:
    files = sorted((Path(__file__).parents[2] / "golden" / "printer").glob("*.py"))
    assert len(files) > 8
    for file in files:
        ast.parse(file.read_text())
