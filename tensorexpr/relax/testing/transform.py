"""What `DataflowUseInplaceCalls` goes by, for tests of it: `dataflow_liveness_analysis` and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tir.function import IRModule
from ..analysis.aliases import Aliases, live_ranges
from ..expr import BindingBlock, Call, Var
from ..transform.inplace import Candidates, inplace_call, inplace_candidates


def dataflow_liveness_analysis(block: BindingBlock) -> dict[Var, tuple[int, int]]:
    """Of each variable the numbers of the binding that defines it, -1 for one from outside, and of the last that reads it.

    What is needed behind the block has the number of its bindings.
    """
    return live_ranges(block)


def dataflow_alias_analysis(block: BindingBlock, inputs: Sequence[Var]) -> tuple[dict[Var, set[int]], dict[int, list[set[int]]]]:
    """Of each variable the numbers of the memory that it may be, -1 for any from outside; of tuples those of their elements."""
    found = Aliases(block, inputs)
    return found.sets, found.elements


def dataflow_inplace_analysis(block: BindingBlock, inputs: Sequence[Var], mod: IRModule) -> tuple[Candidates, Candidates]:
    """The bindings that may write into operands, with their places: those of as many elements, and those of the same shape."""
    return inplace_candidates(block, inputs)


def dataflow_single_inplace_call(mod: IRModule, call: Call, inplace_indices: Sequence[int]) -> tuple[Any, IRModule]:
    """A call of an operator as one in place, and a module with its tensor function."""
    return inplace_call(mod, call, inplace_indices)
