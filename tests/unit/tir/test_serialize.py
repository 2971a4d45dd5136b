"""Expressions as JSON: what is written reads back as the same object, and nothing else gets through."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te, tir
from tensorexpr.errors import RecordError
from tensorexpr.tir.serialize import ExprReader, ExprWriter, Limits, from_json, to_json
from tests.effort import share_of

i, j, n = tir.Var("i"), tir.Var("j"), tir.SizeVar("n")
x, b = tir.Var("x", "float32"), tir.Var("b", "bool")
OUTER = {i: "i", j: "j", n: "n", x: "x", b: "b"}
T = te.placeholder((8, 8), name="T")
F = tir.decl_buffer((64,), name="F")
RAMP = tir.Ramp(i, tir.const(1), 4)


def reduction() -> tir.PrimExpr:
    k, lhs, rhs = tir.Var("k"), tir.Var("l", "float32"), tir.Var("r", "float32")
    axis = tir.IterVar(tir.Range.from_min_extent(tir.const(0), n), k, tir.IterVar.COMM_REDUCE)
    total = tir.CommReducer((lhs,), (rhs,), (lhs + rhs,), (tir.const(0.0),))
    return tir.Reduce(total, (T[i, k],), (axis,), k < i, 0, (x,))  # type: ignore[arg-type]


KINDS = [
    i + j * 2 - n,
    (i // j) % 3 + tir.truncdiv(i, 2) * tir.truncmod(j, 3),
    tir.min(tir.max(i, j), n),
    tir.all(i < j, tir.any(i >= n, tir.Not(tir.EQ(i, j)), tir.NE(i, n), i <= 2, j > 1)),
    tir.Select(b, x, x / 3.0),
    x.astype("float16"),
    tir.const(0.1, "float16") + tir.const(-0.0, "float16"),
    tir.const(float("inf")),
    tir.const(float("-inf"), "float64"),
    tir.const(float("nan")),
    tir.const(1.0, "bfloat16"),
    tir.const(-(1 << 63), "int64"),
    tir.const((1 << 64) - 1, "uint64"),
    tir.const(True),
    tir.if_then_else(b, tir.exp(x), tir.call_pure_extern("float32", 'f"é', x, 3)),
    tir.Shuffle((RAMP, tir.Broadcast(j, 4)), (7, 0)),
    tir.Let(j, i + 1, j * j),
    T[i, j + 1],
    F[RAMP],
    tir.BufferLoad(F, (RAMP,), tir.Broadcast(b, 4)),
    tir.StringImm("text\u0000"),
]
CALLBACKS: dict[str, Any] = {"producer": {"T": T}.__getitem__, "buffer": {"F": F}.__getitem__}


def written(*exprs: Any) -> Any:
    """A document that has been through real JSON text."""
    writer = ExprWriter(OUTER, producer=lambda t: t.name, buffer=lambda f: f.name)
    return json.loads(json.dumps(to_json(exprs, writer), allow_nan=False))


def read(data: Any, limits: Limits | None = None) -> tuple[tir.PrimExpr, ...]:
    return from_json(data, {name: var for var, name in OUTER.items()}, limits=limits, **CALLBACKS)


@pytest.mark.parametrize("expr", KINDS, ids=str)
def test_every_kind_of_node_comes_back_as_the_same_object(expr: tir.PrimExpr) -> None:
    (back,) = read(written(expr))
    assert back is expr


def test_reductions_and_free_variables_come_back_equal() -> None:
    for expr in (reduction(), tir.Var("fresh") + tir.SizeVar("m", "int64").astype("int32")):
        (back,) = read(written(expr))
        assert back is not expr
        assert tir.structural_equal(back, expr, map_free_vars=True)
        assert str(back) == str(expr)


def test_several_expressions_share_rows_and_variables() -> None:
    fresh = tir.Var("v")
    shared = (fresh + i) * 7
    data = written(shared, shared * shared, fresh)
    assert len(data["rows"]) == 6
    first, second, var = read(data)
    assert second is first * first and isinstance(var, tir.Var)
    assert first is (var + i) * 7


def test_axes_and_reducers_by_themselves() -> None:
    expr = reduction()
    assert isinstance(expr, tir.Reduce)
    writer = ExprWriter(OUTER, producer=lambda t: t.name)
    combiner, axis, body = writer.reducer(expr.combiner), writer.axis(expr.axis[0]), writer.expr(expr)
    reader = ExprReader(writer.rows, {name: var for var, name in OUTER.items()}, **CALLBACKS)
    back = reader.expr(body)
    assert isinstance(back, tir.Reduce)
    assert back.combiner is reader.reducer(combiner) and back.axis == (reader.axis(axis),)
    assert back.axis[0].iter_type == tir.IterVar.COMM_REDUCE
    unbounded = tir.IterVar(None, i, 1, "threadIdx.x")
    writer = ExprWriter(OUTER)
    number = writer.axis(unbounded)
    again = ExprReader(writer.rows, {"i": i}).axis(number)
    assert (again.dom, again.var, again.thread_tag) == (None, i, "threadIdx.x")


def test_deep_and_shared_expressions_are_fast() -> None:
    deep: tir.PrimExpr = i
    for _ in range(4_000):
        deep = tir.Add(deep, j)
    assert read(written(deep))[0] is deep
    doubled: tir.PrimExpr = i
    for _ in range(60):
        doubled = tir.Add(doubled, doubled)
    with pytest.raises(RecordError, match="stands for"):
        read(written(doubled))
    with pytest.raises(RecordError, match="5001 deep"):
        for _ in range(2_000):
            deep = tir.Add(deep, j)
        read(written(deep))


def test_unwritable_expressions() -> None:
    with pytest.raises(RecordError, match="reads a producer; pass `producer`"):
        to_json(T[i, j])  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="reads a buffer"):
        to_json(F[i])


def doc(*rows: Any, roots: Any = None) -> Any:
    return {"rows": list(rows), "roots": [len(rows) - 1] if roots is None else roots}


I32, F32, BOOL = ["IntImm", "int32", 1], ["FloatImm", "float32", 1.0], ["IntImm", "bool", 1]
STRING, VECTOR = ["StringImm", "s"], ["Broadcast", 0, 4]
HOSTILE: dict[str, Any] = {
    "not a document": [],
    "missing roots": {"rows": []},
    "extra field": {"rows": [], "roots": [], "x": 1},
    "rows no list": {"rows": "Add", "roots": []},
    "roots no list": {"rows": [I32], "roots": 0},
    "root out of range": doc(I32, roots=[1]),
    "root negative": doc(I32, roots=[-1]),
    "root a bool": doc(I32, I32, roots=[True]),
    "root an axis": doc(["Var", "k", "int32"], ["IterVar", 0, None, 2, ""]),
    "row no list": doc("IntImm"),
    "row empty": doc([]),
    "unknown node": doc(["__import__", "os"]),
    "name no string": doc([["IntImm"], "int32", 1]),
    "too few fields": doc(["IntImm", "int32"]),
    "too many fields": doc([*I32, 2]),
    "forward reference": doc(["Not", 1], BOOL),
    "self reference": doc(["Not", 0]),
    "operand a float": doc(I32, ["Add", 0, 0.0]),
    "operand a list": doc(I32, ["Add", 0, [0]]),
    "operand huge": doc(I32, ["Add", 0, 1 << 100_000]),
    "dtypes differ": doc(I32, F32, ["Add", 0, 1]),
    "arithmetic on strings": doc(STRING, ["Add", 0, 0]),
    "logic on integers": doc(I32, ["And", 0, 0]),
    "not of an integer": doc(I32, ["Not", 0]),
    "unknown dtype": doc(["IntImm", "float31", 1]),
    "dtype alias": doc(["IntImm", "uint1", 1]),
    "dtype not ASCII": doc(["IntImm", "int\u0663\u0662", 1]),
    "dtype unhashable": doc(["IntImm", ["int32"], 1]),
    "vector constant": doc(["IntImm", "int32x4", 1]),
    "integer out of range": doc(["IntImm", "int8", 128]),
    "integer a float": doc(["IntImm", "int32", 1.0]),
    "integer a bool": doc(["IntImm", "int32", True]),
    "float an integer": doc(["FloatImm", "float32", 1]),
    "float of int type": doc(["FloatImm", "int32", 1.0]),
    "float NaN literal": doc(["FloatImm", "float32", float("nan")]),
    "float bad word": doc(["FloatImm", "float32", "infinity"]),
    "long string": doc(["StringImm", "x" * 5_000]),
    "string no string": doc(["StringImm", 3]),
    "unknown variable": doc(["Outer", "z"]),
    "variable name no string": doc(["Var", 1, "int32"]),
    "cast of lanes": doc(I32, ["Cast", "int32x4", 0]),
    "cast to handle": doc(I32, ["Cast", "handle", 0]),
    "ramp of floats": doc(F32, ["Ramp", 0, 0, 4]),
    "ramp of one lane": doc(I32, ["Ramp", 0, 0, 1]),
    "ramp of too many lanes": doc(I32, ["Ramp", 0, 0, 1 << 40]),
    "broadcast of a vector": doc(I32, VECTOR, ["Broadcast", 1, 4]),
    "shuffle of nothing": doc(["Shuffle", [], [0]]),
    "shuffle without lanes": doc(I32, ["Shuffle", [0], []]),
    "shuffle out of range": doc(I32, ["Shuffle", [0], [1]]),
    "shuffle of two types": doc(I32, F32, ["Shuffle", [0, 1], [0, 1]]),
    "select of lanes": doc(BOOL, VECTOR, I32, ["Select", 1, 2, 2]),
    "select on integer": doc(I32, ["Select", 0, 0, 0]),
    "let of no variable": doc(I32, ["Let", 0, 0, 0]),
    "let of another type": doc(["Var", "v", "int64"], I32, ["Let", 0, 1, 1]),
    "unknown intrinsic": doc(["Call", "int32", "tir.system", []]),
    "wrong number of arguments": doc(F32, ["Call", "float32", "tir.exp", [0, 0]]),
    "arguments no list": doc(F32, ["Call", "float32", "tir.exp", 0]),
    "no such tensor": doc(I32, ["ProducerLoad", "U", [0, 0]]),
    "tensor unhashable": doc(I32, ["ProducerLoad", ["T"], [0, 0]]),
    "wrong rank": doc(I32, ["ProducerLoad", "T", [0]]),
    "float index": doc(F32, ["ProducerLoad", "T", [0, 0]]),
    "buffer of wrong rank": doc(I32, ["BufferLoad", "F", [0, 0], None]),
    "buffer with float index": doc(F32, ["BufferLoad", "F", [0], None]),
    "predicate no bool": doc(I32, ["BufferLoad", "F", [0], 0]),
    "axis of unknown type": doc(["Var", "k", "int32"], ["IterVar", 0, None, 99, ""]),
    "axis over floats": doc(["Var", "k", "int32"], F32, ["IterVar", 0, [1, 1], 2, ""]),
    "axis with one bound": doc(["Var", "k", "int32"], I32, ["IterVar", 0, [1], 2, ""]),
    "combiner without results": doc(["CommReducer", [], [], [], []]),
    "combiner of one variable": doc(["Var", "k", "int32"], I32, ["CommReducer", [0], [0], [0], [1]]),
    "combiner of other types": doc(["Var", "k", "int32"], ["Var", "l", "int32"], F32, ["CommReducer", [0], [1], [2], [2]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents(name: str) -> None:
    with pytest.raises(RecordError):
        read(HOSTILE[name])


def test_reduce_rows_are_checked() -> None:
    data = written(reduction())
    number = next(at for at, row in enumerate(data["rows"]) if row[0] == "Reduce")
    float_row = next(at for at, row in enumerate(data["rows"]) if row[0] == "FloatImm")
    int_row = next(at for at, row in enumerate(data["rows"]) if row[0] == "IntImm")
    for field, value in ((2, []), (2, [int_row]), (3, [float_row]), (4, float_row), (5, 1), (5, -1), (6, [int_row]), (1, float_row)):
        broken = copy.deepcopy(data)
        broken["rows"][number][field] = value
        with pytest.raises(RecordError, match=f"row {number}"):
            read(broken)


def test_limits() -> None:
    with pytest.raises(RecordError, match="at most 3 rows"):
        read(doc(I32, I32, I32, I32), Limits(rows=3))
    with pytest.raises(RecordError, match=r"row 23 stands for 16777215 nodes"):  # long before the last row
        read(doc(I32, *(["Add", at, at] for at in range(90_000))))


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 40),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["IntImm", "Add", "int32", "T", "F"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=6,
)


def mutate(value: Any, path: list[int], junk: Any) -> Any:
    """`value` with the part that `path` leads to replaced."""
    if not path or not isinstance(value, (list, dict)) or not value:
        return junk
    keys = list(range(len(value))) if isinstance(value, list) else sorted(value)
    key = keys[path[0] % len(keys)]
    changed = copy.copy(value)
    changed[key] = mutate(value[key], path[1:], junk)
    return changed


@settings(deadline=None, derandomize=True, max_examples=share_of(600))
@given(st.sampled_from([*range(len(KINDS)), -1]), st.lists(st.integers(0, 60), min_size=1, max_size=5), JUNK)
@example(0, [0], 1 << 70)
def test_mutated_documents_are_read_or_refused(kind: int, path: list[int], junk: Any) -> None:
    """Whatever is changed, the reader returns expressions or raises RecordError, and what it returns can be written again."""
    data = mutate(written(reduction() if kind < 0 else KINDS[kind]), path, junk)
    try:
        result = read(data)
    except RecordError:
        return
    for expr in result:
        assert isinstance(expr, tir.PrimExpr)
        assert tir.structural_equal(read(written(expr))[0], expr, map_free_vars=True)


@settings(deadline=None, derandomize=True, max_examples=share_of(200))
@given(JUNK)
def test_random_documents_are_refused(junk: Any) -> None:
    for data in (junk, {"rows": junk, "roots": [0]}, {"rows": [junk], "roots": [0]}, {"rows": [I32], "roots": junk}):
        try:
            result = read(data)
        except RecordError:
            continue
        assert all(expr is tir.const(1) for expr in result)
