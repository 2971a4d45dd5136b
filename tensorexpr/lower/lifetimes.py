"""From where to where a stretch of code needs each of its allocations."""

from __future__ import annotations

from collections.abc import Callable

from ..dataclass import dataclass
from ..tir.expr import Var
from ..tir.stmt import Allocate, BufferStore, For, ForKind, Stmt, While
from .rebuild import FreeVars, own_expressions, sub_statements


@dataclass(slots=True)
class Life:
    """An allocation and the positions of its first and last access; `depth` counts the loops of its region around it."""

    stmt: Allocate
    depth: int
    first: int = -1
    last: int = -1

    def extend(self, first: int, last: int) -> None:
        """The buffer is needed from `first` to `last`."""
        self.first = first if self.first < 0 else min(self.first, first)
        self.last = max(self.last, last)


class Lifetimes:
    """The allocations of a region, that is of code that one thread runs, and how long each is needed.

    A buffer lives from its first to its last access; one that a loop accesses, but does not own, lives throughout that loop.

    Args:
        wanted: which allocations to look at.
        at_once: loops of these kinds begin a region of their own; what they allocate is no part of this one.
    """

    def __init__(self, free: FreeVars, wanted: Callable[[Allocate], bool], at_once: tuple[ForKind, ...]) -> None:
        self._free, self._wanted, self._at_once = free, wanted, at_once
        self.lives: dict[Var, Life] = {}
        self._open_loops: list[tuple[int, set[Var]]] = []  # for each loop open now its start and its users
        self._position = 0

    def survey(self, stmt: Stmt, own: bool = True) -> None:
        """Note what `stmt` allocates (if that is the region's `own`) and accesses."""
        if own and isinstance(stmt, Allocate) and self._wanted(stmt):
            self.lives[stmt.buffer_var] = Life(stmt, len(self._open_loops))
        self._position += 1
        for data in self._touched(stmt):
            self._touch(data)
        is_loop = isinstance(stmt, (For, While))
        if is_loop:
            self._open_loops.append((self._position, set()))
        # Accesses inside such a loop still count, as its body may use what was allocated outside.
        own = own and not (isinstance(stmt, For) and stmt.kind in self._at_once)
        for part in sub_statements(stmt):
            self.survey(part, own)
        if is_loop:
            # Users live until past the loop's end, so that nothing in it can take their place.
            first, users = self._open_loops.pop()
            self._position += 1
            for data in users:
                self.lives[data].extend(first, self._position)

    def _touched(self, stmt: Stmt) -> set[Var]:
        touched = {var for expr in own_expressions(stmt) for var in self._free(expr) if var.dtype == "handle"}
        return touched | {stmt.buffer.data} if isinstance(stmt, BufferStore) else touched

    def _touch(self, data: Var) -> None:
        life = self.lives.get(data)
        if life is None:
            return
        # The outermost loop that doesn't own the buffer: its iterations hand it on to each other, so it lives as long as this loop.
        if len(self._open_loops) > life.depth:
            self._open_loops[life.depth][1].add(data)
        life.extend(self._position, self._position)
