"""The search's own figures: what tuning costs, how soon it is good, and what it needs no measuring for.

    python examples/benchmarks/search.py                         all parts, some ten minutes
    python examples/benchmarks/search.py tuning candidates       some of them
    python examples/benchmarks/search.py few --operator softmax  of one operator
    python examples/benchmarks/search.py --json FILE             keep the figures, beside those of other parts that it holds

    tuning        seconds for 64 trials of matmul_add at 1024
    few           the best of 16 trials against the best of 256, for four operators
    again         a run that finds its log, against the run that wrote it
    candidates    candidates scored a second, one process
    odd           GFLOPS at the prime size 1009 against 1024
    default       default_schedule: its seconds, and its kernel against the tuned one

Kernels are compared interleaved, in one process, by the medians of many turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te
from tensorexpr.driver.bench.rows import describe_machine
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.target import Target
from tensorexpr.tune.cost_model import BoostedModel
from tensorexpr.tune.evolution import EvolutionObserver, EvolutionOptions, evolve
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample
from tensorexpr.workloads import Case

Figures = dict[str, Any]
TARGET = "llvm"
# Turns of a comparison, seconds between two kernels, and the seconds that one turn fills.
TURNS, PAUSE, TURN = 15, 0.02, 0.03


@auto_scheduler.register_workload("search.matmul_add", override=True)
def matmul_add(n: int) -> list[te.Tensor]:
    """out = A @ B + C, float32."""
    a, b, c = (te.placeholder((n, n), name=name) for name in "ABC")
    k = te.reduce_axis((0, n), name="k")
    matmul = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    return [a, b, c, te.compute((n, n), lambda i, j: matmul[i, j] + c[i, j], name="out")]


OPERATORS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "matmul_add": ("search.matmul_add", (1024,)),
    "conv2d": ("suite.conv2d_bias_relu", (1, 64, 56, 56, 64, 3, 1, 1)),
    "depthwise": ("suite.depthwise_nchw", (1, 256, 56, 56, 3, 1, 1, False)),
    "softmax": ("suite.softmax", (1024, 1024)),
}
CHOSEN = dict(OPERATORS)
PARTS: dict[str, Callable[[Path], Figures]] = {}


def part(work: Callable[[Path], Figures]) -> Callable[[Path], Figures]:
    """A part of the benchmark, by its function's name."""
    PARTS[work.__name__] = work
    return work


def task_of(name: str, args: tuple[Any, ...]) -> auto_scheduler.SearchTask:
    """The search task of a workload."""
    return auto_scheduler.SearchTask(workload_key=Case(name, name, args).key, target=TARGET)


def tuned(task: auto_scheduler.SearchTask, log: Path, trials: int, seed: int = 0) -> float:
    """Tune into a log; the seconds it took."""
    start = time.perf_counter()
    options = auto_scheduler.TuningOptions(trials, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0)
    task.tune(options, auto_scheduler.SketchPolicy(task, seed=seed))
    return time.perf_counter() - start


def arrays_of(task: auto_scheduler.SearchTask) -> list[Any]:
    """Random arrays for a task; kernels that are compared run on the same ones."""
    random = np.random.default_rng(0)
    return [tvm.nd.array(random.random([int(str(e)) for e in t.shape], np.float32)) for t in task.compute_dag.tensors]


def kernel(task: auto_scheduler.SearchTask, schedule: te.Schedule, arrays: Sequence[Any]) -> Callable[[], None]:
    """A schedule of a task as a call."""
    function = tvm.build(schedule, task.compute_dag.tensors, TARGET)
    return lambda: function(*arrays)


def best_of(task: auto_scheduler.SearchTask, log: Path, arrays: Sequence[Any]) -> Callable[[], None]:
    """The best kernel of a log."""
    return kernel(task, task.apply_best(log)[0], arrays)


