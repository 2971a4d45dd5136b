"""Lesson 3: a schedule that leaves sizes open, and a search by hand: draw, build, time, keep the best.

python examples/03_random_search.py [--size N] [--trials T]
"""

from __future__ import annotations

import argparse

import numpy as np

import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.script import tir as T


def matmul(n: int) -> tvm.IRModule:
    """C = A @ B, as a module with one function of one block."""

    @tvm.script.ir_module
    class Matmul:
        @T.prim_func
        def main(A: T.Buffer((n, n), "float32"), B: T.Buffer((n, n), "float32"), C: T.Buffer((n, n), "float32")) -> None:
            T.func_attr({"global_symbol": "main", "tir.noalias": True})
            for i, j, k in T.grid(n, n, n):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    return Matmul


def stochastic_schedule(mod: tvm.IRModule, seed: int) -> tir.Schedule:
    """One of many schedules: each call of a sample_ method draws a value."""
    sch = tir.Schedule(mod, seed=seed)
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    i0, i1 = sch.split(loop=i, factors=sch.sample_perfect_tile(loop=i, n=2))
    j0, j1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2, max_innermost_factor=64))
    k0, k1 = sch.split(loop=k, factors=sch.sample_perfect_tile(loop=k, n=2))
    sch.reorder(i0, j0, k0, i1, k1, j1)
    sch.parallel(i0)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k0)
    return sch


def main() -> None:
    """Search, check and compare with the program as it was written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--trials", type=int, default=16)
    options = parser.parse_args()
    n = options.size

    mod = matmul(n)
    a, b = (np.random.default_rng(seed).standard_normal((n, n), np.float32) for seed in range(2))
    c = np.empty((n, n), np.float32)

    def seconds(program: tvm.IRModule) -> float:
        lib = tvm.build(program, target="llvm")
        lib["main"](a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
        return float(lib.time_evaluator("main", tvm.cpu(), number=1, repeat=3)(a, b, c).mean)

    found = [stochastic_schedule(mod, seed) for seed in range(1, options.trials + 1)]
    times = [seconds(sch.mod) for sch in found]
    best = found[int(np.argmin(times))]
    print(best.trace)
    print(f"as written {seconds(mod) * 1e3:.3f} ms, best of {options.trials} at random {min(times) * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
