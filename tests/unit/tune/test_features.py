"""What features say of accesses and caches, on loops small enough to count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.target import Target
from tensorexpr.target.machine import Cache
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.expr import Cast, IntImm, PrimExpr, Var
from tensorexpr.tune.features import extract
from tensorexpr.tune.features.access import Access, accesses, storage_boxes
from tensorexpr.tune.features.guards import run_share
from tensorexpr.tune.features.nest import StageNest, _Evaluator, access_forms, nests
from tensorexpr.tune.features.sharing import taken_lines
from tensorexpr.tune.features.traffic import misses, traffic
from tensorexpr.tune.space import Sketch
from tests.programs import matmul

ONE = np.zeros((1, 0), np.int64)
L1 = Cache(48 * 1024, 12, 64.0)
L2 = Cache(1 << 20, 16, 20.0)


def sketch_of(s: Schedule, initial: Schedule) -> Sketch:
    """A schedule as a space of one program."""
    return Sketch("one", s.outputs, initial.tree, s.trace)


def touched(s: Schedule, initial: Schedule, stage: str) -> tuple[StageNest, list[Access]]:
    """The nest of a stage and what it accesses: its store, then its loads."""
    sketch = sketch_of(s, initial)
    built = nests(sketch, inline_stages(sketch.tree), ONE)
    nest = next(n for n in built if n.stage.name == stage)
    return nest, accesses(nest, storage_boxes(built))


def copied(shape: tuple[int, ...]) -> list[Tensor]:
    """A copy."""
    x = te.placeholder(shape, name="X")
    return [x, te.compute(shape, lambda *i: x(*i), name="out")]


def test_dimensions_that_are_touched_whole_make_one_row() -> None:
    args = copied((64, 8, 1, 1))
    nest, (_, load) = touched(create_schedule(args[-1].op), create_schedule(args[-1].op), "out")
    assert load.lines[0, 0] == 64 * 8 * 4 / 64  # not a line for each element, although the last dimensions have one
    assert load.rows[0].tolist() == [1, 1, 1, 1, 1]
    assert len(nest.loops) == 4


def panels(width: int) -> tuple[Schedule, Schedule, list[Tensor]]:
    """A product that reads its second operand from packed panels."""
    args = matmul(8, 96, 10)
    s, initial = create_schedule(args[-1].op), create_schedule(args[-1].op)
    copy = s.cache_read(args[1], "global", [args[-1]])
    s[copy].transform_layout(lambda k, j: [j // width, k, j % width])
    _, inner = s[args[-1]].split(args[-1].op.axis[1], factor=width)
    i, outer, _, k = s[args[-1]].leaf_iter_vars
    s[args[-1]].reorder(outer, i, k, inner)
    s[args[-1]].vectorize(inner)
    return s, initial, args


def test_the_place_in_a_panel_moves_with_the_axis_and_its_number_slowly() -> None:
    s, initial, args = panels(32)
    nest, (_, _, packed) = touched(s, initial, "C")
    load = next(load for load in nest.loads if len(load.indices) == 3)
    assert access_forms(load, nest.stage) == [{1: 1 / 32}, {2: 1}, {1: 1}]
    assert packed.inner_stride[0] == 1
    assert args[-1].op.name == "C"


def test_a_transposed_read_is_a_gather_unless_neighbours_are_written_out_next_to_it() -> None:
    x = te.placeholder((64, 64), name="X")
    out = te.compute((64, 64), lambda i, j: x[j, i], name="out")
    gathers = []
    for blocks in (False, True):
        s, initial = create_schedule(out.op), create_schedule(out.op)
        i, j = s[out].leaf_iter_vars
        jo, ji = s[out].split(j, factor=16)
        if blocks:
            io, ii = s[out].split(i, factor=16)
            s[out].reorder(io, jo, ii, ji)
        s[out].vectorize(ji)
        sketch = sketch_of(s, initial)
        gathers.append(extract(sketch, inline_stages(sketch.tree), ONE, Target("llvm")).cycles[0])
    # One loop, i, is outside of the vector in both: what tells them apart is whether it is next to it.
    assert gathers[1] < gathers[0]


@pytest.mark.parametrize(("columns", "fits"), [(1024, False), (1009, True)])
def test_rows_a_power_of_two_apart_do_not_stay_in_the_cache(columns: int, fits: bool) -> None:
    """32 columns of 128 rows are 16 KB, but 4096 bytes apart all rows start in one set of 12 ways."""
    a = te.placeholder((128, columns), name="A")
    out = te.compute((16, 128, 32), lambda again, i, j: a[i, j] + 1.0, name="out")
    nest, found = touched(create_schedule(out.op), create_schedule(out.op), "out")
    load = found[1]
    moved = traffic(nest, [load], L1)[0]
    once = 128 * 3 * 64 if columns % 16 else 128 * 2 * 64
    assert (moved <= once) == fits
    assert traffic(nest, [load], L2)[0] <= once


def test_what_one_iteration_touches_stays_until_the_next() -> None:
    """A line of 16 elements along the loop is loaded once, though nothing more than an iteration's lines fits."""
    a = te.placeholder((512, 4112), name="A")
    k = te.reduce_axis((0, 4112), name="k")
    out = te.compute((512,), lambda i: te.sum(a[i, k], axis=k), name="out")
    s, initial = create_schedule(out.op), create_schedule(out.op)
    i, loop = s[out].leaf_iter_vars
    s[out].reorder(loop, i)
    nest, found = touched(s, initial, "out")
    assert traffic(nest, [found[1]], Cache(512 * 64 * 2, 64, 64.0))[0] == 512 * 4112 * 4


