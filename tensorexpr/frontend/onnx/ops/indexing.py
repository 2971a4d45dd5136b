"""Operators that read and write elements where tensors of indices say."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def as_integers(ctx: Context, index: int) -> Any:
    """An operand as a tensor of int64."""
    given = ctx.expression(ctx.values[index])  # type: ignore[arg-type]
    return given if ctx.dtype(index) == "int64" else R.astype(given, "int64")


def from_the_front(indices: Any, extent: Any) -> Any:
    """Indices of int64 of which negative ones count from the end of an axis."""
    size = relax.const(extent, "int64") if isinstance(extent, int) else R.shape_to_tensor([extent])
    whole = size if isinstance(extent, int) else R.squeeze(size, 0)
    return R.where(R.less(indices, relax.const(0, "int64")), R.add(indices, whole), indices)


def _check_places(ctx: Context, indices: Any, extent: Any) -> None:
    """Indices that are known stand in the axis.

    Raises:
        ModelError: naming one that doesn't.
    """
    if isinstance(extent, int):
        outside = indices[(indices < -extent) | (indices >= extent)]
        if outside.size:
            ctx.fail(f"the index {outside.flat[0]} of an axis of {extent} elements")


def _check_along(ctx: Context, axis: int) -> None:
    if ctx.is_constant(1) and ctx.is_ranked(0) and -ctx.rank(0) <= axis < ctx.rank(0):
        _check_places(ctx, np.asarray(ctx.constant(1)), ctx.extents(0)[axis])


def _check_tuples(ctx: Context, first: int) -> None:
    if ctx.is_constant(1) and ctx.is_ranked(0):
        indices = np.asarray(ctx.constant(1))
        for n, extent in enumerate(ctx.extents(0)[first : first + indices.shape[-1]]):
            _check_places(ctx, indices[..., n], extent)


@onnx_op("Gather")
def gather(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Parts along an axis."""
    axis = attrs.int("axis", 0)
    _check_along(ctx, axis)
    # None counts from the end, so that nothing has to be added to them when the graph runs.
    if ctx.is_constant(1) and np.all(np.asarray(ctx.constant(1)) >= 0):
        return R.take(inputs[0], inputs[1], axis)
    return R.gather(inputs[0], inputs[1], axis)


@onnx_op("GatherElements")
def gather_elements(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements along an axis."""
    axis = attrs.int("axis", 0)
    _check_along(ctx, axis)
    return R.gather_elements(inputs[0], inputs[1], axis)


@onnx_op("GatherND")
def gather_nd(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Parts at tuples of indices."""
    batch = attrs.int("batch_dims", 0)
    _check_tuples(ctx, batch)
    return R.gather_nd(inputs[0], inputs[1], batch)


def _reduction(ctx: Context, attrs: Attributes) -> str:
    name = attrs.string("reduction", "none")
    if name not in _REDUCTIONS:
        ctx.fail(f"no reduction {name!r}; it takes {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[name]


@onnx_op("Scatter")
@onnx_op("ScatterElements")
def scatter_elements(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Updates of elements along an axis."""
    axis = attrs.int("axis", 0)
    _check_along(ctx, axis)
    return R.scatter_elements(inputs[0], inputs[1], inputs[2], axis, _reduction(ctx, attrs))


@onnx_op("ScatterND")
def scatter_nd(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Updates of parts at tuples of indices."""
    _check_tuples(ctx, 0)
    return R.scatter_nd(inputs[0], inputs[1], inputs[2], _reduction(ctx, attrs))


@onnx_op("TensorScatter")
def tensor_scatter(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Updates of a cache from an index on, for each element of the batch; in a circle with mode "circular"."""
    axis = ctx.axis(attrs.int("axis", -2))
    extents, mode = ctx.extents(1), attrs.string("mode", "linear")
    if axis == 0 or mode not in ("linear", "circular"):
        ctx.fail(f"axis {axis} and mode {mode!r}; the axis isn't that of the batch, and the mode is 'linear' or 'circular'")
    steps = R.reshape(R.arange(0, extents[axis], 1, "int64"), [extents[axis] if n == axis else 1 for n in range(len(extents))])
    if ctx.has(2):
        first = R.reshape(as_integers(ctx, 2), [extents[0], *[1] * (len(extents) - 1)])
        steps = R.add(steps, first)
    if mode == "circular":
        size = ctx.extents(0)[axis]
        whole = relax.const(size, "int64") if isinstance(size, int) else R.squeeze(R.shape_to_tensor([size]), 0)
        steps = R.floor_mod(steps, whole)
    return R.scatter_elements(inputs[0], R.broadcast_to(steps, extents), inputs[1], axis)


@onnx_op("OneHot")
def one_hot(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A new axis with the second of two values at an index, which counts from the end if it is negative."""
    depth = ctx.integer(1)
    off, on = (R.take(inputs[2], relax.const(n, "int64"), 0) for n in range(2))
    return R.one_hot(from_the_front(as_integers(ctx, 0), depth), on, off, depth, attrs.int("axis", -1))


@onnx_op("ReverseSequence")
def reverse_sequence(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The first elements along an axis in the opposite order."""
    return R.reverse_sequence(inputs[0], inputs[1], attrs.int("time_axis", 0), attrs.int("batch_axis", 1))


@onnx_op("Trilu")
def trilu(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Matrices without what is below or above a diagonal."""
    k: Any = 0
    if ctx.has(1):
        k = ctx.integer(1) if ctx.is_constant(1) else R.reshape(inputs[1], ())
    return (R.triu if attrs.bool("upper", True) else R.tril)(inputs[0], k)
