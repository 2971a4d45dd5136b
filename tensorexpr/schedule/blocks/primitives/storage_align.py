"""Storage align: the stride of a dimension of a buffer becomes offset more than a multiple of a factor.

B = T.alloc_buffer((128, 100)), 100 elements a row   -- storage_align(B, 0, axis=0, factor=32, offset=1) ->   129 elements a row

So elements of a column lie in different banks or cache sets. Loads and stores stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from ....tir.attrs import FrozenMap
from ..buffers import own_buffer
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import BlockProgram

DIM_ALIGN = "buffer_dim_align"


def storage_align(program: BlockProgram, name: str, index: int, axis: int, factor: int, offset: int) -> BlockProgram:
    """The program with an alignment for the buffer of a number among those that a block writes, as an annotation of the block."""
    realize = program.realize(name)
    buffer = own_buffer(program, realize, index, "storage_align")
    if not -buffer.ndim <= axis < buffer.ndim:
        raise PrimitiveError(f"storage_align: {buffer.name} has {buffer.ndim} dimensions; there is no number {axis}", realize)
    if factor < 1 or not 0 <= offset < max(factor, 1):
        raise PrimitiveError(f"storage_align: the factor is positive and the offset less than it, not {factor} and {offset}", realize)
    place = axis % buffer.ndim
    known = [tuple(one) for one in realize.block.annotations.get(DIM_ALIGN, ())]
    kept = [one for one in known if one[:2] != (index, place)]
    annotations = {**realize.block.annotations, DIM_ALIGN: (*kept, (index, place, factor, offset))}
    return program.map_block(name, lambda block: replace(block, annotations=FrozenMap(annotations)))


class StorageAlign(BlockPrimitive):
    """The instruction."""

    kind, method = "StorageAlign", "storage_align"
    attrs = ("buffer_index", "axis", "factor", "offset")
    change = staticmethod(storage_align)
