"""One computation under several schedules: the loops change, the result doesn't.

python examples/from_tvm/schedule_primitives.py
"""

from collections.abc import Callable

import numpy as np

import tensorexpr as tvm
from tensorexpr import te

ROWS, COLUMNS = 60, 90


def plain(s: te.Schedule, b: te.Tensor, c: te.Tensor) -> None:
    """Nothing: every stage in its own loops."""


def tiled(s: te.Schedule, b: te.Tensor, c: te.Tensor) -> None:
    """Blocks of 20 x 30, the first stage where a row of blocks needs it."""
    outer, _, _, _ = s[c].tile(*c.op.axis, x_factor=20, y_factor=30)
    s[b].compute_at(s[c], outer)


def inlined(s: te.Schedule, b: te.Tensor, c: te.Tensor) -> None:
    """The first stage inside of the second, all of it one loop over threads."""
    s[b].compute_inline()
    s[c].parallel(s[c].fuse(*c.op.axis))


def in_lanes(s: te.Schedule, b: te.Tensor, c: te.Tensor) -> None:
    """Vectors of 16, two of them written out."""
    _, inner = s[c].split(c.op.axis[1], factor=32)
    two, lane = s[c].split(inner, factor=16)
    s[c].unroll(two)
    s[c].vectorize(lane)
    s[b].compute_at(s[c], c.op.axis[0])


SCHEDULES: tuple[Callable[[te.Schedule, te.Tensor, te.Tensor], None], ...] = (plain, tiled, inlined, in_lanes)


def main() -> None:
    """Build each and compare."""
    a = te.placeholder((ROWS, COLUMNS), name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="b")
    c = te.compute(a.shape, lambda i, j: b[i, j] - 1.0, name="c")
    x = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
    for make in SCHEDULES:
        s = te.create_schedule(c.op)
        make(s, b, c)
        out = np.empty_like(x)
        tvm.build(s, [a, c])(x, out)
        np.testing.assert_allclose(out, 2 * x - 1, rtol=1e-6)
        print(f"== {make.__name__}: {make.__doc__}")
        print(s)


if __name__ == "__main__":
    main()
