"""Transposes around products, which can read and write elements where they are.

    q[b, i, h, d] -> t[b, h, i, d]; sum over d of t[b, h, i, d] * k[b, h, j, d]   ->   sum over d of q[b, i, h, d] * k[b, h, j, d]
    y[b, h, i, d] = sum over m of w[b, h, i, m] * v[b, h, m, d] -> z[b, i, h, d]  ->   z[b, i, h, d] = sum over m of ...

A product loads vectors along its columns, and elements along its sum: what lies along another axis would be brought by a line of the
cache for each element. It stores vectors along its columns. Where a move in front or behind leaves that so, it costs nothing in the
product, and two passes through memory outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...te.contraction import recognise
from ...te.dag import consumer_map, post_dfs_order
from ...te.operation import ComputeOp, Operation, PlaceholderOp, loads
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar, PrimExpr, ProducerLoad, Reduce
from ...tir.rewriting import Node, post_order_rewrite, variables

# Rows that pay for bringing columns side by side that aren't in memory: fewer are summed up one result at a time.
_ROWS = 4


def _stages(tensors: Sequence[Tensor]) -> list[ComputeOp] | None:
    """What a computation of one result consists of; None for loops of other kinds."""
    outputs = [tensor.op for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]
    stages = [op for op in post_dfs_order(outputs) if not isinstance(op, PlaceholderOp)]
    computes = [op for op in stages if type(op) is ComputeOp and op.num_outputs == 1]
    return computes if len(outputs) == 1 and len(computes) == len(stages) else None


def product_of(tensors: Sequence[Tensor]) -> ComputeOp | None:
    """The sum of products of two tensors, each read at plain axes, that a computation consists of, with what is elementwise around it.

    Example:
        C[b, i, j] = sum over k of A[b, i, k] * B[k, j]; not a convolution, which reads at i + k.
    """
    reducing = [op for op in _stages(tensors) or () if op.reduce_axis]
    if len(reducing) != 1 or not isinstance(reducing[0].body[0], Reduce):
        return None
    found = recognise(reducing[0].body[0])
    if found is None or len(found.factors) != 2:
        return None
    axes = {axis.var for axis in (*reducing[0].axis, *reducing[0].reduce_axis)}
    plain = all(index in axes or as_int(index) is not None for factor in found.factors for index in factor.load.indices)
    return reducing[0] if plain else None


def is_window_of_channels(tensors: Sequence[Tensor]) -> bool:
    """Whether a computation is a convolution in which each channel has its own weights and data.

    Example:
        C[n, y, x, c] = sum over r, s of D[n, y + r, x + s, c] * W[r, s, c, 0]: the right factor is read at axes alone, and each summed
        axis moves both.
    """
    reducing = [op for op in _stages(tensors) or () if op.reduce_axis]
    if len(reducing) != 1 or not isinstance(reducing[0].body[0], Reduce):
        return False
    found, (op,) = recognise(reducing[0].body[0]), reducing
    if found is None or len(found.factors) != 2:
        return False
    data, weights = (factor.load.indices for factor in found.factors)
    summed = {axis.var for axis in op.reduce_axis}
    windows = {var for index in data if index not in summed for var in variables(index) if var in summed}
    own = {var for var in (axis.var for axis in op.axis) if any(var in variables(index) for index in weights)}
    return summed <= windows and all(any(var in variables(index) for index in data) for var in own)


def move_of(tensors: Sequence[Tensor]) -> ProducerLoad | None:
    """Where a computation reads each element of its result, if that is all it does and each index is an axis or a number."""
    stages = _stages(tensors) or ()
    if len(stages) != 1 or not isinstance(stages[0].body[0], ProducerLoad):
        return None
    load, axes = stages[0].body[0], [axis.var for axis in stages[0].axis]
    read = [index for index in load.indices if index in axes]
    # x[i, i] reads a diagonal, which is no move.
    plain = len(set(read)) == len(read) and all(index in axes or as_int(index) is not None for index in load.indices)
    return load if plain and isinstance(load.producer, Tensor) and isinstance(load.producer.op, PlaceholderOp) else None


def can_read_through(product: Sequence[Tensor], argument: int, move: Sequence[Tensor]) -> bool:
    """Whether a product may as well read what is moved into one of its arguments.

    Args:
        product: inputs and result of the product.
        argument: the place of the input.
        move: inputs and result of the move.
    """
    op, source = product_of(product), move_of(move)
    if op is None or source is None or not op.axis or any(as_int(extent) is None for extent in op.output_shape(0)):
        return False
    own = [load for load in loads(op) if load.producer == product[argument]]
    if len(own) != 1:
        return False
    moved = next(tensor.op for tensor in move if isinstance(tensor.op, ComputeOp))
    behind = dict(zip((axis.var for axis in moved.axis), own[0].indices, strict=True))
    last = behind.get(source.indices[-1])  # type: ignore[call-overload]
    column, summed = op.axis[-1].var, [axis.var for axis in op.reduce_axis]
    # The left factor: its elements along the sum lie side by side.
    if column not in own[0].indices:
        return last in summed
    # The right one: its columns lie side by side, or there are rows enough to bring them so once.
    rows = [as_int(axis.dom.extent) or 1 for axis in op.axis if axis.dom is not None and axis.var not in own[0].indices]
    return last is column or (last in summed and prod(rows) >= _ROWS)


def can_write_through(product: Sequence[Tensor], move: Sequence[Tensor]) -> bool:
    """Whether a product may as well write where its result is moved to: all elements, with the columns where they were."""
    source, op = move_of(move), product_of(product)
    if source is None or op is None:
        return False
    axes = [axis.var for axis in next(tensor.op for tensor in move if isinstance(tensor.op, ComputeOp)).axis]
    return {*source.indices} == {*axes} and len(source.indices) == len(axes) and source.indices[-1] is axes[-1]


def written_in_place(outputs: Sequence[Tensor]) -> list[Tensor]:
    """A computation with the results of products written where moves behind them put the elements.

    Args:
        outputs: of the computation. Those that are no such moves stay.
    """
    order = post_dfs_order([tensor.op for tensor in outputs])
    readers = consumer_map(order)
    return [_in_place(tensor, readers) if list(outputs) == [tensor] else tensor for tensor in outputs]


def _in_place(tensor: Tensor, readers: dict[Operation, tuple[Operation, ...]]) -> Tensor:
    op = tensor.op
    if type(op) is not ComputeOp or not isinstance(op.body[0], ProducerLoad) or not isinstance(op.body[0].producer, Tensor):
        return tensor
    load, axes = op.body[0], [axis.var for axis in op.axis]
    if len(load.indices) != len(axes) or {*load.indices} != {*axes}:
        return tensor
    moved = op.body[0].producer
    chain = _elementwise(moved.op, readers)
    if chain is None:
        return tensor
    places = [axes.index(index) for index in load.indices]  # type: ignore[arg-type]
    made: dict[Operation, ComputeOp] = {}
    for one in chain:
        made[one] = _reordered(one, places, made)
    return made[moved.op].output(0)


def _elementwise(last: Operation, readers: dict[Operation, tuple[Operation, ...]]) -> list[ComputeOp] | None:
    """A product and the stages up to the last one, each of which reads those before it at its own axes; None if there is no such."""
    found: dict[Operation, None] = {}
    waiting = [last]
    while waiting:
        op = waiting.pop()
        if op in found:
            continue
        if type(op) is not ComputeOp or op.num_outputs != 1:
            return None
        found[op] = None
        waiting += [] if op.reduce_axis else [one.op for one in op.input_tensors if _reads_own_axes(op, one)]
    chain = [op for op in post_dfs_order([last]) if op in found and isinstance(op, ComputeOp)]
    # What something outside of the chain reads keeps its order of axes.
    inside = all(one in found and _reads_own_axes(one, op.output(0)) for op in chain[:-1] for one in readers[op])
    return chain if inside and len(readers[last]) == 1 and product_of([last.output(0)]) is chain[0] else None


def _reads_own_axes(reader: Operation, tensor: Tensor) -> bool:
    """True if each element of a computed tensor is read for the one of the same indices alone."""
    if isinstance(tensor.op, PlaceholderOp) or type(reader) is not ComputeOp or reader.reduce_axis or tensor.ndim != len(reader.axis):
        return False
    return all(
        index is axis.var or (as_int(index) == 0 and axis.dom is not None and as_int(axis.dom.extent) == 1)
        for load in loads(reader)
        if load.producer == tensor
        for index, axis in zip(load.indices, reader.axis, strict=True)
    )


def _reordered(op: ComputeOp, places: Sequence[int], made: dict[Operation, ComputeOp]) -> ComputeOp:
    """A stage with axis n at place `places[n]`, which reads such ones."""

    def at(items: Sequence[IterVar] | Sequence[PrimExpr]) -> list[IterVar | PrimExpr]:
        return [items[places.index(n)] for n in range(len(places))]

    def rule(node: Node) -> Node | None:
        if isinstance(node, ProducerLoad) and isinstance(node.producer, Tensor) and node.producer.op in made:
            return ProducerLoad(made[node.producer.op].output(0), tuple(at(node.indices)))  # type: ignore[arg-type]
        return None

    # A sum names its axes, which only change places; the others read stages whose indices have moved.
    body = op.body if op.reduce_axis else tuple(post_order_rewrite(value, rule) for value in op.body)
    return replace(op, axis=tuple(at(op.axis)), body=body)  # type: ignore[arg-type]
