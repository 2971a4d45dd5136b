"""The search loop: propose, measure, learn, until the trials are used up.

Round by round the model scores populations of all sketches, evolution keeps the best unseen rows, a few random ones are
added, the batch is measured, and the model learns from all results so far. The first batch has what sketches prefer, and at
its end the unscheduled program: so there always is a result, nothing slower than it is ever returned, and it can be stopped
when it takes far longer than the best.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..dataclass import dataclass, field, replace
from ..errors import InternalError, TensorExprError
from ..schedule.trace import Trace
from ..target import Target
from .budget import Budget
from .cost_model import CostModel
from .descent import BATCH as DESCENT_BATCH
from .descent import Descent
from .evolution import Candidate, preferred
from .features.nest import Array
from .learning import Learner, ProgramModel
from .measure import OFFSETS, MeasureErrorNo, Measurer, MeasureResult, Program
from .proposals import Proposals, Strategy
from .space import Computed, IntArray, Space
from .trial import Trial, TunerObserver, TunerOptions

__all__ = ["ProgramModel", "Trial", "Tuner", "TunerObserver", "TunerOptions"]

# What was timed alone may have met a neighbour on the memory: plans this much slower than the best are compared with it once more.
_PLANS = 1.5


@dataclass(eq=False)
class Tuner:
    """Searches the programs of some sketches for the fastest one.

    Args:
        sketches: the spaces: sketches, or anything else that is a `Space`.
        target: the machine.
        model: predicts throughput from features; it learns.
        measurer: builds, runs and verifies programs; None where whoever asks for programs does.
        observer: is told what happens.
        record: called with every result as soon as it is there.
        seed: of all random choices: the same seed and the same results give the same candidates.
        preloaded: candidates that were measured before, with their costs; they are not measured again.
        program_model: predicts instead of `model` if given.
        promising: candidates to measure first, such as the best of a log that was timed otherwise.
        with_baseline: measure the unscheduled program too; a run that goes on with an old log has done so.
        strategy: chooses what to measure next, instead of evolution guided by the model.
        clock: seconds, for the budget.
    """

    sketches: Sequence[Space]
    target: Target
    model: CostModel
    measurer: Measurer | None
    options: TunerOptions
    observer: TunerObserver
    record: Callable[[Sequence[Trial]], None]
    seed: int = 0
    trials: list[Trial] = field(default_factory=list)
    preloaded: Sequence[tuple[Candidate, float]] = ()
    program_model: ProgramModel | None = None
    promising: Sequence[Candidate] = ()
    with_baseline: bool = True
    strategy: Strategy | None = None
    clock: Callable[[], float] = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.descent: Descent | None = None
        self._budget = Budget(self.options, self.clock)
        self._learner = Learner(self.sketches, self.target, self.model, self.program_model)
        self._proposals = Proposals(self._learner, self.options, self.observer, np.random.default_rng(self.seed))
        self._strategy: Strategy = self.strategy or self._proposals
        # What an old log measured counts as known and is not paid for again.
        self._seen = {candidate for candidate, _ in self.preloaded}
        self._first: list[Candidate | None] = []
        self._told: dict[Candidate, float] = {}
        self._alone: dict[Candidate | None, float] = {}  # what programs took that were timed again since
        self._final: set[Candidate | None] = set()  # what was compared in the end, of the first so many trials
        self._compared = 0
        self._tried_preferred = False
        self._rounds = 0
        if self.preloaded:
            self._learn()

    def run(self, started: float | None = None) -> list[Trial]:
        """Search until the trials or the time are used up, or nothing better turns up.

        Args:
            started: the moment of `clock` from which the time budget counts; now if None.

        Returns:
            all trials, in the order they were measured.
        """
        self._budget.start(started)
        # All ends go through `finish`: whatever ends a search, the best few are timed in turn before one is called the best.
        while len(self.trials) < self.options.trials:
            if not self.round(self._round_size()):
                if self.options.budget_s is not None and self._budget.is_over:
                    return self.finish(f"Stop since the time budget of {self.options.budget_s:g} s is used up.")
                return self.finish("It seems all candidates in the search space have been measured.")
            if self._is_stale():
                limit = self.options.early_stopping
                return self.finish(f"Stop early since no performance improvement in the last {limit} measurements trials.")
        return self.finish("")

    def stop_at(self, deadline: float) -> None:
        """Measure nothing more after a moment of `clock`; a batch under way is cut short."""
        self._budget.deadline = deadline

    def _round_size(self) -> int:
        """Programs of the next round. The descent begins when it is due."""
        done = len(self.trials)
        size = self._budget.round_size(done, self.descent is not None)
        if self.descent is None and self._budget.is_descent_due(done, done + len(self.preloaded)):
            self.descend()
        return size

    def descend(self) -> None:
        """From now on measure the neighbours of the best program, as long as there are any."""
        if self.descent is None:
            start = time.perf_counter()
            self.descent = Descent(self.sketches, self._learner.score, self._contest)
            self.descent.start(self._costs())
            self._spent("measure again", start)

    def round(self, count: int) -> list[Trial]:
        """Propose, measure and learn from up to `count` programs; none if all there are have been measured, or the time is used up."""
        count, begun = self._budget.affordable(count, len(self.trials), self.descent is not None), self.clock()
        if count < 1:
            return []
        batch = self.ask(count, may_wait=True)
        if not batch:
            return []
        done = self._measure(batch)
        self._judge({t.candidate: t.result.median for t in done if t.candidate is not None and t.result.is_success})
        self._budget.busy_s += self.clock() - begun
        return done

    def ask(self, count: int, may_wait: bool = False) -> list[Candidate | None]:
        """Up to `count` programs to measure next, none of which was asked for before; None is the unscheduled one.

        Whoever measures them `tell`s the results. If it `may_wait`, there are fewer where the model had better learn first.
        """
        baseline: list[Candidate | None] = []
        if not self._tried_preferred:
            wanted = dict.fromkeys((*preferred(self.sketches), *self.promising))
            self._first += [candidate for candidate in wanted if candidate not in self._seen]
            baseline = [None] if self.with_baseline else []
            self._tried_preferred = True
        # the unscheduled program may take longest: last, when there is a best to stop it by
        places = max(0, count - len(baseline))
        first, self._first = self._first[:places], self._first[places:]
        # Seen before evolution looks, which would otherwise propose them in the same round.
        self._seen.update(candidate for candidate in first if candidate is not None)
        start = time.perf_counter()
        found = self._next(places - len(first), may_wait)
        self._spent("search", start)
        self._seen.update(found)
        # What sketches prefer stands first: a search that is cut short has at least the schedules by rules.
        return [*first, *found, *baseline]

    def draw(self, count: int) -> list[Candidate]:
        """Up to `count` programs at random, none of which was asked for before."""
        found = self._proposals.random(count, self._seen)
        self._seen.update(found)
        return found

    def score(self, number: int, rows: IntArray) -> Array:
        """What the model says of rows of a space [n]; -inf for those that make no program."""
        return self._learner.score(number, rows)

    def tell(self, costs: Mapping[Candidate, float]) -> None:
        """Learn from programs that somebody else measured: the seconds of each, infinite for one that failed."""
        self._seen.update(costs)
        self._told.update(costs)
        self._learn()
        self._judge(costs)

    def _next(self, count: int, may_wait: bool) -> list[Candidate]:
        """Programs to measure next: neighbours in the descent, and where there are none left, or none yet, what evolution finds."""
        if self.descent is not None and (near := self.descent.propose(min(count, DESCENT_BATCH), self._seen)):
            self.observer.descending(len(near), self.descent.cost)
            return near
        is_first = not self._told and all(trial.candidate is None for trial in self.trials)
        return self._strategy.choose(count, self._seen, self._costs(), is_first, may_wait)

    def _judge(self, costs: Mapping[Candidate, float]) -> None:
        if self.descent is None:
            return
        start = time.perf_counter()
        self.descent.judge({candidate: cost for candidate, cost in costs.items() if math.isfinite(cost)})
        self._spent("measure again", start)

    def _costs(self) -> dict[Candidate, float]:
        """Seconds of all candidates that ran, now or before."""
        ran = {t.candidate: t.result.median for t in self.trials if t.candidate is not None and t.result.is_success}
        # A time of this search goes before one of a log: that was another day, and perhaps another load.
        return ran | {candidate: cost for candidate, cost in self._known() if math.isfinite(cost) and candidate not in ran}

    def _known(self) -> list[tuple[Candidate, float]]:
        """Candidates that were not measured here, with their seconds."""
        return [*self.preloaded, *self._told.items()]

    def finish(self, reason: str) -> list[Trial]:
        """Measure the best few again and end the search."""
        start = time.perf_counter()
        self._remeasure()
        self._spent("measure again", start)
        self.observer.finished(reason)
        return self.trials

    def _spent(self, what: str, start: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

    def best(self) -> Trial | None:
        """The fastest correct trial: of those that were timed in turn at the end, if any were, and of what was measured after that.

        Times taken minutes apart are not comparable: clocks and neighbours change by more than good programs differ.
        """
        before, after = self.trials[: self._compared], self.trials[self._compared :]
        good = [trial for trial in before if trial.candidate in self._final] + after
        return min((trial for trial in good if trial.result.is_success), key=lambda trial: trial.result.median, default=None)

    def _program(self, number: int, candidate: Candidate | None) -> Program:
        """A candidate as it is measured; one that makes no program says why."""
        try:
            made = Trace() if candidate is None else self.sketches[candidate.sketch].program(candidate.row)
        except TensorExprError as error:
            return Program(number, Trace(), refused=str(error) or type(error).__name__)
        return Program(number, made.trace, made.dag) if isinstance(made, Computed) else Program(number, made)

    def _measure(self, batch: Sequence[Candidate | None]) -> list[Trial]:
        """Measure a batch; every result is recorded the moment it is there, so that nothing finished is ever lost."""
        start = time.perf_counter()
        self.observer.measuring(len(batch))
        # One that makes no program is measured all the same: its error is a result, from which the model learns, and is in the log.
        programs = [self._program(len(self.trials) + n, candidate) for n, candidate in enumerate(batch)]
        sources = {program.number: (candidate, program) for candidate, program in zip(batch, programs, strict=True)}
        # Before measuring, so that a trial says what the model thought when it didn't know yet.
        predicted = dict(zip(sources, self._learner.predicted(batch), strict=True))
        done: list[Trial] = []
        if self.measurer is None:
            raise InternalError("a tuner without a measurer is asked and told")
        results = self.measurer.measure(programs)
        for result in results:
            candidate, program = sources[result.number]
            trial = Trial(candidate, program.trace, result, predicted[result.number], self._rounds, program.dag)
            self.trials.append(trial)
            done.append(trial)
            self.record([trial])
            self.observer.measured(trial)
            # what came is recorded already, so that the rest of the batch may be dropped
            if self._budget.is_over:
                break
        self._rounds += 1
        self._spent("measure", start)
        self.observer.batch_measured(done, time.perf_counter() - start)
        start = time.perf_counter()
        self._learn()
        self._spent("train", start)
        return done

    def _remeasure(self) -> None:
        """Time the best few again, in turn, so that noise does not choose between them; the new times are recorded too."""
        good = self.finalists()
        if len(good) < 2:
            return
        again = self._time_again(good, OFFSETS)
        if any(result.is_success for result in again):
            self._final = {trial.candidate for trial, result in zip(good, again, strict=True) if result.is_success}
            # Later trials, if a search goes on after all, were timed by themselves and are told apart by their place.
            self._compared = len(self.trials)

    def finalists(self) -> list[Trial]:
        """The best few, the best first, and what runs without a search, unless it is far slower.

        They are chosen by what each took alone, also where it was timed in turn with others since, in other weather.
        """
        # In turn all programs of a contest share the weather; against programs outside of it only what each took alone is fair.
        alone = {trial.candidate: self._alone.get(trial.candidate, trial.result.median) for trial in self.trials if trial.result.is_success}
        good = sorted((t for t in self.trials if t.candidate in alone), key=lambda t: alone[t.candidate])
        plans, few = preferred(self.sketches)[:1], self.options.remeasured
        return good[:few] + [t for t in good[few:] if t.candidate in plans and alone[t.candidate] <= _PLANS * alone[good[0].candidate]]

    def _time_again(self, trials: Sequence[Trial], offsets: Sequence[int] = OFFSETS[:1]) -> list[MeasureResult]:
        """Results of programs that ran, timed in turn on arrays at some offsets. They replace the former ones, and are recorded."""
        programs = [Program(number, trial.trace, trial.dag) for number, trial in enumerate(trials)]
        results = list(self.measurer.remeasure(programs, offsets=offsets)) if self.measurer is not None else []
        for trial, result in zip(trials, results, strict=self.measurer is not None):
            if result.is_success:
                # The first time only: a second contest must not replace what the program took alone by what it took in the first.
                self._alone.setdefault(trial.candidate, trial.result.median)
                again = replace(trial, result=result)
                # by identity: what stands for a program of an old log is no trial of this search
                self.trials = [again if known is trial else known for known in self.trials]
                self.record([again])
        return results

    def _contest(self, candidates: Sequence[Candidate]) -> list[Sequence[float]]:
        """Seconds of rounds of candidates that ran before, now or in the log that was loaded."""
        measured = {trial.candidate: trial for trial in self.trials}
        # what an old log knows has no trial here: timed in turn it gets times, yet counts as no trial of this search
        unknown = MeasureResult((math.inf,), MeasureErrorNo.NO_ERROR, "", 0.0, 0.0)
        trials = []
        for candidate in candidates:
            program = self._program(0, candidate)
            trials.append(measured.get(candidate) or Trial(candidate, program.trace, unknown, dag=program.dag))
        return [result.costs if result.is_success else () for result in self._time_again(trials)]

    def _learn(self) -> None:
        start = time.perf_counter()
        if self._learner.learn(self.trials, self._known()):
            self.observer.trained(time.perf_counter() - start)

    def _is_stale(self) -> bool:
        limit = self.options.early_stopping
        if limit is None or limit <= 0 or len(self.trials) <= limit:
            return False
        costs = [trial.result.median if trial.result.is_success else np.inf for trial in self.trials]
        # No better in the last `limit` trials than before them; failed ones count, as they cost time too.
        return min(costs[:-limit]) <= min(costs[-limit:])
