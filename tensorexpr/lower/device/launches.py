"""Where threads of a grid begin: loops that are bound to them, and attributes."""

from __future__ import annotations

from ...tir.expr import IterVar
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, Stmt
from ...tir.thread import HARDWARE_TAGS, bound_tag
from ..rebuild import walk_statements


def launched_tag(stmt: Stmt) -> str | None:
    """The tag of threads of a grid that a statement runs over, by a loop or an attribute."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
        tag: str | None = stmt.node.thread_tag
    else:
        tag = bound_tag(stmt)
    return tag if tag in HARDWARE_TAGS else None


def has_threads(func: PrimFunc) -> bool:
    """Whether a function runs on threads of a grid."""
    return any(launched_tag(stmt) for stmt in walk_statements(func.body))
