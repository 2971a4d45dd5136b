"""Equality and hash of programs up to the renaming of what they bind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import pointer_var
from tensorexpr.tir.stmt_functor import renew_defs

TRUE = tir.const(True)


def loop(var: tir.Var, extent: int, body: tir.Stmt, kind: tir.ForKind = tir.ForKind.SERIAL, **notes: object) -> tir.For:
    return tir.For(var, tir.const(0, var.dtype), tir.const(extent, var.dtype), kind, body, None, FrozenMap(notes))


def program(
    names: str = "Aij",
    extent: int = 8,
    dtype: str = "float32",
    swap: bool = False,
    scope: str = "global",
    note: int = 1,
    value: float = 2.0,
) -> tir.PrimFunc:
    """A function with every kind of definition; each keyword changes what it means, `names` does not."""
    n, x, y = tir.SizeVar(names), tir.Var(names), tir.Var(names)
    a = tir.decl_buffer((n, extent), dtype, names, strides=[tir.Var("stride"), 1])
    view = tir.decl_buffer((n * extent,), dtype, names, data=a.data)
    temporary = tir.decl_buffer((8,), dtype, names, data=pointer_var(names, dtype, scope))
    box = tir.decl_buffer((8,), dtype, names)
    i, j, handle = tir.Var(names), tir.Var(names), tir.Var(names, "handle")
    first, second = (j, i) if swap else (i, j)
    body: tir.Stmt = tir.stmt_seq(
        tir.BufferStore(temporary, tir.Let(x, first + second, x * x).astype(dtype), (second,)),
        tir.BufferStore(view, temporary[second] + box[0] + tir.const(value, dtype), (first,)),
    )
    body = tir.BufferRealize(box, (tir.Range.from_min_extent(tir.const(0), tir.const(1)),), TRUE, body)
    body = tir.Allocate(temporary.data, dtype, (tir.const(8),), TRUE, tir.LetStmt(y, i + 1, body))
    nest = loop(i, 4, loop(j, extent, body, tir.ForKind.VECTORIZED, pragma=note))
    return tir.PrimFunc((handle,), nest, None, {handle: a}, FrozenMap({"global_symbol": "main"}))


def check(a: Any, b: Any, equal: bool, **options: bool) -> None:
    assert tir.structural_equal(a, b, **options) is equal
    assert tir.structural_equal(b, a, **options) is equal
    assert (tir.structural_hash(a, **options) == tir.structural_hash(b, **options)) is equal


def test_names_and_identities_do_not_matter() -> None:
    check(program(), program("Bxy"), True)
    check(program(), renew_defs(program()), True)
    check(tir.IRModule({"main": program()}), tir.IRModule({"main": program("B")}), True)


@pytest.mark.parametrize(
    "change",
    [{"extent": 16}, {"dtype": "float64"}, {"swap": True}, {"scope": "local"}, {"note": 2}, {"value": 3.0}],
    ids=lambda change: next(iter(change)),
)
def test_everything_else_matters(change: dict[str, Any]) -> None:
    check(program(), program(**change), False)


def test_attributes_and_function_names_matter() -> None:
    check(program(), program().with_attr("tir.noalias", True), False)
    check(tir.IRModule({"main": program()}), tir.IRModule({"f": program()}), False)
    check(tir.IRModule({"main": program()}), tir.IRModule({}), False)


def test_free_variables_are_themselves_unless_mapped() -> None:
    i, j, k = tir.Var("i"), tir.Var("i"), tir.Var("k", "int64")
    check(i + i * 2, i + i * 2, True)
    check(i * 2, j * 2, False)
    check(i * 2, j * 2, True, map_free_vars=True)
    check(i + j, j + i, True, map_free_vars=True)
    check(i + i, i + j, False, map_free_vars=True)
    check(i + j, i + i, False, map_free_vars=True)
    check(i.astype("int64"), k, False, map_free_vars=True)


def test_a_bound_variable_is_not_a_free_one() -> None:
    i, j = tir.Var("i"), tir.Var("j")
    a = tir.decl_buffer((8,), "int32", "A")

    def store(v: tir.Var) -> tir.Stmt:
        return tir.BufferStore(a, v, (v,))

    check(loop(i, 8, store(i)), loop(j, 8, store(j)), True)
    check(loop(i, 8, store(i)), loop(j, 8, store(i)), False)
    check(tir.stmt_seq(loop(i, 8, store(i)), store(i)), tir.stmt_seq(loop(j, 8, store(j)), store(i)), True)
    check(tir.stmt_seq(loop(i, 8, store(i)), store(i)), tir.stmt_seq(loop(j, 8, store(j)), store(j)), False)
    # One variable may be bound twice where the other program has two.
    twice = tir.stmt_seq(loop(i, 8, store(i)), loop(i, 8, store(i)))
    check(twice, tir.stmt_seq(loop(i, 8, store(i)), loop(j, 8, store(j))), True)
    check(tir.Let(i, i + 1, i * 2), tir.Let(j, i + 1, j * 2), True)
    check(tir.Let(i, i + 1, i * 2), tir.Let(j, j + 1, j * 2), False)


def test_shadowed_variables() -> None:
    i, j, k = tir.Var("i"), tir.Var("j"), tir.Var("k")
    a = tir.decl_buffer((8,), "int32", "A")

    def store(v: tir.Var) -> tir.Stmt:
        return tir.BufferStore(a, v * 2, (tir.const(0),))

    # What was equal outside is not equal where one side means another variable.
    shadowed = loop(i, 8, tir.stmt_seq(store(i), tir.LetStmt(i, tir.const(5), store(i))))
    check(shadowed, loop(j, 8, tir.stmt_seq(store(j), tir.LetStmt(k, tir.const(5), store(k)))), True)
    check(shadowed, loop(j, 8, tir.stmt_seq(store(j), tir.LetStmt(k, tir.const(5), store(j)))), False)
    check(loop(i, 8, loop(j, 8, store(i))), loop(k, 8, loop(k, 8, store(k))), False)
    check(loop(i, 8, loop(j, 8, store(j))), loop(k, 8, loop(k, 8, store(k))), True)


def test_views_are_equal_by_layout_and_other_buffers_by_definition() -> None:
    a, other = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="A")
    view, copy, wide = (tir.decl_buffer(shape, name="V", data=a.data) for shape in ((8,), (8,), (9,)))
    check(view[0], copy[0], True)
    check(view[0], wide[0], False)
    check(a[0], other[0], False)
    check(a[0], other[0], True, map_free_vars=True)


def reduction(kind: Callable[[Any, Any], tir.PrimExpr] = tir.Add, extent: int = 4, init: tuple[tir.PrimExpr, ...] = ()) -> tir.PrimExpr:
    x, y, k = tir.Var("x"), tir.Var("y"), tir.Var("k")
    combiner = tir.CommReducer((x,), (y,), (kind(x, y),), (tir.const(0),))
    axis = tir.IterVar(tir.Range.from_min_extent(tir.const(0), tir.const(extent)), k, tir.IterVar.COMM_REDUCE)
    return tir.Reduce(combiner, (k * 2,), (axis,), k < 3, 0, init)


def test_reductions() -> None:
    check(reduction(), reduction(), True)
    check(reduction(), reduction(tir.Mul), False)
    check(reduction(), reduction(extent=5), False)
    check(reduction(), reduction(init=(tir.const(1),)), False)


def test_constants_differ_by_type_and_bits() -> None:
    check(tir.const(1), tir.const(1, "int64"), False)
    check(tir.const(0.0), tir.const(-0.0), False)
    check(tir.const(float("nan")), tir.const(float("nan")), True)
    check(tir.const(1), tir.const(1.0), False)
    check(tir.Evaluate(tir.const(1)), tir.const(1), False)


def test_hashes_do_not_depend_on_sharing_or_process() -> None:
    i, j = tir.Var("i"), tir.Var("j")
    shared = tir.Let(i, tir.const(3), i * i)
    check(shared + shared, shared + tir.Let(j, tir.const(3), j * j), True)
    assert tir.structural_hash(program()) == 0x517448BA7823A43E


def test_deep_programs() -> None:
    def deep(name: str) -> tir.Stmt:
        v = tir.Var(name)
        expr: tir.PrimExpr = v
        for _ in range(3_000):
            expr = tir.Add(expr, v)
        body: tir.Stmt = tir.Evaluate(expr)
        for _ in range(2_000):
            body = loop(tir.Var(name), 2, body)
        return loop(v, 2, body)

    check(deep("a"), deep("b"), True)
    doubled: tir.PrimExpr = tir.Var("i")
    for _ in range(100):
        doubled = tir.Add(doubled, doubled)
    check(doubled, doubled, True)


def test_equal_mappings_hash_alike() -> None:
    plain, frozen = {"a": {"b": [1, 2]}}, FrozenMap({"a": FrozenMap({"b": (1, 2)})})
    assert tir.structural_equal(plain, frozen) and tir.structural_hash(plain) == tir.structural_hash(frozen)
    x, y = tir.Var("x"), tir.Var("y")
    one = tir.PrimFunc((x,), tir.Evaluate(x)).with_attr("a", plain)
    other = tir.PrimFunc((y,), tir.Evaluate(y)).with_attr("a", frozen["a"])
    assert tir.structural_equal(one, one) and tir.structural_hash(one) != tir.structural_hash(other)
    other = tir.PrimFunc((y,), tir.Evaluate(y)).with_attr("a", frozen)
    assert tir.structural_equal(one, other) and tir.structural_hash(one) == tir.structural_hash(other)
    # numbers as in the program itself: by bits
    assert not tir.structural_equal({"a": 0.0}, {"a": -0.0})
    assert tir.structural_equal({"a": float("nan")}, {"a": float("nan")})


def test_variables_as_keys_count_by_what_they_are_bound_to() -> None:
    def func(first: str, second: str) -> tir.PrimFunc:
        a, b = tir.Var(first), tir.Var(second)
        return tir.PrimFunc(
            (
                a,
                b,
            ),
            tir.Evaluate(a + b),
        ).with_attr("m", {a: 1, b: 2})

    one, other = func("x", "y"), func("z", "a")
    assert tir.structural_equal(one, other) and tir.structural_hash(one) == tir.structural_hash(other)


def test_maps_of_indices_by_what_they_do() -> None:
    maps = [
        tir.IndexMap.from_func(one)
        for one in (lambda i, j: [j // 4, i, j % 4], lambda a, b: [b // 4, a, b % 4], lambda i, j: [i // 4, j, i % 4])
    ]
    check(maps[0], maps[1], True)
    check(maps[0], maps[2], False)
    assert tir.structural_hash(maps[0]) == tir.structural_hash(maps[1]) != tir.structural_hash(maps[2])
    wide = tir.IndexMap.from_func(lambda i, j: [j // 4, i, j % 4], index_dtype="int64")
    check(maps[0], wide, False)
