"""The columns of a block are the lanes of vectors."""

from __future__ import annotations

from lesson import LANES, Program, product, run

BLOCK = 32


def schedule(size: int) -> Program:
    """As before, with columns in vectors."""
    s, a, b, c = product(size)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    io, jo, ii, ji = s[c].tile(i, j, BLOCK, LANES)
    ko, ki = s[c].split(k, factor=BLOCK)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return s, [a, b, c]


if __name__ == "__main__":
    run(schedule)
