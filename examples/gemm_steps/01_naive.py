"""Three loops, as they are declared: every element of B comes from another line of the cache."""

from __future__ import annotations

from lesson import Program, product, run


def schedule(size: int) -> Program:
    """Nothing is scheduled."""
    s, a, b, c = product(size)
    return s, [a, b, c]


if __name__ == "__main__":
    run(schedule)
