"""Operators on images, rows and volumes as such: other sizes, samples on grids, blocks of pixels as channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import relax
from .table import CONVERTERS, Context, aten

_SAMPLED = ("bilinear", "nearest", "bicubic")
_OUTSIDE = ("zeros", "border", "reflection")


def _resized(c: Context, input: Any, scales: Any, **how: Any) -> Any:
    """Images of the size that PyTorch says, by its scales where these were given: of 4 pixels by 1.7 there are 6, and not by 1.5."""
    given = [one for part in scales for one in (part if isinstance(part, (list, tuple)) else [part]) if one is not None]
    size, axes = c.sizes[2:], list(range(2, c.rank(input)))
    known = given if len(given) == len(axes) and all(isinstance(one, (int, float)) for one in given) else None
    return c.op("image.resize", input, relax.ShapeExpr(tuple(size)), axes=axes, scales=known, **how)


def _nearest(is_exact: bool) -> Callable[..., Any]:
    mode, rounding = ("half_pixel", "round_prefer_ceil") if is_exact else ("asymmetric", "floor")

    def convert(c: Context, input: Any, size: Any, *scales: Any) -> Any:
        return _resized(c, input, scales, method="nearest_neighbor", coordinate_transformation_mode=mode, rounding_method=rounding)

    return convert


def _smooth(method: str, alpha: float, is_smoothed: bool = False) -> Callable[..., Any]:
    def convert(c: Context, input: Any, size: Any, align_corners: bool, *scales: Any) -> Any:
        mode = "align_corners" if align_corners else "half_pixel"
        # Where pixels are smoothed away, those beyond the border don't count.
        return _resized(
            c, input, () if align_corners else scales, method=method, coordinate_transformation_mode=mode, cubic_alpha=alpha,
            antialias=is_smoothed, cubic_exclude=is_smoothed,
        )  # fmt: skip

    return convert


CONVERTERS.update({f"upsample_nearest{rank}d": _nearest(False) for rank in (1, 2, 3)})
CONVERTERS.update({f"_upsample_nearest_exact{rank}d": _nearest(True) for rank in (1, 2, 3)})
CONVERTERS.update({f"upsample_{name}": _smooth("linear", -0.75) for name in ("linear1d", "bilinear2d", "trilinear3d")})
CONVERTERS["upsample_bicubic2d"] = _smooth("cubic", -0.75)
CONVERTERS["_upsample_bilinear2d_aa"] = _smooth("linear", -0.5, True)
CONVERTERS["_upsample_bicubic2d_aa"] = _smooth("cubic", -0.5, True)


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(c: Context, input: Any, grid: Any, method: int, padding: int, align_corners: bool) -> Any:
    rank = c.rank(grid)
    points = c.op("permute_dims", grid, axes=[0, rank - 1, *range(1, rank - 1)])
    return c.op(
        "image.grid_sample", input, points, method=_SAMPLED[method], layout="NCHW" if rank == 4 else "NCDHW",
        padding_mode=_OUTSIDE[padding], align_corners=align_corners,
    )  # fmt: skip


@aten("pixel_shuffle")
def _pixel_shuffle(c: Context, input: Any, upscale_factor: int) -> Any:
    *batch, channels, h, w = c.shape_of(input)
    r, n = upscale_factor, len(batch)
    cut = c.reshape(input, [*batch, channels // (r * r), r, r, h, w])
    return c.reshape(c.op("permute_dims", cut, axes=[*range(n + 1), n + 3, n + 1, n + 4, n + 2]), c.sizes)


@aten("pixel_unshuffle")
def _pixel_unshuffle(c: Context, input: Any, downscale_factor: int) -> Any:
    *batch, channels, h, w = c.shape_of(input)
    r, n = downscale_factor, len(batch)
    cut = c.reshape(input, [*batch, channels, h // r, r, w // r, r])
    return c.reshape(c.op("permute_dims", cut, axes=[*range(n + 1), n + 2, n + 4, n + 1, n + 3]), c.sizes)
