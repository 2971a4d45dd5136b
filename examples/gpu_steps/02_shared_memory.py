"""The threads of a block fetch what all of them need into shared memory: global memory is read once for 16 results."""

from __future__ import annotations

from lesson import Program, product, run

from tensorexpr import te

SIDE = 16


def schedule(size: int) -> Program:
    """As before, with parts of 16 terms in shared memory, of which each thread fetches one element of A and of B."""
    s, a, b, c = product(size)
    shared = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    sums = s.cache_write(c, "local")
    rows, columns = te.thread_axis((0, SIDE), "threadIdx.y"), te.thread_axis((0, SIDE), "threadIdx.x")
    i, j, ii, jj = s[c].tile(*c.op.axis, SIDE, SIDE)
    for axis, thread in ((i, te.thread_axis("blockIdx.y")), (j, te.thread_axis("blockIdx.x")), (ii, rows), (jj, columns)):
        s[c].bind(axis, thread)
    s[sums].compute_at(s[c], jj)
    part, term = s[sums].split(sums.op.reduce_axis[0], factor=SIDE)
    s[sums].reorder(part, term, *sums.op.axis)
    for copy in shared:
        s[copy].compute_at(s[sums], part)
        row, column = copy.op.axis
        s[copy].bind(row, rows)
        s[copy].bind(column, columns)
    return s, [a, b, c]


if __name__ == "__main__":
    run(schedule)
