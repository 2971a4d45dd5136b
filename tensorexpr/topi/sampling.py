"""Spatial transformers (Jaderberg et al. 2015): grids of coordinates by affine maps, and images sampled on grids."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as combinations
from typing import Any

from .. import te
from ..errors import DeclarationError
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import cast, const
from ..tir.expr import PrimExpr, Var
from .utils import get_const_int, need_equal, need_rank, spread

_METHODS = ("nearest", "bilinear", "trilinear", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_ALPHA = -0.75  # the slope of the cubic kernel at 1, as in PyTorch


def affine_grid(data: Tensor, target_shape: Any) -> Tensor:
    """Coordinates of a grid from -1 to 1 in both directions, moved by an affine map.

    Args:
        data: [N, 2, 3], the maps of (x, y, 1).
        target_shape: (height, width) of the grid.

    Returns:
        [N, 2, height, width], x and y of each point.

    Raises:
        DeclarationError: for another shape.
    """
    need_rank("affine_grid", "data", data, 3)
    need_equal("affine_grid", "extent 1 of data and the dimensions of an image", data.shape[1], 2)
    need_equal("affine_grid", "extent 2 of data and the numbers of a row", data.shape[2], 3)
    height, width = (get_const_int(n) for n in spread("affine_grid", "target_shape", target_shape, 2))
    k = te.reduce_axis((0, 3), name="k")

    def along(index: Var, extent: int) -> PrimExpr:
        step = 2.0 / (extent - 1) if extent > 1 else 0.0
        return const(-1, data.dtype) + cast(index, data.dtype) * const(step, data.dtype)

    def body(n: Var, dim: Var, i: Var, j: Var) -> PrimExpr:
        x, y, one = along(j, width), along(i, height), const(1, data.dtype)
        base = intrin.select(arithmetic.convert(k.var == 0), x, intrin.select(arithmetic.convert(k.var == 1), y, one))
        return te.sum(data(n, dim, k.var) * base, axis=k)

    return compute((data.shape[0], 2, height, width), body, "affine_grid", "affine_grid")


def _reflected(x: PrimExpr, extent: Any, align_corners: bool) -> PrimExpr:
    """A coordinate thrown back at the borders, as often as it takes."""
    low, high = (0.0, cast(extent - 1, "float32")) if align_corners else (-0.5, cast(extent, "float32") - 0.5)
    span = high - low
    distance = intrin.abs(x - low)
    turns = intrin.floor(distance / span)
    rest = distance - turns * span
    # After an even number of reflections the way is forwards, else backwards.
    even = arithmetic.convert(arithmetic.floormod(cast(turns, "int32"), 2) == 0)
    back = intrin.select(even, rest + low, high - rest)
    return _held(back, extent)


def _held(x: PrimExpr, extent: Any) -> PrimExpr:
    return arithmetic.maximum(arithmetic.minimum(x, cast(extent - 1, "float32")), const(0, "float32"))


def grid_sample(
    data: Tensor, grid: Tensor, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = True
) -> Tensor:
    """Images, or volumes, sampled at the points of a grid.

    Args:
        data: [N, C, H, W] or [N, C, D, H, W].
        grid: [N, 2, H', W'] or [N, 3, D', H', W']: x, y (and z) of each point, from -1 to 1 over the data.
        method: "nearest", "bilinear" ("trilinear" for volumes too), or "bicubic" for images.
        layout: "NCHW" or "NCDHW".
        padding_mode: beyond the border there are "zeros", the elements of the "border", or the "reflection" of the data.
        align_corners: -1 and 1 are the middles of the outermost elements, or their edges.

    Returns:
        [N, C, H', W'] or [N, C, D', H', W'].

    Raises:
        DeclarationError: for other ranks, a layout or a method that doesn't exist.
    """
    where, dims = "grid_sample", data.ndim - 2
    if layout != ("NCHW", "NCDHW")[dims == 3] or dims not in (2, 3):
        raise DeclarationError(f'{where}: layout is {layout!r} and data has {data.ndim} dimensions; it takes "NCHW" of 4 or "NCDHW" of 5')
    if method not in _METHODS or padding_mode not in _PADDINGS or (dims == 3 and method == "bicubic"):
        raise DeclarationError(
            f"{where}: method {method!r}, padding_mode {padding_mode!r}; there are {', '.join(_METHODS)} (bicubic for images only) "
            f"and {', '.join(_PADDINGS)}"
        )
    need_rank(where, "the grid", grid, data.ndim)
    need_equal(where, "extent 1 of the grid and the dimensions of the data", grid.shape[1], dims)
    extents = data.shape[2:]

    def whole(x: PrimExpr, extent: Any) -> PrimExpr:
        size = cast(extent, "float32")
        return (x + 1.0) * (size - 1.0) * 0.5 if align_corners else ((x + 1.0) * size - 1.0) * 0.5

    def element(n: Var, c: Var, at: list[PrimExpr]) -> PrimExpr:
        held = [arithmetic.maximum(arithmetic.minimum(index, extent - 1), 0) for index, extent in zip(at, extents, strict=True)]
        found: PrimExpr = data(n, c, *held)
        if padding_mode != "zeros":
            return found
        # Read at the border and let go: a vector that reads some lanes only is a branch for each of them without AVX-512.
        inside = [test for index, extent in zip(at, extents, strict=True) for test in (index >= 0, index < extent)]
        return intrin.select(arithmetic.all(*inside), found, const(0, data.dtype))

    def padded(x: PrimExpr, extent: Any) -> PrimExpr:
        if padding_mode == "border":
            return _held(x, extent)
        return _reflected(x, extent, align_corners) if padding_mode == "reflection" else x

    def cubic(n: Var, c: Var, at: list[PrimExpr]) -> PrimExpr:
        """As `element`, at any place: the padding is of elements here, not of coordinates."""
        # Coordinates that were folded first would weigh the wrong neighbours: the kernel reaches two elements far.
        moved = [cast(padded(cast(index, "float32"), extent), "int32") for index, extent in zip(at, extents, strict=True)]
        return element(n, c, moved)

    def body(n: Var, c: Var, *i: Var) -> PrimExpr:
        # Coordinates are x, y, z, and axes the other way round.
        places = [whole(cast(grid(n, dims - 1 - d, *i), "float32"), extents[d]) for d in range(dims)]
        if method != "bicubic":
            places = [padded(x, extent) for x, extent in zip(places, extents, strict=True)]
        if method == "nearest":
            return element(n, c, [cast(intrin.nearbyint(x), "int32") for x in places])
        taps = [_cubic_taps(x) if method == "bicubic" else _linear_taps(x) for x in places]
        return _weighted(taps, lambda at: (cubic if method == "bicubic" else element)(n, c, at), data.dtype)

    return compute((*data.shape[:2], *grid.shape[2:]), lambda *i: body(i[0], i[1], *i[2:]), "grid_sample", "grid_sample")


Tap = tuple[PrimExpr, PrimExpr]


def _linear_taps(x: PrimExpr) -> list[Tap]:
    low = intrin.floor(x)
    return [(cast(low, "int32"), 1.0 - (x - low)), (cast(low, "int32") + 1, x - low)]


def _cubic_taps(x: PrimExpr) -> list[Tap]:
    from .image import _cubic_weight

    low = intrin.floor(x)
    return [(cast(low, "int32") + place - 1, _cubic_weight(x - low, place, _ALPHA)) for place in range(4)]


def _weighted(taps: list[list[Tap]], element: Callable[[list[PrimExpr]], PrimExpr], dtype: str) -> PrimExpr:
    total: PrimExpr = const(0, dtype)
    for choice in combinations(*taps):
        weight: PrimExpr = const(1, "float32")
        for _, factor in choice:
            weight = weight * factor
        total = total + element([index for index, _ in choice]) * cast(weight, dtype)
    return total
