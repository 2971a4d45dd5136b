"""The state of one interpretation, and what makes closures over it of expressions and statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Literal

import numpy as np

from ..buffer import Buffer
from ..expr import PrimExpr, Var
from ..rewriting import children
from ..stmt import Stmt
from .arithmetic import Linear, Thunk
from .storage import InterpreterError, IterationLimitError, Lanes, RaceWatch, Storage
from .thread_watch import ThreadWatch

ParallelOrder = Literal["forward", "reverse", "shuffled"]
_ORDERS: dict[str, Callable[[int], Any]] = {
    "forward": range,
    "reverse": lambda extent: range(extent - 1, -1, -1),
    # seeded by the extent: a race that one run finds, the next one finds too
    "shuffled": lambda extent: np.random.default_rng(extent).permutation(extent).tolist(),
}


class Machine:
    """Variables live in `cells`, one slot each; a pointer variable's cell holds its `Storage`."""

    def __init__(
        self,
        builders: Mapping[type[PrimExpr], Callable[[Machine, Any], Thunk]],
        statements: Mapping[type[Stmt], Callable[[Machine, Any], Thunk]],
        parallel_order: ParallelOrder,
        externs: Mapping[str, Callable[..., Any]],
        max_iterations: int | None = None,
        seconds: float | None = None,
    ) -> None:
        if parallel_order not in _ORDERS:
            raise InterpreterError(f"no parallel_order {parallel_order!r}; one of {', '.join(_ORDERS)}")
        self._builders, self._statements = builders, statements
        self.cells: list[Any] = []
        self.watch: list[RaceWatch] = []
        self.mask: Lanes | None = None  # lanes that a vector if_then_else has switched on
        self.boxed: set[Buffer] = set()
        self.parameters: set[Buffer] = set()
        self.externs = externs
        self.kernel: Any = None  # the kernel whose body is being made, see `kernels`
        self.max_iterations = max_iterations
        self._left = float("inf") if max_iterations is None else max_iterations
        self._seconds, self._end = seconds, None if seconds is None else monotonic() + seconds
        self.order = _ORDERS[parallel_order]
        self.linear: dict[PrimExpr, Linear] = {}  # what the closures of integers compute, where that is linear
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
        # Closures read variables from cells when they run, so one serves all places of a shared expression.
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
                thunks[node] = self._builders[type(node)](self, node)
        return thunks[expr]

    def run(self, stmt: Stmt) -> Thunk:
        """The closure that executes `stmt`."""
        return self._statements[type(stmt)](self, stmt)

    def charge(self, iterations: int, loop: str) -> None:
        """Take the iterations of a loop from what is left of them, before they run."""
        self._left -= iterations
        if self._left < 0:
            raise IterationLimitError(f"loop {loop}: more than {self.max_iterations} iterations in all")
        if self._end is not None and monotonic() > self._end:
            raise IterationLimitError(f"loop {loop}: more than {self._seconds:g} s in all")

    def unwritten(self, storage: Storage, at: int) -> None:
        """An element is read that nobody wrote: an error, unless another thread may still write it, which then is a race."""
        inner = self.watch[-1] if len(self.watch) > storage.depth else None
        if isinstance(inner, ThreadWatch):
            inner.note_unwritten(storage, at)
        else:
            storage.fail_unwritten(at)

    def provide(self, slot: int, storage: Storage) -> None:
        """Let a pointer's cell hold fresh storage."""
        storage.depth = len(self.watch)
        self.cells[slot] = storage
