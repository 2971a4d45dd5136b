"""Views of boxes: a bound buffer gets the memory, the strides and the offset of the box that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import PrimExpr, Var
from ..stmt import BufferBind
from .access import element_layout, memory_of
from .arithmetic import Thunk
from .machine import Machine
from .storage import InterpreterError, compact_strides


def bind_buffer(machine: Machine, stmt: BufferBind) -> Thunk:
    """The body with the view's variables set from the box; what the view declares beyond them is checked."""
    bound, source = stmt.buffer, stmt.source
    memory, layout = memory_of(machine, source.buffer), element_layout(machine, source.buffer)
    region = [(machine.compile(r.min), machine.compile(r.extent)) for r in source.region]
    shape = [machine.compile(extent) for extent in bound.shape]
    settle = _settle(machine, stmt, (*bound.strides, bound.elem_offset))
    slot, cells, body = machine.slot(bound.data), machine.cells, machine.run(stmt.body)
    left_out = source.buffer.ndim - bound.ndim

    def run() -> None:
        storage = memory()
        mins, extents, strides, at = layout(storage)
        box = [(low(), extent()) for low, extent in region]
        for (first, extent), low, size, stride in zip(box, mins, extents, strides, strict=True):
            if not (low <= first and first + extent <= low + size):
                place = f"{first}:{first + extent}, out of {low}:{low + size}"
                raise InterpreterError(f"{bound.name} is bound to {source.buffer.name} at {place}")
            at += (first - low) * stride
        wanted = [extent() for extent in shape]
        found = [extent for _, extent in box]
        if found[:left_out] != [1] * left_out or found[left_out:] != wanted:
            raise InterpreterError(f"{bound.name} of shape {wanted} is bound to a box of shape {found} of {source.buffer.name}")
        given = tuple(strides[left_out:])
        if not bound.strides and _differ(given, compact_strides(tuple(wanted)), wanted):
            raise InterpreterError(f"{bound.name} is compact, but is bound to a box of {source.buffer.name} with strides {list(given)}")
        # `at` counts from the first element that there is, an offset from the pointer, which `origin` elements separate.
        offset = at + storage.origin
        if offset % bound.offset_factor:
            raise InterpreterError(f"{bound.name} starts at element {offset}, which is no multiple of {bound.offset_factor}")
        cells[slot] = storage
        settle([*(given if bound.strides else ()), offset], wanted)
        body()

    return run


def _differ(given: Sequence[int], wanted: Sequence[int], shape: Sequence[int]) -> bool:
    """Strides that are not the same; along an extent of 1 any stride will do."""
    return any(a != b and extent != 1 for a, b, extent in zip(given, wanted, shape, strict=True))


def _settle(machine: Machine, stmt: BufferBind, declared: Sequence[PrimExpr]) -> Any:
    """Set the variables among strides and offset, and compare the rest."""
    cells, defined = machine.cells, stmt.defines()
    slots = [machine.slot(expr) if isinstance(expr, Var) and expr in defined else None for expr in declared]
    thunks = [machine.compile(expr) for expr in declared]

    def settle(values: Sequence[int], shape: Sequence[int]) -> None:
        # A variable that is two strides takes the first; the comparison below finds a second that differs.
        known: set[int] = set()
        for slot, value in zip(slots, values, strict=True):
            if slot is not None and slot not in known:
                cells[slot] = value
                known.add(slot)
        for number, (thunk, value) in enumerate(zip(thunks, values, strict=True)):
            # With one value alone that is the offset, which no extent of 1 excuses.
            free = number < len(shape) and len(values) > 1 and shape[number] == 1
            if thunk() != value and not free:
                what = "the offset" if number == len(values) - 1 else f"stride {number}"
                raise InterpreterError(f"{what} of {stmt.buffer.name} is {thunk()}, but its box has {value}")

    return settle
