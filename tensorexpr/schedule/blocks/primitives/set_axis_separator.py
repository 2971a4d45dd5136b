"""Set axis separators: which dimensions of a buffer are flattened together. Memory has one dimension here, so there is only no separator.

B = T.alloc_buffer((128, 100))   -- set_axis_separator(B, ("write", 0), []) ->   the same
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..buffers import READ, WRITE, buffer_at
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, block_of
from .reindex import Side


class SetAxisSeparator(Primitive):
    """The instruction."""

    kind, method, inputs = "SetAxisSeparator", "set_axis_separator", ("block",)
    attrs = ("buffer_index", "buffer_index_type", "axis_separators")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        realize = state.program_of(ref).realize(ref.name)
        buffer = buffer_at(realize, WRITE if attrs[1] else READ, int(attrs[0]), self.method)
        if attrs[2]:
            raise PrimitiveError(
                f"set_axis_separator: memory has one dimension here, so the dimensions of {buffer.name} can't be flattened in groups "
                f"({list(attrs[2])}); transform_layout changes their order",
                realize,
            )
        return Applied(state)

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        return [("block", inputs[0]), ("buffer", Side(int(attrs[1]), int(attrs[0]))), ("axis_separators", list(attrs[2]))]
