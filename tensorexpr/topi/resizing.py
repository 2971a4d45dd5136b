"""Tensors resized along any of their axes, as ONNX's operator has it: by stated scales, and smoothed where they shrink.

Coordinates and weights along one axis are a table in float64 where extents are constants (`table`). The nearest elements of such a
table are quotients of integers wherever one fits, as it does for all modes whose scales are fractions: no rounding of coordinates
in float32 then moves an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ..errors import DeclarationError
from ..te.declare import compute, reduce_axis
from ..te.reducer import sum as te_sum
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import as_int, cast, const
from ..tir.expr import PrimExpr, Var
from .image import COORDINATES, Axis, _at_border, _beyond, _Resize, _rows_first
from .transform import injective

_F = "float32"
METHODS = {"nearest": "nearest_neighbor", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_NEAREST: dict[str, Callable[[Any], Any]] = {
    # Of halves away from zero, as `intrin.round` has it; NumPy's own takes the even neighbour.
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    # The same slack as of image.ROUNDINGS: a constant and a symbolic extent choose the same elements.
    "floor": lambda x: np.floor(x + 1e-5),
    "ceil": lambda x: np.ceil(x - 1e-5),
}


def coordinates(mode: str, size: int, target: int, scale: float | None = None, roi: Sequence[float] = (0.0, 1.0)) -> Any:
    """Where each element of a result of `target` elements lies among `size` elements, in float64.

    Args:
        mode: a name of `topi.image.COORDINATES`.
        scale: how many times as long the result is, before its extent is rounded; that of the extents by default.
        roi: begin and end of the part that is resized, for "tf_crop_and_resize".
    """
    x = np.arange(target, dtype=np.float64)
    factor = target / size if scale is None else scale
    length = size * factor
    half = (x + 0.5) / factor - 0.5
    if mode == "half_pixel":
        return half
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - target / length) + half
    if mode == "pytorch_half_pixel":
        return half if target > 1 else x * 0
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / factor
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        return x * (size - 1) / (length - 1) if length > 1 else x * 0
    begin, end = roi
    if target == 1:
        return (begin + end) * (size - 1) / 2 + x
    return begin * (size - 1) + x * (end - begin) * (size - 1) / (target - 1)


def _kernel(method: str, alpha: float, distance: Any) -> Any:
    """The weight of an element at a distance (for cubic interpolation Keys 1981, eq. 4)."""
    d = np.abs(distance)
    if method == "linear":
        return np.maximum(0, 1 - d)
    near = (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    return np.where(d <= 1, near, np.where(d < 2, alpha * (d**3 - 5 * d**2 + 8 * d - 4), 0))


def table(x: Any, size: int, method: str, rounding: str, alpha: float, exclude: bool, shrink: float = 1.0) -> tuple[Any, Any]:
    """The elements that each coordinate takes, and their weights.

    Args:
        x: coordinates.
        size: how many elements there are.
        method, rounding, alpha, exclude: as of `resize`.
        shrink: a scale less than 1 widens the kernel by its inverse.

    Returns:
        Indices and weights, [coordinates, taps].
    """
    if method == "nearest_neighbor":
        return np.clip(_NEAREST[rounding](x), 0, size - 1).astype(int)[:, None], np.ones((len(x), 1))
    reach = ceil((1 if method == "linear" else 2) / shrink)
    index = np.floor(x)[:, None] + np.arange(1 - reach, reach + 1)
    weight = _kernel(method, alpha, (index - x[:, None]) * shrink)
    if exclude:
        weight = np.where((index < 0) | (index >= size), 0, weight)
    # At its own width a kernel's weights sum to 1 wherever it stands.
    if exclude or shrink < 1:
        weight = weight / weight.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1).astype(int), weight


def quotient(indices: Any, step: float) -> tuple[int, int, int] | None:
    """Integers a, b and c such that the n-th index is (a * n + b) // c; None if there are none with a / c about `step`."""
    ratio = Fraction(step).limit_denominator(4096)
    a, c = ratio.numerator, ratio.denominator
    # b is an integer: a finer fraction of the same value has more of them to offer.
    for factor in (1, 2, 64):
        # (a n + b) // c is i for b from c i - a n to c i - a n + c - 1: one b has to lie in the ranges of all n.
        rest = indices * (c * factor) - a * factor * np.arange(len(indices))
        low, high = int(rest.max()), int(rest.min()) + c * factor - 1
        if low <= high:
            return a * factor, low, c * factor
    return None