def test_the_last_cache_keeps_what_fits_for_the_next_call() -> None:
    args = copied((64, 64))
    nest, found = touched(create_schedule(args[-1].op), create_schedule(args[-1].op), "out")
    assert traffic(nest, found, Cache(1 << 20, 16, 8.0, keeps=True))[0] == 0
    assert traffic(nest, found, Cache(1 << 20, 16, 8.0))[0] > 0


def test_a_tile_whose_rows_move_the_vectors_needs_registers_for_them() -> None:
    """Of a window's 14 rows of 2 vectors, nothing is left for the 28 vectors that a step loads."""
    x = te.placeholder((30, 64), name="X")
    w = te.placeholder((3,), name="W")
    k = te.reduce_axis((0, 3), name="k")
    window = te.compute((28, 64), lambda i, j: te.sum(x[i + k, j] * w[k], axis=k), name="window")
    out = te.compute((28, 64), lambda i, j: window[i, j] + 1.0, name="out")
    valid = []
    for rows, vectors in ((14, 2), (14, 1), (7, 2)):
        s, initial = create_schedule(out.op), create_schedule(out.op)
        io, ii = s[out].split(out.op.axis[0], factor=rows)
        jo, ji = s[out].split(out.op.axis[1], factor=16 * vectors)
        s[out].reorder(io, jo, ii, ji)
        s[out].vectorize(ji)
        s[window].compute_at(s[out], jo)
        i, j, kk = s[window].leaf_iter_vars
        s[window].reorder(kk, i, j)
        s[window].vectorize(j)
        sketch = sketch_of(s, initial)
        valid.append(bool(extract(sketch, inline_stages(sketch.tree), ONE, Target("llvm -mcpu=znver5")).valid[0]))
    assert valid == [False, True, True]


@pytest.mark.parametrize(
    ("rows", "columns", "by_columns", "lines"),
    [
        (12000, 64, True, 12000 * 4),  # 128 bytes for each core: all lines are next to another core's
        (12000, 256, True, 12000 * 16 / 4),  # 2 of 8 lines
        (12000, 1024, True, 0),  # 2 of 32, which others hide
        (12000, 64, False, 0),
        (256, 64, True, 0),  # stays in each core's own cache
    ],
)
def test_cores_take_lines_from_each_other_where_they_write_parts_of_the_same_rows(
    rows: int, columns: int, by_columns: bool, lines: float
) -> None:
    x = te.placeholder((rows,), name="X")
    out = te.compute((rows, columns), lambda i, j: x[i] + 1.0, name="out")
    s, initial = create_schedule(out.op), create_schedule(out.op)
    i, j = s[out].leaf_iter_vars
    outer, _ = s[out].split(j if by_columns else i, nparts=2)
    s[out].reorder(outer, *(axis for axis in s[out].leaf_iter_vars if axis is not outer))
    s[out].parallel(outer)
    nest, found = touched(s, initial, "out")
    machine = Target("llvm -mcpu=znver3 -num-cores=2").machine
    assert taken_lines(nest, found, machine, np.array([2.0])).tolist() == [lines]
    assert taken_lines(nest, found, machine, np.array([1.0])).tolist() == [0]


