"""Layouts of blocks: extents and copies without an index for each element are those of the indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr.arith.digit_layout import block_extents, digit_layout
from tensorexpr.arith.index_map import IndexMap

BLOCKS: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
    (lambda o, i: (o // 64, i, o // 16 % 4, o % 16), (150, 3)),  # two whole blocks, one row of the next, and 6 of 16 lanes
    (lambda o, i: (i, o // 6, o // 2 % 3, o % 2), (10, 4)),
    (lambda o, i: (i % 4, o, i // 4), (5, 3)),  # less than a block
    (lambda o, i: (i, o), (7, 9)),
]


@pytest.mark.parametrize(("function", "shape"), BLOCKS)
def test_blocks_are_copied_as_their_indices_say(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    layout = IndexMap.from_func(function)
    source = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    digits = digit_layout(layout.initial_indices, layout.final_indices, shape)
    extents = block_extents(layout.initial_indices, layout.final_indices, shape)
    assert digits is not None
    assert extents is not None
    made, wider = np.zeros(extents, int), np.zeros([extent + 1 for extent in extents], int)
    digits.fill(made, source)
    digits.fill(wider, source)
    wanted = np.zeros(extents, int)
    for point in np.ndindex(*shape):
        wanted[tuple(int(index) for index in function(*point))] = source[point]
    np.testing.assert_array_equal(made, wanted)
    np.testing.assert_array_equal(wider[tuple(slice(extent) for extent in extents)], wanted)
    assert np.count_nonzero(wider) == source.size
    assert digits.fits(extents)
    assert not digits.fits([0] * len(extents))


@pytest.mark.parametrize(
    "function", [lambda o, i: (o + i,), lambda o, i: (o // 4, i), lambda o, i: (o // 4, o % 2, i), lambda o, i: (o, i, o)]
)
def test_other_maps_have_no_digits(function: Callable[..., Any]) -> None:
    layout = IndexMap.from_func(function)
    assert digit_layout(layout.initial_indices, layout.final_indices, (8, 3)) is None
