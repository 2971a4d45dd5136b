"""Binding the arguments of a call: arrays become storage, sizes of symbolic shapes become known."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..buffer import Buffer
from ..dtype import int_limits, parse_dtype, scalar_dtype, to_numpy
from ..expr import IntImm, PrimExpr, Var
from ..function import PrimFunc
from ..rewriting import variables
from .machine import Machine
from .storage import InterpreterError, Storage, compact_strides

Argument = np.ndarray[Any, Any] | int | float


def bind_arguments(machine: Machine, func: PrimFunc, args: Sequence[Any]) -> None:
    """Bind all parameters, then the variables in shapes, then check every array against its buffer."""
    if len(args) != len(func.params):
        names = ", ".join(p.name for p in func.params)
        raise InterpreterError(f"{len(args)} arguments for the {len(func.params)} parameters ({names})")
    arrays: list[tuple[Buffer, Any]] = []
    for param, arg in zip(func.params, args, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            arrays.append((buffer, _array(machine, param, buffer, arg)))
        elif param.dtype == "handle":
            if not isinstance(arg, np.ndarray):
                raise InterpreterError(f"argument {param.name}: an array is needed, not {type(arg).__name__}")
            machine.bind(param, _storage(param.name, arg))
        else:
            machine.bind(param, _scalar(param, arg))
    _bind_sizes(machine, [pair for buffer, array in arrays for pair in _numbers(buffer, array)])
    for buffer, array in arrays:
        _check(machine, buffer, array)


def _array(machine: Machine, param: Var, buffer: Buffer, arg: Any) -> Any:
    """The array behind a parameter, with its elements in a row as storage."""
    wanted = to_numpy(scalar_dtype(buffer.dtype))
    rank = len(buffer.shape) + (parse_dtype(buffer.dtype).lanes > 1)
    if not isinstance(arg, np.ndarray) or arg.dtype != wanted or arg.ndim != rank:
        found = f"{arg.dtype} array of rank {arg.ndim}" if isinstance(arg, np.ndarray) else type(arg).__name__
        raise InterpreterError(f"argument {buffer.name}: a {wanted} array of rank {rank} is needed, not {found}")
    storage = _storage(buffer.name, arg)
    machine.parameters.add(buffer)
    machine.bind(param, storage)
    machine.bind(buffer.data, storage)
    return arg


def _storage(name: str, array: Any) -> Storage:
    """The memory that an array spans, gaps between its elements included, as storage."""
    # The flat view below begins at the first element and goes forward by whole ones.
    if any(step < 0 or step % array.itemsize for step in array.strides):
        raise InterpreterError(f"argument {name}: strides of {array.strides} bytes can't be interpreted; copy the array")
    steps = [(n - 1) * step // array.itemsize for n, step in zip(array.shape, array.strides, strict=True)]
    span = 0 if array.size == 0 else 1 + sum(steps)
    flat = np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,), writeable=array.flags.writeable)
    return Storage(flat, name, array.shape, fresh=False)


def _scalar(param: Var, arg: Any) -> Any:
    dtype = parse_dtype(param.dtype)
    if dtype.is_float and isinstance(arg, (numbers.Real, np.floating)):
        return to_numpy(param.dtype).type(arg)
    if not dtype.is_float and isinstance(arg, (numbers.Integral, np.bool_)):
        low, high = int_limits(param.dtype)
        if low <= int(arg) <= high:
            return int(arg)
    raise InterpreterError(f"argument {param.name}: {arg!r} is no {param.dtype}")


def _numbers(buffer: Buffer, array: Any) -> Iterator[tuple[PrimExpr, int]]:
    """The expressions in a declaration, each with the number that the array has there; strides of axes that are walked first."""
    yield from zip(buffer.shape, map(int, array.shape), strict=False)
    # In elements, of which each may have several lanes.
    steps = [int(step) // array.itemsize // parse_dtype(buffer.dtype).lanes for step in array.strides]
    # An axis of one element may have any stride: it gives a variable its value only where no other axis does.
    walked = sorted(zip(buffer.strides, steps, array.shape, strict=False), key=lambda item: item[2] <= 1)
    yield from ((expr, step) for expr, step, _ in walked)
    yield buffer.elem_offset, 0


def _bind_sizes(machine: Machine, pending: list[tuple[PrimExpr, int]]) -> None:
    """Bind the variables that stand alone first, then those that are the only unknown of an expression, until none is left."""
    for expr, size in pending:
        if isinstance(expr, Var) and not machine.is_bound(expr):
            machine.bind(expr, size)
    # Each round binds a variable more, so there are as many rounds as variables at most.
    while any(_solve_size(machine, expr, size) for expr, size in pending):
        pass


def _solve_size(machine: Machine, expr: PrimExpr, size: int) -> bool:
    """Bind the only unknown of an expression that is linear in it. The check of the shapes, later, refuses what doesn't fit."""
    unknown = [] if isinstance(expr, IntImm) else [var for var in variables(expr) if not machine.is_bound(var)]
    if len(unknown) != 1:
        return False
    values = []
    for trial in (0, 1):  # two points of a line, from which the size is solved
        machine.bind(unknown[0], trial)
        values.append(int(machine.compile(expr)()))
    slope = values[1] - values[0]
    # None unbinds it: with a slope of 0, as of n * 0, this dimension says nothing about it.
    machine.bind(unknown[0], (size - values[0]) // slope if slope else None)
    return bool(slope)


def _check(machine: Machine, buffer: Buffer, array: Any) -> None:
    """The array has the shape and strides that its buffer declares, now that all sizes are known."""
    lanes = parse_dtype(buffer.dtype).lanes
    rank = len(buffer.shape)
    shape = tuple(machine.compile(extent)() for extent in buffer.shape)
    if shape + ((lanes,) if lanes > 1 else ()) != array.shape:
        raise InterpreterError(f"argument {buffer.name}: shape {array.shape} where {shape} is needed")
    wanted = tuple(machine.compile(stride)() for stride in buffer.strides) or compact_strides(shape)
    steps = [step // array.itemsize for step in array.strides]
    apart = lanes > 1 and (steps[rank] != 1 or any(n > 1 and step % lanes for n, step in zip(shape, steps[:rank], strict=True)))
    if array.size and apart:
        raise InterpreterError(f"argument {buffer.name}: the {lanes} lanes of an element don't lie side by side; copy the array")
    found = tuple(step // lanes for step in steps[:rank])
    if array.size and any(n > 1 and a != b for n, a, b in zip(shape, wanted, found, strict=True)):  # nobody walks an axis of one
        raise InterpreterError(f"argument {buffer.name}: strides {found} where {wanted} are needed (in elements)")
    storage = machine.cells[machine.slot(buffer.data)]
    offset = buffer.elem_offset
    storage.origin = offset.value if isinstance(offset, IntImm) else machine.compile(offset)()
