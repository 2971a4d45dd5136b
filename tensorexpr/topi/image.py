"""Images in other sizes: resize in one to three dimensions, crops, sampling on grids, morphological dilation.

Every method of resizing is a weighted sum over a few neighbours along each spatial axis: one for the nearest element, two for linear and
four for cubic interpolation. Indices beyond a border take the element at the border.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np

from ..dataclass import dataclass, replace
from ..errors import DeclarationError
from ..later import later
from ..te.declare import compute, reduce_axis
from ..te.reducer import max as te_max
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import as_int, cast, const
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr, Var
from .nn.padding import pad
from .transform import injective
from .utils import equal_const_int, get_const_tuple, pad_pairs, spread

_HELPERS = """can_convert_multiply_to_intdiv get_1d_indices get_1d_pixel get_2d_indices get_2d_pixel get_3d_indices get_3d_pixel
get_closest_index get_inx nchw_pack_layout nchw_xc_layout ncw_pack_layout ncw_xc_layout"""
_F = "float32"
# Keeps floor and ceil of a coordinate on their side of an integer that rounding has moved a little.
_EPSILON = 1e-5


@dataclass(frozen=True)
class Axis:
    """One spatial axis of a resize: how many elements there are and will be, and for crops the part in between, from 0 to 1.

    `scale` is how many times as long the result is, where that is stated; else it follows from the extents.
    """

    size: PrimExpr
    target: PrimExpr
    start: Any = None
    end: Any = None
    scale: float | None = None

    @property
    def step(self) -> PrimExpr:
        """Elements of the input for one of the result."""
        return _ratio(self.size, self.target) if self.scale is None else const(float(np.float32(1 / self.scale)), _F)

    @property
    def length(self) -> PrimExpr:
        """The extent of the result, before it is rounded."""
        return cast(self.target, _F) if self.scale is None else cast(self.size, _F) * const(self.scale, _F)


def _ratio(size: Any, target: Any) -> PrimExpr:
    known, wanted = as_int(size), as_int(target)
    if known is not None and wanted:  # divided once, in the precision of the coordinates
        return const(float(np.float32(known) / np.float32(wanted)), _F)
    return arithmetic.div(cast(size, _F), cast(target, _F))


def _half_pixel(x: PrimExpr, axis: Axis) -> PrimExpr:
    return (x + 0.5) * axis.step - 0.5


def _half_pixel_symmetric(x: PrimExpr, axis: Axis) -> PrimExpr:
    rest = 1.0 - cast(axis.target, _F) / axis.length  # what rounding has cut off the extent is missing at both ends
    return cast(axis.size, _F) * 0.5 * rest + _half_pixel(x, axis)


def _align_corners(x: PrimExpr, axis: Axis) -> PrimExpr:
    if axis.scale is None:
        # Of one element x is 0, so any divisor but 0 will do.
        return _ratio(axis.size - 1, arithmetic.maximum(axis.target - 1, 1)) * x
    last = axis.length - 1.0
    return intrin.select(last > 0.0, cast(axis.size - 1, _F) / arithmetic.maximum(last, 1e-6) * x, const(0.0, _F))


def _pytorch_half_pixel(x: PrimExpr, axis: Axis) -> PrimExpr:
    return intrin.if_then_else(axis.target > 1, _half_pixel(x, axis), const(0.0, _F))


def _crop(x: PrimExpr, axis: Axis) -> PrimExpr:
    last = cast(axis.size - 1, _F)
    steps = cast(arithmetic.maximum(axis.target - 1, 1), _F)
    # A single pixel stands for its crop by the middle of it.
    middle = (axis.start + axis.end) * last * 0.5
    return intrin.if_then_else(axis.target > 1, axis.start * last + x * (axis.end - axis.start) * last / steps, middle)


# Where an output pixel lies among the input pixels, by the names of ONNX ("Resize", coordinate_transformation_mode).
COORDINATES: dict[str, Callable[[PrimExpr, Axis], PrimExpr]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "align_corners": _align_corners,
    "asymmetric": lambda x, axis: axis.step * x,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_half_pixel_for_nn": lambda x, axis: (x + 0.5) * axis.step,
    "tf_crop_and_resize": _crop,
}
ROUNDINGS: dict[str, Callable[[PrimExpr], PrimExpr]] = {
    "round": intrin.round,
    "round_prefer_floor": lambda x: intrin.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: intrin.floor(x + 0.5),
    "floor": lambda x: intrin.floor(x + _EPSILON),
    "ceil": lambda x: intrin.ceil(x - _EPSILON),
}
Tap = tuple[PrimExpr, PrimExpr]  # an index and its weight


def _cubic_weight(t: PrimExpr, place: int, alpha: float) -> PrimExpr:
    """The weight of neighbour `place` - 1 of a point at a fraction `t` behind neighbour 0 (Keys 1981, eq. 4 with a = alpha)."""
    if place == 0:
        return alpha * (t * t * t - 2.0 * t * t + t)
    if place == 1:
        return (alpha + 2.0) * t * t * t - (alpha + 3.0) * t * t + 1.0
    if place == 2:
        return -(alpha + 2.0) * t * t * t + (2.0 * alpha + 3.0) * t * t - alpha * t
    return alpha * (t * t - t * t * t)


def _taps(method: str, x: PrimExpr, size: PrimExpr, rounding: str, alpha: float, exclude: bool) -> list[Tap]:
    """The neighbours of a coordinate along one axis, with their weights."""
    if method == "nearest_neighbor":
        return [(_at_border(cast(ROUNDINGS[rounding](x), "int32"), size), const(1.0, _F))]
    first = intrin.floor(x)
    t, index = x - first, cast(first, "int32")
    if method == "linear":
        return [(_at_border(index, size), 1.0 - t), (_at_border(index + 1, size), t)]
    taps = [(index + place - 1, _cubic_weight(t, place, alpha)) for place in range(4)]
    if exclude:
        inside = [(i, intrin.if_then_else(arithmetic.all(i >= 0, i < size), weight, const(0.0, _F))) for i, weight in taps]
        total: PrimExpr = const(0.0, _F)
        for _, weight in inside:
            total = total + weight
        taps = [(i, weight / total) for i, weight in inside]
    return [(_at_border(i, size), weight) for i, weight in taps]


def _at_border(index: PrimExpr, size: PrimExpr) -> PrimExpr:
    return arithmetic.maximum(arithmetic.minimum(index, size - 1), 0)


@dataclass(frozen=True)
class _Resize:
    """What the resizes of all ranks share."""

    where: str
    data: Tensor
    spatial: tuple[int, ...]  # the axes that are resized
    method: str
    mode: str
    rounding: str
    alpha: float
    exclude: bool

    def checked(self) -> None:
        """Refuse a method, a mode or a rounding that there isn't."""
        if self.method not in ("nearest_neighbor", "linear", "cubic"):
            raise DeclarationError(f'{self.where}: method is {self.method!r}; it takes "nearest_neighbor", "linear" or "cubic"')
        if self.mode not in COORDINATES:
            raise DeclarationError(f"{self.where}: no coordinate_transformation_mode {self.mode!r}; it takes {', '.join(COORDINATES)}")
        if self.method == "nearest_neighbor" and self.rounding not in ROUNDINGS:
            raise DeclarationError(f"{self.where}: no rounding_method {self.rounding!r}; it takes {', '.join(ROUNDINGS)}")

    def element(self, index: Sequence[PrimExpr], coordinates: Sequence[PrimExpr], dtype: str) -> PrimExpr:
        """The interpolated element at coordinates of the spatial axes; the other axes are those of `index`."""
        if self.method == "nearest_neighbor":
            at = list(index)
            for axis, x in zip(self.spatial, coordinates, strict=True):
                at[axis] = _taps(self.method, x, self.data.shape[axis], self.rounding, self.alpha, False)[0][0]
            # Read and not weighed: in float32 integers beyond 2^24 would lose digits.
            return cast(self.data(*at), dtype)
        taps = [
            _taps(self.method, x, self.data.shape[axis], self.rounding, self.alpha, self.exclude)
            for axis, x in zip(self.spatial, coordinates, strict=True)
        ]
        total: PrimExpr | None = None
        for choice in combinations(*taps):
            at, weight = list(index), choice[0][1]
            for number, (axis, (place, factor)) in enumerate(zip(self.spatial, choice, strict=True)):
                at[axis] = place
                weight = weight * factor if number else factor
            term = cast(self.data(*at), _F) * weight
            total = term if total is None else total + term
        assert total is not None
        return cast(total, dtype)


