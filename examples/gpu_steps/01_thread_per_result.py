"""A thread for each result: neighbours read neighbours of B, and each term is two loads from global memory."""

from __future__ import annotations

from lesson import Program, product, run

from tensorexpr import te

SIDE = 16


def schedule(size: int) -> Program:
    """Blocks of 16 x 16 threads."""
    s, a, b, c = product(size)
    i, j, ii, jj = s[c].tile(*c.op.axis, SIDE, SIDE)
    for axis, name in ((i, "blockIdx.y"), (j, "blockIdx.x"), (ii, "threadIdx.y"), (jj, "threadIdx.x")):
        s[c].bind(axis, te.thread_axis(name))
    return s, [a, b, c]


if __name__ == "__main__":
    run(schedule)
