"""Let the search find a schedule: register a workload, tune it, build the best, keep the log.

python examples/from_tvm/auto_schedule.py [--trials T]
"""

import argparse

import numpy as np

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te
from tensorexpr.contrib import utils


@auto_scheduler.register_workload
def scaled_product(rows: int, columns: int, depth: int) -> list[te.Tensor]:
    """d = 2 * (a @ b)."""
    a, b = te.placeholder((rows, depth), name="a"), te.placeholder((depth, columns), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return [a, b, te.compute((rows, columns), lambda i, j: c[i, j] * 2.0, name="d")]


def main() -> None:
    """Tune for a few trials and check the winner."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=8)
    trials = parser.parse_args().trials
    task = auto_scheduler.SearchTask(func=scaled_product, args=(64, 96, 48), target=tvm.target.Target("llvm"))
    with utils.tempdir() as folder:
        log = folder.relpath("log.json")
        task.tune(auto_scheduler.TuningOptions(trials, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0))
        schedule, args = task.apply_best(log)
        print(task.print_best(log))
    func = tvm.build(schedule, args, task.target)
    x, y = np.random.default_rng(0).random((64, 48), np.float32), np.random.default_rng(1).random((48, 96), np.float32)
    out = np.empty((64, 96), "float32")
    func(x, y, out)
    np.testing.assert_allclose(out, 2 * (x @ y), rtol=1e-4)
    print(f"the best of {trials} trials computes what NumPy does")


if __name__ == "__main__":
    main()