def test_a_stage_that_each_core_has_for_itself_takes_no_lines() -> None:
    x = te.placeholder((12000, 64), name="X")
    copy = te.compute((12000, 64), lambda i, j: x[i, j] + 1.0, name="copy")
    out = te.compute((12000, 64), lambda i, j: copy[i, j] * 2.0, name="out")
    s, initial = create_schedule(out.op), create_schedule(out.op)
    i, j = s[out].leaf_iter_vars
    outer, inner = s[out].split(j, nparts=2)
    s[out].reorder(outer, i, inner)
    s[out].parallel(outer)
    s[copy].compute_at(s[out], outer)
    machine = Target("llvm -mcpu=znver3 -num-cores=2").machine
    for stage, some in (("copy", False), ("out", True)):
        nest, found = touched(s, initial, stage)
        assert (taken_lines(nest, found, machine, np.array([2.0]))[0] > 0) == some


def test_a_page_counts_once_however_many_of_its_lines_are_read() -> None:
    """A column of 256 rows of 4 KB is 256 pages, more than a TLB of 64 has; 64 columns of it read each page again for every column."""
    a = te.placeholder((256, 1024), name="A")
    out = te.compute((64, 256), lambda j, i: a[i, j] + 1.0, name="out")
    nest, (_, load) = touched(create_schedule(out.op), create_schedule(out.op), "out")
    tlb = Target("llvm -mcpu=znver3").machine.tlb
    assert load.lines_of(4096)[0].tolist() == [256, 256, 1]
    assert traffic(nest, [load], tlb)[0] == 64 * 256 * 4096
    assert misses(nest, [load], L1)[1][0] == 64 * 256  # and no line of it follows one that was read before


def test_neighbours_that_share_a_line_are_one() -> None:
    a = te.placeholder((64, 4), name="A")
    out = te.compute((64,), lambda i: a[i, 0] + 1.0, name="out")
    _, (_, load) = touched(create_schedule(out.op), create_schedule(out.op), "out")
    assert load.lines[0, 0] == 16  # rows of 16 bytes


def windows(stride: int) -> tuple[Schedule, Schedule]:
    """A window of 3 over 8 places with a border of zeros (stride 1), or over an input with zeros between (2); tiles of 4 places."""
    x = te.placeholder((8,), name="X")
    k = te.reduce_axis((0, 3), name="k")

    def element(i: PrimExpr) -> Any:
        inside = te.all(i + k >= 1, i + k < 9) if stride == 1 else (i + k) % 2 == 0
        return te.sum(te.if_then_else(inside, x[i + k - 1 if stride == 1 else (i + k) // 2], 0.0), axis=k)

    out = te.compute((8,), element, name="out")
    return create_schedule(out.op), create_schedule(out.op)


@pytest.mark.parametrize(("stride", "apart"), [(1, 22 / 24), (2, 0.5)])
def test_what_a_condition_leaves_out_is_left_out_if_it_is_the_same_for_a_whole_tile(stride: int, apart: float) -> None:
    shares = []
    for in_tile in (False, True):
        s, initial = windows(stride)
        (i,), (k,) = s.outputs[0].axis, s.outputs[0].reduce_axis
        s[s.outputs[0]].reorder(*((k, i) if in_tile else (i, k)))
        nest, _ = touched(s, initial, "out")
        shares.append(float(run_share(nest)[0]))
    assert shares == pytest.approx([apart, 1.0], abs=0.01)


def test_a_part_of_a_split_that_is_longer_than_what_is_split_does_no_more() -> None:
    x = te.placeholder((8,), name="X")
    out = te.compute((8,), lambda i: x[i] + 1.0, name="out")
    s, initial = create_schedule(out.op), create_schedule(out.op)
    s[out].split(s[out].op.axis[0], factor=32)
    sketch = sketch_of(s, initial)
    extents = [[loop.extent[0] for loop in nests(sketch, inline_stages(sketch.tree), ONE, trimmed)[0].loops] for trimmed in (False, True)]
    assert extents == [[1, 32], [1, 8]]


def test_loops_of_one_iteration_are_not_where_a_register_tile_ends() -> None:
    args = matmul(8, 16, 32)
    s, initial = create_schedule(args[-1].op), create_schedule(args[-1].op)
    i, j, k = s[args[-1]].leaf_iter_vars
    ko, ki = s[args[-1]].split(k, factor=1)
    s[args[-1]].reorder(ko, i, ki, j)
    s[args[-1]].vectorize(j)
    nest, _ = touched(s, initial, "C")
    assert nest.in_tile[0].tolist() == [False, True, True, True]


def test_factors_have_the_dtype_of_the_extents_that_they_cut() -> None:
    tile = Var("tile", "int32")
    number = _Evaluator(2, {tile: np.array([4.0, 8.0])})
    assert number(IntImm("int64", 32) // Cast("int64", tile)).tolist() == [8, 4]
