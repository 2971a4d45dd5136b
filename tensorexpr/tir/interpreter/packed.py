"""Calls of registered Python functions, on views of the interpreter's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import expr as ir
from ..dtype import parse_dtype, to_numpy
from ..foreign import PackedCalls, number_of
from .arithmetic import Thunk
from .machine import Machine
from .storage import InterpreterError, Storage, compact_strides


def call_packed(machine: Machine, node: ir.Call) -> Thunk:
    """The function's number, or 0."""
    name, *args = (machine.compile(arg) for arg in node.args)

    def run() -> int:
        if machine.watch:
            raise InterpreterError(f"the Python function {name()!r} is called inside a parallel loop")
        return number_of(PackedCalls.run(name(), [arg() for arg in args]))

    return run


def call_trace(machine: Machine, node: ir.Call) -> Thunk:
    """The last argument, or what the function returns in its place."""
    name, *args = (machine.compile(arg) for arg in node.args)
    dtype, is_float = to_numpy(node.dtype), parse_dtype(node.dtype).is_float

    def run() -> Any:
        values = [arg() for arg in args]
        found = PackedCalls.run(name(), values)
        result = values[-1] if found is None else found
        return dtype.type(result) if is_float else int(result)

    return run


def make_shape(machine: Machine, node: ir.Call) -> Thunk:
    """The numbers."""
    args = [machine.compile(arg) for arg in node.args]
    return lambda: tuple(int(arg()) for arg in args)


def make_array(machine: Machine, node: ir.Call) -> Thunk:
    """A view of the memory behind a pointer; all of it counts as written from then on."""
    data, shape, strides, _, _, offset = (machine.compile(arg) for arg in node.args)
    wanted, pointer = to_numpy(node.args[4].dtype), node.args[0]

    def run() -> Any:
        storage, extents, first = data(), shape(), offset()
        if not isinstance(storage, Storage) or storage.array.dtype != wanted:
            raise InterpreterError(f"{pointer} is passed as an array of {wanted}, which its memory is not")
        steps = strides() or compact_strides(extents)
        start = first - storage.origin
        last = start + sum((n - 1) * step for n, step in zip(extents, steps, strict=True))
        if 0 not in extents and not 0 <= start <= last < len(storage.array):
            raise InterpreterError(f"{storage.name} has {len(storage.array)} elements, and is passed as an array of {list(extents)}")
        if storage.written_lanes is not None:
            storage.written_lanes[:] = True
        size = storage.array.itemsize
        return np.lib.stride_tricks.as_strided(storage.array[start:], extents, [step * size for step in steps])

    return run
