"""Products of four warps that are waited for an iteration later, while the units compute the next ones.

    for k:                                   for k:
        wgmma(sums, S[k]); commit                wgmma(sums, S[k]); commit
        wait_group(0, sums)            ->        wait_group(1, sums)
                                             wait_group(0, sums)

What the products of an iteration read stays until the next one has waited for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..tir.arithmetic import as_int
from ..tir.device_intrin import device_call
from ..tir.expr import BufferLoad, Call, Var
from ..tir.rewriting import walk
from ..tir.stmt import NOP, AttrStmt, BufferStore, Evaluate, For, IfThenElse, SeqStmt, Stmt, While, seq
from .rebuild import map_stmt, own_expressions, walk_statements

_PRODUCT, _WAIT = "tir.ptx_wgmma", "tir.ptx_wgmma_wait_group"


def may_stay_under_way(stmt: Stmt, loop_var: Var, kept: set[Var]) -> bool:
    """Whether the products of an iteration may be waited for in the next one.

    Args:
        stmt: the iteration.
        loop_var: its number.
        kept: memory that isn't written again before the next iteration has waited.
    """
    waits = list(_calls(stmt, _WAIT))
    conditional = any(isinstance(inner, (IfThenElse, While)) for inner in walk_statements(stmt))
    if len(waits) != 1 or conditional or as_int(waits[0].args[0]) != 0 or len(waits[0].args) != 4 or loop_var in set(walk(waits[0])):
        return False
    sums = waits[0].args[2]
    read = {node for call in _calls(stmt, _PRODUCT) for side in (call.args[4], call.args[8]) for node in walk(side) if _is_pointer(node)}
    touched = {node.buffer.data for node in walk(stmt) if isinstance(node, (BufferLoad, BufferStore))}
    return read <= kept and sums not in touched


def one_behind(stmt: Stmt) -> tuple[Stmt, Stmt]:
    """An iteration that waits for the products of the one before, and what waits for the last ones."""
    return _waiting(stmt, 1), _alone(stmt)


def _calls(stmt: Stmt, op: str) -> Iterator[Call]:
    for inner in walk_statements(stmt):
        for expr in own_expressions(inner):
            if isinstance(expr, Call) and expr.op == op:
                yield expr


def _is_pointer(node: object) -> bool:
    return isinstance(node, Var) and node.dtype == "handle"


def _is_wait(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == _WAIT


def _waiting(stmt: Stmt, count: int) -> Stmt:
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == _WAIT:
        return Evaluate(device_call("ptx_wgmma_wait_group", count, *stmt.value.args[1:]))
    return map_stmt(stmt, lambda inner: _waiting(inner, count))


def _alone(stmt: Stmt) -> Stmt:
    """The wait, with the loops over threads around it."""
    match stmt:
        case SeqStmt(parts):
            return seq(*(_alone(part) for part in parts))
        case For() | AttrStmt():
            return map_stmt(stmt, _alone) if any(_is_wait(inner) for inner in walk_statements(stmt)) else NOP
    return stmt if _is_wait(stmt) else NOP
