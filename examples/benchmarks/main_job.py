"""The figures of the main job: import, lowering by phase, LLVM's share, call overhead, and the search's own speed.

    python examples/benchmarks/main_job.py

What the tuned kernel reaches is printed by examples/01_matmul_add.py.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample

N = 1024


def matmul_add() -> list[te.Tensor]:
    """out = A @ B + C, float32."""
    a, b, c = (te.placeholder((N, N), name=name) for name in "ABC")
    k = te.reduce_axis((0, N), name="k")
    matmul = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    return [a, b, c, te.compute((N, N), lambda i, j: matmul[i, j] + c[i, j], name="out")]


def scheduled(args: list[te.Tensor]) -> te.Schedule:
    """A hand schedule: blocks of 64 x 64 in parallel, register tiles of 8 x 32."""
    out = args[-1]
    matmul = out.op.input_tensors[0]
    s = te.create_schedule(out.op)
    oi, oj = s[out].op.axis
    io, jo, _, ji = s[out].tile(oi, oj, 64, 64)
    block = s[out].fuse(io, jo)
    s[out].parallel(block)
    s[out].vectorize(s[out].split(ji, factor=32)[1])
    s[matmul].compute_at(s[out], block)
    (i, j), (k,) = s[matmul].op.axis, s[matmul].op.reduce_axis
    i1, i2 = s[matmul].split(i, factor=8)
    j1, j2 = s[matmul].split(j, factor=32)
    ko, ki = s[matmul].split(k, factor=64)
    s[matmul].reorder(ko, i1, j1, ki, i2, j2)
    s[matmul].vectorize(j2)
    return s


def seconds(work: Callable[[], object], rounds: int = 9) -> float:
    """The median time of some work."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def repeat(work: Callable[[], object], count: int) -> None:
    """Work, so many times."""
    for _ in range(count):
        work()


def main() -> None:
    """Measure and print everything."""
    os.environ["TENSOREXPR_CACHE"] = "0"  # what building costs, not finding; see cold_costs.py for that
    command = [sys.executable, "-c", "import time; t = time.perf_counter(); import tensorexpr; print(time.perf_counter() - t)"]
    imports = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    print(f"import tensorexpr                     {statistics.median(imports) * 1e3:8.1f} ms")
    args = matmul_add()
    s = scheduled(args)
    for phase in range(4):
        print(f"lower, up to phase {phase}                  {seconds(lambda p=phase: tvm.lower(s, args, upto=p)) * 1e3:8.1f} ms")  # type: ignore[misc]
    func = tvm.build(s, args)
    print(f"build, whole                          {seconds(lambda: tvm.build(s, args)) * 1e3:8.1f} ms")
    for name, value in func.timings.items():
        print(f"  {name:<35} {value * 1e3:8.1f} ms")
    tiny = te.placeholder((4,), name="X")
    copy = te.compute((4,), lambda i: tiny[i] + 1.0, name="Y")
    call = tvm.build(te.create_schedule(copy.op), [tiny, copy])
    x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
    print(f"call of a kernel with 2 small arrays  {seconds(lambda: repeat(lambda: call(x, y), 1000)) * 1e3:8.3f} us")
    task = auto_scheduler.SearchTask(compute_dag=args, target="llvm")
    sketch = auto_scheduler.SketchPolicy(task).generate_sketches()[0]
    bodies, rows = inline_stages(sketch.tree), sample(sketch, 10_000, np.random.default_rng(0))
    rate = len(rows) / seconds(lambda: extract(sketch, bodies, rows, task.target))
    print(f"features of candidates, one core      {rate:8.0f} /s")


if __name__ == "__main__":
    main()
