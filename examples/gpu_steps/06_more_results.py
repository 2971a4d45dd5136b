"""Each thread has 8 x 8 results: four loads of vectors for 64 multiply-adds, as many as registers allow two blocks of."""

from __future__ import annotations

from lesson import Program, fetched, product, run

from tensorexpr import te
from tensorexpr.schedule import Schedule

SIDE, EACH, TERMS, VECTOR = 16, 8, 16, 4
TILE = SIDE * EACH


def schedule(size: int) -> Program:
    """Tiles of 128 x 128; a thread has 4 rows and 4 columns side by side, and as many half a tile further on, as virtual threads do."""
    s, a, b, c = product(size)
    shared = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    own = [s.cache_read(copy, "local", [c]) for copy in shared]
    sums = s.cache_write(c, "local")
    thread = te.thread_axis((0, SIDE * SIDE), "threadIdx.x")
    i, j = c.op.axis
    (bi, vi, ti, ei), (bj, vj, tj, ej) = (halves(s, c, axis) for axis in (i, j))
    s[c].reorder(bi, bj, vi, vj, ti, tj, ei, ej)
    for axis in (vi, vj):
        s[c].bind(axis, te.thread_axis("vthread"))
    s[c].bind(bi, te.thread_axis("blockIdx.y"))
    s[c].bind(bj, te.thread_axis("blockIdx.x"))
    here = s[c].fuse(ti, tj)
    s[c].bind(here, thread)
    s[c].unroll(ei)
    s[c].vectorize(ej)
    s[sums].compute_at(s[c], here)
    part, term = s[sums].split(sums.op.reduce_axis[0], factor=TERMS)
    s[sums].reorder(part, term, *sums.op.axis)
    for axis in (term, *sums.op.axis):
        s[sums].unroll(axis)
    for copy, registers in zip(shared, own, strict=True):
        s[copy].compute_at(s[sums], part)
        fetched(s, copy, thread, VECTOR)
        s[copy].multi_buffer(2)
        s[registers].compute_at(s[sums], term)
        s[registers].unroll(registers.op.axis[0])
        s[registers].vectorize(registers.op.axis[1])
    return s, [a, b, c]


def halves(s: Schedule, c: te.Tensor, axis: te.IterVar) -> tuple[te.IterVar, ...]:
    """Blocks, halves of a tile, threads, a thread's neighbours."""
    block, rest = s[c].split(axis, factor=TILE)
    half, rest = s[c].split(rest, nparts=2)
    thread, own = s[c].split(rest, factor=VECTOR)
    return block, half, thread, own


if __name__ == "__main__":
    run(schedule)
