"""Loads and stores: from indices to checked offsets into storage, for scalars and for vectors of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..arithmetic import as_int
from ..buffer import Buffer
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..expr import BufferLoad, IntImm, PrimExpr, Ramp
from ..stmt import BufferStore
from .arithmetic import Thunk
from .machine import Machine
from .storage import InterpreterError, Lanes, Storage, compact_strides

Access = BufferLoad | BufferStore


def element_layout(machine: Machine, buffer: Buffer) -> Callable[[Storage], tuple[Any, ...]]:
    """How to find (mins, extents, strides, offset) of a buffer over its storage."""
    # a realized box begins at its mins and is as large as it was realized, whatever shape its buffer declares
    if buffer in machine.boxed:
        return lambda storage: (storage.mins, storage.extents, storage.strides, 0)
    exprs = (*buffer.shape, *buffer.strides, buffer.elem_offset)
    thunks = [machine.compile(expr) for expr in exprs]
    rank, mins = len(buffer.shape), (0,) * len(buffer.shape)

    def evaluate() -> tuple[tuple[int, ...], tuple[int, ...], int]:
        values = [thunk() for thunk in thunks]
        extents = tuple(values[:rank])
        return extents, tuple(values[rank:-1]) or compact_strides(extents), values[-1]

    # Constants, as nearly always: computed once, where each access would run a closure for every extent and stride.
    if all(isinstance(expr, IntImm) for expr in exprs):
        extents, strides, offset = evaluate()
        return lambda storage: (mins, extents, strides, offset - storage.origin)

    def layout(storage: Storage) -> tuple[Any, ...]:
        extents, strides, offset = evaluate()
        return mins, extents, strides, offset - storage.origin

    return layout


def _outside(buffer: Buffer, indices: list[Any], mins: tuple[int, ...], extents: tuple[int, ...]) -> NoReturn:
    place = ", ".join(str(i if np.isscalar(i) else list(map(int, i))) for i in indices)
    space = ", ".join(f"{low}:{low + extent}" for low, extent in zip(mins, extents, strict=True))
    raise InterpreterError(f"{buffer.name}[{place}] is out of bounds; {buffer.name} has the elements [{space}]")


def memory_of(machine: Machine, buffer: Buffer) -> Callable[[], Storage]:
    """The storage behind a buffer, checked whenever it is another than the last time."""
    slot, cells = machine.slot(buffer.data), machine.cells
    dtype = to_numpy(scalar_dtype(buffer.dtype))
    checked: list[Storage | None] = [None]

    def storage() -> Storage:
        found = cells[slot]
        if found is not checked[0]:
            if not isinstance(found, Storage):
                raise InterpreterError(f"buffer {buffer.name} is accessed, but nothing provides its memory")
            if found.array.dtype != dtype:
                raise InterpreterError(f"buffer {buffer.name} reads memory of {found.array.dtype} as {buffer.dtype}")
            checked[0] = found
        return found  # type: ignore[no-any-return]

    return storage


def scalar_address(machine: Machine, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> Callable[[], tuple[Storage, int]]:
    """The storage and checked offset of one element."""
    if buffer in machine.boxed or all(isinstance(one, IntImm) for one in (*buffer.shape, *buffer.strides, buffer.elem_offset)):
        is_flat = len(indices) == 1 and buffer not in machine.boxed and not buffer.strides
        return _flat_address(machine, buffer, indices[0]) if is_flat else _settled_address(machine, buffer, indices)
    memory, layout = memory_of(machine, buffer), element_layout(machine, buffer)
    thunks = [machine.compile(index) for index in indices]

    def address() -> tuple[Storage, int]:
        storage = memory()
        mins, extents, strides, at = layout(storage)
        values = [int(thunk()) for thunk in thunks]
        for value, low, extent, stride in zip(values, mins, extents, strides, strict=True):
            if not 0 <= value - low < extent:
                _outside(buffer, values, mins, extents)
            at += (value - low) * stride
        # Strides may lead out of the memory while every index is inside its extent.
        if not 0 <= at < len(storage.array):
            _outside(buffer, values, mins, extents)
        return storage, at

    return address


def _settled_address(machine: Machine, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> Callable[[], tuple[Storage, int]]:
    """`scalar_address` where the layout is the storage's alone: what stands beside each index is found once for each storage."""
    memory, layout = memory_of(machine, buffer), element_layout(machine, buffer)
    thunks = [machine.compile(index) for index in indices]
    slot, cells = machine.slot(buffer.data), machine.cells
    known: Any = None
    first, size, places = 0, 0, list[tuple[Thunk, int, int, int]]()

    def address() -> tuple[Storage, int]:
        nonlocal known, first, size, places
        storage = cells[slot]
        if storage is not known:
            known = storage = memory()
            mins, extents, strides, first = layout(storage)
            size, places = len(storage.array), list(zip(thunks, mins, extents, strides, strict=True))
        at = first
        for thunk, low, extent, stride in places:
            value = thunk() - low
            if not 0 <= value < extent:
                fail()
            at += value * stride
        # Strides may lead out of the memory while every index is inside its extent.
        if not 0 <= at < size:
            fail()
        return storage, at

    def fail() -> NoReturn:
        mins, extents, _, _ = layout(known)
        _outside(buffer, [int(thunk()) for thunk in thunks], mins, extents)

    return address


