"""What to measure next: the best unseen programs that evolution finds, and a few random ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from .evolution import Candidate, evolve
from .learning import Learner
from .space import IntArray, Rng, Space
from .trial import TunerObserver, TunerOptions


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

    def choose(self, count: int, seen: Set[Candidate], known: Mapping[Candidate, float], is_first: bool) -> list[Candidate]:
        """Up to `count` candidates to measure next.

        Args:
            seen: candidates that are not wanted again.
            known: candidates that ran, and their seconds: evolution starts from the fastest.
            is_first: no sketch was tried in this search yet, so all of them are worth a look.
        """
        if count <= 0 or not self.sketches:
            return []
        start = time.perf_counter()
        options = self.options
        limit, starts = 4 * count + len(seen), _seeds(known, options.evolution.seeds)
        found = evolve(self.sketches, self.learner.score, starts, limit, options.evolution, self.rng, self.observer)
        fresh = [candidate for candidate in found if candidate not in seen]
        explored = max(1, round(options.eps_greedy * count)) if count > 1 and options.eps_greedy > 0 else 0
        chosen = _spread(fresh, count - explored) if is_first else fresh[: count - explored]
        chosen += self.random(count - len(chosen) if explored else 0, {*seen, *chosen})
        taken = set(chosen)
        chosen += [c for c in fresh if c not in taken][: count - len(chosen)]
        self.observer.evolved(len(chosen), time.perf_counter() - start)
        return chosen

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
