"""The block that most of a function is about."""

from __future__ import annotations

from ..block import Block
from ..expr import IterVar
from ..function import IRModule, PrimFunc
from ..rewriting import walk
from .flops import estimate_tir_flops


def find_anchor_block(mod: IRModule) -> Block | None:
    """Of all blocks that reduce, the one that does most operations; None in a module without any.

    Blocks with an init count as reducing. Of several that do as many, the last counts.
    """
    found: tuple[float, Block] | None = None
    for func in mod.functions.values():
        for block in (node for node in walk(func.body) if isinstance(node, Block)):
            if block.init is None:
                continue
            work = _operations(block)
            if found is None or work >= found[0]:
                found = (work, block)
    return None if found is None else found[1]


def _operations(block: Block) -> float:
    """How many operations all instances of a block do."""
    work = float(estimate_tir_flops(PrimFunc((), block.body)))
    for axis in block.iter_vars:
        extent = getattr(axis.dom.extent if axis.dom else None, "value", 1)
        work *= extent if isinstance(axis, IterVar) else 1
    return work