def _flat_address(machine: Machine, buffer: Buffer, index: PrimExpr) -> Callable[[], tuple[Storage, int]]:
    """`_settled_address` of what lowered programs consist of: flat, compact, of constant size."""
    memory, thunk, slot, cells = memory_of(machine, buffer), machine.compile(index), machine.slot(buffer.data), machine.cells
    (extent,), offset = (as_int(one) or 0 for one in buffer.shape), as_int(buffer.elem_offset) or 0
    known: Any = None
    first, size = 0, 0

    def address() -> tuple[Storage, int]:
        nonlocal known, first, size
        storage, value = cells[slot], thunk()
        if storage is not known:
            known = storage = memory()
            first, size = offset - storage.origin, len(storage.array)
        at = value + first
        if not (0 <= value < extent and 0 <= at < size):
            _outside(buffer, [value], (0,), (extent,))
        return storage, at

    return address


def lane_address(machine: Machine, node: Access) -> Callable[[], tuple[Storage, Lanes, Lanes]]:
    """The storage, the offset of every lane, and which lanes are active; only those are checked."""
    buffer, element_lanes = node.buffer, parse_dtype(node.buffer.dtype).lanes
    memory, layout = memory_of(machine, buffer), element_layout(machine, buffer)
    thunks = [machine.compile(index) for index in node.indices]
    predicate = machine.compile(node.predicate) if node.predicate is not None else None

    def address() -> tuple[Storage, Lanes, Lanes]:
        storage = memory()
        mins, extents, strides, at = layout(storage)
        # In int64: an index of int32 times a stride may be more than int32 holds.
        values = [np.asarray(thunk(), np.int64) for thunk in thunks]
        inside: Any = True
        for value, low, extent, stride in zip(values, mins, extents, strides, strict=True):
            inside = inside & (value >= low) & (value - low < extent)
            at = at + (value - low) * stride
        # `asarray`: a buffer without dimensions has no index that would have made an array of the offset.
        offsets = np.asarray(at)[..., None] * element_lanes + np.arange(element_lanes)
        inside = np.broadcast_to(np.asarray(inside)[..., None], offsets.shape).reshape(-1)
        offsets = offsets.reshape(-1)
        active = machine.active(predicate() if predicate is not None else None, len(offsets))
        inside = inside & (offsets >= 0) & (offsets < len(storage.array))
        if not inside[active].all():
            _outside(buffer, [np.atleast_1d(v) for v in values], mins, extents)
        return storage, offsets, active

    return address


def dense_address(machine: Machine, node: Access) -> Callable[[], tuple[Storage, int, int] | None]:
    """The storage and the range of offsets of lanes that lie side by side; None where each lane needs a look of its own.

    They do in `A[ramp(i, 1, 16)]`, and in an element of many lanes as `C[i]` of float32x16. Nearly all accesses of vectorised
    programs are such, and comparing the ends of the range takes a tenth of the time of `lane_address`'s dozen array operations.
    """
    buffer, lanes = node.buffer, parse_dtype(node.buffer.dtype).lanes
    extent = buffer.shape[0] if len(buffer.shape) == 1 and not buffer.strides and buffer not in machine.boxed else None
    if not isinstance(extent, IntImm) or node.predicate is not None:
        return lambda: None
    index, steps = node.indices[0], parse_dtype(node.indices[0].dtype).lanes
    if steps > 1:
        if not (isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1):
            return lambda: None
        index = index.base
    last, width = extent.value - steps, steps * lanes
    memory, base, offset = memory_of(machine, buffer), machine.compile(index), machine.compile(buffer.elem_offset)

    def address() -> tuple[Storage, int, int] | None:
        if machine.mask is not None:
            return None
        storage, first = memory(), base()
        at = (first + offset() - storage.origin) * lanes
        end = at + width
        # Out of bounds is for `lane_address` to report.
        return (storage, at, end) if 0 <= first <= last and at >= 0 and end <= len(storage.array) else None

    return address