def interleaved(calls: Sequence[Callable[[], None]]) -> list[float]:
    """Seconds per call of each, in turn: the medians."""
    counts = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        counts.append(max(1, int(TURN / (time.perf_counter() - start))))
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(TURNS):
        for call, count, times in zip(calls, counts, found, strict=True):
            time.sleep(PAUSE)
            call()
            start = time.perf_counter()
            for _ in range(count):
                call()
            times.append((time.perf_counter() - start) / count)
    return [statistics.median(times) for times in found]


@part
def tuning(folder: Path) -> Figures:
    """Seconds for 64 trials of matmul_add at 1024, and what its kernel reaches."""
    task = task_of(*OPERATORS["matmul_add"])
    seconds = tuned(task, folder / "tuning.json", 64)
    (cost,) = interleaved([best_of(task, folder / "tuning.json", arrays_of(task))])
    return {"seconds": seconds, "trials": 64, "gflops": task.compute_dag.flop_ct / cost / 1e9}


@part
def few(folder: Path) -> Figures:
    """The best of 16 trials against the best of 256, and of 64."""
    found = {}
    for name, workload in CHOSEN.items():
        task = task_of(*workload)
        logs = [folder / f"{name}-{trials}.json" for trials in (16, 64, 256)]
        seconds = [tuned(task, log, trials) for log, trials in zip(logs, (16, 64, 256), strict=True)]
        arrays = arrays_of(task)
        costs = interleaved([best_of(task, log, arrays) for log in logs])
        best = min(costs)
        found[name] = {
            "ms": [cost * 1e3 for cost in costs],
            "seconds": seconds,
            "best of 16, share of the best": best / costs[0],
            "best of 64, share of the best": best / costs[1],
        }
    return found


SECOND_RUN = """
import sys, time
start = time.perf_counter()
sys.path.insert(0, sys.argv[1])
import search, tensorexpr as tvm
from pathlib import Path
task = search.task_of(*search.OPERATORS["matmul_add"])
schedule, tensors = task.apply_best(Path(sys.argv[2]))
module = tvm.build(schedule, tensors, search.TARGET)
print(time.perf_counter() - start)
"""


@part
def again(folder: Path) -> Figures:
    """A new process that takes its schedule from the log and builds it, against the one that tuned 64 trials into it."""
    task, log = task_of(*OPERATORS["matmul_add"]), folder / "again.json"
    first = tuned(task, log, 64)
    here = str(Path(__file__).resolve().parent)
    environment = {**os.environ, "TENSOREXPR_CACHE": "0"}
    runs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SECOND_RUN, here, str(log)], env=environment, capture_output=True, text=True, check=True
        )
        runs.append(float(done.stdout))
    second = statistics.median(runs)
    return {"first run, s": first, "second run, s": second, "share": second / first}


class Silent(EvolutionObserver):
    """Nobody is told how a search goes."""

    def sampled(self, count: int, seconds: float) -> None:
        """Nothing."""

    def generation(self, number: int, best: float, worst: float, count: int) -> None:
        """Nothing."""


@part
def candidates(folder: Path) -> Figures:
    """Candidates a second: features and analytic cost, with the boosted model's prediction, and a whole evolution."""
    found = {}
    for name in ("matmul_add", "conv2d"):
        task = task_of(*OPERATORS[name])
        sketches = auto_scheduler.SketchPolicy(task).generate_sketches()
        bodies = [inline_stages(sketch.tree) for sketch in sketches]
        random = np.random.default_rng(0)
        populations = [sample(sketch, 4096, random) for sketch in sketches]
        model = BoostedModel()
        first = extract(sketches[0], bodies[0], populations[0][:64], task.target)
        model.update(first.features, 1.0 / first.cycles, -np.log(first.cycles))

        def scored(number: int, rows: Any, made: Any = (sketches, bodies, task, model)) -> Any:
            spaces, known, of, learned = made
            seen = extract(spaces[number], known[number], rows, of.target)
            return np.where(seen.valid, learned.predict(seen.features, -np.log(seen.cycles)), -np.inf)

        analytic = least(partial(all_extracted, sketches, bodies, populations, task.target))
        learned = least(partial(all_scored, scored, populations))
        options = EvolutionOptions()
        counted: list[int] = []

        def counting(number: int, rows: Any, count: list[int] = counted, score: Any = scored) -> Any:
            count.append(len(rows))
            return score(number, rows)

        start = time.perf_counter()
        evolve(sketches, counting, {}, 64, options, random, Silent())
        whole = time.perf_counter() - start
        total = sum(map(len, populations))
        found[name] = {
            "sketches": len(sketches),
            "analytic, a second": total / analytic,
            "boosted, a second": total / learned,
            "whole evolution, a second": sum(counted) / whole,
        }
    return found


