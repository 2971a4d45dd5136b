"""Evolutionary search over several sketches at once, on decision matrices.

Each generation keeps the best rows, and breeds the next by mutation and crossover from parents drawn by rank
(Ansor, section 5.1, with crossover). A row is one candidate program; nothing is lowered here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from ..dataclass import dataclass
from .features.nest import Array
from .population import crossover, unique_rows
from .space import IntArray, Rng, Space


@dataclass(frozen=True)
class Candidate:
    """One program: a sketch's number and its decisions."""

    sketch: int
    row: tuple[int, ...]


@dataclass(frozen=True)
class EvolutionOptions:
    """How wide and how long: rows per generation, generations, the shares of children made by mutation and by crossover, and how many
    of the best measured programs the first generation starts from."""

    population: int = 2048
    generations: int = 4
    mutation_prob: float = 0.85
    crossover_prob: float = 0.1
    seeds: int = 64


def preferred(sketches: Sequence[Space]) -> list[Candidate]:
    """The programs that sketches say are worth trying first."""
    rows = [(number, sketch.preferred_row) for number, sketch in enumerate(sketches)]
    return [Candidate(number, row) for number, row in rows if row is not None]


class EvolutionObserver(Protocol):
    """Is told how a search goes on."""

    def sampled(self, count: int, seconds: float) -> None:
        """The populations were started with so many rows."""

    def generation(self, number: int, best: float, worst: float, count: int) -> None:
        """A generation was scored; `best` and `worst` are of the rows kept so far."""


# (sketch number, rows [n, d]) -> predicted scores [n], more is better
Scorer = Callable[[int, IntArray], Array]


def evolve(
    sketches: Sequence[Space],
    score: Scorer,
    seeds: Mapping[int, IntArray],
    count: int,
    options: EvolutionOptions,
    rng: Rng,
    observer: EvolutionObserver,
) -> list[tuple[float, Candidate]]:
    """The best distinct candidates found with their scores, up to `count` of each sketch, best first.

    Sketches that have no more programs than their share of a generation are scored whole, once.

    Args:
        sketches: the spaces, searched side by side.
        score: predicts; called once per sketch and generation. -inf says that a row may not be built.
        seeds: rows to start from beside random ones, such as the best measured.
        observer: is told about every generation.
    """
    start = time.perf_counter()
    # Of many sketches each still gets enough rows to show what its best are like; the shares of later generations follow the scores.
    share = max(64, options.population // max(1, len(sketches)))
    growing = [number for number, sketch in enumerate(sketches) if sketch.size > share]
    pools = [_start(sketch, seeds.get(number), share, rng) for number, sketch in enumerate(sketches)]
    scores = [score(number, rows) for number, rows in enumerate(pools)]
    best = [_best_of(rows, values, count) for rows, values in zip(pools, scores, strict=True)]
    observer.sampled(sum(map(len, pools)), time.perf_counter() - start)
    for generation in range(1, options.generations + 1):
        counts = _shares([scores[number] for number in growing], options.population)
        for number, rows_wanted in zip(growing, counts, strict=True):
            rows = _children(sketches[number], pools[number], scores[number], rows_wanted, options, rng)
            pools[number], scores[number] = rows, score(number, rows)
            kept, kept_scores = best[number]
            best[number] = _best_of(np.concatenate([kept, rows]), np.concatenate([kept_scores, scores[number]]), count)
        found = np.concatenate([values for _, values in best])
        if len(found):
            observer.generation(generation, float(found.max()), float(found.min()), len(found))
    ranked = [
        (float(value), number, tuple(map(int, row)))
        for number, (rows, values) in enumerate(best)
        for row, value in zip(rows, values, strict=True)
    ]
    # Ties by sketch and row, never by where a row stood in the population: the same seed gives the same candidates.
    ranked.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
    return [(value, Candidate(number, row)) for value, number, row in ranked]


def _start(sketch: Space, seeds: IntArray | None, count: int, rng: Rng) -> IntArray:
    rows = sketch.sample(count, rng)
    return unique_rows(np.concatenate([seeds, rows]) if seeds is not None and len(seeds) else rows)


def _best_of(rows: IntArray, scores: Array, count: int) -> tuple[IntArray, Array]:
    """The best distinct rows with their scores; ties go to the earlier row. What may not be built scores -inf and is left out."""
    # -inf sorts last, so that the finite ones are a prefix.
    order = np.argsort(-scores, kind="stable")[: np.isfinite(scores).sum()]
    rows, scores = rows[order], scores[order]
    if rows.shape[1]:
        _, first = np.unique(rows, axis=0, return_index=True)
        keep = np.sort(first)[:count]
    else:
        keep = np.arange(min(1, len(rows)))
    return rows[keep], scores[keep]


def _shares(scores: Sequence[Array], population: int) -> list[int]:
    """Rows for each sketch in the next generation: more where the best scores are, some everywhere."""
    finite = [values[np.isfinite(values)] for values in scores]
    # of the best eight: one guess that is far too high doesn't earn a sketch its rows
    tops = np.array([np.sort(values)[-8:].mean() if len(values) else -np.inf for values in finite])
    # By rank, not by score: scores of different sketches may be far apart before the model has learned from both.
    rank = np.argsort(np.argsort(-tops))
    # Half as many rows for each place further down, and a tenth of the first's for all: no sketch is given up on a model's word.
    weights = 0.5**rank + 0.1
    return [max(16, int(n)) for n in weights / weights.sum() * population]


def _children(sketch: Space, rows: IntArray, scores: Array, count: int, options: EvolutionOptions, rng: Rng) -> IntArray:
    if not len(rows):
        return rows
    # By rank and not by score, which has no scale before the model has learned: one high guess would be every child's parent.
    parents = rows[_by_rank(scores, count, rng)]
    others = rows[_by_rank(scores, count, rng)]
    draw = rng.random(count)
    mixed = np.where((draw < options.crossover_prob)[:, None], crossover(parents, others, rng), parents)
    # a child of two parents isn't mutated too; what is left of 1 goes on unchanged
    changes = (draw >= options.crossover_prob) & (draw < options.crossover_prob + options.mutation_prob)
    return unique_rows(np.where(changes[:, None], sketch.mutate(mixed, rng), mixed))


def _by_rank(scores: Array, count: int, rng: Rng) -> IntArray:
    """Numbers of `count` parents; the best of n is drawn exp(4) times as often as the worst."""
    place = np.empty(len(scores))
    place[np.argsort(-scores, kind="stable")] = np.arange(len(scores)) / max(1, len(scores))
    # if nothing may be built, anything is as good a parent; weights of 0 throughout have no sum to divide by
    weights = np.exp(-4.0 * place) * (np.isfinite(scores) if np.isfinite(scores).any() else 1.0)
    return np.asarray(rng.choice(len(scores), count, p=weights / weights.sum()), np.int64)
