"""The blocks of a program, for postprocessors."""

from __future__ import annotations

from collections.abc import Iterator

from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.program import inner_statements
from ...tir.block import Block, BlockRealize
from ...tir.stmt import Stmt


def all_blocks(sch: Schedule) -> list[BlockRV]:
    """All blocks of all functions but the roots, in the order of the text, inner ones after those around them.

    Blocks that share a name aren't told apart and left out.
    """
    return [sch.get_block(name, func_name) for name, func_name in block_names(sch)]


def block_names(sch: Schedule) -> list[tuple[str, str]]:
    """The names of these blocks, and of their functions; the init of a reduction holds none that a schedule knows."""
    found: list[tuple[str, str]] = []
    for func_name, root in roots(sch):
        names = list(_names_below(root))
        found += [(name, func_name) for name in names if names.count(name) == 1]
    return found


def _names_below(stmt: Stmt) -> Iterator[str]:
    """The names of the blocks in a statement, in the order of the text."""
    for inner in inner_statements(stmt):
        if isinstance(inner, BlockRealize):
            yield inner.block.name_hint
        yield from _names_below(inner)


def roots(sch: Schedule) -> list[tuple[str, Block]]:
    """The root blocks of all functions of blocks, with the functions' names."""
    bodies = [(var.name_hint, sch.mod[var.name_hint].body) for var in sch.mod.get_global_vars() if has_root(sch, var.name_hint)]
    return [(name, body.block) for name, body in bodies if isinstance(body, BlockRealize)]


def has_root(sch: Schedule, func_name: str) -> bool:
    """Whether a function is one of blocks."""
    body = sch.mod[func_name].body
    block = getattr(body, "block", None)
    return block is not None and block.name_hint in ("root", "")
