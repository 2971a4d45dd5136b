"""Where threads wait for each other, and which conditions they agree on."""

from __future__ import annotations

from ...dataclass import dataclass, field
from ...tir.expr import BufferLoad, Call, PrimExpr, StringImm, Var
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import walk
from ...tir.stmt import AssertStmt, BufferStore, Evaluate, For, IfThenElse, Stmt, While
from ...tir.warp_units import together
from ..rebuild import own_expressions, sub_statements, walk_statements

SYNC = "tir.tvm_storage_sync"
SHUFFLES = ("tir.tvm_warp_shuffle", "tir.tvm_warp_shuffle_up", "tir.tvm_warp_shuffle_down")


def barrier_scope(stmt: Stmt) -> str | None:
    """The scope of the barrier that a statement is, or None."""
    if not isinstance(stmt, Evaluate) or not isinstance(stmt.value, Call) or stmt.value.op != SYNC:
        return None
    scope = stmt.value.args[0] if stmt.value.args else None
    return scope.value if isinstance(scope, StringImm) else ""


def shuffles_of(stmt: Stmt) -> list[Call]:
    """The exchanges between threads of a warp that stand directly in a statement, inner ones first."""
    found: dict[Call, None] = {}
    for expr in own_expressions(stmt):
        for node in walk(expr):
            if isinstance(node, Call) and node.op in SHUFFLES:
                found[node] = None
    return list(found)


class Meetings:
    """Which statements hold a place where threads meet; each statement is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, Stmt | None] = {}
        self._alive: list[Stmt] = []  # keeps the ids unique

    def first(self, stmt: Stmt) -> Stmt | None:
        """The first barrier, exchange or matrix instruction in a statement, or None."""
        if id(stmt) not in self._known:
            self._alive.append(stmt)
            self._known[id(stmt)] = self._search(stmt)
        return self._known[id(stmt)]

    def _search(self, stmt: Stmt) -> Stmt | None:
        if barrier_scope(stmt) is not None or together(stmt) is not None or shuffles_of(stmt):
            return stmt
        return next((found for inner in sub_statements(stmt) if (found := self.first(inner)) is not None), None)


@dataclass
class Uniformity:
    """Which values all threads of a block have in common: those that depend on none of `varying` and on no private memory."""

    varying: set[Var]
    private: set[Var] = field(default_factory=set)  # pointers to memory of single threads

    def holds(self, expr: PrimExpr) -> bool:
        """Whether all threads compute the same value."""
        return self.reason(expr) is None

    def reason(self, expr: PrimExpr) -> str | None:
        """What in an expression differs from thread to thread, or None."""
        for node in walk(expr):
            if isinstance(node, Var) and node in self.varying:
                return node.name
            if isinstance(node, BufferLoad) and node.buffer.data in self.private:
                return f"{node.buffer.name}, which each thread has for itself"
            if isinstance(node, Call) and (node.op not in INTRINSICS or not INTRINSICS[node.op].pure):
                return f"the call of {node.op}"
        return None


def controls(stmt: Stmt) -> tuple[PrimExpr, ...]:
    """The expressions that decide how often a statement's body runs."""
    match stmt:
        case For():
            return (stmt.min, stmt.extent)
        case IfThenElse() | While() | AssertStmt():
            return (stmt.condition,)
    return ()


def mentions_itself(stmt: Stmt, pointer: Var) -> bool:
    """Whether memory is read, written or passed on in a statement, its bodies aside."""
    if isinstance(stmt, BufferStore) and stmt.buffer.data is pointer:
        return True
    nodes = (node for expr in own_expressions(stmt) for node in walk(expr))
    return any(node is pointer or (isinstance(node, BufferLoad) and node.buffer.data is pointer) for node in nodes)


def mentions(stmt: Stmt, pointer: Var) -> bool:
    """Whether memory is read, written or passed on in a statement."""
    return mentions_itself(stmt, pointer) or any(mentions(inner, pointer) for inner in sub_statements(stmt))


def has_address(stmt: Stmt, pointer: Var) -> bool:
    """Whether memory is passed on by an address in a statement, other than to what a warp does together."""
    for inner in walk_statements(stmt):
        for expr in () if together(inner) is not None else own_expressions(inner):
            for node in walk(expr):
                addressed = isinstance(node, Call) and node.op == "tir.address_of" and isinstance(node.args[0], BufferLoad)
                if node is pointer or (addressed and node.args[0].buffer.data is pointer):  # type: ignore[union-attr]
                    return True
    return False
