"""Images in other sizes, and images sampled on grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import topi
from ...errors import DeclarationError
from ...topi.resizing import METHODS, coordinates, table
from ...topi.resizing import resize as te_resize
from ...topi.transform import parse_layout
from ..expr import Call
from ..relations import same_extents
from ..struct_info import ShapeExpr, ShapeStructInfo, StructInfo
from .row import Expr, Operand, Pattern, Shape, operator, tensor
from .window import check_layout

_MODES = (
    "half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize"
)  # fmt: skip
_ROUNDINGS = ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "")


def _checked(where: str, method: str, mode: str, rounding: str) -> None:
    known = ("nearest_neighbor", "linear", "cubic")
    for what, value, wanted in (
        ("method", METHODS.get(method, method), known),
        ("coordinate_transformation_mode", mode, _MODES),
        ("rounding_method", rounding, _ROUNDINGS),
    ):
        if value not in wanted:
            raise DeclarationError(f"relax.op.{where}: no {what} {value!r}; there are {', '.join(one for one in wanted if one)}")


def _resized(x: Operand, size: Any, axes: Sequence[int], where: str) -> StructInfo:
    """A tensor with new extents along axes."""
    info = size.struct_info
    if not isinstance(info, ShapeStructInfo) or info.ndim not in (-1, len(axes)):
        raise DeclarationError(f"relax.op.{where}: size is a shape of {len(axes)} extents, not {info}")
    if x.extents is None or not isinstance(size, ShapeExpr):
        return x.like(None, ndim=x.ndim)
    shape = list(x.extents)
    for axis, extent in zip(axes, size.values, strict=True):
        shape[axis] = extent
    return x.like(shape)


def _np_resize(
    data: Any,
    size: Any,
    axes: Sequence[int],
    method: str,
    coordinate_transformation_mode: str,
    rounding_method: str,
    cubic_alpha: float,
    cubic_exclude: Any,
    extrapolation_value: float,
    scales: Sequence[float] | None = None,
    roi: Sequence[float] | None = None,
    antialias: bool = False,
) -> Any:
    found, kind, count = data, METHODS.get(method, method), len(axes)
    outside = np.zeros((), bool)
    for n, axis in enumerate(axes):
        extent, scale = data.shape[axis], None if scales is None else float(scales[n])
        part = (0.0, 1.0) if roi is None else (float(roi[n]), float(roi[n + count]))
        x = coordinates(coordinate_transformation_mode, extent, int(size[n]), scale, part)
        shrink = min(1.0, int(size[n]) / extent if scale is None else scale) if antialias else 1.0
        index, weight = table(x, extent, kind, rounding_method, cubic_alpha, bool(cubic_exclude), shrink)
        if kind == "nearest_neighbor":
            found = np.take(found, index[:, 0], axis)
        else:
            matrix = np.zeros((len(x), extent))
            # Taps beyond a border are all the element there: their weights add up.
            np.add.at(matrix, (np.arange(len(x))[:, None], index), weight)
            found = np.moveaxis(np.moveaxis(found.astype(np.float64), axis, -1) @ matrix.T, -1, axis)
        if coordinate_transformation_mode == "tf_crop_and_resize":
            shape = [-1 if place == axis else 1 for place in range(data.ndim)]
            outside = outside | ((x < -1e-5) | (x > extent - 1 + 1e-5)).reshape(shape)
    return np.where(outside, extrapolation_value, found).astype(data.dtype) if outside.ndim else found.astype(data.dtype)


@operator("image.resize", Pattern.INJECTIVE, te=te_resize, numpy=_np_resize)
def resize(
    data: Expr, size: Shape, axes: Sequence[int], method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "round_prefer_floor", cubic_alpha: float = -0.75, cubic_exclude: bool = False,
    extrapolation_value: float = 0.0, scales: Sequence[float] | None = None, roi: Sequence[float] | None = None, antialias: bool = False,
) -> StructInfo:  # fmt: skip
    """Other extents along any axes, as ONNX's Resize: by stated scales, of a crop, smoothed where they shrink."""
    x = tensor(data, "data")
    _checked("image.resize", method, coordinate_transformation_mode, rounding_method)
    found = x.axes(axes)
    if found is not None and list(axes) != found:
        raise DeclarationError(f"relax.op.image.resize: axes are counted from the front, not {list(axes)}")
    return _resized(x, size, axes, "image.resize")


def _plane(layout: str, letters: str = "HW") -> list[int]:
    names = [name for name, _ in parse_layout(layout)]
    return [names.index(letter) for letter in letters]


def _rounding(method: str, mode: str) -> str:
    return method or ("round" if mode == "align_corners" else "floor")


def _as_resize(meaning: Any) -> Any:
    """A meaning of `image.resize2d` by that of `image.resize`."""

    def made(data: Any, size: Any, roi: Any, layout: str, rounding_method: str, out_dtype: str | None, **attrs: Any) -> Any:
        rounding = _rounding(rounding_method, attrs["coordinate_transformation_mode"])
        extents = list(size) * 2 if len(size) == 1 else list(size)
        crop = list(roi) if isinstance(roi, Sequence) and len(roi) == 4 else None
        found = meaning(data, extents, _plane(layout), rounding_method=rounding, roi=crop, **attrs)
        # A meaning is of tensors or of arrays; only tensors have an operation.
        return found if out_dtype in (None, "") else topi.cast(found, out_dtype) if hasattr(found, "op") else found.astype(out_dtype)

    return made


