"""Tensor intrinsics for random schedules: plain loops, of any extents, over buffers that lie anywhere.

testing.dot.float32        z = sum of x[k] * y[k]
testing.rows.float32       z[i] = sum of x[k] * y[i, k]
testing.columns.float32    z[i] = sum of x[k] * y[k, i]
testing.copy.float32       z[i] = x[i];  sum, difference, product: of x[i] and y[i]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ... import te
from ...te.operation import ComputeOp, Operation
from ...te.tensor import Tensor
from ...te.tensor_intrin import TensorIntrin, built_in
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import Add, BufferLoad, IntImm, Mul, PrimExpr, ProducerLoad, Reduce, Sub, Var
from ...tir.rewriting import Node, post_order_rewrite, substitute
from ...tir.stmt import BufferStore, For, ForKind, Stmt, seq

DTYPES = ("float32", "int32")


def _elementwise(value: Callable[..., PrimExpr], inputs: int) -> Callable[[str], Tensor]:
    def describe(dtype: str) -> Tensor:
        n = te.size_var("n")
        given = [te.placeholder((n,), dtype, name) for name in "xy"[:inputs]]
        return te.compute((n,), lambda i: value(*(x[i] for x in given)), "z")

    return describe


def _dot(dtype: str) -> Tensor:
    length = te.size_var("l")
    x, y, k = te.placeholder((length,), dtype, "x"), te.placeholder((length,), dtype, "y"), te.reduce_axis((0, length), "k")
    return te.compute((), lambda: te.sum(x[k] * y[k], axis=k), "z")


def _product(rows: bool) -> Callable[[str], Tensor]:
    def describe(dtype: str) -> Tensor:
        n, length = te.size_var("n"), te.size_var("l")
        x = te.placeholder((length,), dtype, "x")
        y = te.placeholder((n, length) if rows else (length, n), dtype, "y")
        k = te.reduce_axis((0, length), "k")
        return te.compute((n,), lambda i: te.sum(x[k] * (y[i, k] if rows else y[k, i]), axis=k), "z")

    return describe


# What an intrinsic is called, and what it computes of a dtype.
DESCRIPTIONS: dict[str, Callable[[str], Tensor]] = {
    "copy": _elementwise(lambda x: x, 1),
    "sum": _elementwise(lambda x, y: x + y, 2),
    "difference": _elementwise(lambda x, y: x - y, 2),
    "product": _elementwise(lambda x, y: x * y, 2),
    "dot": _dot,
    "rows": _product(rows=True),
    "columns": _product(rows=False),
}
# Which of them may compute a body of a kind.
_KINDS: dict[type[PrimExpr], tuple[str, ...]] = {
    ProducerLoad: ("copy",),
    Add: ("sum",),
    Sub: ("difference",),
    Mul: ("product",),
    Reduce: ("dot", "rows", "columns"),
}


def fitting_intrinsics(op: Operation) -> list[str]:
    """The names of the intrinsics that compute something of the kind and dtype of an operation."""
    if not isinstance(op, ComputeOp) or op.output_dtype(0) not in DTYPES:
        return []
    return [f"testing.{name}.{op.output_dtype(0)}" for name in _KINDS.get(type(op.body[0]), ())]


def _declared(name: str, dtype: str) -> TensorIntrin:
    made = DESCRIPTIONS[name](dtype)
    op = cast(ComputeOp, made.op)
    tensors = (*op.input_tensors, made)
    binds = {tensor: _anywhere(tensor) for tensor in tensors}
    return te.decl_tensor_intrin(op, lambda ins, outs: _loops(op, ins, outs[0]), f"testing.{name}.{dtype}", binds)


def _anywhere(tensor: Tensor) -> Buffer:
    strides = [te.var(f"s{number}") for number in range(tensor.ndim)]
    return decl_buffer(tensor.shape, tensor.dtype, tensor.name, strides=strides, offset_factor=1)


def _loops(op: ComputeOp, inputs: Sequence[Buffer], out: Buffer) -> Any:
    """The statement that computes `op`; of a sum: the whole, its beginning and one more part of it."""
    buffers = dict(zip(op.input_tensors, inputs, strict=True))
    body = op.body[0]
    at = tuple(axis.var for axis in op.axis)

    def read(node: Node) -> Node | None:
        return BufferLoad(buffers[cast(Tensor, node.producer)], node.indices) if isinstance(node, ProducerLoad) else None

    if not isinstance(body, Reduce):
        return _nest(op, False, BufferStore(out, post_order_rewrite(body, read), at))
    begin = _nest(op, False, BufferStore(out, body.combiner.identity_element[0], at))
    update = _nest(op, True, BufferStore(out, BufferLoad(out, at) + post_order_rewrite(body.source[0], read), at))
    return seq(begin, update), begin, update


def _nest(op: ComputeOp, reducing: bool, stmt: Stmt) -> Stmt:
    """Loops with variables of their own over the axes around a statement."""
    axes = (*op.axis, *op.reduce_axis) if reducing else op.axis
    fresh: dict[Var, PrimExpr] = {axis.var: Var(axis.name, axis.dtype) for axis in axes}
    stmt = substitute(stmt, fresh)
    for axis in reversed(axes):
        assert axis.dom is not None
        stmt = For(cast(Var, fresh[axis.var]), IntImm(axis.dtype, 0), axis.dom.extent, ForKind.SERIAL, stmt)
    return stmt


for _name in DESCRIPTIONS:
    for _dtype in DTYPES:
        # bound as defaults: a closure would see the last name and dtype of the loops
        built_in(f"testing.{_name}.{_dtype}")(lambda name=_name, dtype=_dtype: _declared(name, dtype))  # type: ignore[misc]
