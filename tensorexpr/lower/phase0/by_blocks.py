"""A schedule whose loops are made by a trace of blocks (`schedule.steps.ByBlocks`), as a PrimFunc.

tensors  ->  the function of blocks that computes them, its blocks numbered  ->  the trace applied to it
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from ...errors import LoweringError, RecordError, ScheduleError
from ...schedule.blocks import Schedule, Trace
from ...te.tensor import Tensor
from ...te.to_prim_func import create_prim_func
from ...tir.block import Block, BlockRealize
from ...tir.function import IRModule, PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import Stmt

NAME = "main"  # which instructions know the function by


def function_of_blocks(args: Sequence[Any]) -> PrimFunc:
    """The function that traces of `ByBlocks` are of; its blocks are called block0, block1, ... in the order of the text.

    By number, as equal computations may have other names: a record of one is a record of the others.

    Args:
        args: tensors, inputs and outputs.

    Raises:
        LoweringError: for other arguments.
        DeclarationError: for operations that no block computes.
    """
    for arg in args:
        if not isinstance(arg, Tensor):
            raise LoweringError(f"a program that is scheduled by a trace of blocks has tensors as arguments, not {arg!r}")
    func, numbers = create_prim_func(list(args)), count()
    assert isinstance(func.body, BlockRealize)

    def numbered(node: Node) -> Node | None:
        return replace(node, name_hint=f"block{next(numbers)}") if isinstance(node, Block) else None

    root = func.body.block
    body: Stmt = post_order_rewrite(root.body, numbered)
    return replace(func, body=replace(func.body, block=replace(root, body=body)))


def scheduled_by_blocks(instructions: str, args: Sequence[Any], name: str) -> PrimFunc:
    """The function of tensors, as a trace of blocks schedules it.

    Args:
        instructions: the trace as JSON text, postprocessing included.
        args: tensors, inputs and outputs.
        name: of the function.

    Raises:
        ScheduleError: if that is no trace, or none of this computation.
        LoweringError, DeclarationError: see `function_of_blocks`.
    """
    try:
        trace = Trace.from_json(json.loads(instructions))
    except (ValueError, RecordError) as error:
        raise ScheduleError(f"the program's trace of blocks can't be read: {error}") from None
    sch = Schedule(IRModule({NAME: function_of_blocks(args)}), traced=False)
    trace.apply_to_schedule(sch, remove_postproc=False)
    made: PrimFunc = sch.mod[NAME]
    return made.with_attr("global_symbol", name)
