"""The blocks of a program, and how they go through memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...arith import linear_form
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.bindings import bound_values
from ...schedule.blocks.program import inner_statements
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize
from ...tir.buffer import BufferRegion
from ...tir.expr import PrimExpr, Var
from ...tir.rewriting import substitute
from ...tir.stmt import For, Stmt


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


def contiguous_loops(realize: BlockRealize, loops: Sequence[For]) -> int:
    """How many of the innermost loops, fused, each access of a block follows without gaps, or without moving at all."""
    values = bound_values(realize)
    count = len(loops)
    for access in (*realize.block.reads, *realize.block.writes):
        count = min(count, _contiguous(_strides(access, values, loops), loops))
    return count


def _contiguous(strides: Sequence[int], loops: Sequence[For]) -> int:
    """How many of the last strides continue each other. A stride other than 1 may be the very last loop's: it is one lane's step."""
    count, expected = 0, None
    for stride, loop in zip(reversed(strides), reversed(loops), strict=True):
        if stride:
            # rows of 16: strides 16 and 1, and the inner loop goes through all 16, so fused they are one run
            fits = stride == expected if expected is not None else stride == 1 or not count
            if not fits:
                break
            expected = stride * (as_int(loop.extent) or 1)
        count += 1
    return count


def _strides(access: BufferRegion, values: dict[Var, PrimExpr], loops: Sequence[For]) -> list[int]:
    """The elements by which an access moves with each loop: the factor in the last index that a loop is a term of; 0 for none."""
    found = dict.fromkeys((loop.loop_var for loop in loops), 0)
    elements = 1
    for side, extent in zip(reversed(access.region), reversed(access.buffer.shape), strict=True):
        form = linear_form(substitute(side.min, values))
        for var, factor in form.terms.items():
            if isinstance(var, Var) and found.get(var) == 0:
                found[var] = factor * elements
        elements *= as_int(extent) or 1
    return [found[loop.loop_var] for loop in loops]
