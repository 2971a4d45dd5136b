"""Images in other sizes, and sampled on grids."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .... import relax
from ....tir.arithmetic import as_int, floordiv
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op


def _scaled(extent: Any, scale: float) -> Any:
    """An extent times a scale, rounded down."""
    known = as_int(extent)
    if known is not None:
        # 0.7 in float32 times 10 is 6.9999999, and 7 elements are meant.
        return int(np.floor(known * float(np.float32(scale)) + 1e-6))
    exact = Fraction(scale).limit_denominator(1 << 16)
    return floordiv(extent * exact.numerator, exact.denominator)


def _resized(
    ctx: Context,
    data: Any,
    axes: Sequence[int],
    size: Sequence[Any],
    scales: Sequence[float] | None,
    roi: Sequence[float] | None,
    **options: Any,
) -> Any:
    """A call of resize along the axes whose extents change."""
    extents = ctx.extents(0)
    count = len(axes)
    # Compared as texts: `!=` of expressions asks whether they are one object.
    kept = [n for n in range(count) if roi is not None or (scales is not None and scales[n] != 1) or str(size[n]) != str(extents[axes[n]])]
    if not kept:
        return ctx.value(0)
    # R.image.resize takes axes from the front on.
    kept.sort(key=lambda n: axes[n])
    parts = None if roi is None else [float(roi[n + half]) for half in (0, count) for n in kept]
    return R.image.resize(
        data, [size[n] for n in kept], [axes[n] for n in kept], scales=None if scales is None else [float(scales[n]) for n in kept],
        roi=parts, **options,
    )  # fmt: skip


_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic", "bilinear": "linear"}


def _method(ctx: Context, attrs: Attributes) -> str:
    mode = attrs.string("mode", "nearest")
    if mode not in _METHODS:
        ctx.fail(f"no mode {mode!r}; there are {', '.join(_METHODS)}")
    return _METHODS[mode]


@onnx_op("Upsample")
def upsample(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """More elements along axes, by scales."""
    if ctx.opset < 7 and "height_scale" in attrs:
        scales = [1.0, 1.0, attrs.float("height_scale"), attrs.float("width_scale")]
    else:
        scales = attrs.floats("scales") if ctx.opset < 9 else [float(one) for one in np.ravel(ctx.constant(1))]
    _check_count(ctx, len(scales), ctx.rank(0))
    size = [_scaled(extent, scale) for extent, scale in zip(ctx.extents(0), scales, strict=True)]
    options = {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
    return _resized(ctx, inputs[0], range(len(size)), size, scales, None, method=_method(ctx, attrs), **options)


@onnx_op("Resize", since=10)
def resize_10(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The first one is as Upsample, and makes things smaller too."""
    return upsample(ctx, inputs, attrs)


@onnx_op("Resize", since=11)
def resize(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Other extents along axes, by scales or as stated."""
    extents, rank = ctx.extents(0), ctx.rank(0)
    axes = [ctx.axis(axis) for axis in attrs.ints("axes", list(range(rank)))]
    mode = attrs.string("coordinate_transformation_mode", "half_pixel")
    roi = None
    if mode == "tf_crop_and_resize":
        roi = [float(one) for one in np.ravel(ctx.constant(1))]
        _check_count(ctx, len(roi), 2 * len(axes))
    scales: list[float] | None = None
    if ctx.has(2) and not (ctx.is_constant(2) and not np.size(ctx.constant(2))):
        scales = [float(one) for one in np.ravel(ctx.constant(2))]
        _check_count(ctx, len(scales), len(axes))
        size = [_scaled(extents[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
    else:
        size = ctx.shape(3)
        _check_count(ctx, len(size), len(axes))
        size, scales = _by_policy(ctx, attrs.string("keep_aspect_ratio_policy", "stretch"), [extents[axis] for axis in axes], size)
    return _resized(
        ctx, inputs[0], axes, size, scales, roi,
        method=_method(ctx, attrs),
        coordinate_transformation_mode=mode,
        rounding_method=attrs.string("nearest_mode", "round_prefer_floor"),
        cubic_alpha=attrs.float("cubic_coeff_a", -0.75),
        cubic_exclude=attrs.bool("exclude_outside", False),
        extrapolation_value=attrs.float("extrapolation_value", 0.0),
        antialias=attrs.bool("antialias", False),
    )  # fmt: skip


def _check_count(ctx: Context, given: int, axes: int) -> None:
    if given != axes:
        ctx.fail(f"{given} scales or sizes for {axes} axes")


def _by_policy(ctx: Context, policy: str, extents: Sequence[Any], size: Sequence[Any]) -> tuple[list[Any], list[float] | None]:
    """Extents of one scale for all axes, the least or the greatest of those that are stated."""
    if policy == "stretch":
        return list(size), None
    known = [(as_int(old), as_int(new)) for old, new in zip(extents, size, strict=True)]
    ratios = [new / old for old, new in known if old and new is not None]
    if len(ratios) != len(known):
        ctx.fail(f"keep_aspect_ratio_policy {policy!r} of extents that aren't known")
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [int((old or 0) * scale + 0.5) for old, _ in known], [scale] * len(known)


@onnx_op("GridSample")
def grid_sample(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Images or volumes sampled at the points of a grid, whose coordinates are its last axis."""
    rank = ctx.rank(0)
    mode = attrs.string("mode", "bilinear" if ctx.opset < 20 else "linear")
    method = {"linear": "bilinear", "bilinear": "bilinear", "cubic": "bicubic", "bicubic": "bicubic", "nearest": "nearest"}.get(mode)
    if method is None:
        ctx.fail(f"no mode {mode!r}")
    points = R.permute_dims(inputs[1], [0, rank - 1, *range(1, rank - 1)])
    layout = "NCHW" if rank == 4 else "NCDHW"
    align = attrs.bool("align_corners", False)
    return R.image.grid_sample(inputs[0], points, method, layout, attrs.string("padding_mode", "zeros"), align)
