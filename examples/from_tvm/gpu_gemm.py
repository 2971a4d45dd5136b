"""A matrix product as a GPU computes it, run on a CPU: tiles in shared memory, fetched together, virtual threads, sums in registers.

python examples/from_tvm/gpu_gemm.py --size 512
"""

import argparse
import time

import numpy as np

import tensorexpr as tvm
from tensorexpr import te

TILE, THREADS, STEP = 64, 8, 8  # a block's tile of C, its threads along each side, terms per visit of shared memory


def gemm(n: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """C = A^T B; each of 8 x 8 threads computes 8 x 8 elements, in 2 x 2 groups that are half a tile apart."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[k, i] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    shared = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    local = [s.cache_read(copy, "local", [c]) for copy in shared]
    sums = s.cache_write(c, "local")

    thread_x, thread_y = te.thread_axis((0, THREADS), "threadIdx.x"), te.thread_axis((0, THREADS), "threadIdx.y")
    parts = []
    for axis, letter, thread in zip(s[c].op.axis, "yx", (thread_y, thread_x), strict=True):
        block, rest = s[c].split(axis, factor=TILE)
        virtual, rest = s[c].split(rest, nparts=2)
        lane, rest = s[c].split(rest, nparts=THREADS)
        s[c].bind(block, te.thread_axis(f"blockIdx.{letter}"))
        s[c].bind(virtual, te.thread_axis((0, 2), "vthread", name=f"v{letter}"))
        s[c].bind(lane, thread)
        parts.append((block, virtual, lane, rest))
    s[c].reorder(*(axis for level in zip(*parts, strict=True) for axis in level))
    s[sums].compute_at(s[c], parts[1][2])

    outer, inner = s[sums].split(k, factor=STEP)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for copy, registers in zip(shared, local, strict=True):
        s[copy].compute_at(s[sums], outer)
        s[registers].compute_at(s[sums], inner)
        row, rest = s[copy].split(copy.op.axis[0], nparts=THREADS)
        column, lanes = s[copy].split(copy.op.axis[1], nparts=THREADS)
        lanes, vector = s[copy].split(lanes, factor=4)
        s[copy].reorder(row, column, rest, lanes, vector)
        s[copy].bind(row, thread_y)
        s[copy].bind(column, thread_x)
        s[copy].vectorize(vector)
    return s, [a, b, c]


def main(n: int) -> None:
    """Build it for this CPU, compare it with NumPy, time it."""
    s, args = gemm(n)
    func = tvm.build(s, args, target="llvm")
    rng = np.random.default_rng(0)
    x, y, z = rng.random((n, n), np.float32), rng.random((n, n), np.float32), np.zeros((n, n), np.float32)
    func(x, y, z)
    np.testing.assert_allclose(z, x.T @ y, rtol=1e-4)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        func(x, y, z)
        seconds.append(time.perf_counter() - start)
    print(f"{n} x {n} by blocks and threads: what NumPy computes, {2 * n**3 / min(seconds) / 1e9:.1f} GFLOPS")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=512)
    main(parser.parse_args().size)
