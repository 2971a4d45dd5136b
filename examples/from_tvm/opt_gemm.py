"""A matrix product, faster step by step: tiles, vectors, packed columns, threads.

python examples/from_tvm/opt_gemm.py [--size N]
"""

import argparse
from collections.abc import Callable

import numpy as np

import tensorexpr as tvm
from tensorexpr import te

BLOCK = 16
Program = tuple[te.Schedule, list[te.Tensor]]


def declared(n: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """c = a @ b."""
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    return a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")


def plain(n: int) -> Program:
    """Three loops."""
    a, b, c = declared(n)
    return te.create_schedule(c.op), [a, b, c]


def in_blocks(n: int) -> Program:
    """Blocks that stay in the cache, columns in vectors."""
    a, b, c = declared(n)
    s = te.create_schedule(c.op)
    io, jo, ii, ji = s[c].tile(*c.op.axis, x_factor=BLOCK, y_factor=BLOCK)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    return s, [a, b, c]


def packed(n: int) -> Program:
    """Columns of b side by side, a block of results kept near, threads over rows of blocks."""
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    panels = te.compute((n // BLOCK, n, BLOCK), lambda p, y, x: b[y, p * BLOCK + x], name="panels")
    c = te.compute(
        (n, n), lambda i, j: te.sum(a[i, k] * panels[tvm.tir.indexdiv(j, BLOCK), k, tvm.tir.indexmod(j, BLOCK)], axis=k), name="c"
    )
    s = te.create_schedule(c.op)
    near = s.cache_write(c, "local")
    io, jo, _, _ = s[c].tile(*c.op.axis, x_factor=4, y_factor=BLOCK)
    s[near].compute_at(s[c], jo)
    rows, columns = s[near].op.axis
    s[near].reorder(s[near].op.reduce_axis[0], rows, columns)
    s[near].unroll(rows)
    s[near].vectorize(columns)
    s[c].parallel(io)
    s[panels].parallel(panels.op.axis[0])
    s[panels].vectorize(panels.op.axis[2])
    return s, [a, b, c]


STEPS: tuple[Callable[[int], Program], ...] = (plain, in_blocks, packed)


def main() -> None:
    """Build, check and time each step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=512, help="rows and columns, a multiple of 16")
    n = parser.parse_args().size
    x, y = (np.random.default_rng(seed).random((n, n), np.float32) for seed in (0, 1))
    for step in STEPS:
        schedule, args = step(n)
        func = tvm.build(schedule, args, target="llvm")
        out = np.zeros((n, n), "float32")
        func(x, y, out)
        np.testing.assert_allclose(out, x @ y, rtol=1e-4)
        seconds = func.time_evaluator(func.entry_name, tvm.cpu(0), number=3)(x, y, out).mean
        print(f"{step.__name__:10} {seconds * 1e3:8.3f} ms  {2 * n**3 / seconds / 1e9:7.1f} GFLOPS   {step.__doc__}")


if __name__ == "__main__":
    main()
