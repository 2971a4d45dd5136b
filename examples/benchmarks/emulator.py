"""Warp instructions that the emulator of GPUs runs in a second of processor time: products by the schedules without trials.

python examples/benchmarks/emulator.py [--size 128] [--runs 9]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.testing.ptx import emulator


def measure(dtype: str, size: int, runs: int) -> None:
    """A line: instructions, and how many of them in a second, the 20th percentile of the times."""
    a, b = (te.placeholder((size, size), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, size), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C")
    target = tvm.target.Target("cuda -arch=sm_80")
    function, device = tvm.build([a, b, c], target=target, schedule="auto"), emulator()
    values = np.random.default_rng(0).integers(-3, 4, (2, size, size))
    given = [tvm.nd.array(value.astype(dtype), device) for value in values]
    out = tvm.nd.empty((size, size), "float32", device)
    function(*given, out)
    np.testing.assert_array_equal(out.numpy(), values[0] @ values[1])
    count, times = device.counters.instructions, []
    for _ in range(runs):
        start = time.process_time()
        function(*given, out)
        times.append(time.process_time() - start)
    print(f"{dtype} {size}: {count} warp instructions, {count / float(np.percentile(times, 20)):,.0f} a second", flush=True)


def main() -> None:
    """Products in threads and on matrix units."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    for dtype in ("float32", "bfloat16"):
        measure(dtype, given.size, given.runs)


if __name__ == "__main__":
    main()
