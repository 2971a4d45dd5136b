"""Whether there is anything to do for the passes on blocks."""

from __future__ import annotations

from ...tir.block import BlockRealize
from ...tir.function import PrimFunc
from ..rebuild import walk_statements


def has_blocks(func: PrimFunc) -> bool:
    """True if `func` has blocks; functions of a te.Schedule never do."""
    if func.attrs.get("from_legacy_te_schedule"):
        return False
    return any(isinstance(stmt, BlockRealize) for stmt in walk_statements(func.body))
