"""The step that leaves out the terms of a reduction that padding makes neutral."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ...te.tensor import Tensor
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import cast as convert_to
from ...tir.arithmetic import is_const_int
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, Call, Cast, FloatImm, IntImm, Mul, PrimExpr, ProducerLoad, Reduce, Select
from ...tir.reduction_laws import operator_of
from ...tir.rewriting import walk
from ..naming import PythonNames
from ..tree import Inline, ScheduleTree, StageNode
from .base import StageStep, check_not_inlined, stage_of


@dataclass(frozen=True)
class SkipPadding(StageStep):
    """Terms of a reduction that a padding condition makes neutral are not computed: the condition becomes that of the reduction.

        for h, kh: C[h] += (X[h+kh-1] if 1 <= h+kh < n+1 else 0) * W[kh]
            ->   for h, kh: if 1 <= h+kh < n+1: C[h] += X[h+kh-1] * W[kh]

    Lowering then trims the reduction loops to where the condition holds (`for kh in max(0, 1-h) .. min(3, n+1-h)`), and the
    pragma `loop_partition_hint` on a loop over tiles gives the tiles at the border bodies of their own.

    Leaving out a whole term that is the combiner's identity is always right, and so is a product of integers with a zero
    in it. A product of floats with a zero is NaN where the other factor is infinite or NaN; `assume_finite` says that
    such factors don't occur, or that their NaN isn't wanted. Padded stages that the terms read are inlined first.
    """

    code: ClassVar[str] = "skip_padding"
    assume_finite: bool

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """sum(select(0 <= p < n, A[p], 0) * w)   ->   sum(A[p] * w, where=0 <= p < n)

        Raises:
            ScheduleError: if the stage is no reduction of one value, or no condition makes its terms neutral.
        """
        stage = stage_of(tree, self.stage, "skip_padding")
        check_not_inlined(stage, "skip_padding")
        reduce = stage.compute.body[0]
        if not isinstance(reduce, Reduce) or len(reduce.source) != 1:
            what = "reduces nothing" if not isinstance(reduce, Reduce) else f"reduces {len(reduce.source)} values at once"
            raise stage.refused(f"skip_padding takes a reduction of one value; the stage {what}")
        found = _Padding(tree, stage, reduce, self.assume_finite)
        source = found.neutral(reduce.source[0])
        if not found.conditions:
            raise stage.refused(
                f"skip_padding finds no term, and no factor of a sum's terms, that a condition makes the "
                f"combiner's identity {reduce.combiner.identity_element[0]}; {_remedy(tree, reduce)}"
            )
        # The stage's own condition first: padding may only be meaningful under it.
        where = all_of(*([] if is_const_int(reduce.condition, 1) else [reduce.condition]), *found.conditions)
        body = replace(reduce, source=(source,), condition=where)
        return tree.with_stage(replace(stage, op=replace(stage.compute, body=(body,))))

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        given = "assume_finite=True" if self.assume_finite else ""
        return [f"s[{names.stage(after[self.stage])}].skip_padding({given})"]


def _remedy(tree: ScheduleTree, reduce: Reduce) -> str:
    read = {tree.producer(node) for node in walk(reduce.source[0]) if isinstance(node, ProducerLoad)}
    stored = sorted(stage.name for stage in read if not stage.is_placeholder and not isinstance(stage.attach, Inline))
    if stored:
        return f"if it is the padding of {', '.join(stored)}, inline that first, as in s[{stored[0]}].compute_inline()"
    return "pad with if_then_else(inside, value, identity), or leave the step out"


@dataclass(slots=True)
class _Padding:
    """Takes a term apart, and collects the conditions under which it isn't neutral."""

    tree: ScheduleTree
    stage: StageNode
    reduce: Reduce
    assume_finite: bool
    conditions: list[PrimExpr]

    def __init__(self, tree: ScheduleTree, stage: StageNode, reduce: Reduce, assume_finite: bool) -> None:
        self.tree, self.stage, self.reduce, self.assume_finite = tree, stage, reduce, assume_finite
        self.conditions = []

    def neutral(self, term: PrimExpr) -> PrimExpr:
        """What a term is where it isn't the identity."""
        # a border is often a stage of its own: where that is inlined its condition is found behind the read
        seen = self._inlined(term)
        chosen = _alternatives(seen)
        # A whole term that is the identity changes no reduction; a zero among factors is neutral in sums alone.
        if chosen is not None and chosen[2] is self.reduce.combiner.identity_element[0]:
            self.conditions.append(chosen[0])
            # A border along each axis nests one selection in another.
            return self.neutral(chosen[1])
        if isinstance(seen, Mul) and self._is_sum():
            return self._factor(seen)
        return term

    def _is_sum(self) -> bool:
        combiner = self.reduce.combiner
        return operator_of(combiner) is Add and _is_zero(combiner.identity_element[0])

    def _factor(self, expr: PrimExpr) -> PrimExpr:
        """What a factor is where it isn't zero; the factor itself if it is never padded."""
        seen = self._inlined(expr)
        if isinstance(seen, Mul):
            a, b = self._factor(seen.a), self._factor(seen.b)
            # without padding the factor stays the read that it was
            return expr if a is seen.a and b is seen.b else Mul(a, b)
        # a cast of zero is zero
        if isinstance(seen, Cast):
            value = self._factor(seen.value)
            return expr if value is seen.value else convert_to(value, seen.dtype)
        chosen = _alternatives(seen)
        if chosen is None or not _is_zero(chosen[2]):
            return expr
        if not parse_dtype(self.reduce.dtype).is_int and not self.assume_finite:
            raise self.stage.refused(
                "skip_padding would leave out products of a padding zero with another factor, which "
                "are NaN where that factor is infinite or NaN; say skip_padding(assume_finite=True) if that can't be or doesn't matter, "
                "or put the condition around the whole term: te.sum(if_then_else(inside, x * w, 0), ...)"
            )
        self.conditions.append(chosen[0])
        return self._factor(chosen[1])

    def _inlined(self, expr: PrimExpr) -> PrimExpr:
        """The definition of an inlined stage in place of a read of it."""
        # Through chains of inlined stages.
        while isinstance(expr, ProducerLoad) and isinstance(expr.producer, Tensor):
            producer = self.tree.producer(expr)
            if not isinstance(producer.attach, Inline):
                break
            expr = producer.compute.element(expr.producer.value_index, expr.indices)
        return expr


def _alternatives(expr: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr] | None:
    match expr:
        case Select(condition, yes, no) | Call(op="tir.if_then_else", args=(condition, yes, no)):
            return condition, yes, no
    return None


def _is_zero(expr: PrimExpr) -> bool:
    return isinstance(expr, (IntImm, FloatImm)) and expr.value == 0
