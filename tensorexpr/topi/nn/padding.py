"""Tensors with borders: constant padding, mirrored padding and dilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import cast, const, floordiv
from ...tir.expr import PrimExpr, Var
from ...topi.utils import pad_pairs, spread
from .. import tag
from ..math import axis_names
from ..utils import equal_const_int, extent_value, is_zero

# The padded data, strides, dilations, and the extents of the result.
BlockedWindows = tuple[Tensor, tuple[Any, ...], tuple[Any, ...], tuple[Any, Any]]


def pad(
    data: Tensor,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
    attrs: Mapping[str, Any] | None = None,
) -> Tensor:
    """`data` with `pad_before[n]` elements in front of axis n and `pad_after[n]` behind it, all of `pad_value`.

    Without `pad_after` both sides are as `pad_before` says. Negative numbers cut elements off.

    Args:
        data: [any shape], of any dtype.
        pad_before, pad_after: a number or an expression for each axis.
        pad_value: a number, or an expression.
        name, attrs: of the operation.

    Returns:
        A larger tensor of the dtype of `data`.

    Raises:
        DeclarationError: unless there is one number for each axis.
    """
    before = tuple(extent_value(n) for n in pad_before)
    after = before if pad_after is None else tuple(extent_value(n) for n in pad_after)
    if len(before) != data.ndim or len(after) != data.ndim:
        raise DeclarationError(f"pad: {data.name} has {data.ndim} dimensions; pad_before has {len(before)} numbers, pad_after {len(after)}")
    shape = [extent_value(extent + low + high) for extent, low, high in zip(data.shape, before, after, strict=True)]
    if any(isinstance(extent, int) and extent < 0 for extent in shape):
        raise DeclarationError(f"pad: the padding {before}, {after} of {data.name} leaves extents {shape}; they can't be negative")
    value = cast(pad_value, data.dtype)

    def body(*i: Var) -> PrimExpr:
        inside = []
        indices = []
        for index, extent, low, high in zip(i, data.shape, before, after, strict=True):
            if not is_zero(low):
                inside.append(index >= low)
            if not is_zero(high):
                inside.append(index < extent + low)
            indices.append(index if is_zero(low) else index - low)
        return intrin.if_then_else(arithmetic.all(*inside), data(*indices), value) if inside else data(*indices)

    return compute(shape, body, name, f"{tag.INJECTIVE},pad", attrs, axis_names(data.ndim))


def mirror_pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, mode: str = "SYMMETRIC", name: str = "MirrorPadInput"
) -> Tensor:
    """`data` with borders that mirror it, including the edge element ("SYMMETRIC") or without it ("REFLECT").

    Args:
        data: [any shape], of any dtype.
        pad_before, pad_after: a number for each axis, less than its extent (with "SYMMETRIC" at most that).
        mode: "SYMMETRIC" or "REFLECT".
        name: of the operation.

    Returns:
        A larger tensor of the dtype of `data`.
    """
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise DeclarationError(f'mirror_pad: mode is {mode!r}; it takes "SYMMETRIC" or "REFLECT"')
    edge = 1 if mode == "SYMMETRIC" else 0
    after = tuple(pad_before) if pad_after is None else tuple(pad_after)
    shape = [extent + low + high for extent, low, high in zip(data.shape, pad_before, after, strict=True)]

    def mirrored(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
        # -1 is element 0 where the edge is mirrored too, else 1; at the other end likewise.
        front = intrin.select(index < 0, -index - edge, index)
        return intrin.select(front >= extent, extent * 2 - front - (2 - edge), front)

    def body(*i: Var) -> PrimExpr:
        return data(*(mirrored(index - low, extent) for index, low, extent in zip(i, pad_before, data.shape, strict=True)))

    return compute(shape, body, name, tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def index_pad(data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int], mode: str, name: str = "PadInput") -> Tensor:
    """`data` with borders of its own elements.

    Args:
        data: [any shape], of any dtype; axes that are padded have elements.
        pad_before, pad_after: a number for each axis; negative ones cut elements off.
        mode: "edge" repeats the outermost element, "reflect" mirrors at it, "circular" starts again from the other end.
        name: of the operation.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        DeclarationError: for another mode.
    """
    if mode not in ("edge", "reflect", "circular"):
        raise DeclarationError(f'index_pad: mode is {mode!r}; it takes "edge", "reflect" or "circular"')
    shape = [extent_value(extent + low + high) for extent, low, high in zip(data.shape, pad_before, pad_after, strict=True)]

    def source(index: PrimExpr, extent: PrimExpr, low: int, high: int) -> PrimExpr:
        own = index - low
        if mode == "edge":
            return arithmetic.maximum(arithmetic.minimum(own, extent - 1), 0)
        if mode == "circular":
            return arithmetic.floormod(own, extent)
        known = extent_value(extent)
        if isinstance(known, int) and max(low, high) < known:  # one reflection at either end
            front = intrin.select(own < 0, -own, own)
            return intrin.select(front >= extent, extent * 2 - 2 - front, front)
        # Borders wider than the axis go back and forth: 0 1 2 1 | 0 1 2 1, of one element 0 | 0.
        period = arithmetic.maximum(extent * 2 - 2, 1)
        turned = arithmetic.floormod(own, period)
        return intrin.select(turned >= extent, period - turned, turned)

    def body(*i: Var) -> PrimExpr:
        given = zip(i, data.shape, pad_before, pad_after, strict=True)
        return data(*(source(index, extent, low, high) if low or high else index for index, extent, low, high in given))

    return compute(shape, body, name, tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def dilate(data: Tensor, strides: Sequence[int], dilation_value: Any = 0.0, name: str = "DilatedInput") -> Tensor:
    """`data` with `strides[n] - 1` elements of `dilation_value` between neighbours along axis n."""
    return dilate_and_pad(data, strides, (0,) * data.ndim, (0,) * data.ndim, dilation_value, name)


def dilate_and_pad(
    data: Tensor, strides: Sequence[int], pad_before: Sequence[Any], pad_after: Sequence[Any], value: Any = 0.0, name: str = "DilatedInput"
) -> Tensor:
    """`data` dilated by `strides` and then padded, as one operator. Negative paddings cut elements off."""
    steps = tuple(strides)
    if len(steps) != data.ndim or any(step < 1 for step in steps):
        raise DeclarationError(f"dilate: {data.name} has {data.ndim} dimensions; strides {steps} must be one positive number for each")
    shape = [
        extent_value((extent - 1) * step + 1 + low + high)
        for extent, step, low, high in zip(data.shape, steps, pad_before, pad_after, strict=True)
    ]
    fill = cast(value, data.dtype)

    def body(*i: Var) -> PrimExpr:
        conditions, indices = [], []
        for index, extent, step, low, high in zip(i, data.shape, steps, pad_before, pad_after, strict=True):
            own = index if is_zero(low) else index - low
            if not is_zero(low):
                conditions.append(own >= 0)
            if not is_zero(high):
                conditions.append(own < (extent - 1) * step + 1)
            if step != 1:
                conditions.append(arithmetic.convert(arithmetic.floormod(own, step) == const(0)))
                own = arithmetic.floordiv(own, step)
            indices.append(own)
        return intrin.if_then_else(arithmetic.all(*conditions), data(*indices), fill) if conditions else data(*indices)

    return compute(shape, body, name, tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def needs_padding(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """False if all borders are empty."""
    return not all(equal_const_int(n, 0) for n in (*before, *after))


def blocked_windows(where: str, data: Tensor, taps: Sequence[Any], stride: Any, padding: Any, dilation: Any) -> BlockedWindows:
    """Where the windows of a convolution of data [N, C/c, H, W, c] lie.

    Args:
        taps: extents of the window.
        stride, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`.

    Returns:
        The padded data, strides, dilations and (height, width) of the result.
    """
    strides, dilations = spread(where, "stride", stride, 2), spread(where, "dilation", dilation, 2)
    windows = [extent_value((tap - 1) * step + 1) for tap, step in zip(taps, dilations, strict=True)]
    (top, bottom), (left, right) = pad_pairs(where, padding, windows)
    before, after = (0, 0, top, left, 0), (0, 0, bottom, right, 0)
    padded = pad(data, before, after, name="data_pad") if needs_padding(before, after) else data
    height, width = (
        extent_value(floordiv(extent - window, step) + 1) for extent, window, step in zip(padded.shape[2:4], windows, strides, strict=True)
    )
    return padded, strides, dilations, (height, width)