@operator("image.resize2d", Pattern.INJECTIVE, te=_as_resize(te_resize), numpy=_as_resize(_np_resize))
def resize2d(
    data: Expr, size: Shape, roi: float | Sequence[float] | None = None, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round", cubic_alpha: float = -0.5,
    cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None,
) -> StructInfo:  # fmt: skip
    """Images in another size, (height, width)."""
    x = tensor(data, "data")
    check_layout("image.resize2d", layout, "NCHW", x)
    _checked("image.resize2d", method, coordinate_transformation_mode, rounding_method)
    whole = ShapeExpr(tuple(size.values) * 2) if isinstance(size, ShapeExpr) and len(size.values) == 1 else size
    info = _resized(x, whole, _plane(layout), "image.resize2d")
    return info if out_dtype in (None, "") else x.like(info.shape, out_dtype, x.ndim)  # type: ignore[attr-defined]


def resize1d(data: Any, size: Any, layout: str = "NCW", **attrs: Any) -> Call:
    """Rows of another length: a call of `resize`, whose attributes it takes."""
    return resize(data, size, _plane(layout, "W"), **attrs)


def resize3d(data: Any, size: Any, layout: str = "NCDHW", **attrs: Any) -> Call:
    """Volumes in another size: a call of `resize`, whose attributes it takes."""
    return resize(data, size, _plane(layout, "DHW"), **attrs)


def _folded(x: Any, extent: int, padding: str, align_corners: bool) -> Any:
    """Coordinates brought inside, as a padding has it."""
    if padding == "border":
        return np.clip(x, 0, extent - 1)
    if padding == "reflection":
        low, high = (0, extent - 1) if align_corners else (-0.5, extent - 0.5)
        span = high - low
        turned = np.mod(x - low, 2 * span) if span else np.zeros_like(x)
        return np.clip(low + np.where(turned > span, 2 * span - turned, turned), 0, extent - 1)
    return x


def _np_grid_sample(data: Any, grid: Any, method: str, layout: str, padding_mode: str, align_corners: bool) -> Any:
    n, channels, *plane = data.shape
    dims = len(plane)
    alike: dict[str, Any] = {"padding": padding_mode, "align_corners": align_corners}
    places = []
    for axis, extent in enumerate(plane):
        own = grid[:, dims - 1 - axis].astype(np.float64)
        x = (own + 1) * (extent - 1) / 2 if align_corners else ((own + 1) * extent - 1) / 2
        places.append(x if method == "bicubic" else _folded(x, extent, **alike))
    if method == "nearest":
        taps = [[(np.rint(x), np.ones_like(x))] for x in places]
    elif method == "bicubic":
        taps = [[(np.floor(x) + k, _cubic(np.floor(x) + k - x)) for k in (-1, 0, 1, 2)] for x in places]
        taps = [[(_folded(at, extent, **alike), weight) for at, weight in own] for own, extent in zip(taps, plane, strict=True)]
    else:
        taps = [[(np.floor(x), 1 - (x - np.floor(x))), (np.floor(x) + 1, x - np.floor(x))] for x in places]
    total = np.zeros((n, channels, *grid.shape[2:]))
    batch = np.arange(n).reshape(-1, *[1] * dims)
    for choice in np.ndindex(*(len(own) for own in taps)):
        chosen = [own[k] for own, k in zip(taps, choice, strict=True)]
        inside = np.all([(at >= 0) & (at < extent) for (at, _), extent in zip(chosen, plane, strict=True)], 0)
        index = [np.clip(at, 0, extent - 1).astype(int) for (at, _), extent in zip(chosen, plane, strict=True)]
        weight = np.prod([own for _, own in chosen], 0) * (inside if padding_mode == "zeros" else 1)
        # Indices on both sides of a slice: NumPy puts their axes in front and the channels last.
        picked = np.moveaxis(data[tuple([batch, slice(None), *index])], -1, 1)
        total += picked * weight[:, None]
    return total.astype(data.dtype)


def _cubic(distance: Any) -> Any:
    """The kernel of Keys (1981) with a slope of -0.75 at 1."""
    d, a = np.abs(distance), -0.75
    return np.where(d <= 1, (a + 2) * d**3 - (a + 3) * d**2 + 1, np.where(d < 2, a * (d**3 - 5 * d**2 + 8 * d - 4), 0))


@operator("image.grid_sample", Pattern.OUT_FUSABLE, te=topi.image.grid_sample, numpy=_np_grid_sample)
def grid_sample(
    data: Expr, grid: Expr, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = True
) -> StructInfo:
    """Images or volumes sampled at the points of a grid [N, 2 or 3, ...] of coordinates x, y (and z) from -1 to 1."""
    x, points = tensor(data, "data"), tensor(grid, "grid")
    for what, value, known in (
        ("method", method, ("nearest", "bilinear", "trilinear", "bicubic")),
        ("padding_mode", padding_mode, ("zeros", "border", "reflection")),
        ("layout", layout, ("NCHW", "NCDHW")),
    ):
        if value not in known:
            raise DeclarationError(f"relax.op.image.grid_sample: no {what} {value!r}; there are {', '.join(known)}")
    if x.ndim not in (-1, len(layout)) or points.ndim not in (-1, len(layout)) or (method == "bicubic" and len(layout) == 5):
        raise DeclarationError(f"relax.op.image.grid_sample: {x.info} and {points.info} by {method}, layout {layout}; bicubic is of images")
    if x.extents is None or points.extents is None:
        return x.like(None, ndim=len(layout))
    if same_extents(x.extents[0], points.extents[0]) is False:
        raise DeclarationError(f"relax.op.image.grid_sample: a grid for each image: {x.info} and {points.info}")
    return x.like([*x.extents[:2], *points.extents[2:]])
