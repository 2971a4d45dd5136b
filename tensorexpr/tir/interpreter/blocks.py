"""Blocks: axes get their values, the block's buffers their memory, and reductions start where their axes do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..block import BlockRealize, with_guarded_init
from ..buffer import Buffer
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..expr import IterVar
from .arithmetic import Thunk
from .machine import Machine
from .storage import InterpreterError, Storage

# A block's buffer moves to where its uses meet before it gets a place: iterations of a loop around them have one each.
_NO_RACES = 1 << 30


def realize_block(machine: Machine, stmt: BlockRealize) -> Thunk:
    """A block where its predicate holds, with every axis checked against its range."""
    block, cells = stmt.block, machine.cells
    holds, values = machine.compile(stmt.predicate), [machine.compile(value) for value in stmt.iter_values]
    axes = [_axis(machine, axis) for axis in block.iter_vars]
    allocations = [_allocation(machine, buffer) for buffer in block.alloc_buffers]
    inner = with_guarded_init(block)
    # The first view goes outermost: those after it may be views of it.
    for match in reversed(block.match_buffers):
        inner = match.bind(inner)
    body = machine.run(inner)

    def run() -> None:
        if not holds():
            return
        found = [value() for value in values]
        for (slot, name, low, extent), value in zip(axes, found, strict=True):
            first = low()
            if not first <= value < first + extent():
                raise InterpreterError(f"axis {name} of block {block.name_hint!r} is {value}, out of {first}:{first + extent()}")
            cells[slot] = value
        for allocate in allocations:
            allocate()
        body()

    return run


def _axis(machine: Machine, axis: IterVar) -> tuple[int, str, Thunk, Thunk]:
    if axis.dom is None:
        raise InterpreterError(f"axis {axis.name} has no range")
    return machine.slot(axis.var), axis.name, machine.compile(axis.dom.min), machine.compile(axis.dom.extent)


def _allocation(machine: Machine, buffer: Buffer) -> Callable[[], None]:
    """Fresh storage for a buffer, unwritten."""
    shape, strides = [machine.compile(e) for e in buffer.shape], [machine.compile(s) for s in buffer.strides]
    offset, slot = machine.compile(buffer.elem_offset), machine.slot(buffer.data)
    lanes, dtype = parse_dtype(buffer.dtype).lanes, to_numpy(scalar_dtype(buffer.dtype))

    def allocate() -> None:
        extents: Any = [extent() for extent in shape]
        size = int(np.prod(extents, dtype=np.int64))
        # Of no elements there is no last one, whose place the strides would give.
        if strides and size:
            size = 1 + sum((extent - 1) * stride() for extent, stride in zip(extents, strides, strict=True))
        size += offset()
        storage = Storage(np.zeros(size * lanes, dtype), buffer.name, tuple(extents) if not strides else (size,))
        machine.provide(slot, storage)
        storage.depth = _NO_RACES

    return allocate