def load(machine: Machine, node: BufferLoad) -> Thunk:
    """The value of an element or vector, checked to be inside, written, and free of races."""
    if parse_dtype(node.dtype).lanes > 1:
        return _load_lanes(machine, node)
    address, watch = scalar_address(machine, node.buffer, node.indices), machine.watch
    # As elements are read: integers as Python's, floats as NumPy's of their dtype.
    zero = to_numpy(node.dtype).type(0).item() if parse_dtype(node.dtype).is_int else to_numpy(node.dtype).type(0)

    def run() -> Any:
        storage, at = address()
        if storage.written is not None and not storage.written[at]:
            machine.unwritten(storage, at)
        if watch:
            for loop in watch[storage.depth :]:
                loop.note_read(storage, at, node)
        return storage.read(at)

    if node.predicate is None:
        return run
    predicate = machine.compile(node.predicate)
    return lambda: run() if predicate() else zero


def _load_lanes(machine: Machine, node: BufferLoad) -> Thunk:
    address, dense, watch = lane_address(machine, node), dense_address(machine, node), machine.watch
    dtype = to_numpy(node.dtype)

    def run() -> Lanes:
        side_by_side = dense()
        if side_by_side is not None:
            storage, at, end = side_by_side
            if storage.written is not None and (unwritten := storage.written.find(0, at, end)) >= 0:
                machine.unwritten(storage, unwritten)
            for loop in watch[storage.depth :]:
                for one in range(at, end):
                    loop.note_read(storage, one, node)
            return storage.array[at:end].copy()  # a later store must not change a value that a `Let` has named
        storage, offsets, active = address()
        chosen = offsets[active]
        if storage.written_lanes is not None and not storage.written_lanes[chosen].all():
            machine.unwritten(storage, int(chosen[np.argmin(storage.written_lanes[chosen])]))
        for loop in watch[storage.depth :]:
            for at in chosen.tolist():
                loop.note_read(storage, at, node)
        result = np.zeros(len(offsets), dtype)
        result[active] = storage.array[chosen]
        return result

    return run


def store(machine: Machine, node: BufferStore) -> Thunk:
    """The action of a store, checked like a load."""
    value, watch = machine.compile(node.value), machine.watch
    if parse_dtype(node.value.dtype).lanes > 1:
        return _store_lanes(machine, node, value)
    address = scalar_address(machine, node.buffer, node.indices)

    def run() -> None:
        new = value()
        storage, at = address()
        if watch:
            for loop in watch[storage.depth :]:
                loop.note_write(storage, at, node, storage.holds(at, new))
        storage.write(at, new)
        if storage.written is not None:
            storage.written[at] = 1

    if node.predicate is None:
        return run
    predicate = machine.compile(node.predicate)
    return lambda: run() if predicate() else None


def _store_lanes(machine: Machine, node: BufferStore, value: Thunk) -> Thunk:
    address, dense, watch = lane_address(machine, node), dense_address(machine, node), machine.watch

    def run() -> None:
        new = value()
        side_by_side = dense()
        if side_by_side is not None:
            storage, at, end = side_by_side
            for loop in watch[storage.depth :]:
                for lane, one in enumerate(range(at, end)):
                    loop.note_write(storage, one, node, storage.holds(one, new[lane]))
            storage.write(slice(at, end), new)
            if storage.written is not None:
                storage.written[at:end] = b"\1" * (end - at)
            return
        storage, offsets, active = address()
        chosen = offsets[active]
        for loop in watch[storage.depth :]:
            for at, value_there in zip(chosen.tolist(), new[active], strict=True):
                loop.note_write(storage, at, node, storage.holds(at, value_there))
        storage.write(chosen, new[active])
        if storage.written_lanes is not None:
            storage.written_lanes[chosen] = True

    return run
