"""Statements one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from ...tir.stmt import NOP, SeqStmt, Stmt, statements_of


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """The statements as one, with nothing dropped; a no-op for none."""
    flat = [part for stmt in stmts for part in statements_of(stmt)]
    if not flat:
        return NOP
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))
