"""What a stage touches at every loop level: for each access the elements and cache lines of one pass over the inner loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...dataclass import dataclass, replace
from ...schedule.tree import At, LoopKind
from ...te.operation import Operation
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from .nest import Array, Form, StageNest, access_forms

ROUNDING = 1e-6  # sums of 1/32 and the like; panels are counted in whole ones


@dataclass(frozen=True, eq=False)
class Access:
    """One tensor access of a statement.

    `lines[:, d]` counts the cache lines touched while loops d, d+1, ... run once (column m: a single execution), `run_bytes` [n, m + 1]
    the bytes that lie side by side in them;
    `invariant[:, l]` says that loop l does not move it; `inner_stride` is the element distance between neighbours
    along the innermost loop, `next_stride` along the loop around it; `starts` [n] counts the different places that
    a register tile reads, vectors counted once; `rows` counts the rows of storage touched while loops run as for
    `lines`, and `row_bytes` [n, m + 1] is the distance between them, `apart_bytes` the power of two that it is a multiple of.
    """

    is_store: bool
    item_bytes: int
    line_bytes: int
    elements: Array
    lines: Array
    invariant: Array
    inner_stride: Array
    next_stride: Array
    starts: Array
    rows: Array
    row_bytes: Array
    run_bytes: Array
    apart_bytes: Array

    def jumps(self, streams: int) -> Array:
        """[n, m + 1]: lines of a pass that don't follow a line that was read shortly before.

        A prefetcher follows so many rows side by side. Where loops go through more rows before they come back to one, each visit starts
        anew: of `for f.o, for k, for f.i: B[k, f]` with long rows every line, though all of B is one piece of memory.
        """
        followed = np.logical_and.accumulate((self.rows <= streams)[:, ::-1], axis=1)[:, ::-1]
        # the outermost level from which on inwards all rows are followed: what is further out enters it anew with each visit
        number, place = np.arange(len(self.rows)), followed.argmax(axis=1)
        visits = self.lines * (self.rows[number, place] / self.lines[number, place])[:, None]
        return np.where(followed, self.rows, np.maximum(self.rows, visits))

    def lines_of(self, size: int) -> Array:
        """[n, m + 1]: the lines, or pages, of so many bytes that are touched. Rows that are closer than that share some."""
        apart = self.rows * np.ceil(self.run_bytes / size)
        together = np.ceil(((self.rows - 1) * self.row_bytes + self.run_bytes) / size)
        return np.maximum(1.0, np.where(self.row_bytes < size, together, apart))


# Storage extents of a stage's box per dimension, for stages that live in a box of their own.
Boxes = Mapping[Operation, Sequence[Array]]


def storage_boxes(nests: Sequence[StageNest]) -> dict[Operation, list[Array]]:
    """The boxes of all stages that are computed at a loop: their storage holds just that box, compactly."""
    return {nest.stage.origin: [nest.region[axis] for axis in nest.stage.spatial] for nest in nests if isinstance(nest.stage.attach, At)}


def accesses(nest: StageNest, boxes: Boxes, line: int = 64) -> list[Access]:
    """The store of a stage and then its loads, in lines of so many bytes."""
    identity: list[Form | None] = [Form({axis: 1}) for axis in nest.stage.spatial]
    result = nest.stage.origin.output(0)
    found = [_access(nest, identity, _sizes(nest, result, boxes), result.dtype, line, is_store=True)]
    for load in nest.loads:
        if isinstance(load.producer, Tensor):
            sizes = _sizes(nest, load.producer, boxes)
            found.append(_access(nest, access_forms(load, nest.stage), sizes, load.dtype, line, is_store=False))
    return found


def stride_of(nest: StageNest, place: int) -> Array:
    """[n]: elements from where an iteration of a loop stores to where the next one does, in a result that lies whole in memory."""
    identity: list[Form | None] = [Form({axis: 1}) for axis in nest.stage.spatial]
    return _stride(nest, identity, _sizes(nest, nest.stage.origin.output(0), {}), place)


def _sizes(nest: StageNest, tensor: Tensor, boxes: Boxes) -> list[Array]:
    """The extents of a tensor's storage."""
    own = boxes.get(tensor.op)
    if own is not None:
        return list(own)
    return [np.full(len(nest.unroll_step), float(as_int(extent) or 1)) for extent in tensor.shape]


