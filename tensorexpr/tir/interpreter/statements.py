"""The statements as closures over a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..block import BlockRealize
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..expr import IterVar
from ..pointers import pointer_scope
from ..stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferBind,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    SeqStmt,
    Stmt,
    While,
)
from ..thread import HARDWARE_TAGS, bound_tag
from .access import store
from .arithmetic import Thunk
from .binds import bind_buffer
from .blocks import realize_block
from .kernels import run_kernel
from .machine import Machine
from .storage import GridWatch, InterpreterError, RaceWatch, Storage


def _loop(machine: Machine, stmt: For) -> Thunk:
    """A loop; a parallel one, or one over threads, runs in the wished order, with a watch on what its iterations touch."""
    if (kernel := run_kernel(machine, stmt)) is not None:
        return kernel
    low, extent, body = machine.compile(stmt.min), machine.compile(stmt.extent), machine.run(stmt.body)
    slot, cells, name, watch = machine.slot(stmt.loop_var), machine.cells, stmt.loop_var.name, machine.watch

    def serial() -> None:
        first, count = low(), extent()
        machine.charge(count, name)
        for value in range(first, first + count):  # Python's integers: a last value at the limit of int32 doesn't wrap into an endless loop
            cells[slot] = value
            body()

    def parallel() -> None:
        first, count, guard = low(), extent(), watch_of(name)
        machine.charge(count, name)
        watch.append(guard)
        try:
            for step in machine.order(count):
                guard.current = cells[slot] = first + step
                body()
        finally:
            watch.pop()

    watch_of = GridWatch if bound_tag(stmt) in HARDWARE_TAGS else RaceWatch
    return parallel if stmt.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING) else serial


def _allocate(machine: Machine, stmt: Allocate) -> Thunk:
    """Fresh storage for the body, unwritten."""
    extents, body, slot = [machine.compile(e) for e in stmt.extents], machine.run(stmt.body), machine.slot(stmt.buffer_var)
    lanes, dtype, scope = parse_dtype(stmt.dtype).lanes, to_numpy(scalar_dtype(stmt.dtype)), pointer_scope(stmt.buffer_var)

    def run() -> None:
        # Storage counts scalars: an element of four lanes takes four.
        size = lanes
        for extent in extents:
            size *= extent()
        storage = Storage(np.zeros(size, dtype), stmt.buffer_var.name, (size,))
        storage.scope = scope
        machine.provide(slot, storage)
        body()

    return run


def _constant(machine: Machine, stmt: AllocateConst) -> Thunk:
    """The elements of a constant, which can't be written."""
    if stmt.data is None:
        raise InterpreterError(f"the elements of the constant {stmt.buffer_var.name} stand in the module, not in its function")
    body, slot, array = machine.run(stmt.body), machine.slot(stmt.buffer_var), stmt.data.numpy().reshape(-1)
    # `numpy` gives a copy, so nobody else's array is frozen.
    array.setflags(write=False)

    def run() -> None:
        machine.provide(slot, Storage(array, stmt.buffer_var.name, array.shape, fresh=False))
        body()

    return run


def _realize(machine: Machine, stmt: BufferRealize) -> Thunk:
    """Fresh storage for a box of a tensor; a parameter has its storage already."""
    if stmt.buffer in machine.parameters:
        return machine.run(stmt.body)
    # Before the body is compiled, whose accesses ask how the buffer is addressed.
    machine.boxed.add(stmt.buffer)
    bounds = [(machine.compile(r.min), machine.compile(r.extent)) for r in stmt.bounds]
    body, slot, dtype = machine.run(stmt.body), machine.slot(stmt.buffer.data), to_numpy(scalar_dtype(stmt.buffer.dtype))

    def run() -> None:
        mins, extents = tuple(low() for low, _ in bounds), tuple(extent() for _, extent in bounds)
        size = int(np.prod(extents, dtype=np.int64)) * parse_dtype(stmt.buffer.dtype).lanes
        machine.provide(slot, Storage(np.zeros(size, dtype), stmt.buffer.name, extents, mins))
        body()

    return run


def _sequence(machine: Machine, stmt: SeqStmt) -> Thunk:
    """Statements in order."""
    actions = [machine.run(child) for child in stmt.seq]

    def run() -> None:
        for action in actions:
            action()

    return run


def _branch(machine: Machine, stmt: IfThenElse) -> Thunk:
    """One of two statements."""
    condition, yes = machine.compile(stmt.condition), machine.run(stmt.then_case)
    no = machine.run(stmt.else_case) if stmt.else_case is not None else lambda: None
    return lambda: yes() if condition() else no()


def _repeat(machine: Machine, stmt: While) -> Thunk:
    """A while loop."""
    condition, body = machine.compile(stmt.condition), machine.run(stmt.body)

    def run() -> None:
        while condition():
            machine.charge(1, "while")
            body()

    return run


def _let(machine: Machine, stmt: LetStmt) -> Thunk:
    """A named value."""
    value, slot, cells, body = machine.compile(stmt.value), machine.slot(stmt.var), machine.cells, machine.run(stmt.body)

    def run() -> None:
        cells[slot] = value()
        body()

    return run


def _check(machine: Machine, stmt: AssertStmt) -> Thunk:
    """An assertion."""
    condition, message, body = machine.compile(stmt.condition), machine.compile(stmt.message), machine.run(stmt.body)

    def run() -> None:
        if not condition():
            raise InterpreterError(f"assert {stmt.condition} failed: {message()}")
        body()

    return run


def _attribute(machine: Machine, stmt: AttrStmt) -> Thunk:
    """Threads of an extent run one after the other, unless they meet; other attributes change nothing."""
    if (kernel := run_kernel(machine, stmt)) is not None:
        return kernel
    body = machine.run(stmt.body)
    if not (isinstance(stmt.node, IterVar) and stmt.attr_key in ("thread_extent", "virtual_thread")):
        return body
    slot, cells, extent = machine.slot(stmt.node.var), machine.cells, machine.compile(stmt.value)

    def run() -> None:
        for value in range(extent()):
            cells[slot] = value
            body()

    return run


STATEMENTS: dict[type[Stmt], Callable[[Machine, Any], Thunk]] = {
    For: _loop,
    While: _repeat,
    BufferStore: store,
    BufferBind: bind_buffer,
    BufferRealize: _realize,
    BlockRealize: realize_block,
    Allocate: _allocate,
    AllocateConst: _constant,
    DeclBuffer: lambda machine, stmt: machine.run(stmt.body),
    SeqStmt: _sequence,
    IfThenElse: _branch,
    LetStmt: _let,
    AssertStmt: _check,
    AttrStmt: _attribute,
    Evaluate: lambda machine, stmt: machine.compile(stmt.value),
    Prefetch: lambda machine, stmt: lambda: None,
}
