"""How well cost models order programs that they have not seen: analytic, boosted, random, on a few workloads.

    python examples/benchmarks/cost_models.py                        measure random programs, then judge
    python examples/benchmarks/cost_models.py --log FILE             keep them, or judge by those that it holds
    python examples/benchmarks/cost_models.py --programs 64 --json FILE
    python examples/benchmarks/cost_models.py --suite ansor --programs 24 --prior

Of each workload's programs, those that rules prefer and others drawn at random from all its sketches, a part is learned from and the
others are judged. With `--prior` only the analytic model is, by all of them: its rank correlation and the regret of its first choice.

Other work on the machine doubles the time of whatever it meets. So all programs of a workload are measured in `--rounds` turns, and the
time of each is that of its fastest turn: what is timed again doesn't depend on how a model or a turn before saw it.
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
from tensorexpr.tune.evolution import preferred
from tensorexpr.tune.features import extract
from tensorexpr.tune.measure import Measurer, MeasureResult, Program
from tensorexpr.tune.population import sample
from tensorexpr.workloads import SUITES, Case, suite

WORKLOADS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "gemm 512": ("suite.gemm", (512, 512, 512)),
    "conv 3x3": ("suite.conv2d_bias_relu", (1, 64, 28, 28, 64, 3, 1, 1)),
    "depthwise": ("suite.depthwise_nchw", (1, 128, 28, 28, 3, 1, 1, False)),
    "softmax": ("suite.softmax", (512, 512)),
}
# Samples that the boosted model learns from; 0 is the analytic one, on which it stands.
LEARNED = (0, 8, 24, 48)


def cases_of(names: Sequence[str], suites: Sequence[str]) -> list[Case]:
    """Workloads by name, or the cases of some suites, of batch 1 where a suite has several."""
    if suites:
        return [case for name in suites for case in suite(name) if not case.name.endswith("-b16")]
    return [Case(name, *WORKLOADS[name]) for name in names or WORKLOADS]


def some_programs(task: auto_scheduler.SearchTask, count: int) -> list[Trace]:
    """Programs that rules prefer, then those of all sketches in turn, drawn uniformly from what may be built."""
    random = np.random.default_rng(0)
    sketches = auto_scheduler.SketchPolicy(task).generate_sketches()
    first = [sketches[candidate.sketch].trace_of(candidate.row) for candidate in preferred(sketches)][: count // 4]
    found: dict[str, Trace] = {str(trace.to_json()): trace for trace in first}
    for turn in range(8 * count):
        sketch = sketches[turn % len(sketches)]
        rows = sample(sketch, 16, random)
        for row in rows[extract(sketch, inline_stages(sketch.tree), rows, task.target).valid][:1]:
            trace = sketch.trace_of(row)
            found.setdefault(str(trace.to_json()), trace)
        if len(found) == count:
            break
    return list(found.values())


def measure(task: auto_scheduler.SearchTask, traces: Sequence[Trace], log: Path, rounds: int) -> None:
    """Measure programs in some turns, and write the fastest of each into a log."""
    options = measure_options(auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner())
    best: dict[int, MeasureResult] = {}
    with Measurer(measure_task(task, 0), options) as measurer:
        for _ in range(rounds):
            for result in measurer.measure([Program(number, trace) for number, trace in enumerate(traces)]):
                known = best.get(result.number)
                if known is None or result.least < known.least:
                    best[result.number] = result
    for number, result in best.items():
        auto_scheduler.save_records(log, [MeasureInput(task, traces[number])], [result])


def judged(records: Sequence[LoadedRecord], only_prior: bool) -> dict[str, Quality]:
    """Each model's quality on the second half of a workload's programs; that of the prior alone on all of them."""
    if only_prior:
        return {"analytic": next(iter(auto_scheduler.evaluate_cost_model(PriorModel(), records).values()))}
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
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="all cases of a suite instead")
    parser.add_argument("--prior", action="store_true", help="judge the analytic model only")
    parser.add_argument("--case", default="", help="only workloads whose names contain this; several with commas")
    parser.add_argument("--rounds", type=int, default=2, help="turns in which all programs of a workload are measured")
    parser.add_argument("--target", default="llvm", help="what the programs are made for")
    parser.add_argument("--log", type=Path, default=Path("cost-models.json"))
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    print(f"{'workload':<16}{'model':<22}{'programs':>10}{'Spearman':>10}{'recall':>14}{'a-peak':>14}{'regret':>9}")
    kept: dict[str, Any] = {}
    for case in cases_of(options.workload, options.suite):
        if not any(part in case.name for part in options.case.split(",")):
            continue
        task = auto_scheduler.SearchTask(workload_key=case.key, target=options.target)
        known = auto_scheduler.load_records(options.log) if options.log.exists() else []
        if not any(record.workload_key == task.workload_key for record in known):
            measure(task, some_programs(task, options.programs), options.log, options.rounds)
            known = auto_scheduler.load_records(options.log)
        records = [record for record in known if record.workload_key == task.workload_key and record.is_success]
        for model, quality in judged(records, options.prior).items():
            recall, peak = f"@{quality.top} {quality.recall:.2f}", f"@{quality.top} {quality.peak:.2f}"
            figures = f"{quality.count:>10}{quality.correlation:>10.2f}{recall:>14}{peak:>14}{quality.regret:>9.1%}"
            print(f"{case.name:<16}{model:<22}{figures}", flush=True)
            kept.setdefault(case.name, {})[model] = vars(quality)
    for model in next(iter(kept.values()), {}):
        correlation, regret = (np.mean([found[model][key] for found in kept.values()]) for key in ("correlation", "regret"))
        print(f"{'mean':<16}{model:<22}{'':>10}{correlation:>10.2f}{'':>28}{regret:>9.1%}")
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
