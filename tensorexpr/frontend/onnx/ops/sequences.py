"""Sequences and optionals. Where lengths and positions are known, sequences are tuples and need no operator when the graph runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import relax
from ....relax.struct_info import TupleStructInfo
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op
_MOST_PARTS = 1 << 14  # each is a value of its own, and some 0.1 ms of the import


def _elements(ctx: Context, index: int) -> list[Any] | None:
    """The elements of a sequence of known length."""
    value = ctx.value(index)
    if value is None or not isinstance(value.info, TupleStructInfo):
        return None
    return [relax.TupleGetItem(ctx.expression(value), n) for n in range(len(value.info.fields))]


def _position(ctx: Context, index: int, count: int) -> int:
    place = ctx.integer(index)
    if not -count <= place < count:
        ctx.fail(f"position {place} of a sequence of {count}")
    return place % count


@onnx_op("SequenceEmpty")
def sequence_empty(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A sequence without elements."""
    return relax.Tuple(())


@onnx_op("SequenceConstruct")
def sequence_construct(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A sequence of tensors."""
    return relax.Tuple(tuple(inputs))


@onnx_op("SequenceAt")
def sequence_at(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """An element."""
    elements = _elements(ctx, 0)
    if elements is not None and ctx.is_constant(1):
        return elements[_position(ctx, 1, len(elements))]
    return R.sequence_at(inputs[0], inputs[1])


@onnx_op("SequenceInsert")
def sequence_insert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """One more element."""
    elements = _elements(ctx, 0)
    if elements is None or (ctx.has(2) and not ctx.is_constant(2)):
        return R.sequence_insert(inputs[0], inputs[1], inputs[2])
    place = ctx.integer(2) if ctx.has(2) else len(elements)
    if not -len(elements) <= place <= len(elements):
        ctx.fail(f"position {place} of a sequence of {len(elements)}")
    elements.insert(place, inputs[1])
    return relax.Tuple(tuple(elements))


@onnx_op("SequenceErase")
def sequence_erase(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """One element less."""
    elements = _elements(ctx, 0)
    if elements is None or (ctx.has(1) and not ctx.is_constant(1)):
        return R.sequence_erase(inputs[0], inputs[1])
    del elements[_position(ctx, 1, len(elements)) if ctx.has(1) else -1]
    return relax.Tuple(tuple(elements))


@onnx_op("SequenceLength")
def sequence_length(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """How many elements there are."""
    elements = _elements(ctx, 0)
    return R.sequence_length(inputs[0]) if elements is None else np.asarray(len(elements), np.int64)


@onnx_op("ConcatFromSequence")
def concat_from_sequence(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The elements as one tensor."""
    axis, is_new, elements = attrs.int("axis"), attrs.bool("new_axis", False), _elements(ctx, 0)
    if not elements:
        return R.sequence_concat(inputs[0], axis, is_new)
    return R.concat([ctx.emit(R.expand_dims(one, axis) if is_new else one) for one in elements], axis)


@onnx_op("SplitToSequence")
def split_to_sequence(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A tensor in parts."""
    axis, data = ctx.axis(attrs.int("axis", 0)), inputs[0]
    extent = ctx.extents(0)[axis]
    keeps = ctx.has(1) or attrs.bool("keepdims", True)
    if not isinstance(extent, int) or (ctx.has(1) and not ctx.is_constant(1)):
        if not keeps:
            ctx.fail(f"parts without their axis, whose extent isn't known: {extent}")
        return R.sequence_split(data, inputs[1] if ctx.has(1) else relax.const(1, "int64"), axis)
    sizes = np.asarray(ctx.constant(1)) if ctx.has(1) else np.asarray(1)
    if sizes.ndim == 0 and (sizes < 1 or extent // sizes > _MOST_PARTS):
        ctx.fail(f"parts of {sizes} elements of an axis of {extent}: there are 1 to {_MOST_PARTS} parts")
    if sizes.ndim > 0 and (sizes.min(initial=0) < 0 or sizes.sum() != extent):
        ctx.fail(f"parts of {sizes.tolist()} elements of an axis of {extent}")
    cuts = np.cumsum(sizes)[:-1].tolist() if sizes.ndim else list(range(int(sizes), extent, int(sizes)))
    parts = ctx.emit(R.split(data, cuts, axis))
    if keeps:
        return parts
    return relax.Tuple(tuple(ctx.emit(R.squeeze(relax.TupleGetItem(parts, n), [axis])) for n in range(len(cuts) + 1)))


@onnx_op("Optional")
def optional(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A value, or none."""
    return ctx.value(0) or R.null_value()


@onnx_op("OptionalHasElement")
def optional_has_element(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Whether there is a value."""
    value = ctx.value(0)
    if value is None or not isinstance(value.info, relax.ObjectStructInfo):
        return np.asarray(value is not None)
    return R.has_value(inputs[0])


@onnx_op("OptionalGetElement")
def optional_get_element(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The value."""
    if ctx.value(0) is None:
        ctx.fail("the optional has no value")
    return ctx.value(0)
