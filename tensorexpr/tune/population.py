"""Sampling, mutation and crossover of populations, as array operations."""

from __future__ import annotations

import numpy as np

from .space import IntArray, Rng, Sketch


def sample(sketch: Sketch, count: int, rng: Rng) -> IntArray:
    """`count` uniformly drawn rows [count, d]."""
    rows = np.zeros((count, len(sketch.decisions)), np.int64)
    for column, decision in enumerate(sketch.decisions):
        rows[:, column] = rng.integers(0, decision.count, count)
    return rows


def mutate(sketch: Sketch, rows: IntArray, rng: Rng) -> IntArray:
    """Each row with one decision moved to a neighbouring candidate; decisions with more candidates move more often."""
    if not sketch.decisions or not len(rows):
        return np.array(rows)
    weights = np.log2(np.array([decision.count for decision in sketch.decisions], float))
    if not weights.any():
        return np.array(rows)
    which = rng.choice(len(weights), len(rows), p=weights / weights.sum())
    result = np.array(rows)
    for column, decision in enumerate(sketch.decisions):
        hit = np.flatnonzero(which == column)
        if len(hit):
            table, counts = decision.neighbours
            own = rows[hit, column]
            result[hit, column] = table[own, rng.integers(0, counts[own])]
    return result


def crossover(first: IntArray, second: IntArray, rng: Rng) -> IntArray:
    """Rows that take each decision from one of two parents [n, d]."""
    return np.asarray(np.where(rng.random(first.shape) < 0.5, first, second), np.int64)


def unique_rows(rows: IntArray) -> IntArray:
    """The distinct rows in order of first appearance."""
    if not len(rows) or not rows.shape[1]:
        return rows[:1]
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
