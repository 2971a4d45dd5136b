"""Each thread has 4 x 4 results: two loads from shared memory become eight for sixteen multiply-adds."""

from __future__ import annotations

from lesson import Program, product, run

from tensorexpr import te
from tensorexpr.schedule import Schedule

SIDE, EACH, TERMS = 16, 4, 16
TILE = SIDE * EACH


def schedule(size: int) -> Program:
    """Tiles of 64 x 64, whose results are 16 apart for a thread; sums, and what they are made of, in registers."""
    s, a, b, c = product(size)
    shared = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    own = [s.cache_read(copy, "local", [c]) for copy in shared]
    sums = s.cache_write(c, "local")
    threads = [te.thread_axis((0, SIDE), f"threadIdx.{letter}") for letter in "yx"]
    (bi, ei, ti), (bj, ej, tj) = (split(s, c, axis) for axis in c.op.axis)
    s[c].reorder(bi, bj, ti, tj, ei, ej)
    for axis, thread in ((bi, te.thread_axis("blockIdx.y")), (bj, te.thread_axis("blockIdx.x")), (ti, threads[0]), (tj, threads[1])):
        s[c].bind(axis, thread)
    s[sums].compute_at(s[c], tj)
    part, term = s[sums].split(sums.op.reduce_axis[0], factor=TERMS)
    s[sums].reorder(part, term, *sums.op.axis)
    for axis in (*sums.op.axis, ei, ej):
        (s[sums] if axis in sums.op.axis else s[c]).unroll(axis)
    for copy, registers in zip(shared, own, strict=True):
        s[copy].compute_at(s[sums], part)
        s[registers].compute_at(s[sums], term)
        place, column = s[copy].split(s[copy].fuse(*copy.op.axis), factor=SIDE)
        rest, row = s[copy].split(place, factor=SIDE)
        s[copy].bind(row, threads[0])
        s[copy].bind(column, threads[1])
        s[copy].unroll(rest)
        for axis in registers.op.axis:
            s[registers].unroll(axis)
    return s, [a, b, c]


def split(s: Schedule, c: te.Tensor, axis: te.IterVar) -> tuple[te.IterVar, te.IterVar, te.IterVar]:
    """Blocks, a thread's results, threads."""
    block, rest = s[c].split(axis, factor=TILE)
    each, thread = s[c].split(rest, factor=SIDE)
    return block, each, thread


if __name__ == "__main__":
    run(schedule)
