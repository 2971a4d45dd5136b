"""What records and saved graphs define, checked as a declaration is, and besides for what a declaration can't get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import RecordError
from ..tir.attrs import FrozenMap
from ..tir.dtype import parse_dtype
from ..tir.expr import CommReducer, IntImm, IterVar, Let, PrimExpr, ProducerLoad, Range, Reduce, Var
from ..tir.rewriting import Node, children, walk
from .bounds import check_bounds, early_rows
from .lazy_select import lazy_selects
from .operation import ComputeOp
from .serialize_extern import check_calls
from .verify import verify_bodies


def checked_compute(
    name: str, tag: str, attrs: FrozenMap, axes: tuple[IterVar, ...], bodies: tuple[PrimExpr, ...], symbols: set[Var] | None = None
) -> ComputeOp:
    """The operation of what was read, checked as a declaration is.

    Args:
        symbols: the variables that may stand in it besides its axes; None allows any.

    Raises:
        RecordError: for axes and bodies that no declaration makes.
        DeclarationError: as `te.compute`.
    """
    reduce_axis = verify_bodies(name, axes, bodies)
    own = {axis.var for axis in (*axes, *reduce_axis)}
    extents = [part for axis in (*axes, *reduce_axis) if axis.dom for part in (axis.dom.min, axis.dom.extent)]
    symbols = {var for root in (*extents, *bodies) for var in free_variables(root)} - own if symbols is None else symbols
    op = ComputeOp(name, tag, attrs, axes, reduce_axis, bodies)
    check_compute(op, symbols)
    op = replace(op, body=lazy_selects(axes, bodies))
    check_bounds(op, early_rows(op))
    return op


def check_compute(op: ComputeOp, symbols: set[Var]) -> None:
    """Refuse what a declaration can't get wrong, but a record can.

    Raises:
        RecordError: with the reason.
    """
    axes, reduce_axis = op.axis, op.reduce_axis
    for axis in axes:
        check_spatial(axis, symbols)
    for axis in reduce_axis:
        if axis.dom is None or axis.iter_type != IterVar.COMM_REDUCE:
            raise RecordError(f"axis {axis.name} is no reduction axis")
        _check_range(axis.dom, {*symbols, *(other.var for other in (*axes, *reduce_axis) if other is not axis)})
    if len({axis.var for axis in axes}) != len(axes):
        raise RecordError(f"compute {op.name} has an axis twice")
    for body in op.body:
        _check_body(body, {*symbols, *(axis.var for axis in (*axes, *reduce_axis))})


def _check_range(dom: Range, known: set[Var]) -> None:
    """What a reduction runs over: integers of symbols, of other axes, and of what tensors hold."""
    for end in (dom.min, dom.extent):
        check_only(free_variables(end), known)
        if not parse_dtype(end.dtype).is_int or any(isinstance(node, Reduce) for node in walk(end)):
            raise RecordError(f"the range {dom} of a reduction is of no integers")
    if isinstance(dom.extent, IntImm) and dom.extent.value < 0:
        raise RecordError(f"the extent {dom.extent} is negative")


def check_spatial(axis: IterVar, symbols: set[Var]) -> None:
    """Refuse an axis that doesn't run over data from 0 to an extent of symbols."""
    dom = axis.dom
    if dom is None or axis.iter_type != IterVar.DATA_PAR or not isinstance(dom.min, IntImm) or dom.min.value != 0:
        raise RecordError(f"axis {axis.name} is no spatial axis from 0")
    check_only(free_variables(checked_extent(dom.extent)), symbols)
    if dom.extent.dtype != axis.dtype or axis.var in symbols:
        raise RecordError(f"axis {axis.name} is {axis.dtype}, its extent {dom.extent.dtype}")


def _check_body(body: PrimExpr, known: set[Var]) -> None:
    """Elements are scalars and variables are known; the reader of rows has checked the rest."""
    if parse_dtype(body.dtype).lanes > 1 or body.dtype == "handle":
        raise RecordError(f"a body is {body.dtype}; elements are scalars")
    check_only(free_variables(body), known)
    check_calls(body)
    for node in walk(body):
        if isinstance(node, Reduce):
            _check_combiner(node.combiner)
        if isinstance(node, ProducerLoad) and any(parse_dtype(index.dtype).lanes > 1 for index in node.indices):
            raise RecordError(f"{node.producer.name} is read at a vector of indices")


def _check_combiner(combiner: CommReducer) -> None:
    for result in (*combiner.result, *combiner.identity_element):
        check_only(free_variables(result), {*combiner.lhs, *combiner.rhs})
        # a walk over the body stops at the combiner
        check_calls(result)
        if any(isinstance(node, (ProducerLoad, Reduce)) for node in walk(result)):
            raise RecordError("a combiner reads a tensor")


def checked_extent(extent: PrimExpr) -> PrimExpr:
    """An extent that was read: an integer that isn't negative, of no tensor."""
    if not parse_dtype(extent.dtype).is_int or any(isinstance(node, (ProducerLoad, Reduce)) for node in walk(extent)):
        raise RecordError(f"the extent {extent} is no integer expression")
    if isinstance(extent, IntImm) and extent.value < 0:
        raise RecordError(f"the extent {extent} is negative")
    return extent


def check_only(variables: Sequence[Var], known: set[Var]) -> None:
    """Refuse variables that nothing defines."""
    for var in variables:
        if var not in known:
            raise RecordError(f"the variable {var.name} is neither an axis nor a symbol")


def free_variables(root: PrimExpr) -> list[Var]:
    """The variables of an expression where no `Let` around them binds them."""
    nodes = list(walk(root))
    # one walk where nothing is bound; `_free_in` visits a node once for each set of bindings
    if not any(isinstance(node, Let) for node in nodes):
        return [node for node in nodes if isinstance(node, Var)]
    return list(dict.fromkeys(_free_in(root, frozenset(), set())))


def _free_in(node: Node, bound: frozenset[Var], seen: set[tuple[Node, frozenset[Var]]]) -> Iterator[Var]:
    """Those of a part: x is free in (let x = a in x * 2) + x. Equal parts are one node, looked at once within the same bindings."""
    if (node, bound) in seen:
        return
    seen.add((node, bound))
    if isinstance(node, Var) and node not in bound:
        yield node
    if isinstance(node, Let):
        yield from _free_in(node.value, bound, seen)
        yield from _free_in(node.body, bound | {node.var}, seen)
        return
    for child in children(node):
        yield from _free_in(child, bound, seen)
