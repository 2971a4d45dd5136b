"""Random index maps, as the transform_layout step holds them."""

from __future__ import annotations

from math import prod
from typing import Any

from hypothesis import strategies as st

from ...schedule.tree import AxisExpression, StageNode
from ...tir.expr import IntImm

FACTORS = (1, 2, 3, 4, 5, 8)
MAX_ELEMENTS = 1 << 14


@st.composite
def layout_mappings(draw: st.DrawFn, stage: StageNode) -> tuple[AxisExpression, ...]:
    """New indices over the dimensions of a stage's result: split by random factors, in random order, two of them joined now and then.

    Factors that don't divide pad. Layout upon layout would fill any memory, so nothing is split that makes more than `MAX_ELEMENTS`.
    """
    pieces: list[Any] = []
    extents = [extent.value if isinstance(extent, IntImm) else 1 for extent in stage.op.output_shape(0)]
    elements = prod(extents)
    for axis, extent in enumerate(extents):
        factor = FACTORS[draw(st.integers(0, len(FACTORS) - 1))]
        padded = elements // max(1, extent) * (-(-extent // factor) * factor)
        if padded > MAX_ELEMENTS:
            factor, padded = 1, elements
        elements = padded
        index = ("axis", axis)
        pieces += [index] if factor == 1 else [("//", index, factor), ("%", index, factor)]
    pieces = draw(st.permutations(pieces))
    if len(pieces) > 1 and draw(st.integers(0, 2)) == 0:
        # Remainders stay below their divisor, so a sum of anything times 8 and a remainder is a place of its own.
        inner = next((piece for piece in pieces if piece[0] == "%"), None)
        if inner is not None:
            rest = [piece for piece in pieces if piece is not inner]
            return (("+", ("*", rest[0], inner[2]), inner), *rest[1:])
    return tuple(pieces)
