"""Calls that are about machines: pointers into buffers, and LLVM's intrinsics."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as ir
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..llvm_intrin import intrinsic_operands, lanes_of, llvm_intrinsic
from ..pointers import READ, WRITE
from .access import scalar_address
from .arithmetic import Thunk
from .machine import Machine
from .storage import InterpreterError, Storage


def type_annotation(machine: Machine, node: ir.Call) -> Thunk:
    """A dtype stands for itself."""
    return lambda: node.dtype


def access_ptr(machine: Machine, node: ir.Call) -> Thunk:
    """The elements that the pointer gives access to, as a view of their array; what may be written counts as written."""
    element, data, offset, extent, mask = (machine.compile(arg) for arg in node.args)
    lanes = parse_dtype(node.args[0].dtype).lanes
    dtype = to_numpy(scalar_dtype(node.args[0].dtype))

    def run() -> Any:
        storage, first, count, access = data(), offset() * lanes, extent() * lanes, mask()
        if not isinstance(storage, Storage) or storage.array.dtype != dtype:
            raise InterpreterError(f"access_ptr of {element()} to {node.args[1]}, which is no memory of that dtype")
        at = first - storage.origin
        if count < 0 or not 0 <= at <= len(storage.array):
            raise InterpreterError(f"access_ptr to {storage.name}[{at}:{at + count}], which has {len(storage.array)} elements")
        end = min(at + count, len(storage.array))  # an extent counts whole rows, of which the last may end with the memory
        _note(machine, storage, at, end, access)
        return storage.array[at:end]

    return run


def _note(machine: Machine, storage: Storage, start: int, stop: int, access: int) -> None:
    """Check what is read, mark what is written, and watch for races on both."""
    lanes = storage.written_lanes
    if access == READ and lanes is not None and not lanes[start:stop].all():  # "rw" may read what it has just written
        storage.fail_unwritten(start + int(np.argmin(lanes[start:stop])))
    for loop in machine.watch[storage.depth :]:
        for at in range(start, stop):
            if access & READ:
                loop.note_read(storage, at)
            if access & WRITE:
                loop.note_write(storage, at)
    if access & WRITE and lanes is not None:
        lanes[start:stop] = True


def address_of(machine: Machine, node: ir.Call) -> Thunk:
    """The elements from one on, as a view of their array; a C function may write them."""
    load = node.args[0]
    assert isinstance(load, ir.BufferLoad)
    if parse_dtype(load.dtype).lanes > 1:
        raise InterpreterError(f"address_of {load}, which is a vector; take the address of its first element")
    address = scalar_address(machine, load.buffer, load.indices)

    def run() -> Any:
        storage, at = address()
        if storage.written_lanes is not None:
            storage.written_lanes[at:] = True
        return storage.array[at:]

    return run


def llvm_call(machine: Machine, node: ir.Call) -> Thunk:
    """An LLVM intrinsic by its table of semantics."""
    name, operands = intrinsic_operands(node)
    row = llvm_intrinsic(name)
    assert row is not None
    thunks, kinds, result = [machine.compile(arg) for arg in operands], [to_numpy(arg.dtype) for arg in operands], to_numpy(node.dtype)
    views = [_lane_view(llvm_type) for llvm_type in row.operands] or [None] * len(operands)
    evaluate = row.evaluate

    def run() -> Any:
        values = [np.atleast_1d(np.asarray(thunk(), kind)) for thunk, kind in zip(thunks, kinds, strict=True)]
        lanes = [value if view is None else value.view(view) for value, view in zip(values, views, strict=True)]
        # A CPU's instruction gives lanes of its own type, whose bits are the result; an overloaded one computes in the call's.
        found = np.asarray(evaluate(*lanes)).view(result) if row.operands else np.asarray(evaluate(*lanes)).astype(result)
        if parse_dtype(node.dtype).lanes > 1:
            return found
        return found.item(0) if result.kind in "iub" else found[0]

    return run


_LANES = {"i32": "int32", "float": "float32", "i16": "int16", "bfloat": "bfloat16", "i8": "int8", "i1": "bool"}


def _lane_view(llvm_type: str) -> Any:
    return to_numpy(_LANES[lanes_of(llvm_type)[1]])
