"""How well cost models order programs that they have not seen: analytic, boosted, random, on a few workloads.

    python examples/benchmarks/cost_models.py                        measure random programs, then judge
    python examples/benchmarks/cost_models.py --log FILE             keep them, or judge by those that it holds
    python examples/benchmarks/cost_models.py --programs 64 --json FILE

Of each workload's programs, drawn at random from all its sketches, a part is learned from and the others are judged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler.loaded import LoadedRecord
from tensorexpr.auto_scheduler.measure import MeasureInput, measure_options, measure_task
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.cost_model import PriorModel, Quality, RandomModel
from tensorexpr.tune.features import extract
from tensorexpr.tune.measure import Measurer, Program
from tensorexpr.tune.population import sample
from tensorexpr.workloads import Case

WORKLOADS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "gemm 512": ("suite.gemm", (512, 512, 512)),
    "conv 3x3": ("suite.conv2d_bias_relu", (1, 64, 28, 28, 64, 3, 1, 1)),
    "depthwise": ("suite.depthwise_nchw", (1, 128, 28, 28, 3, 1, 1, False)),
    "softmax": ("suite.softmax", (512, 512)),
}
# Samples that the boosted model learns from; 0 is the analytic one, on which it stands.
LEARNED = (0, 8, 24, 48)


def task_of(name: str) -> auto_scheduler.SearchTask:
    """The search task of a workload."""
    workload, args = WORKLOADS[name]
    return auto_scheduler.SearchTask(workload_key=Case(name, workload, args).key, target="llvm")


def random_programs(task: auto_scheduler.SearchTask, count: int) -> list[Trace]:
    """Programs of all sketches in turn, drawn uniformly from what may be built."""
    random = np.random.default_rng(0)
    sketches = auto_scheduler.SketchPolicy(task).generate_sketches()
    found: dict[str, Trace] = {}
    for turn in range(8 * count):
        sketch = sketches[turn % len(sketches)]
        rows = sample(sketch, 16, random)
        for row in rows[extract(sketch, inline_stages(sketch.tree), rows, task.target).valid][:1]:
            trace = sketch.trace_of(row)
            found.setdefault(str(trace.to_json()), trace)
        if len(found) == count:
            break
    return list(found.values())


def measure(task: auto_scheduler.SearchTask, traces: Sequence[Trace], log: Path) -> None:
    """Measure programs into a log."""
    options = measure_options(auto_scheduler.TuningOptions(1))
    with Measurer(measure_task(task, 0), options) as measurer:
        for result in measurer.measure([Program(number, trace) for number, trace in enumerate(traces)]):
            auto_scheduler.save_records(log, [MeasureInput(task, traces[result.number])], [result])


def judged(records: Sequence[LoadedRecord]) -> dict[str, Quality]:
    """Each model's quality on the second half of a workload's programs."""
    random = np.random.default_rng(1)
    order = random.permutation(len(records))
    split = len(records) // 2
    learned, held_out = [records[n] for n in order[:split]], [records[n] for n in order[split:]]

    def of(model: Any) -> Quality:
        (quality,) = auto_scheduler.evaluate_cost_model(model, held_out).values()
        return quality

    found = {"random": of(RandomModel()), "analytic": of(PriorModel())}
    for count in LEARNED:
        model = auto_scheduler.XGBModel()
        if part := learned[:count]:
            model.update([record.input for record in part], [record.result for record in part])
        found[f"boosted, {min(count, len(learned))} samples"] = of(model)
    return found


def main() -> None:
    """Measure what the log lacks, and print a table."""
    parser = argparse.ArgumentParser(description="how well cost models order programs")
    parser.add_argument("--programs", type=int, default=96, help="of each workload")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    parser.add_argument("--log", type=Path, default=Path("cost-models.json"))
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    print(f"{'workload':<12}{'model':<22}{'programs':>10}{'Spearman':>10}{'recall':>14}{'a-peak':>14}")
    kept: dict[str, Any] = {}
    for name in options.workload or WORKLOADS:
        task = task_of(name)
        known = auto_scheduler.load_records(options.log) if options.log.exists() else []
        if not any(record.workload_key == task.workload_key for record in known):
            measure(task, random_programs(task, options.programs), options.log)
            known = auto_scheduler.load_records(options.log)
        records = [record for record in known if record.workload_key == task.workload_key and record.is_success]
        for model, quality in judged(records).items():
            recall, peak = f"@{quality.top} {quality.recall:.2f}", f"@{quality.top} {quality.peak:.2f}"
            print(f"{name:<12}{model:<22}{quality.count:>10}{quality.correlation:>10.2f}{recall:>14}{peak:>14}", flush=True)
            kept.setdefault(name, {})[model] = vars(quality)
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
