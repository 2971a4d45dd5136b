"""Coordinate descent at the end of a search: from the best measured program to its neighbours, one decision at a time.

Evolution finds the region and the model guides it; what is left is a slope that measuring alone finds (Canesche et al.,
Droplet search, 2024: some 300 samples and a descent beat 10,000 samples). A neighbour has one decision moved to a
neighbouring candidate, or two. Neighbours are measured in small batches; the best of them that is faster beyond the
noise, timed in turn with the present centre, becomes the next centre. It is deterministic: only results decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from statistics import median

import numpy as np

from ..dataclass import dataclass, field
from .evolution import Candidate, Scorer
from .features.nest import Array, IntArray
from .space import Space

# Programs of one batch: enough for all compile workers, few enough to move soon.
BATCH = 8
# The best few of the search are timed in turn before one of them becomes the first centre.
_STARTS = 4
# Challengers of one batch that are timed in turn with the centre, and how much slower their first timing may be.
_CHALLENGERS = 3
_NEARLY = 1.05
# Faster means: by so much in the median of the rounds' ratios, and in nearly every round (6 of 7 by chance: 6 %).
_GAIN = 0.995
_WINS = 0.85
# Neighbours that the model thinks this much slower than the centre come last, after those of other good programs.
_UNLIKELY = np.log(1.5)
# Where all neighbours were measured, the walk goes on from another program that is at most so much slower.
_NEXT_START = 1.25
# Pairs of moves combine so many of each decision, the most promising.
_MOVES_OF_PAIRS = 4

# Candidates -> seconds of several rounds of each, timed in turn; an empty row for one that failed.
Contest = Callable[[Sequence[Candidate]], Sequence[Sequence[float]]]


@dataclass(eq=False)
class Descent:
    """A walk from a measured program downhill.

    Args:
        sketches: the spaces.
        score: the model's opinion of rows; it only orders neighbours, and says which may not be built (-inf).
        contest: times programs that ran before, in turn.
        faster: whether a program's seconds are less than another's beyond the noise.
    """

    sketches: Sequence[Space]
    score: Scorer
    contest: Contest
    faster: Callable[[Sequence[float], Sequence[float]], bool] = field(default_factory=lambda: is_faster)
    centre: Candidate | None = None
    cost: float = float("inf")
    start_cost: float = float("inf")
    moves: int = 0
    tried: int = 0
    _axes: tuple[int, ...] = field(default=())
    _known: dict[Candidate, float] = field(default_factory=dict)
    _closed: set[Candidate] = field(default_factory=set)

    def start(self, known: Mapping[Candidate, float]) -> None:
        """Choose the first centre.

        Args:
            known: candidates that ran, and their seconds.
        """
        self._known.update(known)
        first = _fastest(known)[:_STARTS]
        if not first:
            return
        # Their times were taken minutes apart; the wrong first centre costs a whole walk.
        timed = self.contest(first) if len(first) > 1 else [()]
        costs = [median(row) if row else known[candidate] for candidate, row in zip(first, timed, strict=True)]
        self.cost, place = min((cost, place) for place, cost in enumerate(costs))
        self.centre = first[place]
        self.start_cost = self.cost

    def propose(self, count: int, seen: Set[Candidate]) -> list[Candidate]:
        """The next neighbours to measure, at most `count`: the centre's, and where those are few, those of other good programs too."""
        found: list[Candidate] = []
        while self.centre is not None and count > 0 and not found:
            found = self._near(self.centre, count, seen)
            for other in self._others() if len(found) < count else ():
                found += self._near(other, count - len(found), seen | set(found))
            # only now those that the model thinks slow: other good programs' neighbours are likelier
            if not found:
                found = self._near(self.centre, count, seen, np.inf)
            if not found:
                self._restart()
        self.tried += len(found)
        return found

    def _others(self) -> list[Candidate]:
        """The fastest programs that were no centre yet and are not much slower than the best."""
        least = min(self._known.values(), default=float("inf"))
        near = {c: cost for c, cost in self._known.items() if c != self.centre and c not in self._closed and cost <= _NEXT_START * least}
        return _fastest(near)[:_STARTS]

    def _restart(self) -> None:
        """Go on from the fastest program that was no centre yet; nowhere if it is much slower."""
        assert self.centre is not None
        # A centre whose neighbours were all measured has nothing more to say, and would be chosen again, as it is the fastest.
        self._closed.add(self.centre)
        left = self._others()
        self.centre, self._axes = (left[0] if left else None), ()
        self.cost = self._known[left[0]] if left else self.cost

    def _near(self, centre: Candidate, count: int, seen: Set[Candidate], slower: float = _UNLIKELY) -> list[Candidate]:
        """Up to `count` neighbours that the model thinks at most so much slower than the centre, and that may be built."""
        sketch = self.sketches[centre.sketch]
        rows, axes = sketch.neighbours(centre.row)
        own = float(self.score(centre.sketch, np.array([centre.row], np.int64))[0])
        scores = np.asarray(self.score(centre.sketch, rows), float) if len(rows) else np.zeros(0)
        # Tile sizes depend on each other: 6 x 2 -> 4 x 3 is two moves, each of which alone is slower.
        pairs = _pair_moves(rows, axes, scores, centre.row)
        pair_scores = np.asarray(self.score(centre.sketch, pairs), float) if len(pairs) else np.zeros(0)
        order = [*_by_axis(axes, scores, self._axes), *np.argsort(-pair_scores, kind="stable") + len(rows)]
        rows, scores = np.concatenate([rows, pairs]), np.concatenate([scores, pair_scores])
        near = [Candidate(centre.sketch, tuple(map(int, rows[n]))) for n in order if -np.inf < scores[n] >= own - slower]
        return [candidate for candidate in near if candidate not in seen][:count]

    def judge(self, measured: Mapping[Candidate, float]) -> bool:
        """Move to the best neighbour that is faster than the centre beyond doubt, if there is one.

        Args:
            measured: the programs of the round that ran, and their seconds: neighbours, or what the search found where none were left.

        Returns:
            whether the centre moved.
        """
        self._known.update(measured)
        if self.centre is None:
            return False
        # A first timing is off by a few per cent, so one a little slower than the centre may win in turn with it.
        challengers = _fastest({candidate: cost for candidate, cost in measured.items() if cost < _NEARLY * self.cost})[:_CHALLENGERS]
        if not challengers:
            return False
        own, *others = self.contest([self.centre, *challengers])
        self.cost = median(own) if own else self.cost
        self._known.update({c: median(costs) for c, costs in zip([self.centre, *challengers], [own, *others], strict=True) if costs})
        # without times of the centre in the same rounds nothing was won against it
        winners = [(median(costs), c) for c, costs in zip(challengers, others, strict=True) if own and self.faster(costs, own)]
        if not winners:
            return False
        cost, winner = min(winners, key=lambda entry: (entry[0], entry[1].sketch, entry[1].row))
        changed = [n for n, (a, b) in enumerate(zip(self.centre.row, winner.row, strict=False)) if a != b]
        self.centre, self.cost, self._axes = winner, cost, tuple(changed)
        self.moves += 1
        return True


