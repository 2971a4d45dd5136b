"""The step that contracts some factors of a sum of products before the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as folded
from typing import ClassVar

from ...dataclass import dataclass
from ...te.operation import ComputeOp, Operation
from ...tir.arithmetic import is_const_int
from ...tir.attrs import EMPTY
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, IterVar, Mul, PrimExpr, ProducerLoad, Reduce, Var
from ...tir.reduction_laws import operator_of
from ...tir.rewriting import variables
from ..attachment import check_nothing_inside
from ..naming import PythonNames
from ..tree import ScheduleTree, initial_stage
from .base import StageStep, check_not_inlined, stage_of
from .caching import check_unscheduled, recomputed
from .materialize import by_axes


def factors_of(op: Operation) -> list[PrimExpr]:
    """What a sum multiplies in each step, in order; none for what is no sum that starts from zero over a box, or one of short floats.

    Example:
        sum over r, s of G[r, s] * A[i, r] * B[j, s]: G[r, s], A[i, r], B[j, s].
    """
    body = op.body[0] if isinstance(op, ComputeOp) and len(op.body) == 1 else None
    if not isinstance(body, Reduce) or body.init or operator_of(body.combiner) is not Add or not is_const_int(body.condition, 1):
        return []
    assert isinstance(op, ComputeOp)
    own = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    if any(axis.dom is None or own & (variables(axis.dom.min) | variables(axis.dom.extent)) for axis in op.reduce_axis):
        return []
    dtype = parse_dtype(body.dtype)
    # a sum of halves has no room for the range of products, nor bits for one rounding more
    if not dtype.is_int and (not dtype.is_float or dtype.bits < 32):
        return []
    found, waiting = list[PrimExpr](), [body.source[0]]
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Mul):
            waiting += [expr.b, expr.a]
        else:
            found.append(expr)
    return found


def summed_first(op: ComputeOp, chosen: Sequence[int]) -> tuple[IterVar, ...]:
    """The axes of a reduction that no other factors than these have."""
    own, others = set[Var](), set[Var]()
    for number, factor in enumerate(factors_of(op)):
        (own if number in chosen else others).update(variables(factor))
    return tuple(axis for axis in op.reduce_axis if axis.var in own - others)


def contracted(op: ComputeOp, chosen: Sequence[int], name: str) -> tuple[ComputeOp, tuple[PrimExpr, ...]]:
    """The product of some factors, summed over the axes that no others have, and the indices at which the sum reads it."""
    (body,), factors = op.body, factors_of(op)
    assert isinstance(body, Reduce)
    summed = summed_first(op, chosen)
    fresh = tuple(IterVar(axis.dom, Var(f"{axis.name}.t", axis.dtype), axis.iter_type) for axis in summed)
    value, axes = by_axes(folded(Mul, (factors[number] for number in chosen)), op, dict(zip(summed, fresh, strict=True)))
    results = {axis.var for axis in op.axis}
    # as a product in vectors reads it: neighbours along the result's last axis, or else along the sum, are neighbours in memory
    if op.axis and any(op.axis[-1].var in variables(index) for _, index in axes):
        axes.sort(key=lambda one: not results.isdisjoint(variables(one[1])))
    if fresh:
        value = Reduce(body.combiner, (value,), fresh, body.condition, 0)
    return ComputeOp(name, "", EMPTY, tuple(axis for axis, _ in axes), fresh, (value,)), tuple(index for _, index in axes)


@dataclass(frozen=True)
class Contract(StageStep):
    """Some factors of a sum of products are multiplied by a stage of its own, which sums over the axes that no other factors have.

    for i, j, r, s: Y[i, j] += G[r, s] * A[i, r] * B[j, s]    ->    for i, s, r: Y.product[i, s] += G[r, s] * A[i, r]
                                                                    for i, j, s: Y[i, j] += Y.product[i, s] * B[j, s]

    Of floats products have another order, and a factor multiplies a sum instead of its terms, so that this rounds otherwise: products of
    some factors alone may leave the range of a dtype where products of all don't, or come back from there. Integers are exact.

    `factors` counts `factors_of` the definition.
    """

    code: ClassVar[str] = "contract"
    factors: tuple[int, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The stage reads the product of the factors, where the first of them stood, from a new stage before it.

        Raises:
            ScheduleError: if the stage is inlined or scheduled already, holds other stages, or has no such factors.
        """
        stage = stage_of(tree, self.stage, "contract")
        check_not_inlined(stage, "contract")
        check_unscheduled(stage, "contract")
        check_nothing_inside(tree, stage, "; contract comes before compute_at")
        factors, op, chosen = factors_of(stage.op), stage.compute, set(self.factors)
        if not chosen or len(chosen) < len(self.factors) or not chosen < set(range(len(factors))):
            listed = "; ".join(f"{number}: {factor}" for number, factor in enumerate(factors))
            raise stage.refused(f"contract of factors {self.factors}, not some of its own; they are {listed or 'none'}")
        made, indices = contracted(op, self.factors, tree.unique_name(f"{stage.name}.product"))
        kept = tuple(axis for axis in op.reduce_axis if axis not in summed_first(op, self.factors))
        # in the place of the first of them
        read = ProducerLoad(made.output(0), indices)
        value = folded(Mul, (read if n == min(chosen) else one for n, one in enumerate(factors) if n == min(chosen) or n not in chosen))
        (body,) = op.body
        assert isinstance(body, Reduce)
        if kept:
            value = Reduce(body.combiner, (value,), kept, body.condition, 0)
        tree = tree.with_stage(recomputed(stage, ComputeOp(op.name, op.tag, op.attrs, op.axis, kept, (value,))))
        return tree.with_new_stage(initial_stage(len(tree.stages), made.name, made), before=stage.id)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, new = after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        return [f"{name} = s.contract({names.stage(stage)}, {list(self.factors)})", *names.axis_lines(new)]
