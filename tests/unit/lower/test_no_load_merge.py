"""The pragma no_load_merge: a mark before each expanded step; and register tiles around expanded reduction loops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorexpr import te, topi
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.unroll_loop import unroll_loop
from tensorexpr.lower.pipeline import lower
from tensorexpr.lower.pragmas import MAX_STEP, NO_LOAD_MERGE
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.runtime import engine
from tensorexpr.runtime.build import build
from tensorexpr.schedule import create_schedule
from tensorexpr.target import Target
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.expr import Call, IntImm
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import Allocate, Evaluate, For, ForKind, Stmt
from tensorexpr.topi.schedules import default_schedule

from .builder import applied, flat, func, load, loop, store

A, B = flat("A", 64), flat("B", 64)


def marked(extent: int, kind: ForKind, **more: int) -> Stmt:
    """B[i] = A[i] in a loop with the pragma."""
    made = loop("i", extent, lambda i: store(B, load(A, i), i), kind)
    assert isinstance(made, For)
    return replace(made, annotations=FrozenMap({NO_LOAD_MERGE: True, **more}))


def marks(function: PrimFunc) -> int:
    """How many marks there are."""
    return sum(
        isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.no_load_merge"
        for stmt in walk_statements(function.body)
    )


@pytest.mark.parametrize(
    ("extent", "kind", "more", "count"),
    (
        (3, ForKind.UNROLLED, {}, 3),
        (3, ForKind.SERIAL, {MAX_STEP: 8}, 3),
        (3, ForKind.SERIAL, {}, 0),
        (1, ForKind.UNROLLED, {}, 1),  # it may be a part of a loop that was cut
        (9, ForKind.SERIAL, {MAX_STEP: 8}, 0),
    ),
)
def test_a_mark_before_each_expanded_step(extent: int, kind: ForKind, more: dict[str, int], count: int) -> None:
    result = applied(unroll_loop, func(marked(extent, kind, **more), A, B))
    assert marks(result) == count
    assert not any(isinstance(stmt, For) and NO_LOAD_MERGE in stmt.annotations for stmt in walk_statements(result.body))


def test_a_mark_in_each_part_of_a_loop_that_is_cut_at_a_border() -> None:
    target = Target("llvm -mcpu=sapphirerapids -num-cores=2")
    data, weights = te.placeholder((1, 32, 14, 14), name="X"), te.placeholder((64, 32, 3, 3), name="W")
    tensors = [data, weights, topi.nn.conv2d(data, weights, 1, 1, 1)]
    with target:
        (function,) = lower(default_schedule(tensors, target), tensors).functions.values()
    assert marks(function) == 3  # of a row of 14, the first tap has no first pixel, the last one no last


def test_a_pragma_that_is_false_changes_nothing() -> None:
    made = marked(3, ForKind.UNROLLED)
    assert isinstance(made, For)
    off = replace(made, annotations=FrozenMap({NO_LOAD_MERGE: False}))
    assert marks(applied(unroll_loop, func(off, A, B))) == 0


def test_marks_survive_to_the_end() -> None:
    a, w = te.placeholder((8, 6), name="A"), te.placeholder((8, 3), name="W")
    c, r = te.reduce_axis((0, 8), "c"), te.reduce_axis((0, 3), "r")
    out = te.compute((4,), lambda i: te.sum(a[c, i + r] * w[c, r], axis=[c, r]), name="out")
    s = create_schedule(out.op)
    s[out].unroll(r)
    s[out].pragma(r, "no_load_merge")
    assert marks(lower(s, [a, w, out])["main"]) == 3
    text = build(s, [a, w, out], target="llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1").get_source("ll")
    assert text.count('asm ""') >= 6
    assert "ldr" in engine.emit_assembly(text, Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1"), 3)


def test_a_tile_is_counted_once_for_an_expanded_reduction_loop() -> None:
    """14 x 2 vectors fit the registers whether or not the taps around them are written out."""
    a, w = te.placeholder((8, 16), name="A"), te.placeholder((8, 3, 32), name="W")
    c, r = te.reduce_axis((0, 8), "c"), te.reduce_axis((0, 3), "r")
    out = te.compute((14, 32), lambda i, o: te.sum(a[c, i + r] * w[c, r, o], axis=[c, r]), name="out")
    s = create_schedule(out.op)
    i, o = out.op.axis
    oo, oi = s[out].split(o, factor=16)
    s[out].reorder(c, r, i, oo, oi)
    s[out].vectorize(oi)
    s[out].unroll(r)
    with Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512"), PassContext():
        body = lower(s, [a, w, out])["main"].body
    tiles = [stmt for stmt in walk_statements(body) if isinstance(stmt, Allocate) and stmt.dtype == "float32x16"]
    assert [tile.extents for tile in tiles] == [(IntImm("int32", 28),)]
