"""What to measure next: the best unseen programs that evolution finds, and a few random ones.

A model that has seen a few dozen programs is right about programs like those, and guesses about sketches of which it has seen
none or only slow ones. Of thousands of guesses the highest are the wrong ones (the winner's curse), and would take a whole round.
So most of a round belongs to sketches whose measured programs are near the best, and each of the others gets a look at a time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Protocol

import numpy as np

from ..dataclass import dataclass
from .evolution import Candidate, evolve
from .learning import Learner
from .space import IntArray, Rng, Space
from .trial import TunerObserver, TunerOptions

# A sketch is near the best if a program of it that was measured alone, in whatever weather, is at most so much slower.
_NEAR = 1.2
# One part in so many of a round is for other sketches, and so small a part of one may be a round.
_OTHERS, _SHORT = 4, 2
# What the model, which knows such programs, thinks this much slower than the best is not worth a trial while there is anything else.
_UNLIKELY = math.log(1.5)
# Most programs at random are hopeless, take the longest to measure, and teach nothing: one of so many is worth a trial.
_DRAWS = 4


class Strategy(Protocol):
    """Chooses what to measure next."""

    def choose(self, count: int, seen: Set[Candidate], known: Mapping[Candidate, float], is_first: bool, may_wait: bool) -> list[Candidate]:
        """Up to `count` candidates; see `Proposals.choose`. None at all end the search."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """Chooses programs of some sketches to measure.

    Args:
        learner: has the sketches, and predicts how their programs will do.
        options: how wide to search, and how much to draw at random.
        observer: is told about the search.
        rng: of all random choices.
    """

    learner: Learner
    options: TunerOptions
    observer: TunerObserver
    rng: Rng

    @property
    def sketches(self) -> Sequence[Space]:
        """The spaces."""
        return self.learner.sketches

    def choose(self, count: int, seen: Set[Candidate], known: Mapping[Candidate, float], is_first: bool, may_wait: bool) -> list[Candidate]:
        """Up to `count` candidates to measure next.

        Args:
            seen: candidates that are not wanted again.
            known: candidates that ran, and their seconds: evolution starts from the fastest.
            is_first: no sketch was tried in this search yet, so all of them are worth a look.
            may_wait: fewer are welcome where the model had better learn first.
        """
        if count <= 0 or not self.sketches:
            return []
        start = time.perf_counter()
        options = self.options
        # were all that were seen the best of a sketch, there would still be four times as many as are wanted
        limit, starts = 4 * count + len(seen), _seeds(known, options.evolution.seeds)
        found = evolve(self.sketches, self.learner.score, starts, limit, options.evolution, self.rng, self.observer)
        # Evolution keeps what was seen, as parents; only what comes out of it has to be new.
        fresh = [candidate for _, candidate in found if candidate not in seen]
        explored = max(1, round(options.eps_greedy * count)) if count > 1 and options.eps_greedy > 0 else 0
        chosen = _spread(fresh, count - explored) if is_first else supported(found, seen, known, count - explored, may_wait)
        count = len(chosen) + explored if may_wait and chosen else count
        chosen += self._explored(count - len(chosen) if explored else 0, {*seen, *chosen})
        taken = set(chosen)
        # Where the spaces have fewer random rows left than wanted, evolution's next best fill the round: workers are never idle.
        chosen += [c for c in fresh if c not in taken][: count - len(chosen)]
        self.observer.evolved(len(chosen), time.perf_counter() - start)
        return chosen

    def _explored(self, count: int, seen: Set[Candidate]) -> list[Candidate]:
        """Up to `count` random candidates, each the most promising of a few."""
        drawn = list(dict.fromkeys(self.random(_DRAWS * count, seen)))
        scores = dict(zip(drawn, self.learner.predicted(drawn), strict=True))
        return sorted(drawn, key=lambda candidate: -(scores[candidate] or 0.0))[:count]

    def random(self, count: int, seen: Set[Candidate]) -> list[Candidate]:
        """Up to `count` random candidates that may be built, of sketches that are as likely, without those in `seen`."""
        if count <= 0 or not self.sketches:
            return []
        numbers = [int(number) for number in self.rng.integers(0, len(self.sketches), count)]
        queues: dict[int, list[Candidate]] = {}
        for number in dict.fromkeys(numbers):
            rows = self.sketches[number].drawn(numbers.count(number), self.rng, self.learner.target)
            made = (Candidate(number, tuple(map(int, row))) for row in rows)
            queues[number] = [candidate for candidate in made if candidate not in seen]
        return [queues[number].pop(0) for number in numbers if queues[number]]


def _seeds(known: Mapping[Candidate, float], count: int) -> dict[int, IntArray]:
    """The best measured rows of each sketch, to start evolution from."""
    seeds: dict[int, list[tuple[int, ...]]] = {}
    for candidate in sorted(known, key=lambda candidate: known[candidate])[:count]:
        seeds.setdefault(candidate.sketch, []).append(candidate.row)
    return {number: np.array(rows, np.int64) for number, rows in seeds.items()}


def supported(
    found: Sequence[tuple[float, Candidate]], seen: Set[Candidate], known: Mapping[Candidate, float], count: int, may_wait: bool
) -> list[Candidate]:
    """Up to `count` new candidates: the best of sketches that are near the best, and a look at others.

    Args:
        found: candidates with their predicted scores, best first.
        seen: those that are not wanted again.
        known: candidates that ran, and their seconds.
        may_wait: where more would be guesses, there are fewer, down to half as many.
    """
    # By the best program of each: one good program shows that a sketch is good, ten bad ones show nothing.
    fastest: dict[int, float] = {}
    for candidate, cost in known.items():
        fastest[candidate.sketch] = min(cost, fastest.get(candidate.sketch, math.inf))
    near = {sketch for sketch, cost in fastest.items() if cost <= _NEAR * min(fastest.values())}
    least = max((score for score, candidate in found if candidate.sketch in near), default=-math.inf) - _UNLIKELY
    fresh = [(score, candidate) for score, candidate in found if candidate not in seen]
    likely = [candidate for score, candidate in fresh if score >= least]
    ours = [candidate for candidate in likely if candidate.sketch in near]
    # In turn, as ten programs of one sketch that the model overrates would say the same ten times.
    others = _in_turn([candidate for candidate in likely if candidate.sketch not in near])
    looks = min(len(others), count // _OTHERS)
    chosen = ours[: count - looks] + others[:looks]
    wanted = max(1, count // _SHORT) if may_wait else count
    # where those near the best run out, others fill up what is wanted
    chosen += others[looks : looks + max(0, wanted - len(chosen))]
    taken = set(chosen)
    return chosen + [candidate for _, candidate in fresh if candidate not in taken][: max(0, wanted - len(chosen))]


def _in_turn(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The best of each sketch, then the second best of each, and so on."""
    turns: Counter[int] = Counter()
    placed: list[tuple[int, int]] = []
    for place, candidate in enumerate(ranked):
        placed.append((turns[candidate.sketch], place))
        turns[candidate.sketch] += 1
    return [ranked[place] for _, place in sorted(placed)]


def _spread(ranked: Sequence[Candidate], count: int) -> list[Candidate]:
    """Half of the best, few of them alike, and as many in turn from all sketches, the more promising first."""
    chosen: list[Candidate] = []
    for candidate in ranked:
        alike = sum(other.sketch == candidate.sketch for other in chosen)
        if len(chosen) < count // 2 and alike < max(1, count // 4):
            chosen.append(candidate)
    taken = set(chosen)
    queues = [[c for c in ranked if c.sketch == number and c not in taken] for number in dict.fromkeys(c.sketch for c in ranked)]
    # sketches of which nothing was chosen yet come first
    queues.sort(key=lambda queue: any(queue[0].sketch == c.sketch for c in chosen) if queue else True)
    while len(chosen) < count and any(queues):
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return chosen
