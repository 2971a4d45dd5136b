"""The step that distributes a reduction over the terms of what it adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from ...dataclass import dataclass
from ...te.bounds import computes_anywhere
from ...te.operation import ComputeOp, Operation
from ...tir.arithmetic import const, is_const_int
from ...tir.attrs import EMPTY
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, Call, Div, IterVar, Mul, PrimExpr, ProducerLoad, Reduce, Select, Sub, Var
from ...tir.reduction_laws import operator_of
from ...tir.rewriting import substitute, variables
from ..attachment import check_nothing_inside
from ..naming import PythonNames
from ..tree import ScheduleTree, initial_stage
from .base import StageStep, check_not_inlined, stage_of
from .caching import check_unscheduled, recomputed

_Scale = tuple[Callable[[PrimExpr, PrimExpr], PrimExpr], PrimExpr]


class Term(NamedTuple):
    """What a sum adds up in each step, whether it is taken away, and by what it is multiplied, divided or selected in all steps alike."""

    negative: bool
    value: PrimExpr
    scales: tuple[_Scale, ...] = ()


def terms_of(op: Operation) -> list[Term]:
    """The terms that a sum adds up in each step; none for what is no sum that starts from zero.

    Example:
        sum over k of A[i, k] * B[k, j] - (D[i, k] * E[k, j] / 3 - F[k]): a product, one that is taken away and divided by 3, F[k].
    """
    if not isinstance(op, ComputeOp) or len(op.body) != 1:
        return []
    body = op.body[0]
    if not isinstance(body, Reduce) or body.init or operator_of(body.combiner) is not Add:
        return []
    summed, found = {axis.var for axis in body.axis}, list[Term]()
    waiting = [Term(False, body.source[0])]
    if not is_const_int(body.condition, 1):
        apart = _selected(Select(body.condition, body.source[0], body.combiner.identity_element[0]), op)
        if apart is None:
            return []
        waiting = [Term(False, apart[0], (apart[1],))]
    while waiting:  # sums of thousands of terms are as deep
        term = waiting.pop()
        negative, expr, scales = term
        if isinstance(expr, (Add, Sub)):
            waiting += [Term(negative ^ isinstance(expr, Sub), expr.b, scales), term._replace(value=expr.a)]
        elif (apart := _scale_of(expr, summed) or _selected(expr, op)) is not None:
            waiting.append(Term(negative, apart[0], (apart[1], *scales)))
        else:
            found.append(term)
    return found


def _scale_of(expr: PrimExpr, summed: set[Var]) -> tuple[PrimExpr, _Scale] | None:
    """What is left of a term, and what all steps of the sum multiply or divide it by; None where it is all one.

    Of numbers of 32 bits and more: a sum of halves that isn't divided yet leaves their range soon.
    """
    dtype = parse_dtype(expr.dtype)
    if not isinstance(expr, (Mul, Div)) or not dtype.is_float or dtype.bits < 32:
        return None
    for value, scale in ((expr.a, expr.b), (expr.b, expr.a)) if isinstance(expr, Mul) else ((expr.a, expr.b),):
        if not summed & variables(scale) and summed & variables(value):
            return value, (type(expr), scale)
    return None


def _or_zero(value: PrimExpr, condition: PrimExpr) -> PrimExpr:
    return Select(condition, value, const(0, value.dtype))


def _selected(expr: PrimExpr, op: ComputeOp) -> tuple[PrimExpr, _Scale] | None:
    """What is summed where a condition holds that is one for all steps, and the condition; None where it is no such choice.

    Of what can be computed anywhere: if_then_else(i < 8, A[i, k], 0) may guard the only 8 rows that there are.
    """
    (body,) = op.body
    assert isinstance(body, Reduce)
    match expr:
        case Select(condition, value, otherwise) | Call(op="tir.if_then_else", args=(condition, value, otherwise)):
            fixed = not {axis.var for axis in body.axis} & variables(condition) and otherwise is body.combiner.identity_element[0]
            return (value, (_or_zero, condition)) if fixed and computes_anywhere(_sum_of(op, value, "")) else None
    return None


@dataclass(frozen=True)
class Distribute(StageStep):
    """Each term of a sum is summed by a stage of its own, and the stage adds up their results, each scaled as all its steps were.

    for i, j, k: C[i, j] += A[i, k] * B[k, j] - D[i, k] * E[k, j] / 3    ->    for i, j, k: C.term0[i, j] += A[i, k] * B[k, j]
                                                                                for i, j, k: C.term1[i, j] += D[i, k] * E[k, j]
                                                                                for i, j: C[i, j] = C.term0[i, j] - C.term1[i, j] / 3

    What is zero by a condition that all steps share is summed whether it holds or not, and the result selected.

    As all that gives a sum another order, this rounds otherwise; where terms cancel each other in each step, or are divided there, sums of
    each may be larger than theirs.
    """

    code: ClassVar[str] = "distribute"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The stage reads the results of new stages before it, one for each of `terms_of` it.

        Raises:
            ScheduleError: if the stage is inlined or scheduled already, holds other stages, or is no sum of two terms or of a scaled one.
        """
        stage = stage_of(tree, self.stage, "distribute")
        check_not_inlined(stage, "distribute")
        check_unscheduled(stage, "distribute")
        check_nothing_inside(tree, stage, "; distribute comes before compute_at")
        terms, op = terms_of(stage.op), stage.compute
        if len(terms) < 2 and not any(term.scales for term in terms):
            raise stage.refused("distribute, which takes a sum over reduce axes of two terms, or a scaled one: te.sum(a + b, axis=k)")
        total: PrimExpr | None = None
        made = []
        for number, (negative, term, scales) in enumerate(terms):
            name = tree.unique_name(f"{stage.name}.term{number}")
            one = _sum_of(op, term, name)
            made.append(one)
            read: PrimExpr = ProducerLoad(one.output(0), tuple(axis.var for axis in op.axis))
            for operation, scale in scales:
                read = operation(read, scale)
            # the first term is never one that is taken away
            total = read if total is None else Sub(total, read) if negative else Add(total, read)
        assert total is not None
        tree = tree.with_stage(recomputed(stage, ComputeOp(op.name, op.tag, op.attrs, op.axis, (), (total,))))
        for one in made:
            tree = tree.with_new_stage(initial_stage(len(tree.stages), one.name, one), before=stage.id)
        return tree

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, new = after[self.stage], after.stages[len(before.stages) :]
        listed = ", ".join(names.name_stage(one) for one in new)
        lines = [line for one in new for line in names.axis_lines(one)]
        return [f"{listed} = s.distribute({names.stage(stage)})", *lines]


def _sum_of(op: ComputeOp, term: PrimExpr, name: str) -> ComputeOp:
    """The sum of one term, with axes of its own."""
    (body,) = op.body
    assert isinstance(body, Reduce)
    axes, summed = (tuple(IterVar(a.dom, Var(f"{a.name}.t", a.dtype), a.iter_type) for a in some) for some in (op.axis, op.reduce_axis))
    renamed = {old.var: new.var for old, new in zip((*op.axis, *op.reduce_axis), (*axes, *summed), strict=True)}
    reduce = Reduce(body.combiner, (substitute(term, renamed),), summed, const(True), 0)
    return ComputeOp(name, "", EMPTY, axes, summed, (reduce,))
