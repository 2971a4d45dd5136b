"""The state of one interpretation, and the statements as closures over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from ..block import BlockRealize
from ..buffer import Buffer
from ..dtype import parse_dtype, scalar_dtype, to_numpy
from ..expr import IterVar, PrimExpr, Var
from ..rewriting import children
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
from ..thread import THREAD_REDUCTION_PRAGMA
from .access import store
from .arithmetic import Thunk
from .binds import bind_buffer
from .blocks import realize_block
from .expressions import BUILDERS
from .storage import InterpreterError, IterationLimitError, Lanes, RaceWatch, Storage

ParallelOrder = Literal["forward", "reverse", "shuffled"]
_ORDERS: dict[str, Callable[[int], Any]] = {
    "forward": range,
    "reverse": lambda extent: range(extent - 1, -1, -1),
    "shuffled": lambda extent: np.random.default_rng(extent).permutation(extent).tolist(),
}


class Machine:
    """Variables live in `cells`, one slot each; a pointer variable's cell holds its `Storage`."""

    def __init__(self, parallel_order: ParallelOrder, externs: Mapping[str, Callable[..., Any]], max_iterations: int | None = None) -> None:
        if parallel_order not in _ORDERS:
            raise InterpreterError(f"no parallel_order {parallel_order!r}; one of {', '.join(_ORDERS)}")
        self.cells: list[Any] = []
        self.watch: list[RaceWatch] = []
        self.mask: Lanes | None = None  # lanes that a vector if_then_else has switched on
        self.boxed: set[Buffer] = set()
        self.parameters: set[Buffer] = set()
        self.externs = externs
        self.max_iterations = max_iterations
        self._left = float("inf") if max_iterations is None else max_iterations
        self._order = _ORDERS[parallel_order]
        self._slots: dict[Var, int] = {}
        self._thunks: dict[PrimExpr, Thunk] = {}

    def slot(self, var: Var) -> int:
        """The number of the cell of `var`."""
        if var not in self._slots:
            self._slots[var] = len(self.cells)
            self.cells.append(None)
        return self._slots[var]

    def bind(self, var: Var, value: Any) -> None:
        """Give a variable its value."""
        self.cells[self.slot(var)] = value

    def is_bound(self, var: Var) -> bool:
        """True once a variable has a value."""
        return self.cells[self.slot(var)] is not None

    def active(self, predicate: Lanes | None, lanes: int) -> Lanes:
        """The lanes that take part: those of the predicate and of the surrounding vector conditions."""
        active = np.ones(lanes, np.bool_) if predicate is None else np.broadcast_to(np.asarray(predicate, np.bool_), lanes)
        if self.mask is None:
            return active
        if len(self.mask) != lanes:
            raise InterpreterError(f"a vector of {lanes} lanes under a condition of {len(self.mask)} lanes")
        return active & self.mask

    def compile(self, expr: PrimExpr) -> Thunk:
        """The closure that computes `expr`; each distinct node has one."""
        thunks = self._thunks
        stack = [expr]
        while stack:
            node = stack[-1]
            waiting = [c for c in children(node) if c not in thunks] if node not in thunks else []
            if waiting:
                stack.extend(c for c in waiting if isinstance(c, PrimExpr))
                continue
            stack.pop()
            if node not in thunks:
                thunks[node] = BUILDERS[type(node)](self, node)
        return thunks[expr]

    def run(self, stmt: Stmt) -> Thunk:
        """The closure that executes `stmt`."""
        return _STATEMENTS[type(stmt)](self, stmt)

    def charge(self, iterations: int, loop: str) -> None:
        """Take the iterations of a loop from what is left of them, before they run."""
        self._left -= iterations
        if self._left < 0:
            raise IterationLimitError(f"loop {loop}: more than {self.max_iterations} iterations in all")

    def loop(self, stmt: For) -> Thunk:
        """A loop; a parallel one, or one over threads, runs in the wished order, with a watch on what its iterations touch."""
        low, extent, body = self.compile(stmt.min), self.compile(stmt.extent), self.run(stmt.body)
        slot, cells, name, watch = self.slot(stmt.loop_var), self.cells, stmt.loop_var.name, self.watch

        def serial() -> None:
            first, count = low(), extent()
            self.charge(count, name)
            for value in range(first, first + count):
                cells[slot] = value
                body()

        def parallel() -> None:
            first, count, guard = low(), extent(), RaceWatch(name)
            self.charge(count, name)
            watch.append(guard)
            try:
                for step in self._order(count):
                    guard.current = cells[slot] = first + step
                    body()
            finally:
                watch.pop()

        apart = stmt.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING) and not stmt.annotations.get(THREAD_REDUCTION_PRAGMA)
        return parallel if apart else serial

    def allocate(self, stmt: Allocate) -> Thunk:
        """Fresh storage for the body, unwritten."""
        extents, body, slot = [self.compile(e) for e in stmt.extents], self.run(stmt.body), self.slot(stmt.buffer_var)
        lanes, dtype = parse_dtype(stmt.dtype).lanes, to_numpy(scalar_dtype(stmt.dtype))

        def run() -> None:
            size = lanes
            for extent in extents:
                size *= extent()
            self.provide(slot, Storage(np.zeros(size, dtype), stmt.buffer_var.name, (size,)))
            body()

        return run

    def constant(self, stmt: AllocateConst) -> Thunk:
        """The elements of a constant, which can't be written."""
        if stmt.data is None:
            raise InterpreterError(f"the elements of the constant {stmt.buffer_var.name} stand in the module, not in its function")
        body, slot, array = self.run(stmt.body), self.slot(stmt.buffer_var), stmt.data.numpy().reshape(-1)
        array.setflags(write=False)

        def run() -> None:
            self.provide(slot, Storage(array, stmt.buffer_var.name, array.shape, fresh=False))
            body()

        return run

    def realize(self, stmt: BufferRealize) -> Thunk:
        """Fresh storage for a box of a tensor; a parameter has its storage already."""
        if stmt.buffer in self.parameters:
            return self.run(stmt.body)
        self.boxed.add(stmt.buffer)
        bounds = [(self.compile(r.min), self.compile(r.extent)) for r in stmt.bounds]
        body, slot, dtype = self.run(stmt.body), self.slot(stmt.buffer.data), to_numpy(scalar_dtype(stmt.buffer.dtype))

        def run() -> None:
            mins, extents = tuple(low() for low, _ in bounds), tuple(extent() for _, extent in bounds)
            size = int(np.prod(extents, dtype=np.int64)) * parse_dtype(stmt.buffer.dtype).lanes
            self.provide(slot, Storage(np.zeros(size, dtype), stmt.buffer.name, extents, mins))
            body()

        return run

    def provide(self, slot: int, storage: Storage) -> None:
        """Let a pointer's cell hold fresh storage."""
        storage.depth = len(self.watch)
        self.cells[slot] = storage

    def sequence(self, stmt: SeqStmt) -> Thunk:
        """Statements in order."""
        actions = [self.run(child) for child in stmt.seq]

        def run() -> None:
            for action in actions:
                action()

        return run

    def branch(self, stmt: IfThenElse) -> Thunk:
        """One of two statements."""
        condition, yes = self.compile(stmt.condition), self.run(stmt.then_case)
        no = self.run(stmt.else_case) if stmt.else_case is not None else lambda: None
        return lambda: yes() if condition() else no()

    def repeat(self, stmt: While) -> Thunk:
        """A while loop."""
        condition, body = self.compile(stmt.condition), self.run(stmt.body)

        def run() -> None:
            while condition():
                self.charge(1, "while")
                body()

        return run

    def let(self, stmt: LetStmt) -> Thunk:
        """A named value."""
        value, slot, cells, body = self.compile(stmt.value), self.slot(stmt.var), self.cells, self.run(stmt.body)

        def run() -> None:
            cells[slot] = value()
            body()

        return run

    def check(self, stmt: AssertStmt) -> Thunk:
        """An assertion."""
        condition, message, body = self.compile(stmt.condition), self.compile(stmt.message), self.run(stmt.body)

        def run() -> None:
            if not condition():
                raise InterpreterError(f"assert {stmt.condition} failed: {message()}")
            body()

        return run

    def attribute(self, stmt: AttrStmt) -> Thunk:
        """Threads of an extent run one after the other; other attributes change nothing."""
        body = self.run(stmt.body)
        if not (isinstance(stmt.node, IterVar) and stmt.attr_key in ("thread_extent", "virtual_thread")):
            return body
        slot, cells, extent = self.slot(stmt.node.var), self.cells, self.compile(stmt.value)

        def run() -> None:
            for value in range(extent()):
                cells[slot] = value
                body()

        return run


_STATEMENTS: dict[type[Stmt], Callable[[Machine, Any], Thunk]] = {
    For: Machine.loop,
    While: Machine.repeat,
    BufferStore: store,
    BufferBind: bind_buffer,
    BufferRealize: Machine.realize,
    BlockRealize: realize_block,
    Allocate: Machine.allocate,
    AllocateConst: Machine.constant,
    DeclBuffer: lambda machine, stmt: machine.run(stmt.body),
    SeqStmt: Machine.sequence,
    IfThenElse: Machine.branch,
    LetStmt: Machine.let,
    AssertStmt: Machine.check,
    AttrStmt: Machine.attribute,
    Evaluate: lambda machine, stmt: machine.compile(stmt.value),
    Prefetch: lambda machine, stmt: lambda: None,
}
