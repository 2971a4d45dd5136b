"""Property 8: the box of a stage that is computed at a loop is what is read there and no more, by brute force over small extents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.phase0.views import InferBound
from tensorexpr.schedule import create_schedule
from tensorexpr.tir.expr import IntImm, IterVar, Range, Var
from tests.effort import share_of

from .index_expressions import lane

Point = tuple[int, ...]
# One read: per dimension of the producer (coefficient of i, of j, of k, shift).
Read = tuple[tuple[int, int, int, int], ...]
COEFFICIENTS = st.tuples(st.integers(-1, 3), st.integers(-2, 2), st.integers(0, 1), st.integers(0, 3))
READS = st.lists(st.tuples(COEFFICIENTS, COEFFICIENTS), min_size=1, max_size=2)
EXTENTS = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3))


@dataclass(frozen=True)
class Tiles:
    """An axis of `extent` points in tiles of `factor`; 1 leaves tiles of one point."""

    extent: int
    factor: int

    @property
    def extents(self) -> tuple[int, int]:
        return -(-self.extent // self.factor), self.factor

    @property
    def divides(self) -> bool:
        return self.extent % self.factor == 0


def spanned(reads: list[Read], extents: tuple[int, int, int]) -> tuple[list[Read], tuple[int, ...]]:
    """The reads, shifted to start at 0, and the shape of a producer that holds them."""
    low, high = [0, 0], [0, 0]
    for read in reads:
        for d, (*coefficients, shift) in enumerate(read):
            ends = [c * (e - 1) for c, e in zip(coefficients, extents, strict=True)]
            low[d] = min(low[d], shift + sum(min(0, end) for end in ends))
            high[d] = max(high[d], shift + sum(max(0, end) for end in ends))
    moved = [tuple((*row[:3], row[3] - low[d]) for d, row in enumerate(read)) for read in reads]
    return moved, tuple(h - lo + 1 for lo, h in zip(low, high, strict=True))


def index(row: tuple[int, int, int, int], i: Any, j: Any, k: Any) -> Any:
    return i * row[0] + j * row[1] + k * row[2] + row[3]


def visits(loops: list[str], counts: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every value of some loops."""
    for values in product(*(range(counts[name]) for name in loops)):
        yield dict(zip(loops, values, strict=True))


def box_of(axes: tuple[IterVar, ...], bounds: Mapping[IterVar, Range], env: Mapping[Var, int]) -> list[tuple[int, int]]:
    """(first, number) per axis where the loops around have these values."""
    return [(lane(bounds[a].min, dict(env)), lane(bounds[a].extent, dict(env))) for a in axes]


def bounding(points: set[Point]) -> list[tuple[int, int]]:
    return [(min(column), max(column) - min(column) + 1) for column in zip(*points, strict=True)]


