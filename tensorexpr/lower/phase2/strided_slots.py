"""Which local buffers hold vectors at a stride: as long as all of their accesses stay so, each vector can be a register.

Passes that replace strided loads leave these alone. Otherwise a tile of accumulators whose lanes lie apart would have
to be memory, since its rows are no registers of the code that fills it.
"""

from __future__ import annotations

from typing import TypeAlias

from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IntImm, Ramp, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore
from ..rebuild import walk_statements

StridedSlots: TypeAlias = "frozenset[tuple[Var, int, int]]"


def strided_slots(func: PrimFunc) -> StridedSlots:
    """The allocations that vectors are stored into at a stride, each with the stride and the lanes."""
    local: set[Var] = set()
    stored: set[tuple[Var, int, int]] = set()
    for stmt in walk_statements(func.body):
        if isinstance(stmt, Allocate):
            local.add(stmt.buffer_var)
        elif isinstance(stmt, BufferStore):
            index = stmt.indices[0]
            if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value != 1:
                stored.add((stmt.buffer.data, index.stride.value, index.lanes))
    return frozenset(slot for slot in stored if slot[0] in local)


def in_a_slot(load: BufferLoad, slots: StridedSlots) -> bool:
    """True for a load that has the form of stores into its buffer."""
    index = load.indices[0]
    if not slots or not isinstance(index, Ramp) or not isinstance(index.stride, IntImm):
        return False
    return (load.buffer.data, index.stride.value, parse_dtype(load.dtype).lanes) in slots
