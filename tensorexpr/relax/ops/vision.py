"""Regions of feature maps, boxes that overlap, and convolutions whose taps are moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.expr import IntImm
from ...topi.nn.deformable import modulated_conv2d_nchw
from ...topi.vision import roi_align_nchw, roi_pool_nchw
from ..struct_info import StructInfo, TensorStructInfo
from .row import Expr, Operand, Pattern, operator, tensor
from .window import paddings, positions, sizes


def _regions(where: str, data: Expr, rois: Expr, pooled_size: Any) -> StructInfo:
    """[regions, C, height, width]."""
    x, r = tensor(data, "data"), tensor(rois, "rois")
    if x.ndim not in (-1, 4) or r.ndim not in (-1, 2):
        raise DeclarationError(f"relax.op.{where}: data [N, C, H, W] and rois [regions, 5], not {x.info} and {r.info}")
    size = [IntImm("int64", n) for n in sizes(pooled_size, 2, "pooled_size")]
    known = x.extents is not None and r.extents is not None
    return x.like([r.extents[0], x.extents[1], *size] if known else None, ndim=4)  # type: ignore[index]


def _np_roi_align(data: Any, rois: Any, pooled_size: Any, spatial_scale: float, mode: str, sample_ratio: int, is_aligned: bool) -> Any:
    tall, wide = sizes(pooled_size, 2, "pooled_size")
    height, width = data.shape[2:]
    found = np.zeros((len(rois), data.shape[1], tall, wide))
    for n, roi in enumerate(rois.astype(np.float64)):
        plane = data[int(roi[0])].astype(np.float64)
        left, top, right, bottom = roi[1:] * spatial_scale - (0.5 if is_aligned else 0.0)
        low = 0.0 if is_aligned else 1.0
        spans = [max(bottom - top, low) if low else bottom - top, max(right - left, low) if low else right - left]
        steps = [spans[0] / tall, spans[1] / wide]
        counts = [sample_ratio if sample_ratio > 0 else int(np.ceil(step)) for step in steps]
        for y, x in np.ndindex(tall, wide):
            samples = []
            for sy, sx in np.ndindex(max(counts[0], 0), max(counts[1], 0)):
                at = top + steps[0] * (y + (sy + 0.5) / counts[0]), left + steps[1] * (x + (sx + 0.5) / counts[1])
                terms = _corners(plane, *at, height, width)
                samples.append(np.max(terms, 0) if mode == "max_corner" else np.sum(terms, 0))
            if samples:
                found[n, :, y, x] = np.mean(samples, 0) if mode == "avg" else np.max(samples, 0)
    return found.astype(data.dtype)


def _corners(plane: Any, y: float, x: float, height: int, width: int) -> list[Any]:
    """The four elements around a point with their weights; zeros for one that is more than an element outside."""
    if y < -1 or x < -1 or y > height or x > width:
        return [np.zeros(len(plane))]
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    b, a = y - y0, x - x0
    return [
        plane[:, y0, x0] * (1 - b) * (1 - a), plane[:, y0, x1] * (1 - b) * a, plane[:, y1, x0] * b * (1 - a), plane[:, y1, x1] * b * a
    ]  # fmt: skip


@operator("image.roi_align", Pattern.OPAQUE, te=roi_align_nchw, numpy=_np_roi_align)
def roi_align(
    data: Expr, rois: Expr, pooled_size: int | Sequence[int], spatial_scale: float, mode: str = "avg", sample_ratio: int = -1,
    is_aligned: bool = False,
) -> StructInfo:  # fmt: skip
    """Interpolated elements of a grid over each region (He et al. 2017); see `topi.vision.roi_align_nchw`."""
    if mode not in ("avg", "max", "max_corner"):
        raise DeclarationError(f"relax.op.image.roi_align: no mode {mode!r}; there are avg, max and max_corner")
    return _regions("image.roi_align", data, rois, pooled_size)


def _np_roi_pool(data: Any, rois: Any, pooled_size: Any, spatial_scale: float) -> Any:
    cells = sizes(pooled_size, 2, "pooled_size")
    found = np.zeros((len(rois), data.shape[1], *cells), data.dtype)
    for n, roi in enumerate(rois.astype(np.float32)):
        scaled = roi[1:] * np.float32(spatial_scale)
        # Halves away from zero, as `intrin.round` in the kernel; NumPy's own takes the even neighbour.
        left, top, right, bottom = (int(one) for one in np.copysign(np.floor(np.abs(scaled) + 0.5), scaled))
        for y, x in np.ndindex(*cells):
            edges = []
            for first, last, place, count, extent in (
                (top, bottom, y, cells[0], data.shape[2]), (left, right, x, cells[1], data.shape[3])
            ):  # fmt: skip
                step = np.float32(max(last - first + 1, 1)) / np.float32(count)
                span = int(np.floor(place * step)) + first, int(np.ceil((place + 1) * step)) + first
                edges.append(slice(*(min(max(edge, 0), extent) for edge in span)))
            window = data[int(roi[0]), :, edges[0], edges[1]]
            if window.size:
                found[n, :, y, x] = window.max((1, 2))
    return found


@operator("image.roi_pool", Pattern.OPAQUE, te=roi_pool_nchw, numpy=_np_roi_pool)
def roi_pool(data: Expr, rois: Expr, pooled_size: int | Sequence[int], spatial_scale: float) -> StructInfo:
    """The greatest elements in a grid over each region (Girshick 2015); see `topi.vision.roi_pool_nchw`."""
    return _regions("image.roi_pool", data, rois, pooled_size)


def _np_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any = None,
    center_point_box: bool = False,
) -> Any:
    limit, most = int(np.ravel(max_output_boxes_per_class)[0]), float(np.ravel(iou_threshold)[0])
    least = -np.inf if score_threshold is None else np.ravel(score_threshold)[0]
    found = []
    for batch, own in enumerate(boxes):
        corners = _sorted_corners(own, center_point_box)
        area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        for label, score in enumerate(scores[batch]):
            kept: list[int] = []
            for n in np.argsort(-score, kind="stable"):
                # In descending order: none that follows is above the threshold either.
                if len(kept) >= limit or not score[n] > least:
                    break
                if not kept or not _overlaps(corners, area, int(n), kept, most):
                    kept.append(int(n))
            found += [(batch, label, n) for n in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _sorted_corners(boxes: Any, is_center: bool) -> Any:
    """Top, left, bottom and right of boxes that are two opposite corners, or middles (x, y) and extents (width, height)."""
    if is_center:
        x, y, w, h = boxes.T
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _overlaps(corners: Any, area: Any, n: int, kept: list[int], most: float) -> bool:
    """Whether the intersection of a box with one that was kept is more than a part of their union."""
    others = corners[kept]
    extents = np.minimum(corners[n, 2:], others[:, 2:]) - np.maximum(corners[n, :2], others[:, :2])
    common = np.prod(np.maximum(extents, 0), 1)
    union = area[n] + area[kept] - common
    return bool(np.any((common > 0) & (union > 0) & (common > most * union)))


@operator("image.non_max_suppression", Pattern.OPAQUE, numpy=_np_non_max_suppression)
def non_max_suppression(
    boxes: Expr, scores: Expr, max_output_boxes_per_class: Expr, iou_threshold: Expr, score_threshold: Expr | None = None,
    center_point_box: bool = False,
) -> StructInfo:  # fmt: skip
    """Batch, class and number of the boxes of the best scores that overlap none of better ones, int64 [chosen, 3].

    Args:
        boxes: [batch, boxes, 4]: y and x of two corners, or with `center_point_box` x and y of the middle, width and height.
        scores: [batch, classes, boxes].
        max_output_boxes_per_class, iou_threshold, score_threshold: numbers, as tensors of one element.
        center_point_box: what boxes are.
    """
    for name, one, ndim in (("boxes", boxes, 3), ("scores", scores, 3)):
        own = tensor(one, name)
        if own.ndim not in (-1, ndim):
            raise DeclarationError(f"relax.op.image.non_max_suppression: {name} has {ndim} axes, not {own.info}")
    return TensorStructInfo(None, "int64", None, 2)


def _np_deform(
    data: Any, offset: Any, weight: Any, mask: Any = None, *, strides: Any, padding: Any, dilation: Any, groups: int, offset_groups: int
) -> Any:
    n, channels, height, width = data.shape
    outputs, inputs, tall, wide = weight.shape
    step, apart, (front, _) = sizes(strides, 2, ""), sizes(dilation, 2, ""), paddings(padding, 2)
    rows, columns = offset.shape[2:]
    moves = offset.reshape(n, offset_groups, tall, wide, 2, rows, columns).astype(np.float64)
    factors = (
        np.ones((n, offset_groups, tall, wide, rows, columns))
        if mask is None
        else mask.reshape(n, offset_groups, tall, wide, rows, columns)
    )
    places = np.meshgrid(np.arange(rows) * step[0] - front[0], np.arange(columns) * step[1] - front[1], indexing="ij")
    share = channels // offset_groups
    patches = np.zeros((n, channels, tall, wide, rows, columns))
    for batch, c, ky, kx in np.ndindex(n, channels, tall, wide):
        move = moves[batch, c // share, ky, kx]
        y, x = places[0] + ky * apart[0] + move[0], places[1] + kx * apart[1] + move[1]
        total = np.zeros((rows, columns))
        for down, right in np.ndindex(2, 2):
            at_y, at_x = np.floor(y) + down, np.floor(x) + right
            part = (1 - np.abs(y - at_y)) * (1 - np.abs(x - at_x))
            inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
            index = np.clip(at_y, 0, height - 1).astype(int), np.clip(at_x, 0, width - 1).astype(int)
            total += np.where(inside, data[batch, c][index] * part, 0)
        patches[batch, c, ky, kx] = total * factors[batch, c // share, ky, kx]
    cut = patches.reshape(n, groups, inputs, tall, wide, rows, columns)
    taps = weight.reshape(groups, outputs // groups, inputs, tall, wide).astype(np.float64)
    return np.einsum("ngcxyhw,gocxy->ngohw", cut, taps).reshape(n, outputs, rows, columns).astype(data.dtype)


def _te_deform(
    data: Any, offset: Any, weight: Any, mask: Any = None, *, strides: Any, padding: Any, dilation: Any, groups: int, offset_groups: int
) -> Any:
    front, back = paddings(padding, 2)
    return modulated_conv2d_nchw(
        data, offset, weight, mask, sizes(strides, 2, "strides"), [*front, *back], sizes(dilation, 2, "dilation"), offset_groups, groups
    )


@operator("nn.deform_conv2d", Pattern.OUT_FUSABLE, te=_te_deform, numpy=_np_deform)
def deform_conv2d(
    data: Expr, offset: Expr, weight: Expr, mask: Expr | None = None, strides: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, offset_groups: int = 1,
) -> StructInfo:  # fmt: skip
    """A convolution whose taps lie where `offset` moves them, each times its factor in `mask` (Zhu et al. 2019).

    Args:
        data: [N, C, H, W].
        offset: [N, offset_groups * KH * KW * 2, H', W'], how far down and to the right each tap is moved.
        weight: [O, C/groups, KH, KW].
        mask: [N, offset_groups * KH * KW, H', W'], or None.
        strides, padding, dilation, groups: as of `conv2d`.
        offset_groups: groups of channels with offsets of their own.
    """
    x, moves, w = tensor(data, "data"), tensor(offset, "offset"), tensor(weight, "weight")
    if x.extents is None or moves.extents is None or w.extents is None:
        return x.like(None, ndim=4)
    for one in (x, moves, w):
        if one.ndim != 4:
            raise DeclarationError(f"relax.op.nn.deform_conv2d: {one.name} has 4 axes, not {one.info}")
    front, back = paddings(padding, 2)
    step, apart = sizes(strides, 2, "strides"), sizes(dilation, 2, "dilation")
    plane = [positions(x.extents[2 + n], _size(w, 2 + n), step[n], apart[n], front[n], back[n]) for n in range(2)]
    return x.like([x.extents[0], w.extents[0], *plane])


def _size(weight: Operand, axis: int) -> int:
    extent = (weight.extents or ())[axis]
    if not isinstance(extent, IntImm):
        raise DeclarationError(f"relax.op.nn.deform_conv2d: the size of the window has to be known, and is {weight.info}")
    return int(extent.value)
