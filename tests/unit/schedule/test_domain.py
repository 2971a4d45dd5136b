"""Extents of the axes that steps make."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.domain import full_region, stage_domain
from tensorexpr.schedule.steps import Factor, Split


@pytest.mark.parametrize(
    "factors, extents",
    [
        ((None, 4, 2), [3, 4, 2]),
        ((None, 2, 3, 2), [2, 2, 3, 2]),
        ((4, None, 3), [4, 2, 3]),
        ((2, 3, None), [2, 3, 4]),
        ((None, 5, 2), [3, 5, 2]),
    ],
)
def test_the_open_part_of_a_split_covers_what_the_factors_leave(factors: tuple[Factor, ...], extents: list[int]) -> None:
    a = te.placeholder((24,), name="A")
    b = te.compute((24,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    stage = s[b].id
    s.apply_step(Split(stage, 0, factors))
    node = s.tree[stage]
    domain = stage_domain(node, full_region(node), Analyzer())
    assert [str(domain.extents[axis]) for axis in node.leaf] == [str(extent) for extent in extents]
    covered = 1
    for extent in extents:
        covered *= extent
    assert bool(domain.guards) == (covered != 24)
