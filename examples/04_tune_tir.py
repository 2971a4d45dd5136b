"""Lesson 4: the same open schedule, searched by `meta_schedule`: a database, and the best schedule that it knows.

python examples/04_tune_tir.py [--size N] [--trials T] [--work-dir FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
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


def design_space(sch: tir.Schedule) -> None:
    """Tiles of any size, rows in parallel, columns in vectors."""
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    i0, i1 = sch.split(loop=i, factors=sch.sample_perfect_tile(loop=i, n=2))
    j0, j1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2, max_innermost_factor=64))
    k0, k1 = sch.split(loop=k, factors=sch.sample_perfect_tile(loop=k, n=2))
    sch.reorder(i0, j0, k0, i1, k1, j1)
    sch.parallel(i0)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k0)


def main() -> None:
    """Search in both ways that programs have of saying it, check, and time the best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--work-dir", default=None, help="where the database is; a temporary folder by default")
    options = parser.parse_args()
    n, trials = options.size, options.trials
    folder = options.work_dir or tempfile.mkdtemp()
    mod, space = matmul(n), ms.space_generator.ScheduleFn(design_space)

    database = ms.tune_tir(
        mod, target="llvm", work_dir=folder, max_trials_global=trials, num_trials_per_iter=16, space=space, task_name="main"
    )
    best = ms.tir_integration.compile_tir(database, mod, "llvm")

    # The same, as releases of 2022 say it; the records of the first search count here too, as both use one folder.
    config = ms.TuneConfig(max_trials_global=trials, num_trials_per_iter=16)
    again = ms.tune_tir(mod, target="llvm", config=config, work_dir=folder, space=space)

    a, b = (np.random.default_rng(seed).standard_normal((n, n), np.float32) for seed in range(2))
    for name, sch in (("the database's best", best), ("the best after another search", again)):
        assert sch is not None
        lib, c = tvm.build(sch.mod, target="llvm"), np.empty((n, n), np.float32)
        lib["main"](a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
        print(f"{name}: {lib.time_evaluator('main', tvm.cpu())(a, b, c).mean * 1e3:.3f} ms")
    print(again.trace)


if __name__ == "__main__":
    main()
