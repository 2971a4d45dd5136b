"""Offsets in an arena for random lifetimes: nothing overlaps, and little is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.errors import InternalError
from tensorexpr.relax.runtime.memory import ALIGNMENT, Arena, Lifetime, check, largest_sum, place
from tests.effort import share_of

SIZES = st.one_of(st.integers(0, 200), st.sampled_from([64, 4096, 100_000]), st.integers(1, 1 << 22))
LIVES = st.lists(
    st.builds(lambda first, length, size: Lifetime(size, first, first + length), st.integers(0, 30), st.integers(0, 12), SIZES)
)


@settings(deadline=None, derandomize=True, max_examples=share_of(200))
@given(LIVES)
def test_values_that_live_together_lie_apart(values: list[Lifetime]) -> None:
    arena = place(values)
    taken: dict[int, list[tuple[int, int]]] = {}
    for value, offset in zip(values, arena.offsets, strict=True):
        assert offset % ALIGNMENT == 0 and offset + value.size <= arena.size
        for step in range(value.first, value.last + 1):
            for begin, end in taken.get(step, []):
                assert not value.size or offset >= end or offset + value.size <= begin
            taken.setdefault(step, []).append((offset, offset + value.size) if value.size else (0, 0))
    # Each value takes whole lines of the cache; the bar is 1.15 times what lives at one time.
    assert arena.size <= 1.15 * largest_sum(values)


@settings(deadline=None, derandomize=True, max_examples=share_of(100))
@given(LIVES.filter(lambda lives: len(lives) > 1), st.data())
def test_the_checker_finds_what_overlaps(values: list[Lifetime], data: st.DataObject) -> None:
    arena = place(values)
    n = data.draw(st.integers(0, len(values) - 1))
    other = next((k for k, one in enumerate(values) if k != n and one.meets(values[n]) and one.size and values[n].size), None)
    if other is not None:
        moved = [arena.offsets[other] if k == n else offset for k, offset in enumerate(arena.offsets)]
        with pytest.raises(InternalError, match=r"overlap|outside"):
            check(values, Arena(tuple(moved), arena.size))
    if values[n].size:
        moved = [arena.size if k == n else offset for k, offset in enumerate(arena.offsets)]
        with pytest.raises(InternalError, match="outside"):
            check(values, Arena(tuple(moved), arena.size))
