"""Tensor intrinsics for tests: plain loops that do what a computation says, over buffers that may lie anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tensorexpr import te, tir
from tensorexpr.te.operation import ComputeOp
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.rewriting import Node, post_order_rewrite, substitute

Extent = int | tir.Var


def anywhere(tensor: Tensor) -> tir.Buffer:
    """A buffer of a tensor with all strides and the offset free."""
    strides = [te.var(f"s{n}") for n in range(len(tensor.shape))]
    return tir.decl_buffer(tensor.shape, tensor.dtype, tensor.name, strides=strides, offset_factor=1)


def loop_intrin(out: Tensor, name: str, parts: str = "body init update", scalars: Sequence[tir.Var] = ()) -> te.TensorIntrin:
    """The intrinsic that computes `out` by loops. `parts` are those that it has; with "adds" its body leaves the start to `init`."""
    op = cast(ComputeOp, out.op)

    def fcompute(ins: list[tir.Buffer], outs: list[tir.Buffer], given: Sequence[tir.Var] = ()) -> Any:
        made = _Loops(op, dict(zip(op.input_tensors, ins, strict=True)), outs[0])
        if not isinstance(op.body[0], tir.Reduce):
            return made.elementwise()
        init, update = made.init(), made.update()
        body = made.update() if "adds" in parts else tir.stmt_functor.stmt_seq(made.init(), made.update())
        return tuple(part if word in parts.split() else None for part, word in ((body, "body"), (init, "init"), (update, "update")))

    binds = {tensor: anywhere(tensor) for tensor in (*op.input_tensors, out)}
    return te.decl_tensor_intrin(op, fcompute, name, binds, scalar_params=scalars)


class _Loops:
    def __init__(self, op: ComputeOp, inputs: dict[Tensor, tir.Buffer], out: tir.Buffer) -> None:
        self._op, self._inputs, self._out = op, inputs, out

    def elementwise(self) -> tir.Stmt:
        return self._nest(False, lambda at: self._out.vstore(at, self._op.body[0]))

    def init(self) -> tir.Stmt:
        reduce = cast(tir.Reduce, self._op.body[0])
        return self._nest(False, lambda at: self._out.vstore(at, reduce.combiner.identity_element[0]))

    def update(self) -> tir.Stmt:
        reduce = cast(tir.Reduce, self._op.body[0])
        combiner = reduce.combiner

        def store(at: list[tir.Var]) -> Any:
            values = {combiner.lhs[0]: self._out.vload(at), combiner.rhs[0]: reduce.source[0]}
            return self._out.vstore(at, substitute(combiner.result[0], values))

        return self._nest(True, store)

    def _nest(self, reducing: bool, store: Any) -> tir.Stmt:
        """Loops with variables of their own around a store at the spatial axes."""
        axes = (*self._op.axis, *self._op.reduce_axis) if reducing else self._op.axis
        fresh = {axis.var: tir.Var(axis.var.name, "int32") for axis in axes}
        stmt = post_order_rewrite(store([axis.var for axis in self._op.axis]), self._read)
        stmt = substitute(stmt, dict(fresh))
        for axis in reversed(axes):
            assert axis.dom is not None
            zero = tir.IntImm("int32", 0)
            stmt = tir.For(fresh[axis.var], zero, axis.dom.extent, tir.ForKind.SERIAL, stmt)
        return cast(tir.Stmt, stmt)

    def _read(self, node: Node) -> Node | None:
        if isinstance(node, tir.ProducerLoad):
            return tir.BufferLoad(self._inputs[cast(Tensor, node.producer)], node.indices)
        return None


def gemv(outputs: Extent, length: Extent, parts: str = "body init update", name: str = "gemv", dtype: str = "float32") -> te.TensorIntrin:
    """c[i] = sum of a[k] * b[i, k]."""
    a, b = te.placeholder((length,), dtype, name="a"), te.placeholder((outputs, length), dtype, name="b")
    k = te.reduce_axis((0, length), name="k")
    return loop_intrin(te.compute((outputs,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c"), name, parts)


def gemm(rows: Extent, columns: Extent, length: Extent, parts: str = "body init update") -> te.TensorIntrin:
    """c[i, j] = sum of a[i, k] * b[k, j]."""
    a, b = te.placeholder((rows, length), name="a"), te.placeholder((length, columns), name="b")
    k = te.reduce_axis((0, length), name="k")
    return loop_intrin(te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c"), "gemm", parts)


def vector_add(length: Extent) -> te.TensorIntrin:
    """c[i] = a[i] + b[i]."""
    a, b = te.placeholder((length,), name="a"), te.placeholder((length,), name="b")
    return loop_intrin(te.compute((length,), lambda i: a[i] + b[i], name="c"), "vector_add")
