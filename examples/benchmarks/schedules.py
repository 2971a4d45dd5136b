"""Schedules that rules make for all suites, for CPUs that need not be here: kept in a file, or compared with those in one.

    python examples/benchmarks/schedules.py --json before.json                  keep them
    python examples/benchmarks/schedules.py --against before.json --json after.json
    python examples/benchmarks/schedules.py --suite gemm --cpu znver3 --sketches --against before.json

A change of the rules that should change nothing leaves all of them the same; of another one this lists the cases that it touches, which are
those to be timed. `--sketches` adds the search's structures and the sizes that rules prefer in each. Nothing is compiled or run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from machine_code import CPUS, target_of

from tensorexpr import auto_scheduler
from tensorexpr.errors import TensorExprError
from tensorexpr.target import Target
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.tune.evolution import preferred
from tensorexpr.workloads import SUITES, Case, suite

DEFAULT_CPUS = ("x86-64-v2", "znver3", "icelake-server", "znver5", "neoverse-n1")


def schedules_of(case: Case, target: Target, sketches: bool) -> Iterator[tuple[str, str]]:
    """What is made of a case, by a name: the default schedule, then the preferred program of each sketch."""
    tensors = case.tensors()
    try:
        yield "default", json.dumps(default_schedule(tensors, target).trace.to_json())
        if sketches:
            task = auto_scheduler.SearchTask(workload_key=case.key, target=target)
            found = auto_scheduler.SketchPolicy(task).generate_sketches()
            for number, candidate in enumerate(preferred(found)):
                sketch = found[candidate.sketch]
                yield f"sketch {number}", json.dumps(sketch.trace_of(candidate.row).to_json())
    except TensorExprError as error:
        yield "refused", str(error)


def main() -> None:
    """Make the schedules that are asked for; keep or compare them."""
    parser = argparse.ArgumentParser(description="Schedules by rules, kept or compared.")
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="may be given several times; default all")
    parser.add_argument("--cpu", action="append", choices=(*CPUS, "icelake-server", "sapphirerapids"), help=f"default {DEFAULT_CPUS}")
    parser.add_argument("--sketches", action="store_true", help="the search's structures too")
    parser.add_argument("--json", type=Path, help="where they are kept")
    parser.add_argument("--against", type=Path, help="those of before")
    options = parser.parse_args()
    found = {
        f"{name}/{case.name} {cpu} {what}": text
        for name in options.suite or sorted(SUITES)
        for case in suite(name)
        for cpu in options.cpu or DEFAULT_CPUS
        for what, text in schedules_of(case, target_of(cpu), options.sketches)
    }
    if options.json:
        options.json.write_text(json.dumps(found, indent=0) + "\n")
    if options.against:
        before = {key: text for key, text in json.loads(options.against.read_text()).items() if key in found}
        changed = [key for key, text in found.items() if before.get(key) != text]
        print("\n".join(changed))
        print(f"{len(found)} schedules, {len(changed)} changed")
    else:
        print(f"{len(found)} schedules")


if __name__ == "__main__":
    main()
