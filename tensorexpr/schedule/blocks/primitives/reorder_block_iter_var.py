"""Reorder the axes of a block, which says nothing about the order in which it runs.

vi, vj, vk = T.axis.remap("SSR", [i, j, k])   -- reorder_block_iter_var(C, [2, 1, 0]) ->   vk, vj, vi = T.axis.remap("RSS", [k, j, i])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import BlockProgram


def reorder_block_iter_var(program: BlockProgram, name: str, new_order: Sequence[int]) -> BlockProgram:
    """The program with the axes of a block in the order of these places."""
    realize = program.realize(name)
    axes, order = realize.block.iter_vars, [int(place) for place in new_order]
    if sorted(order) != list(range(len(axes))):
        names = ", ".join(axis.var.name for axis in axes)
        raise PrimitiveError(
            f"reorder_block_iter_var: {order} isn't an order of the {len(axes)} axes of {name} ({names}); name each place once",
            realize,
        )
    block = replace(realize.block, iter_vars=tuple(axes[place] for place in order))
    values = tuple(realize.iter_values[place] for place in order)
    return program.replace(realize, replace(realize, iter_values=values, block=block))


class ReorderBlockIterVar(BlockPrimitive):
    """The instruction."""

    kind, method, inputs = "ReorderBlockIterVar", "reorder_block_iter_var", ("block", "new_order")
    change = staticmethod(reorder_block_iter_var)
