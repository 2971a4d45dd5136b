"""What is summed to make an element, for differentiation: the body, or the values that a reduction lets through.

A sum lets all its values through. A maximum or minimum lets one through, the first of the largest; a tensor of its
own remembers for each element which one that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass
from ..errors import DeclarationError
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import any as any_of
from ..tir.arithmetic import compare, const
from ..tir.dtype import int_limits
from ..tir.expr import EQ, GT, LT, Add, IntImm, IterVar, Max, Min, PrimExpr, ProducerLoad, Reduce, Select, Var
from ..tir.reduction_laws import operator_of
from ..tir.rewriting import substitute, walk
from .declare import compute, reduce_axis
from .derivative import derivative
from .index_equations import domain
from .operation import ComputeOp
from .reducer import comm_reducer
from .tensor import Tensor


@dataclass(frozen=True, slots=True)
class Term:
    """An element depends on `value` at those points of `axes` where `condition` holds, with slope 1."""

    axes: tuple[IterVar, ...]
    condition: PrimExpr
    value: PrimExpr


def terms_of(op: ComputeOp, value_index: int, producers: Sequence[Tensor]) -> list[Term]:
    """The terms that output `value_index` of `op` is made of; none if it doesn't change with `producers`.

    Raises:
        DeclarationError: for a reduction that is neither sum, max nor min of one value, nor sums of several.
    """
    body, always = op.body[value_index], const(True)
    if not isinstance(body, Reduce):
        return [Term(op.axis, always, body)]
    if not _changes(body, value_index, producers):
        return []
    axes, kind = (*op.axis, *body.axis), operator_of(body.combiner, value_index)
    if kind is Add:
        # an init is one more summand of each element, whatever the condition says
        first = [Term(op.axis, always, body.init[value_index])] if body.init else []
        return [*first, Term(axes, body.condition, body.source[value_index])]
    if kind not in (Max, Min) or len(body.source) > 1:
        raise DeclarationError(
            f"te.gradient: {op.name} reduces by ({', '.join(map(str, body.combiner.result))}), which has no derivative here; "
            "te.sum, te.max and te.min of one value have one"
        )
    # -1 is no iteration's number: where no value beats the start, the slope goes to the init, or to nothing
    chosen = _chosen(op, body, kind)(*op.axis)
    first = [Term(op.axis, compare(EQ, chosen, const(-1, chosen.dtype)), body.init[0])] if body.init else []
    return [*first, Term(axes, all_of(body.condition, compare(EQ, chosen, _number(body))), body.source[0])]


def _changes(body: Reduce, value_index: int, producers: Sequence[Tensor]) -> bool:
    """True if some value that is reduced changes with an element of `producers`."""
    if not body.dtype.startswith(("float", "bfloat")):
        return False
    values = (*body.source, *body.init)
    return any(
        derivative(value, load) is not None
        for value in values
        for load in walk(value)
        if isinstance(load, ProducerLoad) and load.producer in producers
    )


def _number(body: Reduce) -> PrimExpr:
    """The number of an iteration of a reduction, in lexicographic order."""
    size, dtype = 1, "int32"
    for axis in body.axis:
        extent = domain(axis).extent
        size *= extent.value if isinstance(extent, IntImm) else 1
        dtype = "int64" if axis.dtype == "int64" or size > int_limits("int32")[1] else dtype
    number = const(0, dtype)
    for axis in body.axis:
        # converted before it is multiplied: the product may need the wide dtype
        number = number * domain(axis).extent.astype(dtype) + (axis.var - domain(axis).min).astype(dtype)
    return number


def _chosen(op: ComputeOp, body: Reduce, kind: type[PrimExpr]) -> Tensor:
    """For each element of `op` the number of the iteration whose value it is; -1 where that is the starting value."""
    better = GT if kind is Max else LT

    def combine(a: tuple[Var, Var], b: tuple[Var, Var]) -> tuple[PrimExpr, PrimExpr]:
        # of equal values the one with the lower number: the choice is then the same in whatever order a schedule reduces
        keep = any_of(compare(better, a[1], b[1]), all_of(compare(EQ, a[1], b[1]), compare(LT, a[0], b[0])))
        return Select(keep, a[0], b[0]), Select(keep, a[1], b[1])

    def identity(number: str, value: str) -> tuple[PrimExpr, PrimExpr]:
        return const(-1, number), body.combiner.identity_element[0]

    fresh = {axis.var: reduce_axis(axis.dom, axis.name) for axis in body.axis}
    choose = comm_reducer(combine, identity, "chosen")

    def element(*i: Var) -> tuple[PrimExpr, PrimExpr]:
        mapping = {var: axis.var for var, axis in fresh.items()} | {axis.var: at for axis, at in zip(op.axis, i, strict=True)}
        values = tuple(substitute(value, mapping) for value in (_number(body), body.source[0]))
        init = None if not body.init else (const(-1, values[0].dtype), substitute(body.init[0], mapping))
        chosen: tuple[PrimExpr, PrimExpr] = choose(values, axis=list(fresh.values()), where=substitute(body.condition, mapping), init=init)
        return chosen

    return compute(op.output_shape(0), element, f"{op.name}.chosen", varargs_names=[a.name for a in op.axis])[0]
