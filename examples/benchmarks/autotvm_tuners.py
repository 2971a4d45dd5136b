"""AutoTVM's tuners on two templates: seconds for 64 trials, and how near each comes to the best of the same space.

    python examples/benchmarks/autotvm_tuners.py --json ours.json
    python examples/benchmarks/autotvm_tuners.py --package tvm --target "llvm -mcpu=icelake-server" --json tvm.json
    python examples/benchmarks/autotvm_tuners.py --workload conv2d --tuner XGBTuner --tuner RandomTuner

matmul is a template of this file (512^3), conv2d TVM's own `conv2d_NCHWc.x86` by name (64 channels of 56 x 56, 3x3). Both
are the same programs for TVM 0.19, so that `--package tvm` measures its tuners beside, in another run. What is best in a space is what
the auto-scheduler's search finds there in as many trials as `--reference` says (0: none). Kernels are timed at the end in turn, in one
process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TUNERS = ("RandomTuner", "GridSearchTuner", "GATuner", "XGBTuner", "DropletTuner")
# Turns of the comparison at the end, and the milliseconds that a turn fills.
TURNS, TURN_MS = 11, 30
CONV = (
    ("TENSOR", (1, 64, 56, 56), "float32"),
    ("TENSOR", (64, 64, 3, 3), "float32"),
    (1, 1),
    (1, 1, 1, 1),
    (1, 1),
    "NCHW",
    "NCHW",
    "float32",
)
Figures = dict[str, Any]


def register(package: Any, te: Any, autotvm: Any) -> None:
    """The template of the product: two levels of tiles of rows and columns, one of the sum."""

    @autotvm.template("bench/matmul")  # type: ignore[untyped-decorator]
    def matmul(n: int) -> Any:
        a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
        k = te.reduce_axis((0, n), name="k")
        c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        s = te.create_schedule(c.op)
        y, x = s[c].op.axis
        cfg = autotvm.get_config()
        cfg.define_split("tile_y", y, num_outputs=3)
        cfg.define_split("tile_x", x, num_outputs=3)
        cfg.define_split("tile_k", k, num_outputs=2)
        yo, ym, yi = cfg["tile_y"].apply(s, c, y)
        xo, xm, xi = cfg["tile_x"].apply(s, c, x)
        ko, ki = cfg["tile_k"].apply(s, c, k)
        s[c].reorder(yo, xo, ym, ko, xm, ki, yi, xi)
        s[c].vectorize(xi)
        s[c].parallel(s[c].fuse(yo, xo))
        return s, [a, b, c]


WORKLOADS: dict[str, tuple[str, tuple[Any, ...]]] = {"matmul": ("bench/matmul", (512,)), "conv2d": ("conv2d_NCHWc.x86", CONV)}


def search(autotvm: Any, task: Any, kind: str, trials: int, log: Path) -> float:
    """Tune into a log; the seconds it took, the start of the workers and the last comparison included."""
    made = getattr(autotvm.tuner, kind)(task)
    option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(number=4, repeat=3, cooldown_interval=0.0))
    start = time.perf_counter()
    made.tune(n_trial=trials, measure_option=option, callbacks=[autotvm.callback.log_to_file(str(log))])
    return time.perf_counter() - start


def best_of(autotvm: Any, log: Path) -> tuple[Any, int]:
    """The best configuration of a log, and how many of its lines failed."""
    pairs = [pair for pair in autotvm.record.load_from_file(str(log)) if pair is not None]
    sound = [(made, result) for made, result in pairs if result.error_no == 0]
    again = [pair for pair in sound if getattr(pair[1], "timed_again", False)]
    best = min(again or sound, key=lambda pair: statistics.fmean(map(float, pair[1].costs)))
    return best[0].config, len(pairs) - len(sound)


def kernel(package: Any, autotvm: Any, task: Any, config: Any) -> Callable[[], float]:
    """A call that gives the seconds of a configuration's program."""
    import numpy as np

    # as the tuners instantiate it: operands come packed
    autotvm.GLOBAL_SCOPE.in_tuning = True
    try:
        with task.target:
            schedule, args = task.instantiate(config)
            function = package.build(schedule, args, task.target)
    finally:
        autotvm.GLOBAL_SCOPE.in_tuning = False
    random = np.random.default_rng(0)
    device = package.cpu()
    arrays = [package.nd.array(random.random([int(size) for size in arg.shape], np.float32), device) for arg in args]
    timer = function.time_evaluator(function.entry_name, device, number=1, repeat=1, min_repeat_ms=TURN_MS)
    return lambda: float(timer(*arrays).mean)


def run(package: Any, autotvm: Any, name: str, options: argparse.Namespace, folder: Path) -> Figures:
    """All tuners on one workload."""
    task_name, args = WORKLOADS[name]
    found: Figures = {"tuners": {}}
    configs, tasks = {}, []
    searches = [(kind, options.trials) for kind in options.tuner or TUNERS]
    if options.reference:
        searches.append(("XGBTuner", options.reference))
    for kind, trials in searches:
        task = autotvm.task.create(task_name, args, options.target)
        tasks.append(task)
        label = kind if trials == options.trials else f"the search, {trials} trials"
        seconds = search(autotvm, task, kind, trials, folder / f"{name} {label}.log")
        configs[label], failed = best_of(autotvm, folder / f"{name} {label}.log")
        found["tuners"][label] = {"seconds": seconds, "failed": failed}
        print(f"  {name} {label}: {seconds:.1f} s, {failed} failed", flush=True)
    found["points"] = len(tasks[0].config_space)
    calls = {label: kernel(package, autotvm, tasks[0], config) for label, config in configs.items()}
    times: dict[str, list[float]] = {label: [] for label in calls}
    for _ in range(TURNS):
        for label, call in calls.items():
            times[label].append(call())
    best = min(statistics.median(listed) for listed in times.values())
    for label, listed in times.items():
        seconds = statistics.median(listed)
        row = found["tuners"][label]
        row.update(us=1e6 * seconds, gflops=tasks[0].flop / seconds / 1e9, share=best / seconds, config=str(configs[label]))
        print(f"  {name} {label}: {row['us']:.0f} us, {row['gflops']:.0f} GFLOPS, {row['share']:.2f} of the best", flush=True)
    return found


def main() -> None:
    """Tune and compare."""
    parser = argparse.ArgumentParser(description="AutoTVM's tuners: seconds and shares of the best")
    parser.add_argument("--package", default="tensorexpr", help="tensorexpr, or tvm where that is installed")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS), help="all if none is given")
    parser.add_argument("--tuner", action="append", choices=TUNERS, help="all if none is given")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--reference", type=int, default=256)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    logging.getLogger("autotvm").setLevel(logging.ERROR)
    package, te, autotvm = (importlib.import_module(f"{options.package}{part}") for part in ("", ".te", ".autotvm"))
    importlib.import_module(f"{options.package}.topi.x86")
    register(package, te, autotvm)
    options.target = package.target.Target(options.target)
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.workload or WORKLOADS:
            figures[name] = run(package, autotvm, name, options, Path(folder))
            if options.json:
                kept = json.loads(options.json.read_text()) if options.json.exists() else {}
                options.json.write_text(json.dumps({**kept, name: figures[name]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