def _access(nest: StageNest, forms: Sequence[Form | None], sizes: list[Array], dtype: str, line: int, is_store: bool) -> Access:
    count = len(nest.unroll_step)
    depth = len(nest.loops)
    item = parse_dtype(dtype).itemsize
    spans = [_spans(nest, form, size) for form, size in zip(forms, sizes, strict=True)]
    elements = np.ones((count, depth + 1))
    for span in spans:
        elements = elements * span
    rows, run, row = _rows(spans, sizes, np.ones((count, depth + 1)))
    inner, following = (_stride(nest, forms, sizes, place) for place in (-1, -2))
    invariant = _invariance(nest, forms)
    starts = _starts(nest, forms, sizes, invariant)
    row_bytes = row * item
    whole = row_bytes.astype(np.int64)
    # x & -x is the largest power of two that divides x
    apart = (whole & -whole).astype(float)
    # lines follow from rows and runs, which `lines_of` needs in the object; `rows` only holds their place
    made = Access(is_store, item, line, elements, rows, invariant, inner, following, starts, rows, row_bytes, run * item, apart)
    return replace(made, lines=made.lines_of(line))


def _starts(nest: StageNest, forms: Sequence[Form | None], sizes: Sequence[Array], invariant: Array) -> Array:
    """[n]: places that one pass over the register tile's loops starts to read at."""
    tile = nest.in_tile
    loops = [
        (place, loop, np.where(tile[:, place], loop.extent, 1.0))
        for place, loop in enumerate(nest.loops)
        if loop.kind is not LoopKind.VECTORIZE and tile[:, place].any()
    ]
    count = np.ones(len(nest.unroll_step))
    for form, size in zip(forms, sizes, strict=True):
        reach = np.zeros(len(nest.unroll_step))
        for _, loop, extent in loops:
            if form is None:
                reach = np.where(extent > 1, size, reach)
                continue
            for root, stride in loop.strides.items():
                if root in form:
                    reach = reach + abs(form[root]) * stride * (extent - 1)
        count = count * np.minimum(np.floor(1.0 + reach + ROUNDING), size)
    # no more places than iterations: 2 * i for i in 0..3 spans seven elements and reads four
    moving = [np.where(invariant[:, place] == 0, extent, 1.0) for place, _, extent in loops]
    return np.minimum(count, np.prod(moving, axis=0)) if moving else count


def _rows(spans: Sequence[Array], sizes: Sequence[Array], one: Array) -> tuple[Array, Array, Array]:
    """[n, m + 1] each: rows that are touched, elements in a row that are neighbours, and elements from row to row.

    Dimensions that are touched from end to end make one row with those before them.
    """
    rows, run, row, full = one, one, one, np.ones_like(one, bool)
    for span, size in zip(reversed(spans), reversed(sizes), strict=True):
        rows, run = np.where(full, rows, rows * span), np.where(full, run * span, run)
        row = np.where(full, row * size[:, None], row)
        # sticky: once a dimension is touched in part, all further out only add rows
        full = full & (span >= size[:, None])
    return rows, run, row


def _spans(nest: StageNest, form: Form | None, size: Array) -> Array:
    """[n, m + 1]: how many consecutive indices one dimension covers while loops d and further in run."""
    count, depth = len(nest.unroll_step), len(nest.loops)
    grown = np.zeros((count, depth + 1))
    for number, loop in enumerate(nest.loops):
        if form is None:
            grown[:, number] = size
            continue
        for root, stride in loop.strides.items():
            if root in form:
                grown[:, number] += form.step(root, stride) * (loop.extent - 1)
    return np.minimum(np.floor(1.0 + np.cumsum(grown[:, ::-1], axis=1)[:, ::-1] + ROUNDING), size[:, None])


def _moves(nest: StageNest, forms: Sequence[Form | None]) -> Iterator[Array]:
    for loop in nest.loops:
        moved = np.zeros(len(nest.unroll_step))
        for form in forms:
            for root, stride in loop.strides.items():
                if form is None or abs(form.get(root, 0)) >= 1:
                    moved = moved + stride
                elif root in form:  # what stays inside a panel doesn't change the panel's number
                    moved = moved + np.where(abs(form[root]) * stride * (loop.extent - 1) > 1 - ROUNDING, stride, 0.0)
        yield np.where(loop.extent > 1, moved, 0.0)


def _invariance(nest: StageNest, forms: Sequence[Form | None]) -> Array:
    columns = [moved == 0 for moved in _moves(nest, forms)]
    return np.stack(columns, axis=1).astype(float) if columns else np.zeros((len(nest.unroll_step), 0))


def _stride(nest: StageNest, forms: Sequence[Form | None], sizes: list[Array], place: int) -> Array:
    """Elements between neighbours along a loop, counted from the end: 0 broadcast, 1 contiguous, more a gather.

    What moves by less than an element at a time is the number of a panel: neighbours are in the same one.
    """
    total = np.zeros(len(nest.unroll_step))
    if place < -len(nest.loops):
        return total
    inner, step = nest.loops[place], np.ones_like(total)
    for form, size in zip(reversed(forms), reversed(sizes), strict=True):
        for root, stride in inner.strides.items():
            if form is None or (root in form and abs(form[root]) >= 1):
                total = total + (abs(form[root]) if form is not None else size) * stride * step
        step = step * size
    return np.where(total == nest.group, 1.0, total)  # groups of neighbours are what an instruction takes
