"""The search loop: propose, measure, learn, until the trials are used up.

Round by round the model scores populations of all sketches, evolution keeps the best unseen rows, a few random ones are
added, the batch is measured, and the model learns from all results so far. Trial 0 is the unscheduled program, so
there always is a result, and nothing slower than it is ever returned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from ..errors import InternalError
from ..schedule.trace import Trace
from ..target import Target
from .cost_model import CostModel
from .descent import BATCH as DESCENT_BATCH
from .descent import Descent
from .evolution import Candidate, EvolutionOptions, evolve, preferred
from .features import extract
from .features.nest import Array, Bodies
from .measure import MeasureErrorNo, Measurer, MeasureResult, Program
from .population import sample
from .space import IntArray, Rng, Sketch

# Under a time budget nobody knows yet how long a program takes: the first round is small.
_FIRST_ROUND = 8
# Of a time budget, so much or a tenth is kept for timing the best few again.
_FOR_MEASURING_AGAIN_S = 2.0


# Fewer programs than these are all needed to find a region to descend in.
_FEWEST_FOR_DESCENT = 32
_FEWEST_BEFORE_DESCENT = 16
_AGAIN = 3  # times the best few are timed in turn at most, when one that was timed alone leads

DRAWN = 16  # rows drawn to find a random one that may be built


@dataclass(frozen=True)
class TunerOptions:
    """How much to measure and how to choose.

    Args:
        trials: programs to measure.
        round_size: programs per round.
        eps_greedy: share of a round that is drawn at random.
        early_stopping: end when so many trials in a row brought nothing better; None never does.
        budget_s: end when so many seconds are used up; the last round gets only what fits, and the best so far stands.
        remeasured: so many of the best are measured again, in turn, at the end.
        descent_share: share of the trials, or of the time, for coordinate descent from the best (`descent`).
    """

    trials: int
    round_size: int
    eps_greedy: float = 0.05
    early_stopping: int | None = None
    budget_s: float | None = None
    remeasured: int = 4
    descent_share: float = 0.2
    evolution: EvolutionOptions = field(default_factory=EvolutionOptions)


@dataclass(frozen=True, eq=False)
class Trial:
    """One measured program.

    Args:
        candidate: None for the unscheduled one.
        trace: the program.
        result: how it did.
        predicted: what the model said before, if it did.
        round: the number of the batch it was measured in, from 0.
    """

    candidate: Candidate | None
    trace: Trace
    result: MeasureResult
    predicted: float | None = None
    round: int = 0


class ProgramModel(Protocol):
    """A model that looks at programs, not at their features."""

    def score(self, traces: Sequence[Trace]) -> Array:
        """Predicted scores [n], more is better."""

    def learn(self, trials: Sequence[Trial]) -> None:
        """Learn from new trials."""


class TunerObserver:
    """What a tuner tells while it runs; the base says nothing."""

    def sampled(self, count: int, seconds: float) -> None:
        """The populations were started."""

    def generation(self, number: int, best: float, worst: float, count: int) -> None:
        """A generation of the evolution was scored."""

    def evolved(self, count: int, seconds: float) -> None:
        """A batch was chosen."""

    def descending(self, count: int, cost: float) -> None:
        """Neighbours of the best program were chosen, which takes `cost` seconds."""

    def measuring(self, count: int) -> None:
        """A batch is about to be measured."""

    def measured(self, trial: Trial) -> None:
        """A program was measured."""

    def batch_measured(self, batch: Sequence[Trial], seconds: float) -> None:
        """A batch was measured."""

    def trained(self, seconds: float) -> None:
        """The model learned from all results so far."""

    def finished(self, reason: str) -> None:
        """The search is over."""


@dataclass(eq=False)
class Tuner:
    """Searches the programs of some sketches for the fastest one.

    Args:
        sketches: the spaces.
        bodies: per sketch its stages' bodies without reads of inlined stages.
        target: the machine.
        model: predicts throughput from features; it learns.
        measurer: builds, runs and verifies programs; None where whoever asks for programs does.
        observer: is told what happens.
        record: called with every result as soon as it is there.
        seed: of all random choices: the same seed and the same results give the same candidates.
        preloaded: candidates that were measured before, with their costs; they are not measured again.
        program_model: predicts instead of `model` if given.
        with_baseline: measure the unscheduled program first; a run that goes on with an old log has done so.
        clock: seconds, for the budget.
    """

    sketches: Sequence[Sketch]
    bodies: Sequence[Bodies]
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
    with_baseline: bool = True
    clock: Callable[[], float] = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._seen = {candidate for candidate, _ in self.preloaded}
        self._first: list[tuple[Candidate | None, Trace]] = [(None, Trace())] if self.with_baseline else []
        self._tried_preferred = False
        self._deadline = self._descend_at = math.inf
        self._learned = 0
        self._busy = 0.0
        self._rounds = 0
        self._features: dict[Candidate, tuple[Array, float]] = {}  # of what was measured, with what the prior says
        self.descent: Descent | None = None
        if self.preloaded:
            self._learn()

    def run(self, started: float | None = None) -> list[Trial]:
        """Search until the trials or the time are used up, or nothing better turns up.

        Args:
            started: the moment of `clock` from which the time budget counts; now if None.

        Returns:
            all trials, in the order they were measured.
        """
        start = self.clock() if started is None else started
        budget = self.options.budget_s
        self._deadline = math.inf if budget is None else start + budget - min(_FOR_MEASURING_AGAIN_S, budget / 10)
        share = self.options.descent_share
        self._descend_at = math.inf if budget is None or not share else start + budget * (1.0 - share)
        while len(self.trials) < self.options.trials:
            if not self.round(self._round_size()):
                if budget is not None and self.clock() >= self._deadline:
                    return self.finish(f"Stop since the time budget of {budget:g} s is used up.")
                return self.finish("It seems all candidates in the search space have been measured.")
            if self._is_stale():
                limit = self.options.early_stopping
                return self.finish(f"Stop early since no performance improvement in the last {limit} measurements trials.")
        return self.finish("")

    def stop_at(self, deadline: float) -> None:
        """Measure nothing more after a moment of `clock`; a batch under way is cut short."""
        self._deadline = deadline

    def _round_size(self) -> int:
        """Programs of the next round; one that ends where the descent begins is shorter. The descent begins when it is due."""
        options, done = self.options, len(self.trials)
        if self.descent is not None or not options.descent_share:
            return min(options.round_size, options.trials - done)
        apart = options.trials >= _FEWEST_FOR_DESCENT
        end = options.trials - round(options.descent_share * options.trials) if apart else options.trials
        known = done + len(self.preloaded)
        if known >= _FEWEST_BEFORE_DESCENT and ((apart and done >= end) or self.clock() >= self._descend_at):
            self.descend()
        return min(options.round_size, (end if done < end else options.trials) - done)

    def descend(self) -> None:
        """From now on measure the neighbours of the best program, as long as there are any."""
        if self.descent is None:
            start = time.perf_counter()
            self.descent = Descent(self.sketches, self._score, self._contest)
            self.descent.start(self._costs())
            self._spent("measure again", start)

    def round(self, count: int) -> list[Trial]:
        """Propose, measure and learn from up to `count` programs; none if all there are have been measured, or the time is used up."""
        count, begun = self._affordable(count), self.clock()
        if count < 1:
            return []
        batch = self.ask(count)
        if not batch:
            return []
        done = self._measure(batch)
        self._judge(done)
        self._busy += self.clock() - begun
        return done

    def ask(self, count: int) -> list[tuple[Candidate | None, Trace]]:
        """Up to `count` programs to measure next, none of which was asked for before. Whoever measures them `tell`s the results."""
        if not self._tried_preferred:
            self._first += [(candidate, self._trace(candidate)) for candidate in preferred(self.sketches) if candidate not in self._seen]
            self._tried_preferred = True
        first, self._first = self._first[:count], self._first[count:]
        self._seen.update(candidate for candidate, _ in first if candidate is not None)
        start = time.perf_counter()
        batch = first + [(c, self._trace(c)) for c in self._next(count - len(first))]
        self._spent("search", start)
        self._seen.update(c for c, _ in batch if c is not None)
        return batch

    def tell(self, done: Sequence[Trial]) -> None:
        """Learn from programs that somebody else measured."""
        self.trials.extend(done)
        self._rounds += 1
        self._learn()
        self._judge(done)

    def _next(self, count: int) -> list[Candidate]:
        """Programs to measure next: neighbours in the descent, and where there are none left, or none yet, what evolution finds."""
        if self.descent is not None and (near := self.descent.propose(min(count, DESCENT_BATCH), self._seen)):
            self.observer.descending(len(near), self.descent.cost)
            return near
        return self._propose(count, self._seen, self._rng)

    def _judge(self, done: Sequence[Trial]) -> None:
        if self.descent is None:
            return
        start = time.perf_counter()
        self.descent.judge({t.candidate: t.result.median for t in done if t.candidate is not None and t.result.is_success})
        self._spent("measure again", start)

    def _costs(self) -> dict[Candidate, float]:
        """Seconds of all candidates that ran, now or before."""
        known = {candidate: cost for candidate, cost in self.preloaded if math.isfinite(cost)}
        return known | {t.candidate: t.result.median for t in self.trials if t.candidate is not None and t.result.is_success}

    def finish(self, reason: str) -> list[Trial]:
        """Measure the best few again and end the search."""
        start = time.perf_counter()
        self._remeasure()
        self._spent("measure again", start)
        self.observer.finished(reason)
        return self.trials

    def _affordable(self, count: int) -> int:
        """As many of `count` programs as there is time for at the speed so far; 0 when the time is used up."""
        if self._deadline == math.inf:
            return count
        left = self._deadline - self.clock()
        if self.descent is None and self.clock() < self._descend_at < self._deadline:
            left = self._descend_at - self.clock()
        if left <= 0 and self.trials:
            return 0
        pace = self._busy / len(self.trials) if self.trials else 0.0
        return max(1, min(count, int(left / pace))) if pace > 0 else min(count, _FIRST_ROUND)

    def _spent(self, what: str, start: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

    def best(self) -> Trial | None:
        """The fastest correct trial, of those that were measured."""
        good = [trial for trial in self.trials if trial.result.is_success]
        return min(good, key=lambda trial: trial.result.median, default=None)

    def _trace(self, candidate: Candidate) -> Trace:
        return self.sketches[candidate.sketch].trace_of(candidate.row)

    def _score(self, number: int, rows: IntArray) -> Array:
        if self.program_model is not None:
            return np.asarray(self.program_model.score([self.sketches[number].trace_of(row) for row in rows]), float)
        made = extract(self.sketches[number], self.bodies[number], rows, self.target)
        return np.where(made.valid, self.model.predict(made.features, -np.log(made.cycles)), -np.inf)

    def _propose(self, count: int, seen: set[Candidate], rng: Rng) -> list[Candidate]:
        if count <= 0:
            return []
        start = time.perf_counter()
        found = evolve(self.sketches, self._score, self._seeds(), 4 * count + len(seen), self.options.evolution, rng, self.observer)
        fresh = [candidate for candidate in found if candidate not in seen]
        explored = max(1, round(self.options.eps_greedy * count)) if count > 1 else 0
        chosen = _spread(fresh, count - explored) if not self._measured_sketches() else fresh[: count - explored]
        taken = seen | set(chosen)
        for candidate in self._random(4 * explored + 8, rng):
            if len(chosen) < count and candidate not in taken:
                chosen.append(candidate)
                taken.add(candidate)
        chosen += [c for c in fresh if c not in taken][: count - len(chosen)]
        self.observer.evolved(len(chosen), time.perf_counter() - start)
        return chosen

    def _measured_sketches(self) -> set[int]:
        return {t.candidate.sketch for t in self.trials if t.candidate is not None}

    def _random(self, count: int, rng: Rng) -> list[Candidate]:
        made: list[Candidate] = []
        for number in rng.integers(0, len(self.sketches), count):
            rows = sample(self.sketches[number], DRAWN, rng)
            valid = np.flatnonzero(extract(self.sketches[number], self.bodies[number], rows, self.target).valid)
            made.extend(Candidate(int(number), tuple(map(int, rows[row]))) for row in valid[:1])
        return made

    def _seeds(self) -> dict[int, IntArray]:
        """The best measured rows of each sketch, to start evolution from."""
        known = [(t.result.median, t.candidate) for t in self.trials if t.candidate is not None and t.result.is_success]
        known += [(cost, candidate) for candidate, cost in self.preloaded if math.isfinite(cost)]
        known.sort(key=lambda entry: entry[0])
        seeds: dict[int, list[tuple[int, ...]]] = {}
        for _, candidate in known[:64]:
            seeds.setdefault(candidate.sketch, []).append(candidate.row)
        return {number: np.array(rows, np.int64) for number, rows in seeds.items()}

    def _measure(self, batch: Sequence[tuple[Candidate | None, Trace]]) -> list[Trial]:
        """Measure a batch; every result is recorded the moment it is there, so that nothing finished is ever lost."""
        start = time.perf_counter()
        self.observer.measuring(len(batch))
        programs = [Program(len(self.trials) + n, trace) for n, (_, trace) in enumerate(batch)]
        sources = dict(zip((program.number for program in programs), batch, strict=True))
        predicted = dict(zip(sources, self._predicted([candidate for candidate, _ in batch]), strict=True))
        done: list[Trial] = []
        if self.measurer is None:
            raise InternalError("a tuner without a measurer is asked and told")
        results = self.measurer.measure(programs)
        for result in results:
            trial = Trial(*sources[result.number], result, predicted[result.number], self._rounds)
            self.trials.append(trial)
            done.append(trial)
            self.record([trial])
            self.observer.measured(trial)
            if self.clock() >= self._deadline:
                break
        self._rounds += 1
        self._spent("measure", start)
        self.observer.batch_measured(done, time.perf_counter() - start)
        start = time.perf_counter()
        self._learn()
        self._spent("train", start)
        return done

    def _predicted(self, candidates: Sequence[Candidate | None]) -> list[float | None]:
        """What the model says of candidates, before they are measured."""
        found: list[float | None] = [None] * len(candidates)
        for number in sorted({c.sketch for c in candidates if c is not None}):
            places = [(n, c.row) for n, c in enumerate(candidates) if c is not None and c.sketch == number]
            scores = self._score(number, np.array([row for _, row in places], np.int64))
            for (place, _), score in zip(places, scores, strict=True):
                found[place] = float(score)
        return found

    def _remeasure(self) -> None:
        """Time the best few again, in turn, so that noise does not choose between them; the new times are recorded too."""
        timed: set[Candidate | None] = set()
        for _ in range(_AGAIN):
            good = sorted((t for t in self.trials if t.result.is_success), key=lambda t: t.result.median)[: self.options.remeasured]
            if len(good) < 2 or good[0].candidate in timed or (timed and self.clock() >= self._deadline):
                return
            timed |= {trial.candidate for trial in good}
            self._time_again(good)

    def _time_again(self, trials: Sequence[Trial]) -> list[MeasureResult]:
        """Results of programs that ran, timed in turn. They replace the former ones, and are recorded."""
        programs = [Program(number, trial.trace) for number, trial in enumerate(trials)]
        results = list(self.measurer.remeasure(programs)) if self.measurer is not None else []
        for trial, result in zip(trials, results, strict=self.measurer is not None):
            if result.is_success:
                again = replace(trial, result=result)
                self.trials = [again if known is trial else known for known in self.trials]
                self.record([again])
        return results

    def _contest(self, candidates: Sequence[Candidate]) -> list[Sequence[float]]:
        """Seconds of rounds of candidates that ran before, now or in the log that was loaded."""
        measured = {trial.candidate: trial for trial in self.trials}
        unknown = MeasureResult(0, (math.inf,), MeasureErrorNo.NO_ERROR, "", 0.0, 0.0)
        trials = [measured.get(candidate) or Trial(candidate, self._trace(candidate), unknown) for candidate in candidates]
        return [result.costs if result.is_success else () for result in self._time_again(trials)]

    def _learn(self) -> None:
        start = time.perf_counter()
        if self.program_model is not None:
            if new := self.trials[self._learned :]:
                self.program_model.learn(new)
            self._learned = len(self.trials)
            return self.observer.trained(time.perf_counter() - start)
        known = [(t.candidate, t.result.median if t.result.is_success else np.inf) for t in self.trials if t.candidate is not None]
        known += list(self.preloaded)
        if not known:
            return None
        self._extract_new([candidate for candidate, _ in known])
        features, priors = zip(*(self._features[candidate] for candidate, _ in known), strict=True)
        costs = np.array([cost for _, cost in known])
        throughput = np.where(np.isfinite(costs), 1.0 / np.maximum(costs, 1e-12), 0.0)
        self.model.update(np.array(features), throughput, np.array(priors))
        return self.observer.trained(time.perf_counter() - start)

    def _extract_new(self, candidates: Sequence[Candidate]) -> None:
        """Features and prior of candidates that were not seen before, of each sketch at once."""
        missing = [candidate for candidate in dict.fromkeys(candidates) if candidate not in self._features]
        for number in sorted({candidate.sketch for candidate in missing}):
            ours = [candidate for candidate in missing if candidate.sketch == number]
            rows = np.array([candidate.row for candidate in ours], np.int64).reshape(len(ours), -1)
            made = extract(self.sketches[number], self.bodies[number], rows, self.target)
            for candidate, features, cycles in zip(ours, made.features, made.cycles, strict=True):
                self._features[candidate] = (features, -float(np.log(cycles)))

    def _is_stale(self) -> bool:
        limit = self.options.early_stopping
        if limit is None or limit <= 0 or len(self.trials) <= limit:
            return False
        costs = [trial.result.median if trial.result.is_success else np.inf for trial in self.trials]
        return min(costs[:-limit]) <= min(costs[-limit:])


def _spread(ranked: Sequence[Candidate], count: int) -> list[Candidate]:
    """Half of the best, few of them alike, and as many in turn from all sketches, the more promising first."""
    chosen: list[Candidate] = []
    for candidate in ranked:
        alike = sum(other.sketch == candidate.sketch for other in chosen)
        if len(chosen) < count // 2 and alike < max(1, count // 4):
            chosen.append(candidate)
    taken = set(chosen)
    queues = [[c for c in ranked if c.sketch == number and c not in taken] for number in dict.fromkeys(c.sketch for c in ranked)]
    queues.sort(key=lambda queue: any(queue[0].sketch == c.sketch for c in chosen) if queue else True)
    while len(chosen) < count and any(queues):
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return chosen
