"""Random index maps, as the transform_layout step holds them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ...schedule.tree import AxisExpression, StageNode

FACTORS = (1, 2, 3, 4, 5, 8)


@st.composite
def layout_mappings(draw: st.DrawFn, stage: StageNode) -> tuple[AxisExpression, ...]:
    """New indices over the dimensions of a stage's result: split by random factors, in random order, two of them joined now and then."""
    pieces: list[Any] = []
    for axis in range(len(stage.op.output_shape(0))):
        factor = FACTORS[draw(st.integers(0, len(FACTORS) - 1))]
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