def all_extracted(sketches: Sequence[Any], bodies: Sequence[Any], populations: Sequence[Any], target: Target) -> None:
    """Features of populations of several sketches."""
    for sketch, body, rows in zip(sketches, bodies, populations, strict=True):
        extract(sketch, body, rows, target)


def all_scored(score: Callable[[int, Any], Any], populations: Sequence[Any]) -> None:
    """Scores of populations of several sketches."""
    for number, rows in enumerate(populations):
        score(number, rows)


def least(work: Callable[[], object], rounds: int = 5) -> float:
    """The least seconds of several runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@part
def odd(folder: Path) -> Figures:
    """GFLOPS at the prime size 1009 against 1024, 64 trials each."""
    sizes = (1024, 1009)
    tasks = [task_of("search.matmul_add", (size,)) for size in sizes]
    seconds = [tuned(task, folder / f"odd-{size}.json", 64) for task, size in zip(tasks, sizes, strict=True)]
    costs = interleaved([best_of(task, folder / f"odd-{size}.json", arrays_of(task)) for task, size in zip(tasks, sizes, strict=True)])
    speeds = [task.compute_dag.flop_ct / cost / 1e9 for task, cost in zip(tasks, costs, strict=True)]
    return {"gflops": dict(zip(map(str, sizes), speeds, strict=True)), "share": speeds[1] / speeds[0], "seconds": seconds}


@part
def default(folder: Path) -> Figures:
    """default_schedule: its seconds, and its kernel against the best of 64 trials."""
    found = {}
    for name, workload in CHOSEN.items():
        task = task_of(*workload)
        seconds = least(partial(auto_scheduler.default_schedule, task.compute_dag, task.target), 3)
        arrays = arrays_of(task)
        plain = kernel(task, auto_scheduler.default_schedule(task.compute_dag, task.target), arrays)
        tuned(task, folder / f"default-{name}.json", 64)
        costs = interleaved([plain, best_of(task, folder / f"default-{name}.json", arrays)])
        found[name] = {"seconds": seconds, "ms": costs[0] * 1e3, "tuned, ms": costs[1] * 1e3, "share": costs[1] / costs[0]}
    return found


def shown(figures: Any, depth: int = 1) -> str:
    """Figures as lines."""
    if not isinstance(figures, dict):
        listed = figures if isinstance(figures, list) else [figures]
        return " ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in listed)
    lines = []
    for name, value in figures.items():
        text = shown(value, depth + 1)
        lines.append(f"{'  ' * depth}{name}:" + (f"\n{text}" if isinstance(value, dict) else f" {text}"))
    return "\n".join(lines)


def main() -> None:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(description="the search's own figures")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all if none is given")
    parser.add_argument("--operator", action="append", choices=list(OPERATORS), help="for few and default; may be given several times")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    for name in set(OPERATORS) - set(options.operator or OPERATORS):
        del CHOSEN[name]
    target = Target(TARGET)
    kept: Figures = json.loads(options.json.read_text()) if options.json and options.json.exists() else {"parts": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.parts or PARTS:
            found = PARTS[name](Path(folder))
            print(f"{name}\n{shown(found)}", flush=True)
            kept["parts"][name] = {**(kept["parts"].get(name, {}) if name in ("few", "default") else {}), **found}
            if options.json:
                kept["machine"] = describe_machine({"tensorexpr": tvm.__version__}, target)
                options.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
