"""The step that puts the only term of a reduction in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...te.operation import ComputeOp, Operation
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import const, is_const_int
from ...tir.dtype import parse_dtype
from ...tir.expr import EQ, And, Call, IterVar, Max, Min, PrimExpr, ProducerLoad, Reduce, Select, Sub, Var
from ...tir.intrin import if_then_else
from ...tir.reduction_laws import law_of, operator_of
from ...tir.rewriting import substitute, variables, walk
from ..attachment import check_nothing_inside
from ..naming import PythonNames
from ..tree import ScheduleTree
from .base import StageStep, check_not_inlined, stage_of
from .caching import check_unscheduled, recomputed

_INDEX_DTYPES = ("int32", "int64")


class Term(NamedTuple):
    """The term of a reduction that isn't the identity: the axis that it is at one place of, that place, what has to hold there, in order,
    and its value."""

    axis: IterVar
    place: PrimExpr
    conditions: tuple[PrimExpr, ...]
    value: PrimExpr


def only_term(op: Operation) -> Term | None:
    """The one step along an axis that adds something to a reduction, whatever the other axes are; None if several may.

    Example:
        sum over k of (X[k, j] if k == at[i] and i < n else 0): k, at[i], (0 <= at[i], at[i] < 64, i < n), X[k, j]
    """
    body = op.body[0] if isinstance(op, ComputeOp) and len(op.body) == 1 else None
    if not isinstance(body, Reduce) or body.init or len(body.source) != 1 or law_of(body.combiner) is None:
        return None
    value, conditions = body.source[0], list(_parts(body.condition))
    while (inner := _unless_neutral(value, body)) is not None:
        value = inner[1]
        conditions += _parts(inner[0])
    ends = [end for axis in body.axis if axis.dom is not None for end in (axis.dom.min, axis.dom.extent)]
    free = [axis for axis in body.axis if axis.dom is not None and not any(axis.var in variables(end) for end in ends)]
    for number, condition in enumerate(conditions):
        for axis in free:
            place = _solved(condition, axis.var)
            if place is None:
                continue
            before, after = conditions[:number], conditions[number + 1 :]
            moved = [one for one in before if axis.var in variables(one)]
            # Such a condition may say where the place can be read at all, and can be asked only once there is a place.
            if moved and any(isinstance(node, ProducerLoad) for node in walk(place)):
                continue
            assert axis.dom is not None
            inside = (axis.dom.min.astype(place.dtype) <= place, place < axis.dom.end.astype(place.dtype))
            fixed = [one for one in before if axis.var not in variables(one)]
            return Term(axis, place, (*fixed, *inside, *moved, *after), value)
    return None


def _parts(condition: PrimExpr) -> Iterator[PrimExpr]:
    """The conditions that all have to hold."""
    if isinstance(condition, And):
        yield from _parts(condition.a)
        yield from _parts(condition.b)
    elif not is_const_int(condition, 1):
        yield condition


def _unless_neutral(expr: PrimExpr, body: Reduce) -> tuple[PrimExpr, PrimExpr] | None:
    """The condition of a term that is the identity otherwise, and its value where the condition holds.

    A step that gives the identity may as well not be there: x + 0 is x. But the larger one of NaN and anything else is the latter.
    """
    if parse_dtype(expr.dtype).is_float and operator_of(body.combiner) in (Max, Min):
        return None
    match expr:
        case Call(op="tir.if_then_else", args=(condition, value, otherwise)) | Select(condition, value, otherwise):
            return (condition, value) if otherwise is body.combiner.identity_element[0] else None
    return None


def _solved(condition: PrimExpr, var: Var) -> PrimExpr | None:
    """The only value of a variable for which a condition may hold; None if there is no saying."""
    if not isinstance(condition, EQ) or condition.a.dtype not in _INDEX_DTYPES:
        return None
    form = linear_form(Sub(condition.a, condition.b), lambda cast: cast.value is var)
    factor, rest = form.coefficient_of(var), form.without(var)
    if abs(factor) != 1 or any(var in variables(atom) for atom in rest.terms):
        return None
    return rest.scale(-factor).to_expr(condition.a.dtype)


@dataclass(frozen=True)
class Pick(StageStep):
    """A reduction of which one step along an axis adds something becomes that step, at its place on the axis.

    for i, j, k: Y[i, j] += X[k, j] if k == at[i] else 0    ->    for i, j: Y[i, j] = X[at[i], j] if 0 <= at[i] and at[i] < 64 else 0

    Where no step does, as the place is outside of the axis, what is left is what the reduction starts from. Exact: nothing is left out
    but identities, whatever the other elements are.
    """

    code: ClassVar[str] = "pick"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The stage without the axis; without a reduction, if it was the only one.

        Raises:
            ScheduleError: if the stage is inlined or scheduled already, holds other stages, or several steps may add something.
        """
        stage = stage_of(tree, self.stage, "pick")
        check_not_inlined(stage, "pick")
        check_unscheduled(stage, "pick")
        check_nothing_inside(tree, stage, "; pick comes before compute_at")
        term, op = only_term(stage.op), stage.compute
        if term is None:
            raise stage.refused("pick, which takes a reduction with one term: te.sum(te.if_then_else(k == at[i], X[k, j], 0), axis=k)")
        (body,) = op.body
        assert isinstance(body, Reduce)
        left = tuple(axis for axis in body.axis if axis is not term.axis)
        analyzer = Analyzer({axis.var: axis.dom for axis in (*op.axis, *left) if axis.dom is not None})
        at = {term.axis.var: term.place.astype(term.axis.var.dtype)}
        condition = all_of(*(analyzer.simplify(substitute(one, at)) for one in term.conditions))
        (identity,), value = body.combiner.identity_element, substitute(term.value, at)
        if not left:  # 0 + x, as a sum of it, is 0 for -0
            (value,) = (substitute(one, {body.combiner.lhs[0]: identity, body.combiner.rhs[0]: value}) for one in body.combiner.result)
        value = if_then_else(condition, value, identity)
        made: PrimExpr = Reduce(body.combiner, (value,), left, const(True), 0) if left else value
        return tree.with_stage(recomputed(stage, ComputeOp(op.name, op.tag, op.attrs, op.axis, left, (made,))))

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return [f"s.pick({names.stage(after[self.stage])})"]