def _rows_first(job: _Resize, along: Sequence[Axis]) -> tuple[_Resize, Sequence[Axis]]:
    """A resize whose last axis is done already, and what is left of its axes: where that reads fewer elements one by one.

    Neighbours along the last axis of memory are apart in what they read. A pass over it alone takes the taps of one axis, for each row of
    the data, and the other axes then add up whole rows. Only floats, as roundings differ, and not where there are fewer rows afterwards.
    """
    last, others = job.data.ndim - 1, along[:-1]
    known = [(as_int(axis.size), as_int(axis.target)) for axis in others]
    grows = all(size and target for size, target in known) and prod(a or 0 for a, _ in known) <= prod(b or 0 for _, b in known)
    is_float = parse_dtype(job.data.dtype).is_float
    if (
        not others
        or not grows
        or not is_float
        or job.spatial[-1] != last
        or job.method == "nearest_neighbor"
        or job.mode == "tf_crop_and_resize"
    ):
        return job, along
    row = replace(job, spatial=(last,))

    def body(*i: Var) -> PrimExpr:
        return row.element(i, [COORDINATES[job.mode](cast(i[-1], _F), along[-1])], _F)

    resized = injective([*job.data.shape[:-1], along[-1].target], body, "resize_rows")
    return replace(job, data=resized, spatial=job.spatial[:-1]), others


