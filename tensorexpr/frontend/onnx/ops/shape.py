"""Operators on shapes, and those that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import relax
from ....relax.struct_info import ShapeExpr
from ....tir.expr import PrimExpr
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from ..values import Value

R = relax.op


@onnx_op("Shape")
def shape(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The extents of a tensor of which not even the rank is known."""
    if "start" in attrs or "end" in attrs:
        ctx.fail("a part of the shape of a tensor of unknown rank")
    return R.shape_to_tensor(R.shape_of(inputs[0]))


@onnx_op("Size")
def size(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """How many elements a tensor has of which not even the rank is known."""
    return R.prod(R.shape_to_tensor(R.shape_of(inputs[0])))


@onnx_op("Identity")
def identity(ctx: Context, inputs: Inputs, attrs: Attributes) -> Value | None:
    """The value as it is."""
    return ctx.value(0)


@onnx_op("Constant")
def constant(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """What an attribute says."""
    for name in attrs:
        match name:
            case "value":
                return attrs.tensor(name)
            case "value_float":
                return np.float32(attrs.float(name))
            case "value_floats":
                return np.array(attrs.floats(name), np.float32)
            case "value_int":
                return np.int64(attrs.int(name))
            case "value_ints":
                return np.array(attrs.ints(name), np.int64)
            case "value_string":
                return np.array(attrs.string(name), dtype=object)
            case "value_strings":
                return np.array(attrs.strings(name), dtype=object)
    return ctx.fail(f"a constant of the attributes {', '.join(attrs) or 'none'}")


@onnx_op("ConstantOfShape")
def constant_of_shape(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A tensor of one value."""
    value = attrs.tensor("value", np.zeros(1, np.float32))
    if value.size != 1:
        ctx.fail(f"the value of ConstantOfShape is one element, not {value.size}")
    shape = ctx.shape(0)
    if any(isinstance(one, int) and one < 0 for one in shape):
        ctx.fail(f"its result would have a negative extent: {shape}")
    return R.full(ShapeExpr(tuple(shape)), relax.const(value.reshape(())), str(value.dtype))


@onnx_op("Reshape")
def reshape_attribute(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The same elements in another shape, which an attribute says."""
    return R.reshape(inputs[0], attrs.ints("shape"))


@onnx_op("Reshape", since=5)
def reshape(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The same elements in another shape, in which 0 is the extent there (not with allowzero), and -1 what is left."""
    if ctx.is_computed(1):
        # Numbers that are computed may be 0 and -1, too.
        numbers = R.reshaped_extents(R.shape_of(inputs[0]), inputs[1], attrs.bool("allowzero", False))
        return R.reshape(inputs[0], ShapeExpr(tuple(ctx.measured(numbers, int(ctx.extents(1)[0])))))
    new = ctx.shape(1)
    if attrs.bool("allowzero", False) and 0 in new:
        return R.reshape(inputs[0], ShapeExpr(tuple(new)))
    # Asked for only where it is needed: for a tensor of unknown shape this emits a match_cast.
    old = ctx.extents(0) if any(isinstance(one, int) and one <= 0 for one in new) else []
    new = [old[n] if isinstance(one, int) and one == 0 and n < len(old) else one for n, one in enumerate(new)]
    return R.reshape(inputs[0], ShapeExpr(tuple(new)) if -1 not in [one for one in new if isinstance(one, int)] else new)


@onnx_op("Flatten")
def flatten(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Two axes: those in front of `axis`, and the others."""
    extents, axis = ctx.extents(0), attrs.int("axis", 1)
    axis = axis + len(extents) if axis < 0 else axis
    if not 0 <= axis <= len(extents):
        ctx.fail(f"axis {axis} of a tensor of {len(extents)} axes")
    return R.reshape(inputs[0], ShapeExpr((_product(extents[:axis]), _product(extents[axis:]))))


def _product(extents: list[Any]) -> Any:
    total: Any = 1
    for one in extents:
        total = total * one
    return total


@onnx_op("Transpose")
def transpose(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Axes in another order."""
    return R.permute_dims(inputs[0], attrs.ints("perm", None))


@onnx_op("Concat")
def concat(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Tensors one after the other along an axis."""
    axis = attrs.int("axis", 1) if ctx.opset < 4 else attrs.int("axis")
    return R.concat(list(inputs), axis) if len(inputs) > 1 else inputs[0]


@onnx_op("Split")
def split(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Parts along an axis: of stated sizes, or as many as there are results."""
    axis, count = attrs.int("axis", 0), len(ctx.node.output)
    sizes = ctx.ints(1) if ctx.has(1) else attrs.ints("split", None)
    if sizes is None:
        extent = ctx.extents(0)[ctx.axis(axis)]
        if attrs.int("num_outputs", count) < 1:
            ctx.fail(f"{attrs.int('num_outputs', count)} parts")
        if not isinstance(extent, int):
            return R.split(inputs[0], attrs.int("num_outputs", count), axis)
        part = -(-extent // attrs.int("num_outputs", count))
        # 5 elements in 4 parts are 2, 2, 1 and 0.
        sizes = [max(0, min(part, extent - part * n)) for n in range(count)]
    whole = ctx.extents(0)[axis] if ctx.is_ranked(0) and -ctx.rank(0) <= axis < ctx.rank(0) else None
    if min(sizes, default=0) < 0 or (isinstance(whole, int) and sum(sizes) != whole):
        ctx.fail(f"parts of {sizes} elements of an axis of {whole}")
    found = ctx.emit(R.split(inputs[0], np.cumsum(sizes)[:-1].tolist(), axis))
    return [relax.TupleGetItem(found, n) for n in range(len(sizes))]


@onnx_op("Slice")
def slice_attributes(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Parts along axes, which attributes say."""
    starts = attrs.ints("starts")
    return _sliced(ctx, inputs[0], starts, attrs.ints("ends"), attrs.ints("axes", list(range(len(starts)))), [1] * len(starts))


@onnx_op("Slice", since=10)
def slice_operands(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Parts along axes, which operands say."""
    starts = ctx.shape(1)
    axes = ctx.ints(3) if ctx.has(3) else list(range(len(starts)))
    return _sliced(ctx, inputs[0], starts, ctx.shape(2), axes, ctx.ints(4) if ctx.has(4) else [1] * len(starts))


def _sliced(ctx: Context, x: Any, starts: list[Any], ends: list[Any], axes: list[int], steps: list[int]) -> Any:
    if not len(starts) == len(ends) == len(axes) == len(steps):
        ctx.fail(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    if 0 in steps:
        ctx.fail("a step of 0")
    extents = ctx.extents(0)
    if len({ctx.axis(axis) for axis in axes}) < len(axes):
        ctx.fail(f"an axis is named twice: {axes}")
    low: list[Any] = []
    high: list[Any] = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = extents[axis]
        if all(isinstance(one, int) for one in (start, end, extent)):
            taken = range(extent)[start : end if step > 0 or end >= -extent else None : step]
            low.append(taken.start)
            # Backwards to the first element the stop is -1, which would be read as the last one.
            high.append(taken.stop if taken.stop >= 0 else -extent - 1)
        else:
            low.append(start)
            high.append(end)
    return R.strided_slice(x, axes, low, high, steps)


@onnx_op("Expand")
def expand(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements repeated along new axes and those of extent 1; an extent of 1 in the shape leaves what is there."""
    old, new = ctx.extents(0), ctx.shape(1)
    rank = max(len(old), len(new))
    old, new = [1] * (rank - len(old)) + old, [1] * (rank - len(new)) + new
    return R.broadcast_to(inputs[0], ShapeExpr(tuple(a if isinstance(b, int) and b == 1 else b for a, b in zip(old, new, strict=True))))


@onnx_op("Tile")
def tile_one(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The tensor repeated along one axis."""
    times = [1] * ctx.rank(0)
    times[ctx.axis(ctx.integer(2))] = ctx.integer(1)
    return R.tile(inputs[0], times)


@onnx_op("Tile", since=6)
def tile(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The tensor repeated along each axis."""
    return R.tile(inputs[0], ctx.ints(1))


def _axes(ctx: Context, attrs: Attributes) -> list[int] | None:
    if ctx.has(1):
        return ctx.ints(1)
    found: list[int] | None = attrs.ints("axes", None)
    return found


@onnx_op("Squeeze")
def squeeze(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Without axes of extent 1."""
    return R.squeeze(inputs[0], _axes(ctx, attrs))


@onnx_op("Unsqueeze")
def unsqueeze(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """With new axes of extent 1, at these places of the result."""
    axes = _axes(ctx, attrs)
    if axes is None:
        ctx.fail("Unsqueeze lacks its axes")
    return R.expand_dims(inputs[0], axes) if axes else inputs[0]


@onnx_op("Pad")
def pad_attributes(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Borders, which attributes say."""
    pads = attrs.ints("paddings") if "paddings" in attrs else attrs.ints("pads")
    return _padded(ctx, inputs, attrs, pads, list(range(ctx.rank(0))), attrs.float("value", 0.0))


@onnx_op("Pad", since=11)
def pad(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Borders, which operands say."""
    rank = ctx.rank(0)
    axes = [ctx.axis(one) for one in ctx.ints(3)] if ctx.has(3) else list(range(rank))
    value: Any = 0
    if ctx.has(2):
        value = ctx.number(2)
    return _padded(ctx, inputs, attrs, ctx.ints(1), axes, value)


def _padded(ctx: Context, inputs: Inputs, attrs: Attributes, pads: list[int], axes: list[int], value: Any) -> Any:
    mode = attrs.string("mode", "constant")
    if len(pads) != 2 * len(axes):
        ctx.fail(f"{len(pads)} pads for {len(axes)} axes")
    width = [0] * (2 * ctx.rank(0))
    for n, axis in enumerate(axes):
        width[2 * axis], width[2 * axis + 1] = pads[n], pads[len(axes) + n]
    dtype = ctx.dtype(0)
    if dtype == "bool":
        return R.astype(R.nn.pad(R.astype(inputs[0], "uint8"), width, int(bool(value)), mode), "bool")
    return R.nn.pad(inputs[0], width, float(value) if dtype.startswith(("float", "bfloat")) else int(value), mode)


def _end(ctx: Context, index: int) -> Any:
    """A number or an expression; floating-point operands may be casts of extents (YOLO's grids run to those of its images)."""
    value = ctx.value(index)
    if value is not None and value.integers is not None:
        return np.ravel(value.integers.values).tolist()[0]
    if not ctx.dtype(index).startswith("int"):
        return ctx.number(index)
    found = ctx.shape(index)
    if len(found) != 1:
        ctx.fail(f"operand {index} has to be one number, and is {len(found)}")
    return found[0]


@onnx_op("Range")
def arange(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Numbers from the first operand to before the second, so far apart as the third says."""
    start, limit, delta = (_end(ctx, n) for n in range(3))
    if any(isinstance(one, PrimExpr) for one in (start, limit, delta)):
        if any(isinstance(one, float) and not one.is_integer() for one in (start, limit, delta)):
            ctx.fail("numbers between expressions of shapes that aren't integers")
        start, limit, delta = (int(one) if isinstance(one, float) else one for one in (start, limit, delta))
    if delta == 0:
        ctx.fail("a step of 0")
    if isinstance(limit, PrimExpr) and start == 0 and delta == 1:
        count: Any = limit
    elif any(isinstance(one, PrimExpr) for one in (start, limit, delta)):
        # Downwards it is the same count from the other end, so that what is divided isn't negative.
        downwards = isinstance(delta, int) and delta < 0
        count = (start - limit - delta - 1) // -delta if downwards else (limit - start + delta - 1) // delta
    else:
        count = max(0, int(np.ceil((limit - start) / delta)))
    dtype = ctx.dtype(0)
    places = ctx.emit(R.arange(0, count, 1, dtype="int64"))
    return R.add(R.multiply(R.astype(places, dtype) if dtype != "int64" else places, inputs[2]), inputs[0])


def _blocks(ctx: Context, attrs: Attributes) -> list[Any]:
    """The extents of a batch of images, and the size of its blocks."""
    extents, block = ctx.extents(0), attrs.int("blocksize")
    if len(extents) != 4 or block < 1:
        ctx.fail(f"blocks of {block} pixels of data of {len(extents)} axes, which are 4")
    return [*extents, block]


@onnx_op("DepthToSpace")
def depth_to_space(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Channels moved into blocks of pixels."""
    n, c, h, w, block = _blocks(ctx, attrs)
    if attrs.string("mode", "DCR") == "DCR":
        apart = R.permute_dims(R.reshape(inputs[0], [n, block, block, c // (block * block), h, w]), [0, 3, 4, 1, 5, 2])
    else:
        apart = R.permute_dims(R.reshape(inputs[0], [n, c // (block * block), block, block, h, w]), [0, 1, 4, 2, 5, 3])
    return R.reshape(apart, [n, c // (block * block), h * block, w * block])


@onnx_op("SpaceToDepth")
def space_to_depth(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Blocks of pixels moved into channels: behind them, or in mode CRD in front of what they are of."""
    order = [0, 3, 5, 1, 2, 4] if attrs.string("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    n, c, h, w, block = _blocks(ctx, attrs)
    apart = R.permute_dims(R.reshape(inputs[0], [n, c, h // block, block, w // block, block]), order)
    return R.reshape(apart, [n, c * block * block, h // block, w // block])
