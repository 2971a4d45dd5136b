"""The blocks of a program, for postprocessors."""

from __future__ import annotations

from ...schedule.blocks import BlockRV, Schedule
from ...tir.block import BlockRealize
from ...tir.rewriting import walk


def all_blocks(sch: Schedule) -> list[BlockRV]:
    """All blocks of all functions but the roots, in the order of the text, inner ones after those around them.

    Blocks that share a name aren't told apart and left out.
    """
    return [sch.get_block(name, func_name) for name, func_name in block_names(sch)]


def block_names(sch: Schedule) -> list[tuple[str, str]]:
    """The names of these blocks, and of their functions."""
    found: list[tuple[str, str]] = []
    for var in sch.mod.get_global_vars():
        if has_root(sch, var.name_hint):
            realized = [node.block.name_hint for node in walk(sch.mod[var.name_hint].body) if isinstance(node, BlockRealize)]
            found += [(name, var.name_hint) for name in realized if realized.count(name) == 1 and name not in ("root", "")]
    return found


def has_root(sch: Schedule, func_name: str) -> bool:
    """Whether a function is one of blocks."""
    body = sch.mod[func_name].body
    block = getattr(body, "block", None)
    return block is not None and block.name_hint in ("root", "")
