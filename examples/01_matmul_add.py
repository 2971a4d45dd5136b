"""Lesson 1: declare a matrix multiplication with an addition, let the auto-scheduler find its schedule, and run it.

python examples/01_matmul_add.py [--size N] [--trials T]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te


@auto_scheduler.register_workload
def matmul_add(N: int, L: int, M: int, dtype: str) -> list[te.Tensor]:
    """out[i, j] = sum over k of A[i, k] * B[k, j], plus C[i, j]."""
    A = te.placeholder((N, L), name="A", dtype=dtype)
    B = te.placeholder((L, M), name="B", dtype=dtype)
    C = te.placeholder((N, M), name="C", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    matmul = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")
    out = te.compute((N, M), lambda i, j: matmul[i, j] + C[i, j], name="out")
    return [A, B, C, out]


def main() -> None:
    """Tune, build, check and compare with NumPy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--log", type=Path, default=None, help="where records go; a temporary file by default")
    options = parser.parse_args()
    n = options.size
    log = options.log or Path(tempfile.mkdtemp()) / "matmul_add.json"

    target = tvm.target.Target("llvm")
    task = auto_scheduler.SearchTask(func=matmul_add, args=(n, n, n, "float32"), target=target)
    print(task.compute_dag)

    start = time.perf_counter()
    task.tune(auto_scheduler.TuningOptions(num_measure_trials=options.trials, measure_callbacks=[auto_scheduler.RecordToFile(log)]))
    tuning_seconds = time.perf_counter() - start

    schedule, args = task.apply_best(log)
    print("The schedule that was found:\n")
    print(task.print_best(log))
    with target:  # which says how many registers there are
        print(tvm.lower(schedule, args))

    func = tvm.build(schedule, args, target)
    a, b, c = (np.random.default_rng(seed).standard_normal((n, n), np.float32) for seed in range(3))
    result = np.empty((n, n), np.float32)
    func(a, b, c, result)
    np.testing.assert_allclose(result, a @ b + c, rtol=1e-3, atol=1e-3)

    ours, numpys = interleaved(lambda: func(a, b, c, result), lambda: a @ b + c)
    flops = task.compute_dag.flop_ct
    print(f"tuning:     {tuning_seconds:7.1f} s for {options.trials} trials")
    print(f"tensorexpr: {ours * 1e3:7.3f} ms  {flops / ours / 1e9:6.1f} GFLOPS")
    print(f"NumPy:      {numpys * 1e3:7.3f} ms  {flops / numpys / 1e9:6.1f} GFLOPS   (a @ b + c)")
    print(f"ratio:      {numpys / ours:7.2f} x NumPy")


def interleaved(first: Callable[[], object], second: Callable[[], object], rounds: int = 12) -> tuple[float, float]:
    """Seconds of two functions, measured in turn: the 20th percentile, since what others do on the machine only ever adds time.

    Each turn waits until the other side's threads sleep (OpenBLAS spins for 60 to 100 ms), calls once to wake its own, and times 4 calls.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for func, seconds in zip((first, second), times, strict=True):
            time.sleep(0.2)
            func()
            for _ in range(4):
                start = time.perf_counter()
                func()
                seconds.append(time.perf_counter() - start)
    return statistics.quantiles(times[0], n=5)[0], statistics.quantiles(times[1], n=5)[0]


if __name__ == "__main__":
    main()
