"""Where a program declares the buffers and variables that nothing in it defines.

A flat view of a parameter, or of an allocation, has no statement of its own in the IR; the script declares it in the
innermost scope that holds all its uses, right before the first of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ...dataclass import dataclass, field
from ..block import Block
from ..buffer import Buffer
from ..expr import PrimExpr, Var
from ..scopes import Parts, buffer_vars, parts, uses
from ..stmt import BufferBind, BufferRealize, DeclBuffer, SeqStmt, Stmt

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

    def enter(self, defines: tuple[Declared, ...]) -> None:
        """Statements inside the one on top of the path may use what it defines."""
        for thing in defines:
            self.bound[thing] = self.bound.get(thing, 0) + 1

    def leave(self, defines: tuple[Declared, ...]) -> None:
        """Close the statement on top of the path."""
        self.path.pop()
        for thing in defines:
            self.bound[thing] -= 1

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
        self.use_vars(buffer)
        self.use(buffer)

    def use_vars(self, buffer: Buffer) -> None:
        """Note a use of the variables that a buffer's declaration mentions."""
        for var in buffer_vars(buffer):
            self.use(var)

    def use_expr(self, expr: PrimExpr) -> None:
        """Note all uses in an expression."""
        variables, buffers = uses(expr)
        for buffer in buffers:
            self.use_buffer(buffer)
        for var in variables:
            self.used.add(var)
            self.use(var)


def place(stmt: Stmt, known: Iterable[Declared]) -> Placement:
    """Find the place of every declaration that `stmt` needs besides what is `known`."""
    scan = _Scan(set(known))
    counter = 0
    stack: list[Stmt | tuple[Declared, ...]] = [stmt]
    while stack:
        current = stack.pop()
        # A statement ends when its bodies are done: what it defined lies below them on the stack.
        if isinstance(current, tuple):
            scan.leave(current)
            continue
        if scan.path and scan.path[-1] in scan.children:
            scan.children[scan.path[-1]].append(counter)
        scan.path.append(counter)
        if isinstance(current, SeqStmt):
            scan.children[counter] = []
        counter += 1
        own = parts(current)
        defines = _definitions(current, own)
        for buffer in own.buffers:
            if buffer in defines:
                scan.use_vars(buffer)
                # The view is defined here, the memory under it is not.
                if isinstance(current, DeclBuffer):
                    scan.use(buffer.data)
            else:
                scan.use_buffer(buffer)
        for expr in own.exprs:
            scan.use_expr(expr)
        scan.enter(defines)
        for buffer in own.inner_buffers:
            scan.use_buffer(buffer)
        for expr in own.inner_exprs:
            scan.use_expr(expr)
        stack.append(defines)
        stack.extend(reversed(own.bodies))
    return _collect(scan)


def _definitions(stmt: Stmt, own: Parts) -> tuple[Declared, ...]:
    """What needs no declaration in the bodies. A realized buffer is declared like a view, before the statement."""
    if isinstance(stmt, DeclBuffer):
        return (stmt.buffer,)
    if isinstance(stmt, BufferBind):
        return (stmt.buffer, *own.defines)
    if isinstance(stmt, Block):
        return (*stmt.alloc_buffers, *(match.buffer for match in stmt.match_buffers), *own.defines)
    return () if isinstance(stmt, BufferRealize) else own.defines


def _collect(scan: _Scan) -> Placement:
    result = Placement(used=scan.used)
    for thing, scope in scan.scope.items():
        starts = scan.children.get(scope)
        # In a sequence before the one of its statements that holds the first use: the last that begins no later.
        at = starts[bisect_right(starts, scan.first[thing]) - 1] if starts else scope
        result.before.setdefault(at, []).append(thing)
    for things in result.before.values():
        things.sort(key=lambda thing: isinstance(thing, Buffer))  # variables first: buffers mention them
    return result
