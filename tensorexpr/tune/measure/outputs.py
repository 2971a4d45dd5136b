"""Which arguments a function writes."""

from __future__ import annotations

from typing import Any

from ...tir.block import Block
from ...tir.buffer import Buffer
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import BufferStore


def outputs_of(func: PrimFunc) -> list[int]:
    """The places of the parameters that a function writes."""
    written = {buffer.data for node in walk(func.body) for buffer in written_by(node)}
    return [number for number, param in enumerate(func.params) if param in func.buffer_map and func.buffer_map[param].data in written]


def written_by(node: Any) -> list[Buffer]:
    """The buffers that a statement writes, or says it writes."""
    if isinstance(node, BufferStore):
        return [node.buffer]
    return [region.buffer for region in node.writes] if isinstance(node, Block) else []
