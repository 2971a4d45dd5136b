"""The next part of both operands is on its way, past the registers, while this one is multiplied: one barrier where there were two."""

from __future__ import annotations

from lesson import Program, fetched, product, run

from tensorexpr import te

SIDE, EACH, TERMS, VECTOR = 16, 4, 16, 4
TILE = SIDE * EACH


def schedule(size: int) -> Program:
    """As before, with two copies of what is in shared memory, and the terms of a part written out."""
    s, a, b, c = product(size)
    shared = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    own = [s.cache_read(copy, "local", [c]) for copy in shared]
    sums = s.cache_write(c, "local")
    thread = te.thread_axis((0, SIDE * SIDE), "threadIdx.x")
    i, j = c.op.axis
    bi, rest = s[c].split(i, factor=TILE)
    ei, ti = s[c].split(rest, factor=SIDE)
    bj, rest = s[c].split(j, factor=TILE)
    tj, ej = s[c].split(rest, factor=EACH)
    s[c].reorder(bi, bj, ti, tj, ei, ej)
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


if __name__ == "__main__":
    run(schedule)
