"""Statements one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from ...tir.stmt import NOP, SeqStmt, Stmt


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """The statements as one, with nothing dropped; a no-op for none."""
    flat = [part for stmt in stmts for part in (stmt.seq if isinstance(stmt, SeqStmt) else (stmt,))]
    if not flat:
        return NOP
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))