@settings(max_examples=share_of(150), deadline=None, derandomize=True)
@given(reads=READS, extents=EXTENTS, fi=st.integers(1, 4), fj=st.integers(1, 4), order=st.permutations(range(5)), at=st.integers(0, 4))
@example(reads=[((2, 0, 1, 0), (0, 1, 0, 0))], extents=(5, 4, 3), fi=2, fj=4, order=[0, 1, 2, 3, 4], at=0)
@example(reads=[((0, 0, 0, 0), (1, 0, 0, 2))], extents=(3, 1, 1), fi=2, fj=1, order=[2, 1, 0, 3, 4], at=0)
@example(reads=[((-1, 0, 0, 0), (0, -2, 1, 0)), ((1, 1, 0, 2), (0, 0, 0, 0))], extents=(6, 5, 2), fi=3, fj=1, order=[4, 2, 0, 1, 3], at=2)
def test_8_the_box_is_what_is_read(reads: list[Read], extents: tuple[int, int, int], fi: int, fj: int, order: list[int], at: int) -> None:
    """The box holds every read of each visit, and where the reads move together no more.

    Tiles that don't divide make one box for all visits, as large as the largest needs. Boxes have constant extents, so
    reads that drift apart from visit to visit may get more than each visit needs.
    """
    reads, shape = spanned(reads, extents)
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda x, y: a[x, y] + 1.0, name="B")
    k = te.reduce_axis((0, extents[2]), name="k")
    c = te.compute(extents[:2], lambda i, j: te.sum(sum(b[index(r[0], i, j, k), index(r[1], i, j, k)] for r in reads), axis=k), name="C")
    s = create_schedule(c.op)
    rows, columns = Tiles(extents[0], fi), Tiles(extents[1], fj)
    axes = [*s[c].split(c.op.axis[0], factor=fi), *s[c].split(c.op.axis[1], factor=fj), k]
    names = ["io", "ii", "jo", "ji", "k"]
    counts = dict(zip(names, (*rows.extents, *columns.extents, extents[2]), strict=True))
    s[c].reorder(*(axes[n] for n in order))
    s[b].compute_at(s[c], axes[order[at]])
    try:
        bounds = InferBound(s)
    except ScheduleError:
        assume(False)
    variables = {names[n]: axes[n].var for n in range(5)}
    outer, inner = [names[n] for n in order[: at + 1]], [names[n] for n in order[at + 1 :]]
    together = all(row[:3] == first[:3] for read in reads for row, first in zip(read, reads[0], strict=True))
    exact, widest, boxes = together and rows.divides and columns.divides, [0, 0], []
    for around in visits(outer, counts):
        seen: set[Point] = set()
        for inside in visits(inner, counts):
            v = {**around, **inside}
            i, j = v["io"] * fi + v["ii"], v["jo"] * fj + v["ji"]
            if i < extents[0] and j < extents[1]:
                seen |= {tuple(index(row, i, j, v["k"]) for row in read) for read in reads}
        if not seen:
            continue
        box, needed = box_of(b.op.axis, bounds, {variables[name]: value for name, value in around.items()}), bounding(seen)
        boxes.append(box)
        for d, ((low, size), (first, number)) in enumerate(zip(box, needed, strict=True)):
            assert low <= first and first + number <= low + size, f"{box} leaves out a part of {needed} at {around}"
            widest[d] = max(widest[d], number)
            if exact and (low, size) != (0, shape[d]):
                assert (low, size) == (first, number), f"{box} is more than {needed} at {around}"
    for d in range(2):
        whole = all(box[d] == (0, shape[d]) for box in boxes)
        tile_fits = fi <= extents[0] and fj <= extents[1]  # else the tile is larger than anything that is read
        assert whole or not tile_fits or not together or max(box[d][1] for box in boxes) == widest[d], (
            f"no visit needs all of dimension {d}"
        )


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(n=st.integers(2, 8), factor=st.integers(1, 4), first=st.integers(1, 3), second=st.integers(0, 3), inner=st.booleans())
def test_8_boxes_of_boxes(n: int, factor: int, first: int, second: int, inner: bool) -> None:
    """A stage read by a stage that is itself computed at a loop: its box is what the other one's box reads."""
    assume(n % factor == 0)
    length = (n - 1) * first + 1 + 2
    a = te.placeholder((length + second,), name="A")
    b = te.compute((length + second,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((length,), lambda i: b[i] - b[i + second], name="C")
    d = te.compute((n,), lambda i: c[i * first] * c[i * first + 2], name="D")
    s = create_schedule(d.op)
    io, ii = s[d].split(d.op.axis[0], factor=factor)
    s[c].compute_at(s[d], io)
    s[b].compute_at(*((s[c], c.op.axis[0]) if inner else (s[d], io)))
    bounds = InferBound(s)
    assert bounds[ii].extent is IntImm("int32", factor)
    for visit in range(n // factor):
        ((low, size),) = box_of(c.op.axis, bounds, {io.var: visit})
        reads: set[Point] = {(i * first + shift,) for i in range(visit * factor, (visit + 1) * factor) for shift in (0, 2)}
        assert size == length or [(low, size)] == bounding(reads)
        for step in range(size) if inner else (0,):
            env = {io.var: visit, c.op.axis[0].var: step}
            points = {low + step} if inner else set(range(low, low + size))
            box = box_of(b.op.axis, bounds, env)
            assert box == bounding({(x + shift,) for x in points for shift in (0, second)}) or box == [(0, length + second)]
