"""What tuning brings over schedules that nobody measured, case by case of the operator suites.

    python examples/benchmarks/tuned_vs_default.py ansor mobilenet --trials 32
    python examples/benchmarks/tuned_vs_default.py resnet50 --only 3x3 --trials 64 --log records.json --json speeds.json

Three programs of each case run in turn, warm, in one process:

rules   topi.schedules.default_schedule: the plans that rules make
zero    auto_scheduler.default_schedule: the analytic model's choice, without a trial, and the seconds that choosing took
tuned   the best of so many trials, which see nothing but the declaration; records go to a log, which is gone on with

The figures are speeds against each other: tuned/rules above 1 says that tuning found a faster program.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from tensorexpr import auto_scheduler, build
from tensorexpr.driver.bench.ours import Kernel, default_kernel, empty_outputs, random_inputs, recorded_kernel, tune
from tensorexpr.driver.bench.timing import Contender, Rules, interleaved
from tensorexpr.errors import TensorExprError
from tensorexpr.target import Target
from tensorexpr.workloads import SUITES, Case, suite

COLUMNS = ("rules ms", "zero ms", "tuned ms", "tuned/rules", "zero/tuned", "zero s", "GFLOPS")
WIDTHS = (10, 10, 10, 12, 11, 7, 7)
HEADER = " ".join([f"{'case':34s}", *(f"{name:>{width}s}" for name, width in zip(COLUMNS, WIDTHS, strict=True))])


@dataclass(frozen=True)
class Line:
    """One case: seconds per call of the three programs, seconds that the zero-trial choice took, and operations of a call."""

    suite: str
    case: str
    rules: float
    zero: float
    tuned: float
    choosing: float
    flops: float

    @property
    def gain(self) -> float:
        """Speed of the tuned program over that of the rules."""
        return self.rules / self.tuned

    @property
    def share(self) -> float:
        """Speed of the zero-trial program over that of the tuned one."""
        return self.tuned / self.zero

    def __str__(self) -> str:
        times = " ".join(f"{seconds * 1e3:10.4f}" for seconds in (self.rules, self.zero, self.tuned))
        rate = self.flops / self.tuned / 1e9
        return f"{self.case:34s} {times} {self.gain:12.2f} {self.share:11.2f} {self.choosing:7.2f} {rate:7.0f}"


def zero_trials(case: Case, target: Target) -> Kernel:
    """The analytic model's choice, with the seconds that choosing took."""
    tensors = case.tensors()
    start = time.perf_counter()
    schedule = auto_scheduler.default_schedule(tensors, target)
    seconds = time.perf_counter() - start
    return Kernel("zero", build(schedule, tensors, target), seconds)


def compare(name: str, case: Case, target: Target, log: Path, options: argparse.Namespace) -> Line:
    """Tune a case into a log and time the three programs in turn."""
    if options.trials:
        tune(case, target, log, options.trials, None)
    zero, rules, tuned = zero_trials(case, target), default_kernel(case, target), recorded_kernel(case, target, log)
    kernels = {"rules": rules, "zero": zero, "tuned": tuned or rules}
    arrays, outputs = random_inputs(case), empty_outputs(case)
    contenders = [Contender(label, partial(kernel.function, *arrays, *outputs)) for label, kernel in kernels.items()]
    samples = interleaved(contenders, Rules(rounds=options.rounds, pause=0.02, batch=0.01, cold_rounds=0))
    times = {label: sample.low for label, sample in samples.items()}
    return Line(name, case.name, times["rules"], times["zero"], times["tuned"], zero.seconds, case.flops())


def geometric_mean(values: Sequence[float]) -> float:
    """1 of no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0


def summary(lines: Sequence[Line]) -> str:
    """What all cases say together."""
    return (
        f"{len(lines)} cases; geometric means: tuned/rules {geometric_mean([line.gain for line in lines]):.3f}, "
        f"zero/tuned {geometric_mean([line.share for line in lines]):.3f}; "
        f"below 0.95 of the rules: {', '.join(line.case for line in lines if line.gain < 0.95) or 'none'}; "
        f"slowest choice without a trial: {max((line.choosing for line in lines), default=0.0):.2f} s"
    )


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+", choices=sorted(SUITES), help="suites of tensorexpr.workloads")
    parser.add_argument("--only", default="", help="cases whose names contain this, or match it as *-b1; several with commas")
    parser.add_argument("--trials", type=int, default=32, help="trials of each case; 0 takes what the log has")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each program")
    parser.add_argument("--target", default="", help="what programs are made for, such as 'llvm -mcpu=znver3'; this machine by default")
    parser.add_argument("--log", type=Path, help="where records go; a temporary file by default")
    parser.add_argument("--json", type=Path, help="write the figures here, after each case")
    return parser.parse_args(arguments)


def main() -> int:
    """Compare, print a table, and write the figures."""
    options = parse()
    target = Target.target_or_current(options.target or None)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        log = options.log or Path(folder) / "records.json"
        print(HEADER)
        for name in options.suites:
            for case in suite(name):
                if not any(part in case.name or fnmatch(case.name, part) for part in options.only.split(",")):
                    continue
                try:
                    lines.append(compare(name, case, target, log, options))
                except TensorExprError as error:
                    print(f"{case.name:34s} failed: {str(error)[:200]}", flush=True)
                    continue
                print(lines[-1], flush=True)
                if options.json:
                    options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")
    print(summary(lines))
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main())
