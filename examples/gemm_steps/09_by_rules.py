"""What topi does by itself: rules that derive all of this from the extents and the processor."""

from __future__ import annotations

from lesson import TARGET, Program, product, run

from tensorexpr.topi.schedules import default_schedule


def schedule(size: int) -> Program:
    """`print(schedule(1024)[0].as_python())` shows the lines that the rules wrote."""
    _, a, b, c = product(size)
    return default_schedule([a, b, c], TARGET), [a, b, c]


if __name__ == "__main__":
    run(schedule)
