"""Assumptions, null tests and atomic additions."""

from __future__ import annotations

from typing import Any

from .. import expr as ir
from ..arithmetic import const
from ..dtype import parse_dtype, wrap_int
from .arithmetic import Thunk
from .machine import Machine
from .storage import InterpreterError


def assume(machine: Machine, node: ir.Call) -> Thunk:
    """The condition, which must hold."""
    condition = machine.compile(node.args[0])

    def run() -> bool:
        if not condition():
            raise InterpreterError(f"assume({node.args[0]}) does not hold")
        return True

    return run


def isnullptr(machine: Machine, node: ir.Call) -> Thunk:
    """Memory is never null here."""
    pointer = machine.compile(node.args[0])
    return lambda: pointer() is None


def undef(machine: Machine, node: ir.Call) -> Thunk:
    """Zero, as compiled code has it."""
    return machine.compile(const(0, node.dtype))


def atomic_add(machine: Machine, node: ir.Call) -> Thunk:
    """The old value of an element that grows by the value; iterations of parallel loops may do it in any order."""
    place, value = machine.compile(node.args[0]), machine.compile(node.args[1])
    is_int, dtype = parse_dtype(node.dtype).is_int, node.dtype

    def run() -> Any:
        # A view of the memory from that element on.
        memory, change = place(), value()
        old = memory[0]
        memory[0] = wrap_int(int(old) + int(change), dtype) if is_int else old + change
        return int(old) if is_int else old

    return run
