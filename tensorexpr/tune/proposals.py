"""What to measure next: the best unseen programs that evolution finds, and a few random ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from .evolution import Candidate, evolve
from .learning import Learner
from .population import sample
from .space import IntArray, Rng, Sketch
from .trial import TunerObserver, TunerOptions

_DRAWN = 16  # rows drawn to find a random one that may be built
_SEEDS = 64  # of the best measured programs, so many start the next evolution


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
    def sketches(self) -> Sequence[Sketch]:
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
        limit = 4 * count + len(seen)
        found = evolve(self.sketches, self.learner.score, _seeds(known), limit, options.evolution, self.rng, self.observer)
        fresh = [candidate for candidate in found if candidate not in seen]
        explored = max(1, round(options.eps_greedy * count)) if count > 1 else 0
        chosen = _spread(fresh, count - explored) if is_first else fresh[: count - explored]
        taken = {*seen, *chosen}
        for candidate in self._random(4 * explored + 8):
            if len(chosen) < count and candidate not in taken:
                chosen.append(candidate)
                taken.add(candidate)
        chosen += [c for c in fresh if c not in taken][: count - len(chosen)]
        self.observer.evolved(len(chosen), time.perf_counter() - start)
        return chosen

    def _random(self, count: int) -> list[Candidate]:
        made: list[Candidate] = []
        for number in self.rng.integers(0, len(self.sketches), count):
            rows = sample(self.sketches[number], _DRAWN, self.rng)
            made.extend(Candidate(int(number), tuple(map(int, rows[row]))) for row in self.learner.buildable(number, rows)[:1])
        return made


def _seeds(known: Mapping[Candidate, float]) -> dict[int, IntArray]:
    """The best measured rows of each sketch, to start evolution from."""
    seeds: dict[int, list[tuple[int, ...]]] = {}
    for candidate in sorted(known, key=lambda candidate: known[candidate])[:_SEEDS]:
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
