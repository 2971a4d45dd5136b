"""The blocks of a program, for postprocessors."""

from __future__ import annotations

from ...schedule.blocks import BlockRV, Schedule


def all_blocks(sch: Schedule) -> list[BlockRV]:
    """All blocks of all functions but the roots, in the order of the text, inner ones after those around them."""
    found: list[BlockRV] = []
    for var in sch.mod.get_global_vars():
        pending = sch.get_child_blocks(sch.get_block("root", var.name_hint)) if has_root(sch, var.name_hint) else []
        while pending:
            block = pending.pop(0)
            found.append(block)
            pending = sch.get_child_blocks(block) + pending
    return found


def has_root(sch: Schedule, func_name: str) -> bool:
    """Whether a function is one of blocks."""
    body = sch.mod[func_name].body
    block = getattr(body, "block", None)
    return block is not None and block.name_hint in ("root", "")
