"""All index arithmetic in int32, proved or not."""

from __future__ import annotations

from ...errors import LoweringError
from ...tir.function import PrimFunc
from ..context import PassContext
from ..passes import Pass
from .narrow_data_type import ForcedNeeds, narrowed


def ForceNarrowIndexToInt32() -> Pass:
    """Indices, loop variables and axes in int32. The caller promises that no index is larger.

    Raises:
        LoweringError: when it runs on a function with a buffer of 64 bit integers, whose values could be indices.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        wide = next((buffer for buffer in func.buffer_map.values() if buffer.dtype == "int64"), None)
        if wide is not None:
            raise LoweringError(f"buffer {wide.name} holds int64: its values could be indices, which ForceNarrowIndexToInt32 would cut off")
        return narrowed(func, ForcedNeeds())

    return Pass("tir.ForceNarrowIndexToInt32", run)
