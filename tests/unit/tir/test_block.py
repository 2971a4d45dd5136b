"""Blocks in the language: construction, walks, renaming, equality, checks, printing and running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, LoweringError, TypeMismatchError
from tensorexpr.tir.analysis import undefined_vars
from tensorexpr.tir.block import is_plain_root, with_guarded_init
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tensorexpr.tir.rewriting import children, map_children, walk
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tir.structural_digest import structural_hash
from tensorexpr.tir.verify import verify_well_formed, violations
from tests import programs
from tests.block_programs import TRUE, axis, box, function, loop, tiles

A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")


def matmul() -> tir.PrimFunc:
    return te.create_prim_func(programs.matmul(4, 4, 4))


def only_block(func: tir.PrimFunc, name: str) -> tir.Block:
    return next(n for n in walk(func.body) if isinstance(n, tir.Block) and n.name_hint == name)


def copy_block(extent: int = 8, **fields: Any) -> tir.Block:
    vi = axis("vi", extent)
    at = [vi.var]
    made = tir.Block((vi,), (point(A, at),), (point(B, at),), "copy", tir.BufferStore(B, A[vi], (vi.var,)))
    return replace(made, **fields)


def point(buffer: tir.Buffer, at: list[tir.Var]) -> tir.BufferRegion:
    return tir.BufferRegion.from_point(buffer, at)


def copy(value: object = None, predicate: tir.PrimExpr = TRUE, **fields: Any) -> tir.PrimFunc:
    i = tir.Var("i")
    bound = i if value is None else tir.convert(value)
    return function([A, B], loop(i, 8, tir.BlockRealize((bound,), predicate, copy_block(**fields))))


def test_regions() -> None:
    region = tir.BufferRegion.full_region(A).region
    assert [(r.min, r.extent) for r in region] == [(tir.const(0), tir.const(8))]
    i = tir.Var("i")
    assert [(r.min, r.extent) for r in tir.BufferRegion.from_point(A, [i + 1]).region] == [(i + 1, tir.const(1))]
    with pytest.raises(DeclarationError, match="buffer A has 1 dimensions, and a point of it as many indices, not 2"):
        tir.BufferRegion.from_point(A, [i, i])


def test_children_are_axes_ranges_regions_and_bodies() -> None:
    block = only_block(matmul(), "C")
    found = children(block)
    assert all(a.var in found for a in block.iter_vars)
    assert block.init in found and block.body in found
    assert block.reads[0].region[0].min in found


def test_an_unchanged_block_keeps_its_identity() -> None:
    block = only_block(matmul(), "C")
    assert map_children(block, lambda node: node) is block


def test_substitution_reaches_ranges_and_regions_but_not_the_axes() -> None:
    n, vi = tir.Var("n"), tir.Var("vi")
    span = tir.IterVar(tir.Range.from_min_extent(tir.const(0), n), vi)
    made = tir.Block((span,), (box(A, (n, 1)),), (point(B, [vi]),), "b", tir.BufferStore(B, A[n], (vi,)))
    new = tir.stmt_functor.substitute(made, {n: 4, vi: 3})
    assert isinstance(new, tir.Block)
    assert new.iter_vars[0].dom is not None and new.iter_vars[0].dom.extent is tir.const(4)
    assert new.iter_vars[0].var is vi
    assert new.reads[0].region[0].min is tir.const(4)
    assert str(new.body).splitlines()[-1] == "B[vi] = A[4]"


def test_fresh_definitions_are_equal_and_disjoint() -> None:
    func = tiles()
    new = tir.stmt_functor.renew_defs(func)
    assert structural_equal(func, new) and structural_hash(func) == structural_hash(new)
    old_vars = {v for b in walk(func.body) if isinstance(b, tir.Block) for v in b.defines()}
    new_vars = {v for b in walk(new.body) if isinstance(b, tir.Block) for v in b.defines()}
    assert len(old_vars) == len(new_vars) and not old_vars & new_vars
    verify_well_formed(new)


def test_equality_looks_at_everything_but_names() -> None:
    func = matmul()
    block = only_block(func, "C")
    assert structural_equal(block, replace(block, name_hint="other"))
    assert structural_hash(func) == structural_hash(matmul())
    different = [
        replace(block, init=None),
        replace(block, reads=block.reads[:1]),
        replace(block, annotations=tir.attrs.FrozenMap({"a": 1})),
        replace(block, iter_vars=(*block.iter_vars[:2], replace(block.iter_vars[2], iter_type=tir.IterVar.DATA_PAR))),
        replace(block, iter_vars=(axis("v_i", 5), *block.iter_vars[1:])),
    ]
    for other in different:
        assert not structural_equal(block, other)
        assert structural_hash(block) != structural_hash(other)


def test_a_function_of_blocks_uses_nothing_undefined() -> None:
    func = tiles()
    given = [*func.params, *(b.data for b in func.buffer_map.values())]
    assert undefined_vars(func.body, given) == []
    tile = only_block(func, "tile")
    assert {v.name for v in undefined_vars(tile)} == {"A", "B"}


def test_the_root_says_nothing_but_buffers() -> None:
    func = matmul()
    assert is_plain_root(func.body)
    assert not is_plain_root(copy_block())
    assert isinstance(func.body, tir.BlockRealize)
    assert not is_plain_root(replace(func.body, block=replace(func.body.block, writes=(box(A, (0, 8)),))))


def test_a_guarded_init_asks_for_reduction_axes_only() -> None:
    first = with_guarded_init(only_block(matmul(), "C"))
    assert isinstance(first, tir.SeqStmt) and isinstance(first.seq[0], tir.IfThenElse)
    assert str(first.seq[0].condition) == "v_k == 0"


@pytest.mark.parametrize(
    ("func", "problem"),
    [
        (lambda: copy(reads=()), "block 'copy' reads A and doesn't say so in T.reads"),
        (lambda: copy(writes=()), "block 'copy' writes B and doesn't say so in T.writes"),
        (lambda: copy(reads=(box(A, (0, 1), (0, 1)),)), "block 'copy' states a box of 2 dimensions of A, which has 1"),
        (lambda: copy(value=8), "axis vi of block 'copy' is bound to 8, out of 0:8"),
        (lambda: copy(predicate=tir.Var("n") < 3), "n is used in n < 3 where it is not defined"),
    ],
)
def test_violations(func: Callable[[], tir.PrimFunc], problem: str) -> None:
    assert problem in violations(func())


def test_axes_are_integers_and_stand_once() -> None:
    vi = axis("vi", 8)
    twice = tir.Block((vi, vi), (), (), "twice", tir.Evaluate(tir.const(0)))
    assert "block 'twice' has an axis twice" in violations(function([A], tir.BlockRealize((tir.const(0), tir.const(0)), TRUE, twice)))
    wide = tir.IterVar(tir.Range.from_min_extent(tir.const(0), tir.const(8)), tir.Var("w", "int64"))
    block = tir.Block((wide,), (), (), "wide", tir.Evaluate(tir.const(0)))
    found = violations(function([A], tir.BlockRealize((tir.const(0, "int64"),), TRUE, block)))
    assert "axis w of block 'wide' is int64 over a range of int32, int32" in found


def test_what_can_not_be_made() -> None:
    block = copy_block()
    with pytest.raises(DeclarationError, match="block 'copy' has 1 axes, bound to 2 values; give one for each"):
        tir.BlockRealize((tir.const(0), tir.const(0)), TRUE, block)
    with pytest.raises(TypeMismatchError, match=r"axis vi of block 'copy' is int32, bound to T.int64\(0\) \(int64\)"):
        tir.BlockRealize((tir.const(0, "int64"),), TRUE, block)
    with pytest.raises(TypeMismatchError, match="the predicate of block 'copy' is int32, not bool"):
        tir.BlockRealize((tir.const(0),), tir.const(1), block)
    with pytest.raises(DeclarationError, match="axis k of block 'b' has no range; give it one"):
        tir.Block((tir.IterVar(None, tir.Var("k")),), (), (), "b", tir.Evaluate(tir.const(0)))


def test_a_lone_block_prints_without_bindings() -> None:
    assert str(copy_block()).splitlines() == [
        "A = T.Buffer((8,))",
        "B = T.Buffer((8,))",
        'with T.block("copy", no_realize=True):',
        "    vi = T.axis.spatial(8)",
        "    T.reads(A[vi])",
        "    T.writes(B[vi])",
        "    B[vi] = A[vi]",
    ]


def test_an_axis_outside_of_its_range_stops_the_interpreter() -> None:
    i = tir.Var("i")
    func = function([A, B], loop(i, 8, tir.BlockRealize((i,), TRUE, copy_block(extent=4))))
    with pytest.raises(InterpreterError, match="axis vi of block 'copy' is 4, out of 0:4"):
        interpret(func, [np.zeros(8, np.float32), np.zeros(8, np.float32)])


def test_a_blocks_buffer_is_fresh_each_time() -> None:
    d = tir.decl_buffer((1,), name="D")
    i, vi = tir.Var("i"), axis("vi", 8)
    first = tir.IfThenElse(tir.EQ(vi.var, tir.const(0)), tir.BufferStore(d, tir.const(1.0), (tir.const(0),)))
    body = tir.stmt_seq(first, tir.BufferStore(B, d[0], (vi.var,)))
    block = tir.Block((vi,), (), (point(B, [vi.var]),), "b", body, alloc_buffers=(d,))
    func = function([B], loop(i, 8, tir.BlockRealize((i,), TRUE, block)))
    with pytest.raises(InterpreterError, match=r"D\[0\] is read, but nothing was written there"):
        interpret(func, [np.zeros(8, np.float32)])


def test_an_ill_formed_function_is_refused() -> None:
    with pytest.raises(LoweringError, match="function main is not well formed: block 'copy' reads A"):
        verify_well_formed(copy(reads=()))


def test_memory_of_blocks_is_counted() -> None:
    assert tir.analysis.calculate_allocated_bytes(tiles()) == {"main": {"local": 128}}
    assert tir.analysis.estimate_tir_flops(matmul()) == 2 * 64
    assert tir.analysis.estimate_tir_flops(tiles()) == 256  # indices are free
