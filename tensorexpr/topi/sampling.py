"""Spatial transformers (Jaderberg et al. 2015): grids of coordinates by affine maps, and images sampled on grids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product as combinations
from typing import Any

from .. import te
from ..dataclass import dataclass
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
    _check_sampling(data, grid, method, layout, padding_mode)
    dims, taps = data.ndim - 2, {"nearest": 1, "bicubic": 4}.get(method, 2)
    sampling = _Sampling(data.shape[2:], method, padding_mode, align_corners)
    # Once for each point, and not for each channel of it.
    points, pixels = (grid.shape[0], dims), grid.shape[2:]
    places = compute((*points, *pixels), partial(sampling.place, grid), "grid_places")
    indices = compute((*points, taps, *pixels), partial(sampling.index, places), "grid_indices")
    weights = compute((*points, taps, *pixels), partial(sampling.weight, places), "grid_weights")

    def body(*element: Var) -> PrimExpr:
        n, c, *i = element
        total: PrimExpr = const(0, data.dtype)
        for choice in combinations(range(taps), repeat=dims):
            at = [indices(n, d, tap, *i) for d, tap in enumerate(choice)]
            # Read at the border and let go: a vector that reads some lanes only is a branch for each of them without AVX-512.
            found: PrimExpr = data(n, c, *(arithmetic.maximum(one, 0) if padding_mode == "zeros" else one for one in at))
            if padding_mode == "zeros":
                found = intrin.select(arithmetic.all(*(one >= 0 for one in at)), found, const(0, data.dtype))
            if method == "nearest":
                return found
            factor: PrimExpr = weights(n, 0, choice[0], *i)
            for d, tap in enumerate(choice[1:], 1):
                factor = factor * weights(n, d, tap, *i)
            total = total + found * cast(factor, data.dtype)
        return total

    return compute((*data.shape[:2], *pixels), body, "grid_sample", "grid_sample")


def _check_sampling(data: Tensor, grid: Tensor, method: str, layout: str, padding_mode: str) -> None:
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


@dataclass(frozen=True)
class _Sampling:
    """Where the points of a grid lie in data of some extents, and which elements (taps) of an axis they weigh by how much."""

    extents: tuple[Any, ...]
    method: str
    padding_mode: str
    align_corners: bool

    def place(self, grid: Tensor, n: Var, d: Var, *i: Var) -> PrimExpr:
        """The coordinate of a point along axis d, in elements."""
        extent = _chosen(d, self.extents)
        # Coordinates are x, y, z, and axes the other way round.
        x = self._whole(cast(grid(n, len(self.extents) - 1 - d, *i), "float32"), extent)
        # Of the cubic kernel elements are padded: coordinates that were folded first would weigh the wrong neighbours, two elements far.
        return x if self.method == "bicubic" else self._padded(x, extent)

    def index(self, places: Tensor, n: Var, d: Var, tap: Var, *i: Var) -> PrimExpr:
        """The element of a tap along an axis; -1 of zeros beyond the border."""
        x, extent = places(n, d, *i), _chosen(d, self.extents)
        at = cast(intrin.nearbyint(x) if self.method == "nearest" else intrin.floor(x), "int32") + tap
        if self.method == "bicubic":
            at = cast(self._padded(cast(at - 1, "float32"), extent), "int32")
        held = arithmetic.maximum(arithmetic.minimum(at, extent - 1), 0)
        return intrin.select(arithmetic.all(at >= 0, at < extent), held, const(-1)) if self.padding_mode == "zeros" else held

    def weight(self, places: Tensor, n: Var, d: Var, tap: Var, *i: Var) -> PrimExpr:
        """How much a tap counts along an axis."""
        fraction = places(n, d, *i) - intrin.floor(places(n, d, *i))
        return _chosen(tap, _cubic_weights(fraction) if self.method == "bicubic" else [1.0 - fraction, fraction])

    def _whole(self, x: PrimExpr, extent: Any) -> PrimExpr:
        size = cast(extent, "float32")
        return (x + 1.0) * (size - 1.0) * 0.5 if self.align_corners else ((x + 1.0) * size - 1.0) * 0.5

    def _padded(self, x: PrimExpr, extent: Any) -> PrimExpr:
        if self.padding_mode == "border":
            return _held(x, extent)
        return _reflected(x, extent, self.align_corners) if self.padding_mode == "reflection" else x


def _chosen(number: Var, choices: Sequence[Any]) -> PrimExpr:
    """The choice of a number: an index that is a loop's can't pick from a list."""
    found = arithmetic.convert(choices[0])
    for n, choice in enumerate(choices[1:], 1):
        found = intrin.select(arithmetic.convert(number == n), arithmetic.convert(choice), found)
    return found


def _cubic_weights(fraction: PrimExpr) -> list[PrimExpr]:
    from .image import _cubic_weight

    return [_cubic_weight(fraction, place, _ALPHA) for place in range(4)]
