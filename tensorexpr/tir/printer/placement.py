"""Where a program declares the buffers and variables that nothing in it defines.

A flat view of a parameter, or of an allocation, has no statement of its own in the IR; the script declares it in the
innermost scope that holds all its uses, right before the first of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..buffer import Buffer
from ..expr import BufferLoad, IterVar, Let, PrimExpr, Range, Reduce, Var
from ..rewriting import walk
from ..stmt import Allocate, AttrStmt, BufferRealize, BufferStore, DeclBuffer, For, LetStmt, SeqStmt, Stmt

Declared = Buffer | Var


@dataclass(slots=True)
class Placement:
    """`before[n]` is what to declare before the n-th statement in pre-order; `used` are the variables read as values."""

    before: dict[int, list[Declared]] = field(default_factory=dict)
    used: set[Var] = field(default_factory=set)


@dataclass(slots=True)
class _Scan:
    """The state of one walk: open statements by number, and for each thing its scope and first use."""

    known: set[Declared]
    path: list[int] = field(default_factory=list)
    children: dict[int, list[int]] = field(default_factory=dict)  # of sequences
    scope: dict[Declared, int] = field(default_factory=dict)
    first: dict[Declared, int] = field(default_factory=dict)
    bound: dict[Declared, int] = field(default_factory=dict)
    used: set[Var] = field(default_factory=set)

    def use(self, thing: Declared) -> None:
        """Note a use by the statement on top of the path."""
        if thing in self.known or self.bound.get(thing, 0):
            return
        number = self.path[-1]
        if thing not in self.scope:
            self.first[thing] = self.scope[thing] = number
        else:
            # An open statement that began no later than the old scope contains that scope.
            self.scope[thing] = self.path[bisect_right(self.path, self.scope[thing]) - 1]

    def use_buffer(self, buffer: Buffer) -> None:
        """Note a use of a buffer and of the variables its declaration will mention."""
        if buffer in self.known or self.bound.get(buffer, 0):
            return
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            for node in walk(expr):
                if isinstance(node, Var):
                    self.use(node)
        self.use(buffer)

    def use_expr(self, expr: PrimExpr) -> None:
        """Note all uses in an expression."""
        inner: set[Var] = set()
        variables: list[Var] = []
        for node in walk(expr):
            if isinstance(node, Var):
                variables.append(node)
            elif isinstance(node, BufferLoad):
                self.use_buffer(node.buffer)
            elif isinstance(node, Let):
                inner.add(node.var)
            elif isinstance(node, Reduce):
                inner.update(axis.var for axis in node.axis)
                inner.update(node.combiner.lhs + node.combiner.rhs)
        for var in variables:
            if var not in inner:
                self.used.add(var)
                self.use(var)


def _direct(stmt: Stmt) -> tuple[list[Any], list[Stmt], Declared | None]:
    """What a statement mentions itself, its child statements, and what it defines for them."""
    match stmt:
        case SeqStmt():
            return [], list(stmt.seq), None
        case For():
            return [stmt.min, stmt.extent], [stmt.body], stmt.loop_var
        case LetStmt():
            return [stmt.value], [stmt.body], stmt.var
        case Allocate():
            return [*stmt.extents, stmt.condition], [stmt.body], stmt.buffer_var
        case BufferStore():
            return [stmt.buffer, *stmt.indices, stmt.value, stmt.predicate], [], None
        case BufferRealize():
            return [stmt.buffer, *stmt.bounds, stmt.condition], [stmt.body], None
        case DeclBuffer():
            buffer = stmt.buffer
            return [*buffer.shape, *buffer.strides, buffer.elem_offset], [stmt.body], buffer
        case AttrStmt(node=IterVar() as axis):
            return [stmt.value], [stmt.body], axis.var
    mentioned = [getattr(stmt, name) for name in ("node", "condition", "message", "value") if hasattr(stmt, name)]
    bodies = [getattr(stmt, name, None) for name in ("then_case", "else_case", "body")]
    return mentioned, [body for body in bodies if body is not None], None


def place(stmt: Stmt, known: Iterable[Declared]) -> Placement:
    """Find the place of every declaration that `stmt` needs besides what is `known`."""
    scan = _Scan(set(known))
    counter = 0
    stack: list[tuple[Stmt | None, Declared | None]] = [(stmt, None)]
    while stack:
        current, defined = stack.pop()
        if current is None:
            scan.path.pop()
            if defined is not None:
                scan.bound[defined] -= 1
            continue
        if scan.path and scan.path[-1] in scan.children:
            scan.children[scan.path[-1]].append(counter)
        scan.path.append(counter)
        if isinstance(current, SeqStmt):
            scan.children[counter] = []
        counter += 1
        mentioned, bodies, defines = _direct(current)
        _use_all(scan, mentioned)
        if defines is not None:
            scan.bound[defines] = scan.bound.get(defines, 0) + 1
        stack.append((None, defines))
        stack.extend((body, None) for body in reversed(bodies))
    return _collect(scan)


def _use_all(scan: _Scan, mentioned: list[Any]) -> None:
    for item in mentioned:
        if isinstance(item, PrimExpr):
            scan.use_expr(item)
        elif isinstance(item, Buffer):
            scan.use_buffer(item)
        elif isinstance(item, Range):
            scan.use_expr(item.min)
            scan.use_expr(item.extent)


def _collect(scan: _Scan) -> Placement:
    result = Placement(used=scan.used)
    for thing, scope in scan.scope.items():
        starts = scan.children.get(scope)
        at = starts[bisect_right(starts, scan.first[thing]) - 1] if starts else scope
        result.before.setdefault(at, []).append(thing)
    for things in result.before.values():
        things.sort(key=lambda thing: isinstance(thing, Buffer))  # variables first: buffers mention them
    return result