def _spatial_axes(where: str, layout: str, letters: str) -> tuple[int, ...]:
    """The places of the spatial letters of a layout; numbers before a blocked letter are no axes of their own."""
    plain = "".join(c for c in layout if not c.isdigit())
    if sorted(c for c in plain if c in letters) != sorted(letters) or any(c not in f"NC{letters}cn" for c in plain):
        raise DeclarationError(f"{where}: layout is {layout!r}; it has N, C and {', '.join(letters)} once each, as in 'NC{letters}'")
    return tuple(plain.index(c) for c in letters)


def _default_rounding(mode: str) -> str:
    return "round" if mode == "align_corners" else "floor"


def _resize(
    where: str, letters: str, data: Tensor, roi: Any, size: Any, layout: str, method: str, mode: str, rounding: str, alpha: float,
    exclude: Any, extrapolation: Any, out_dtype: str | None, output_shape: Any
) -> Tensor:  # fmt: skip
    spatial = _spatial_axes(where, layout, letters)
    method = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "nearest": "nearest_neighbor"}.get(method, method)
    job = _Resize(where, data, spatial, method, mode, rounding or _default_rounding(mode), float(alpha), bool(exclude))
    job.checked()
    sizes = spread(where, "size", size, len(letters))
    dtype = out_dtype or data.dtype
    shape = list(data.shape)
    for axis, target in zip(spatial, sizes, strict=True):
        shape[axis] = arithmetic.convert(target)
    if output_shape is not None:
        shape = [arithmetic.convert(extent) for extent in output_shape]
    axes: Sequence[Axis] = [
        Axis(data.shape[axis], shape[axis], *_roi_of(roi, number, len(spatial), axis, data.ndim)) for number, axis in enumerate(spatial)
    ]

    factors = [_repeats(job, axis) for axis in axes]
    job, axes = _rows_first(job, axes) if parse_dtype(dtype).is_float else (job, axes)

    def body(*i: Var) -> PrimExpr:
        if all(factors):
            at = list[PrimExpr](i)
            for place, factor in zip(spatial, factors, strict=True):
                at[place] = arithmetic.floordiv(i[place], factor)
            return cast(data(*at), dtype)
        places = [COORDINATES[mode](cast(i[place], _F), axis) for place, axis in zip(job.spatial, axes, strict=True)]
        found = job.element(i, places, dtype)
        # In other modes coordinates are less than an element outside, and the border's element is meant.
        if mode != "tf_crop_and_resize":
            return found
        return intrin.if_then_else(_beyond(places, axes), cast(const(extrapolation, _F), dtype), found)

    return injective(shape, body, "resize")


