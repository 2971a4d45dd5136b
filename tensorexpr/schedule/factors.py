"""What a split takes as the extents of its parts."""

from __future__ import annotations

from typing import Any

from ..tir.expr import PrimExpr
from .axis_expression import decode, problem_of
from .tree import ScheduleTree, StageNode

# A number, None for "what follows from the extent", (sample, part, ...): the product of those parts of the value of an earlier
# sampling step, or an expression over sizes as `axis_expression` has it, with the sizes' names as axes.
Factor = int | tuple[Any, ...] | None


def is_symbolic(factor: Factor) -> bool:
    """True for an expression over sizes."""
    return isinstance(factor, tuple) and bool(factor) and isinstance(factor[0], str)


def size_of(tree: ScheduleTree, stage: StageNode, factor: Any) -> PrimExpr:
    """The expression over the program's sizes that a symbolic factor stands for.

    Raises:
        ScheduleError: for what is none, or names a size that the program doesn't have.
    """
    sizes = tree.sizes()
    problem = problem_of(factor, sizes)
    if problem is not None:
        known = ", ".join(sizes) or "none"
        raise stage.refused(f"a factor can't be {problem}; sizes of the program: {known}")
    return decode(factor, sizes)


def sampled_value(tree: ScheduleTree, stage: StageNode, reference: tuple[int, ...]) -> PrimExpr:
    """The product of some parts of a sampling step's value: `reference` is (sample, part, ...).

    Raises:
        ScheduleError: if that sample was not taken or has no such part.
    """
    sample, *parts = reference
    if not (parts and 0 <= sample < len(tree.samples) and all(0 <= part < len(tree.samples[sample]) for part in parts)):
        raise stage.refused(f"no sample {reference}; {len(tree.samples)} samples were taken before this step")
    value = tree.samples[sample][parts[0]]
    for part in parts[1:]:
        value = value * tree.samples[sample][part]
    return value
