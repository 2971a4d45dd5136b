"""Operands of bfloat16, by rules: warps hand whole tiles to the matrix units, which sum in float32."""

from __future__ import annotations

from lesson import TARGET, Program, product, run

from tensorexpr.topi.schedules import default_schedule


def schedule(size: int) -> Program:
    """The rules' schedule: tiles by `ldmatrix` out of shared memory, `mma.sync`, parts on their way by asynchronous copies."""
    _, a, b, c = product(size, "bfloat16")
    return default_schedule([a, b, c], TARGET), [a, b, c]


if __name__ == "__main__":
    run(schedule)