def _repeats(job: _Resize, axis: Axis) -> int:
    """How many results in a row are the same element, where a division of integers says which; else 0.

    Twice as many elements, "asymmetric", rounded down: x[0], x[0], x[1], x[1], ...
    """
    size, target = as_int(axis.size), as_int(axis.target)
    plain = (job.method, job.mode, job.rounding) == ("nearest_neighbor", "asymmetric", "floor")
    return target // size if plain and size and target and target % size == 0 else 0


def _beyond(places: Sequence[PrimExpr], axes: Sequence[Axis]) -> PrimExpr:
    """Whether coordinates lie outside of the image, by more than a rounding."""
    outside = [(x < -_EPSILON, x > cast(axis.size - 1, _F) + _EPSILON) for x, axis in zip(places, axes, strict=True)]
    return arithmetic.any(*(test for pair in outside for test in pair))


def _roi_of(roi: Any, number: int, count: int, axis: int, ndim: int) -> tuple[Any, Any]:
    """Begin and end of the part that is resized: `roi` has all begins, then all ends, of the spatial or of all axes."""
    if roi is None or (not isinstance(roi, Tensor) and not len(roi)):
        return const(0.0, _F), const(1.0, _F)
    length = get_const_tuple(roi.shape)[0] if isinstance(roi, Tensor) else len(roi)
    place, step = (axis, ndim) if length == 2 * ndim else (number, count)
    begin, end = (roi(n) if isinstance(roi, Tensor) else arithmetic.convert(roi[n]) for n in (place, place + step))
    return cast(begin, _F), cast(end, _F)


def resize1d(
    data: Tensor,
    roi: Any,
    size: Any,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Any = None,
) -> Tensor:
    """`data` with another number of elements along W; see `resize2d`."""
    return _resize(
        "resize1d", "W", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude,
        extrapolation_value, out_dtype, output_shape
    )  # fmt: skip


def resize2d(
    data: Tensor,
    roi: Any,
    size: Any,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Any = None,
) -> Tensor:
    """Images in another size.

    Args:
        data: of the layout.
        roi: for "tf_crop_and_resize": the part that is resized, as begins and then ends from 0 to 1, of H and W or of all axes.
        size: (height, width) of the result.
        layout: "NCHW", "NHWC", "NCHW4c", ...
        method: "nearest_neighbor", "linear" or "cubic".
        coordinate_transformation_mode: where an output pixel lies among the input pixels, as ONNX names it.
        rounding_method: of coordinates, for the nearest element: "round", "floor", "ceil", "round_prefer_floor" or "round_prefer_ceil";
            without it "round" for "align_corners" and else "floor".
        bicubic_alpha: the slope of the cubic kernel at 1.
        bicubic_exclude: leave out neighbours beyond the border, and weigh the others accordingly.
        extrapolation_value: what a crop holds beyond the image.
        out_dtype: of the result; that of `data` by default.
        output_shape: extents of the result, where they are no constants.

    Returns:
        A tensor of the layout of `data`.

    Raises:
        DeclarationError: for a layout, method, mode or rounding that doesn't exist.
    """
    return _resize(
        "resize2d", "HW", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha, bicubic_exclude,
        extrapolation_value, out_dtype, output_shape
    )  # fmt: skip


