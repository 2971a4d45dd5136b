"""What came of a search, on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..dataclass import dataclass, field
from ..tune.cost_model import Quality, quality
from ..tune.tuner import Trial, Tuner
from .failures import Failures, failures_of

_MESSAGE = 160
_FEWEST_PREDICTED = 3
_ROUNDS_SHOWN = 8
_TRACEBACK_LINES = 6


def summary(tuner: Tuner, flop_ct: float) -> str:
    """Best program, how much faster it is than the unscheduled one, failures by kind, and where the time went.

    Args:
        tuner: after its search.
        flop_ct: operations of the computation, for GFLOPS.
    """
    trials = tuner.trials
    failures = failures_of([(trial.trace, trial.result) for trial in trials])
    lines = [_best_line(tuner, flop_ct), _failure_line(failures)]
    lines += _first_failure(failures)
    lines += [_descent_line(tuner), model_line(trials), f"Time:     {_times(tuner, trials)}"]
    return "\n".join(line for line in lines if line)


def _best_line(tuner: Tuner, flop_ct: float) -> str:
    best = tuner.best()
    earlier = min((cost for _, cost in tuner.preloaded), default=float("inf"))
    if best is None:
        known = f"; the best that was loaded took {earlier * 1e3:.4g} ms" if earlier < float("inf") else ""
        return f"Best:     none of {len(tuner.trials)} programs ran{known}"
    seconds = best.result.median
    # an old log's best may stand: it was not timed here, so that ratios to it would compare two days
    if earlier < seconds:
        now = f"; of these {len(tuner.trials)} trials {seconds * 1e3:.4g} ms"
        return f"Best:     {earlier * 1e3:.4g} ms{_speed(flop_ct, earlier)}, of the log that was loaded{now}"
    speed = _speed(flop_ct, seconds)
    ratios = [f"{cost / seconds:.2f}x {name} ({cost * 1e3:.4g} ms)" for name, cost in _others(tuner)]
    found = f"trial {tuner.trials.index(best) + 1} of {len(tuner.trials)}"
    return f"Best:     {seconds * 1e3:.4g} ms{speed}, {found}" + (f"; {', '.join(ratios)}" if ratios else "")


def _speed(flop_ct: float, seconds: float) -> str:
    return f", {flop_ct / seconds / 1e9:.2f} GFLOPS" if flop_ct > 0 else ""


def _others(tuner: Tuner) -> Iterator[tuple[str, float]]:
    """What the best is compared with: the unscheduled program, and what was chosen first, before anything was measured."""
    plain = next((trial for trial in tuner.trials if trial.candidate is None), None)
    if plain is not None and plain.result.is_success:
        yield "the unscheduled program", plain.result.median
    first = next((trial for trial in tuner.trials if trial.candidate is not None), None)
    if first is not None and first.result.is_success and not tuner.preloaded:
        yield "the default schedule", first.result.median


def _descent_line(tuner: Tuner) -> str:
    walk = tuner.descent
    if walk is None or not walk.tried:
        return ""
    words = {0: "none was faster", 1: "1 was faster"}.get(walk.moves, f"{walk.moves} were faster")
    start = f", from {walk.start_cost * 1e3:.4g} ms" if walk.moves else ""
    return f"Descent:  {walk.tried} neighbours of the best measured, {words}{start}"


def model_line(trials: Sequence[Trial]) -> str:
    """How good the model's predictions were in each round, before it learned from it; rounds of fewer than three are left out."""
    rounds: dict[int, list[tuple[float, float]]] = {}
    for trial in trials:
        if trial.predicted is not None and np.isfinite(trial.predicted) and trial.result.is_success:
            rounds.setdefault(trial.round, []).append((trial.predicted, 1.0 / trial.result.median))
    each = [_quality(found) for found in rounds.values() if len(found) >= _FEWEST_PREDICTED]
    if not each:
        return ""
    shown = each[-_ROUNDS_SHOWN:]
    last = f" (the last {len(shown)})" if len(shown) < len(each) else ""
    lists = {"rank correlation": "correlation", "recall of the best quarter": "recall", "a-peak": "peak"}
    words = [f"{name} {', '.join(f'{getattr(item, field):.2f}' for item in shown)}" for name, field in lists.items()]
    return f"Model:    by round{last}: {'; '.join(words)}"


def _quality(pairs: Sequence[tuple[float, float]]) -> Quality:
    predicted, speeds = zip(*pairs, strict=True)
    return quality(np.array(predicted), np.array(speeds))


def _failure_line(failures: Failures) -> str:
    return f"Failures: {failures}"


def _first_failure(failures: Failures) -> list[str]:
    if not failures.first:
        return []
    first = failures.first[0]
    lines = [f"          first: trial {first.number + 1}, {first.kind}: {' '.join(first.message.split())[:_MESSAGE]}"]
    detail = [line for line in first.detail.splitlines() if line.strip()]
    return lines + [f"            {line[:_MESSAGE]}" for line in detail[-_TRACEBACK_LINES:]]


def _times(tuner: Tuner, trials: Sequence[Trial]) -> str:
    """Seconds of the search's parts, longest first, and within measuring of the steps that workers told of."""
    parts = sorted(tuner.seconds.items(), key=lambda item: -item[1])
    total = sum(tuner.seconds.values())
    steps: dict[str, float] = {}
    for trial in trials:
        for name, seconds in trial.result.timings.items():
            steps[name] = steps.get(name, 0.0) + seconds
    inside = sorted(steps.items(), key=lambda item: -item[1])[:6]
    listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts)
    workers = ", ".join(f"{name} {seconds:.1f}" for name, seconds in inside)
    return f"{total:.1f} s: {listed}" + (f"; in the workers: {workers}" if workers else "")


@dataclass
class TaskTotals:
    """What a task scheduler remembers of its trials, for its summary.

    Args:
        trials: of all tasks, in the order they were measured.
        plain: seconds of each task's unscheduled program.
        seconds: of tuning.
    """

    trials: list[Trial] = field(default_factory=list)
    plain: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, number: int, trials: Sequence[Trial]) -> None:
        """Trials of a task."""
        self.trials += trials
        for trial in trials:
            if trial.candidate is None and trial.result.is_success:
                self.plain[number] = trial.result.median

    def text(self, costs: Sequence[float], objective: Callable[[Sequence[float]], float], untuned: float) -> str:
        """Objective, how much less it is than with the unscheduled programs, failures by kind, and time.

        Args:
            costs: the best of each task, in seconds.
            objective: of such costs.
            untuned: the cost of a task that has no program.
        """
        lacking = sum(cost >= untuned for cost in costs)
        best = f"Best:     {objective(costs) * 1e3:.4g} ms for all {len(costs)} tasks" if not lacking else ""
        if not lacking and len(self.plain) == len(costs):
            plain = objective([self.plain[number] for number in range(len(costs))])
            best += f"; {plain / objective(costs):.2f}x the unscheduled programs ({plain * 1e3:.4g} ms)"
        return "\n".join([best or f"Best:     {lacking} of {len(costs)} tasks have no program that ran", *self.facts()])

    def facts(self) -> list[str]:
        """Failures by kind, and time, a line each."""
        failures = failures_of([(trial.trace, trial.result) for trial in self.trials])
        time = f"Time:     {self.seconds:.1f} s for {len(self.trials)} trials"
        return [f"Failures: {failures}", *_first_failure(failures), time]
