"""Blocks that stay in the nearest cache, and an order of loops that goes through memory in lines."""

from __future__ import annotations

from lesson import Program, product, run

BLOCK = 32  # three blocks of 32 x 32 floats are 12 KB


def schedule(size: int) -> Program:
    """Blocks of C, blocks of the sum, and columns innermost."""
    s, a, b, c = product(size)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    io, jo, ii, ji = s[c].tile(i, j, BLOCK, BLOCK)
    ko, ki = s[c].split(k, factor=BLOCK)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    return s, [a, b, c]


if __name__ == "__main__":
    run(schedule)