def resize3d(
    data: Tensor,
    roi: Any,
    size: Any,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Any = None,
) -> Tensor:
    """Volumes in another size (depth, height, width); see `resize2d`."""
    return _resize(
        "resize3d", "DHW", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
        bicubic_exclude, extrapolation_value, out_dtype, output_shape
    )  # fmt: skip


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Any,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> Tensor:
    """Parts of images, each resized to `crop_size`.

    Args:
        data: of the layout.
        boxes: [n, 4]: y1, x1, y2, x2 of each part, from 0 to 1.
        box_indices: [n]: the image of each part.
        crop_size: (height, width) of the results.
        layout: "NCHW" or "NHWC".
        method: "bilinear" or "nearest_neighbor".
        extrapolation_value: what a part holds beyond its image.
        out_dtype: of the result; that of `data` by default.

    Returns:
        [n, C, height, width], or of the other layout.

    Raises:
        DeclarationError: for another layout or method.
    """
    spatial = _spatial_axes("crop_and_resize", layout, "HW")
    job = _Resize(
        "crop_and_resize", data, spatial, "linear" if method == "bilinear" else method, "tf_crop_and_resize", "round", -0.75, False
    )
    job.checked()
    sizes = spread("crop_and_resize", "crop_size", crop_size, 2)
    dtype = out_dtype or data.dtype
    shape = list(data.shape)
    shape[0] = boxes.shape[0]
    for axis, target in zip(spatial, sizes, strict=True):
        shape[axis] = arithmetic.convert(target)

    def body(*i: Var) -> PrimExpr:
        bounds = [(cast(boxes(i[0], n), _F), cast(boxes(i[0], n + 2), _F)) for n in range(2)]
        axes = [Axis(data.shape[axis], shape[axis], *bound) for axis, bound in zip(spatial, bounds, strict=True)]
        places = [_crop(cast(i[place], _F), axis) for place, axis in zip(spatial, axes, strict=True)]
        found = job.element((cast(box_indices(i[0]), "int32"), *i[1:]), places, dtype)
        return intrin.if_then_else(_beyond(places, axes), cast(const(extrapolation_value or 0.0, _F), dtype), found)

    return injective(shape, body, "crop_and_resize")


def _dilation2d(where: str, data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilations: Any, last: bool) -> Tensor:
    strides, dilation = spread(where, "stride", stride, 2), spread(where, "dilations", dilations, 2)
    taps = kernel.shape[:2] if last else kernel.shape[1:]
    spans = [(get_const_tuple(taps)[n] - 1) * dilation[n] + 1 for n in range(2)]
    pairs = pad_pairs(where, padding, spans)
    places = (1, 2) if last else (2, 3)
    before, after = [0] * 4, [0] * 4
    for place, (low, high) in zip(places, pairs, strict=True):
        before[place], after[place] = low, high
    padded = pad(data, before, after, intrin.min_value(data.dtype), name="pad_temp")
    shape = list(data.shape)
    for n, place in enumerate(places):
        shape[place] = arithmetic.floordiv(padded.shape[place] - spans[n], strides[n]) + 1
    ry, rx = reduce_axis((0, taps[0]), name="ry"), reduce_axis((0, taps[1]), name="rx")
    is_padded = not all(equal_const_int(side, 0) for pair in pairs for side in pair)

    def body(*i: Var) -> PrimExpr:
        at: list[Any] = list(i)
        at[places[0]] = i[places[0]] * strides[0] + ry.var * dilation[0]
        at[places[1]] = i[places[1]] * strides[1] + rx.var * dilation[1]
        weight = kernel(ry, rx, i[3]) if last else kernel(i[1], ry, rx)
        total: PrimExpr = padded(*at) + weight
        if "int" in data.dtype and is_padded:
            # The least integer plus a negative weight would be among the greatest: -128 - 1 is 127 in int8.
            inside = [
                test
                for place, (low, _) in zip(places, pairs, strict=True)
                for test in (at[place] >= low, at[place] < low + data.shape[place])
            ]
            total = intrin.select(arithmetic.all(*inside), total, intrin.min_value(data.dtype))
        return te_max(total, axis=[ry, rx])

    return compute(tuple(shape), body, name="dilation2d", tag=where)


def dilation2d_nchw(input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None = None) -> Tensor:
    """Morphological dilation: the largest sum of an element and a weight in each window; input [N, C, H, W], filter [C, kh, kw]."""
    made = _dilation2d("dilation2d_nchw", input, filter, stride, padding, dilations, last=False)
    return made if out_dtype in (None, made.dtype) else compute(made.shape, lambda *i: cast(made(*i), out_dtype), tag="elemwise")


def dilation2d_nhwc(input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None = None) -> Tensor:
    """As `dilation2d_nchw`, with input [N, H, W, C] and filter [kh, kw, C]."""
    made = _dilation2d("dilation2d_nhwc", input, filter, stride, padding, dilations, last=True)
    return made if out_dtype in (None, made.dtype) else compute(made.shape, lambda *i: cast(made(*i), out_dtype), tag="elemwise")


__getattr__, __dir__ = later(__name__, {".sampling": "affine_grid grid_sample", ".layouts": _HELPERS})
