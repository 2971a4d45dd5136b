"""Hide buffer accesses: a block no longer states some of what it reads or writes. Nothing checks that this is harmless.

B: reads(A[vi]), writes(B[vi])   -- unsafe_hide_buffer_access(B, "read", [0]) ->   B: reads(), writes(B[vi])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..buffers import READ, WRITE, regions_of
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram


def unsafe_hide_buffer_access(program: BlockProgram, name: str, side: str, hidden: Sequence[int]) -> BlockProgram:
    """The program with a block that keeps some of its regions to itself."""
    realize = program.realize(name)
    if side not in (READ, WRITE):
        raise PrimitiveError(f'unsafe_hide_buffer_access: buf_type is "read" or "write", not {side!r}', realize)
    regions = regions_of(realize.block, side)
    odd = next((number for number in hidden if not 0 <= number < len(regions)), None)
    if odd is not None:
        raise PrimitiveError(f"unsafe_hide_buffer_access: {name} {side}s {len(regions)} buffers; there is no number {odd}", realize)
    left = tuple(region for number, region in enumerate(regions) if number not in hidden)
    return program.map_block(name, lambda block: replace(block, reads=left) if side == READ else replace(block, writes=left))


class UnsafeHideBufferAccess(Primitive):
    """The instruction."""

    kind, method, inputs = "UnsafeHideBufferAccess", "unsafe_hide_buffer_access", ("block", "buf_type", "buf_index_array")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        hidden = [int(number) for number in inputs[2]]
        program = unsafe_hide_buffer_access(state.program_of(ref), ref.name, str(inputs[1]), hidden)
        return Applied(state.updated(ref.func, program))