def _fastest(known: Mapping[Candidate, float]) -> list[Candidate]:
    return sorted(known, key=lambda candidate: (known[candidate], candidate.sketch, candidate.row))


def is_faster(costs: Sequence[float], than: Sequence[float]) -> bool:
    """Whether a program is faster than another beyond the noise; both were timed in turn, round by round."""
    ratios = [mine / other for mine, other in zip(costs, than, strict=False)]
    return bool(ratios) and median(ratios) < _GAIN and sum(ratio < 1.0 for ratio in ratios) >= _WINS * len(ratios)


def _pair_moves(rows: IntArray, axes: IntArray, scores: Array, centre: Sequence[int]) -> IntArray:
    """The rows with two decisions moved, of the most promising moves of each."""
    best = [n for axis in dict.fromkeys(axes.tolist()) for n in _best_of_axis(axes, scores, axis)]
    made = [
        # each differs from the centre in one decision, and the two are different: take both changes
        np.where(rows[second] != centre, rows[second], rows[first])
        for place, first in enumerate(best)
        for second in best[place + 1 :]
        if axes[first] != axes[second]
    ]
    return np.array(made, np.int64).reshape(len(made), len(centre))


def _best_of_axis(axes: IntArray, scores: Array, axis: int) -> list[int]:
    found = np.flatnonzero(axes == axis)
    order = found[np.argsort(-scores[found], kind="stable")]
    return [int(n) for n in order[:_MOVES_OF_PAIRS] if np.isfinite(scores[n])]


def _by_axis(axes: IntArray, scores: Array, first: Sequence[int]) -> list[int]:
    """Numbers of moves: the best of each decision, then the second best, and so on; `first` are the decisions that moved last."""
    queues = []
    for axis in dict.fromkeys(axes.tolist()):
        found = np.flatnonzero(axes == axis)
        queues.append(found[np.argsort(-scores[found], kind="stable")].tolist())
    # What moved last goes first: where one step along a slope was good, the next one often is.
    queues.sort(key=lambda queue: (axes[queue[0]] not in first, -scores[queue[0]]))
    most = max(map(len, queues), default=0)
    return [queue[place] for place in range(most) for queue in queues if place < len(queue)]
