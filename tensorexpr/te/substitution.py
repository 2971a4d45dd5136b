"""Computations of other inputs: what a computation makes of tensors, or of numbers, in place of its placeholders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError
from ..tir.attrs import FrozenMap
from ..tir.expr import IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from ..tir.rewriting import Node, post_order_rewrite, substitute
from .dag import post_dfs_order
from .extern import ExternOp
from .operation import ComputeOp, Operation, PlaceholderOp
from .tensor import Tensor


def substituted(
    tensors: Sequence[Tensor], inputs: Mapping[Tensor, Tensor | PrimExpr], symbols: Mapping[Var, PrimExpr] | None = None
) -> list[Tensor]:
    """The tensors of a computation with others in place of its inputs. Axes are new ones, so that a computation may occur twice in one.

    Args:
        tensors: of the computation.
        inputs: placeholders of it -> tensors of the same shape and dtype; the value, of a tensor with one element.
        symbols: variables in shapes -> what they are there.

    Raises:
        DeclarationError: for operations that can't be made again: scans, and functions of the tensors' buffers whose input is a number.
    """
    made: dict[Tensor, Tensor | PrimExpr] = dict(inputs)
    sizes = dict(symbols or {})
    for op in post_dfs_order([tensor.op for tensor in tensors]):
        if isinstance(op, PlaceholderOp):
            if op.output(0) not in made and sizes:
                made[op.output(0)] = replace(op, shape=tuple(substitute(extent, sizes) for extent in op.shape)).output(0)
            continue
        new = _again(op, made, sizes)
        made.update({op.output(n): new.output(n) for n in range(op.num_outputs)})
    found = [made.get(tensor, tensor) for tensor in tensors]
    if not all(isinstance(one, Tensor) for one in found):
        raise DeclarationError("a number is no result of a computation")
    return found  # type: ignore[return-value]


def _again(op: Operation, made: Mapping[Tensor, Tensor | PrimExpr], sizes: Mapping[Var, PrimExpr]) -> Operation:
    """An operation that reads what was made of what it read."""
    if isinstance(op, ExternOp) and not sizes:
        for tensor in op.inputs:
            new = made.get(tensor, tensor)
            if not isinstance(new, Tensor):
                raise DeclarationError(f"{op.name} takes the buffer of {tensor.name}, where a number is given")
            op = op.reading(tensor.op, new)
        return op
    # a subclass doesn't pass: a compute over slices keeps its tensors in its call, too
    if type(op) is not ComputeOp:
        raise DeclarationError(f"{op.name} is a {type(op).__name__}, which can't be made again from other tensors")
    axes = {axis: _fresh(axis, sizes) for axis in (*op.axis, *op.reduce_axis)}
    variables = {**sizes, **{axis.var: new.var for axis, new in axes.items()}}
    spatial, reduced = tuple(axes[one] for one in op.axis), tuple(axes[one] for one in op.reduce_axis)

    def rule(node: Node) -> Node | None:
        if not isinstance(node, ProducerLoad):
            return None
        new = made.get(node.producer)  # type: ignore[call-overload]
        return new if new is None or isinstance(new, PrimExpr) else ProducerLoad(new, node.indices)

    def body(expr: PrimExpr) -> PrimExpr:
        if not isinstance(expr, Reduce):
            return post_order_rewrite(substitute(expr, variables), rule)
        source, init = (tuple(body(one) for one in part) for part in (expr.source, expr.init))
        return replace(expr, source=source, axis=reduced, condition=body(expr.condition), init=init)

    attrs = {key: _attribute(value, made) for key, value in op.attrs.items()}
    same = all(attrs[key] is value for key, value in op.attrs.items())
    return replace(op, attrs=op.attrs if same else FrozenMap(attrs), axis=spatial, reduce_axis=reduced, body=tuple(map(body, op.body)))


def _attribute(value: Any, made: Mapping[Tensor, Tensor | PrimExpr]) -> Any:
    """A note of an operation that may name tensors."""
    if isinstance(value, (list, tuple)) and any(isinstance(one, Tensor) for one in value):
        return tuple(_attribute(one, made) for one in value)
    new = made.get(value) if isinstance(value, Tensor) else None
    return new if isinstance(new, Tensor) else value


def _fresh(axis: IterVar, sizes: Mapping[Var, PrimExpr]) -> IterVar:
    dom = axis.dom
    if dom is not None and sizes:
        dom = Range.from_min_extent(substitute(dom.min, sizes), substitute(dom.extent, sizes))
    return replace(axis, dom=dom, var=type(axis.var)(axis.var.name, axis.var.dtype))
