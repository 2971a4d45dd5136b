"""What a rule of an operator's layouts says: `relay.op.register_infer_correct_layout("nn.relu", f)`, f(attrs, new, old, old types)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass


@dataclass(frozen=True)
class InferCorrectLayoutOutput:
    """The layouts of a call, and the attributes that it has with them.

    Args:
        input_layouts: of operands, in order.
        output_layouts: of results.
        new_attrs: of the call.
    """

    input_layouts: Sequence[Any]
    output_layouts: Sequence[Any]
    new_attrs: Any


__all__ = ["InferCorrectLayoutOutput"]