def resize(
    data: Tensor,
    size: Sequence[Any],
    axes: Sequence[int],
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round_prefer_floor",
    cubic_alpha: float = -0.75,
    cubic_exclude: bool = False,
    extrapolation_value: float = 0.0,
    scales: Sequence[float] | None = None,
    roi: Sequence[float] | None = None,
    antialias: bool = False,
) -> Tensor:
    """`data` with other extents along some axes.

    Args:
        data: [any shape], of any dtype.
        size: the new extent of each of these axes.
        axes: which ones.
        method: "nearest_neighbor", "linear" or "cubic".
        coordinate_transformation_mode: where an element of the result lies among those of `data`, as ONNX names it.
        rounding_method: of coordinates, for the nearest element: "round", "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil".
        cubic_alpha: the slope of the cubic kernel at 1.
        cubic_exclude: leave out neighbours beyond the border, and weigh the others accordingly.
        extrapolation_value: what a crop holds beyond the data.
        scales: how many times as long each axis becomes, where `size` is that rounded.
        roi: for "tf_crop_and_resize": begins of the part that is resized, then ends, from 0 to 1, along `axes`.
        antialias: where the result is smaller, kernels are as wide as its elements; not for the nearest element.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        DeclarationError: for a method, mode or rounding that doesn't exist.
    """
    kind = METHODS.get(method, method)
    job = _Resize(
        "resize", data, tuple(axes), kind, coordinate_transformation_mode, rounding_method, float(cubic_alpha), bool(cubic_exclude)
    )
    job.checked()
    shape = list(data.shape)
    for axis, target in zip(axes, size, strict=True):
        shape[axis] = arithmetic.convert(target)
    count = len(axes)
    along = [
        Axis(
            data.shape[axis],
            shape[axis],
            const(0.0 if roi is None else float(roi[n]), _F),
            const(1.0 if roi is None else float(roi[n + count]), _F),
            None if scales is None else float(scales[n]),
        )
        for n, axis in enumerate(axes)
    ]
    if antialias:
        return _smoothed(job, along)
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    # Not for crops: whether a coordinate is outside can't be told from an index held at the border.
    job, left = _rows_first(job, along)
    exact = [None if crops or kind != "nearest_neighbor" else _quotient(job, one) for one in along]

    def body(*i: Var) -> PrimExpr:
        places = [_coordinate(job, i[axis], one) for axis, one in zip(job.spatial, left, strict=True)]
        if kind == "nearest_neighbor" and all(exact):
            at: list[PrimExpr] = list(i)
            for axis, form in zip(axes, exact, strict=True):
                assert form is not None
                a, b, c = form
                at[axis] = _at_border(arithmetic.floordiv(i[axis] * a + b, c), data.shape[axis])
            return data(*at)
        found = job.element(i, places, data.dtype)
        return intrin.if_then_else(_beyond(places, along), cast(const(extrapolation_value, _F), data.dtype), found) if crops else found

    return injective(shape, body, "resize")


def _coordinate(job: _Resize, index: Any, axis: Axis) -> PrimExpr:
    return COORDINATES[job.mode](cast(index, _F), axis)


def _quotient(job: _Resize, axis: Axis) -> tuple[int, int, int] | None:
    size, target = as_int(axis.size), as_int(axis.target)
    if size is None or not size or not target:
        return None
    x = coordinates(job.mode, size, target, axis.scale)
    step = float(x[1] - x[0]) if target > 1 else 1.0
    return quotient(_NEAREST[job.rounding](x).astype(int), step)


def _smoothed(job: _Resize, along: Sequence[Axis]) -> Tensor:
    """One axis after the other, by kernels as wide as the elements of the result.

    Raises:
        DeclarationError: for the nearest element, and for extents that aren't constants.
    """
    if job.method == "nearest_neighbor":
        raise DeclarationError("resize: the nearest element has no antialias")
    found = job.data
    for place, axis in zip(job.spatial, along, strict=True):
        size, target = as_int(axis.size), as_int(axis.target)
        if size is None or target is None:
            raise DeclarationError(f"resize: antialias takes constant extents, not {axis.size} and {axis.target}")
        shrink = min(1.0, target / size if axis.scale is None else axis.scale)
        found = _smoothed_axis(job, found, place, axis, shrink)
    dtype = job.data.dtype
    return found if found.dtype == dtype else injective(found.shape, lambda *i: cast(found(*i), dtype), "resize_cast")


def _smoothed_axis(job: _Resize, data: Tensor, place: int, axis: Axis, shrink: float) -> Tensor:
    reach = ceil((1 if job.method == "linear" else 2) / shrink)

    def tap(index: Any, k: Any) -> tuple[PrimExpr, PrimExpr]:
        x = _coordinate(job, index, axis)
        at = cast(intrin.floor(x), "int32") + (k + (1 - reach))
        d = intrin.abs(cast(at, _F) - x) * shrink
        if job.method == "linear":
            weight = arithmetic.maximum(1.0 - d, const(0.0, _F))
        else:
            near = ((job.alpha + 2.0) * d - (job.alpha + 3.0)) * d * d + 1.0
            far = (((d - 5.0) * d + 8.0) * d - 4.0) * job.alpha
            weight = intrin.select(d <= 1.0, near, intrin.select(d < 2.0, far, const(0.0, _F)))
        if job.exclude:
            weight = intrin.select(arithmetic.all(at >= 0, at < axis.size), weight, const(0.0, _F))
        return at, weight

    k = reduce_axis((0, 2 * reach), name="k")
    # Weights depend on the place along this axis alone: their sums are a vector.
    total = compute((axis.target,), lambda i: te_sum(tap(i, k.var)[1], axis=k), "resize_weight")
    taps = reduce_axis((0, 2 * reach), name="tap")

    def body(*i: Var) -> PrimExpr:
        at, weight = tap(i[place], taps.var)
        index = [*i[:place], _at_border(at, axis.size), *i[place + 1 :]]
        return te_sum(cast(data(*index), _F) * weight, axis=taps)

    shape = [*data.shape[:place], axis.target, *data.shape[place + 1 :]]
    summed = compute(shape, body, "resize_sum")
    return compute(shape, lambda *i: summed(*i) / total(i[place]), "resize")
