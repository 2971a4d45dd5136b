"""Boxes: their overlap, the best of those that overlap, and the parts of feature maps that they hold.

Boxes are rows (class, score, left, top, right, bottom, ...) unless a function says otherwise; a class or score of -1 marks no box.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..errors import DeclarationError
from ..later import later
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import cast, const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr, Var
from ..tir.ir_builder import BufferVar, IRBuilder
from .rows import in_loops
from .sort import argsort
from .transform import injective
from .utils import extent_value, get_const_int, need_rank, need_shape, shape_text, spread


def get_valid_counts(data: Tensor, score_threshold: Any = 0, id_index: int = 0, score_index: int = 1) -> list[Tensor]:
    """Move the boxes whose score is above a threshold to the front.

    Args:
        data: [batch, boxes, elements].
        score_threshold: a number, or a scalar tensor.
        id_index: which element is the class, -1 for none; boxes of a negative class go too.
        score_index: which element is the score.

    Returns:
        How many boxes are left [batch] (int32); the boxes [batch, boxes, elements], then -1; and where each was [batch, boxes] (int32),
        then -1.

    Raises:
        DeclarationError: for another rank.
    """
    need_rank("get_valid_counts", "data", data, 3)
    batch, count, elements = data.shape
    _need_elements("get_valid_counts", elements, score_index=score_index, id_index=max(id_index, 0))
    thresholds = [score_threshold] if isinstance(score_threshold, Tensor) else []

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        boxes, (valid, kept, places) = ib.buffer_ptr(ins[0]), (ib.buffer_ptr(out) for out in outs)
        limit = ib.buffer_ptr(ins[1])[()] if thresholds else cast(const(float(score_threshold), "float32"), data.dtype)
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            valid[b] = 0
            with ib.for_range(0, count, "i") as i:
                good = [boxes[b, i, score_index] > limit]
                if id_index >= 0:
                    good.append(boxes[b, i, id_index] >= const(0, data.dtype))
                with ib.if_scope(arithmetic.all(*good)):
                    with ib.for_range(0, elements, "e") as e:
                        kept[b, valid[b], e] = boxes[b, i, e]
                    places[b, valid[b]] = cast(i, "int32")
                    valid[b] = valid[b] + 1
            with ib.for_range(valid[b], count, "i") as i:
                with ib.for_range(0, elements, "e") as e:
                    kept[b, i, e] = const(-1, data.dtype)
                places[b, i] = -1

    shapes = [(batch,), data.shape, (batch, count)]
    return in_loops(shapes, [data, *thresholds], body, "get_valid_counts", ["int32", data.dtype, "int32"])


def _need_elements(where: str, elements: Any, **places: int) -> None:
    """Refuse places of a box's row that it hasn't: loops check no indices."""
    count = extent_value(elements)
    for name, place in places.items():
        if place < 0 or (isinstance(count, int) and place >= count):
            raise DeclarationError(f"{where}: {name} names element {place} of boxes that have {count} elements")


def _overlap(boxes: BufferVar, a: tuple[Any, ...], b: tuple[Any, ...], start: int) -> PrimExpr:
    """Intersection over union of two boxes of any orientation of their corners."""

    def corners(of: tuple[Any, ...]) -> tuple[PrimExpr, PrimExpr, PrimExpr, PrimExpr]:
        places = [(*of, start + n) for n in range(4)]
        x0, y0, x1, y1 = (boxes[place] for place in places)
        return arithmetic.minimum(x0, x1), arithmetic.minimum(y0, y1), arithmetic.maximum(x0, x1), arithmetic.maximum(y0, y1)

    left_a, top_a, right_a, bottom_a = corners(a)
    left_b, top_b, right_b, bottom_b = corners(b)
    zero = const(0, boxes.dtype)
    wide = arithmetic.maximum(zero, arithmetic.minimum(right_a, right_b) - arithmetic.maximum(left_a, left_b))
    high = arithmetic.maximum(zero, arithmetic.minimum(bottom_a, bottom_b) - arithmetic.maximum(top_a, top_b))
    shared = wide * high
    union = (right_a - left_a) * (bottom_a - top_a) + (right_b - left_b) * (bottom_b - top_b) - shared
    # Two boxes without an area would give 0 / 0.
    return intrin.select(union <= zero, zero, shared / union)


def non_max_suppression(
    data: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:
    """Keep the box of the highest score among those that overlap.

    Args:
        data: [batch, boxes, elements], as `get_valid_counts` gives them.
        valid_count: [batch], int32.
        indices: [batch, boxes], int32: where the boxes were before `get_valid_counts`.
        max_output_size: at most so many boxes for each batch; -1 for all. A number or a scalar tensor.
        iou_threshold: boxes that overlap by as much go; 0 or less keeps all boxes, in the order they are given in. A number or a
            scalar tensor.
        force_suppress: boxes of different classes suppress each other too.
        top_k: look at so many of the best boxes only; -1 for all.
        coord_start: which element is the first of the four coordinates.
        score_index: which element is the score.
        id_index: which element is the class, -1 for none.
        return_indices: give places instead of boxes.
        invalid_to_bottom: without return_indices, move the boxes that are kept to the front.

    Returns:
        With return_indices, [places, counts]: the places in what `get_valid_counts` was given, in descending order of scores, then -1
        [batch, boxes] (int32), and how many there are [batch, 1] (int32). Else boxes [batch, boxes, elements] in that order, all -1
        where they went.

    Raises:
        DeclarationError: for other ranks.
    """
    need_rank("non_max_suppression", "data", data, 3)
    batch, count, elements = data.shape
    need_shape("non_max_suppression", "valid_count", valid_count, batch)
    need_shape("non_max_suppression", "indices", indices, batch, count)
    last = coord_start + 3 if coord_start >= 0 else coord_start
    _need_elements("non_max_suppression", elements, score_index=score_index, id_index=max(id_index, 0), coord_start=last)
    scores = injective((batch, count), lambda b, i: data[b, i, score_index], "scores")
    order = argsort(scores, valid_count, axis=1, is_ascend=False, dtype="int32")
    scalars = [t for t in (max_output_size, iou_threshold) if isinstance(t, Tensor)]

    def scalar(value: Any, ins: list[Buffer], ib: IRBuilder, dtype: str) -> PrimExpr:
        if isinstance(value, Tensor):
            return cast(ib.buffer_ptr(ins[4 + scalars.index(value)])[() if value.ndim == 0 else 0], dtype)
        return const(value, dtype)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        boxes, valid, origin, by_score = (ib.buffer_ptr(buffer) for buffer in ins[:4])
        most, limit = scalar(max_output_size, ins, ib, "int32"), scalar(iou_threshold, ins, ib, data.dtype)
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            selects = limit > const(0, data.dtype)
            looked_at = valid[b] if top_k < 0 else intrin.select(selects, arithmetic.minimum(valid[b], const(top_k, "int32")), valid[b])
            alive = ib.allocate("bool", (count,), "alive")

            def suppresses(i: Var, j: Var, b: Var = b) -> PrimExpr:
                first, other = (b, by_score[b, i]), (b, by_score[b, j])
                conditions = [_overlap(boxes, first, other, coord_start) >= limit]
                if not force_suppress and id_index >= 0:
                    own, others = (*first, id_index), (*other, id_index)
                    conditions.append(arithmetic.convert(boxes[own] == boxes[others]))
                return arithmetic.all(*conditions)

            def place(i: Var, b: Var = b, is_ordered: PrimExpr = selects) -> PrimExpr:
                return intrin.select(is_ordered, by_score[b, i], i)

            _keep_best(ib, alive, looked_at, selects, most, suppresses)
            _write_kept(ib, b, looked_at, alive, boxes, origin, place, outs, elements, return_indices, invalid_to_bottom)

    inputs = [data, valid_count, indices, order, *scalars]
    if return_indices:
        return in_loops([(batch, count), (batch, 1)], inputs, body, "non_max_suppression", ["int32", "int32"])
    return in_loops([data.shape], inputs, body, "non_max_suppression", [data.dtype])[0]


def _keep_best(
    ib: IRBuilder, alive: BufferVar, looked_at: PrimExpr, selects: PrimExpr, most: PrimExpr, suppresses: Callable[[Var, Var], PrimExpr]
) -> None:
    """Mark the boxes that stay, all that are looked at unless it `selects`: best first, at most `most` of them if that isn't negative, and
    none that a better one suppresses.
    """
    kept = ib.allocate("int32", (1,), "kept", scope="local")
    kept[0] = 0
    with ib.for_range(0, alive.buffer.shape[0], "i") as i:
        alive[i] = i < looked_at
    with ib.for_range(0, looked_at, "i") as i, ib.if_scope(arithmetic.all(selects, alive[i])):
        with ib.if_scope(arithmetic.all(most >= 0, kept[0] >= most)):
            # Beyond the limit a box isn't written, and so suppresses none.
            alive[i] = const(False, "bool")
        with ib.else_scope():
            kept[0] = kept[0] + 1
            # Best first: a box that is alive when its turn comes can't be suppressed any more.
            with ib.for_range(i + 1, looked_at, "j") as j, ib.if_scope(alive[j]), ib.if_scope(suppresses(i, j)):
                alive[j] = const(False, "bool")


def _write_kept(
    ib: IRBuilder, b: Var, looked_at: PrimExpr, alive: BufferVar, boxes: BufferVar, origin: BufferVar, place: Callable[[Var], PrimExpr],
    outs: list[Buffer], elements: Any, return_indices: bool, to_front: bool
) -> None:  # fmt: skip
    """The boxes of a batch that are left, or their places."""
    out = ib.buffer_ptr(outs[0])
    count = outs[0].shape[1]
    number = ib.allocate("int32", (1,), "number", scope="local")
    number[0] = 0
    if return_indices:
        with ib.for_range(0, count, "i") as i:
            out[b, i] = -1
        with ib.for_range(0, looked_at, "i") as i, ib.if_scope(alive[i]):
            out[b, number[0]] = origin[b, place(i)]
            number[0] = number[0] + 1
        ib.buffer_ptr(outs[1])[b, 0] = number[0]
        return
    with ib.for_range(0, count, "i") as i, ib.for_range(0, elements, "e") as e:
        out[b, i, e] = const(-1, out.dtype)
    with ib.for_range(0, looked_at, "i") as i, ib.if_scope(alive[i]):
        with ib.for_range(0, elements, "e") as e:
            out[b, number[0] if to_front else i, e] = boxes[b, place(i), e]
        number[0] = number[0] + 1


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float) -> Tensor:
    """The largest elements in a grid over each region.

    Args:
        data: [N, C, H, W].
        rois: [regions, 5]: image, left, top, right, bottom, in the coordinates of the image.
        pooled_size: (height, width) of the grid.
        spatial_scale: elements of `data` for a step of these coordinates.

    Returns:
        [regions, C, height, width]; 0 where a cell of the grid is empty.

    Raises:
        DeclarationError: for other ranks.
    """
    need_rank("roi_pool_nchw", "data", data, 4)
    need_shape("roi_pool_nchw", "rois", rois, None, 5)
    tall, wide = spread("roi_pool_nchw", "pooled_size", pooled_size, 2)
    height, width = data.shape[2:]
    regions, channels = rois.shape[0], data.shape[1]

    def bounds(roi: BufferVar, n: PrimExpr, axis: int, cell: PrimExpr, cells: int, extent: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        first, last = (cast(intrin.round(roi[n, 1 + axis + 2 * end] * spatial_scale), "int32") for end in range(2))
        # Both edges belong to a region; one that ends before it begins has one element.
        size = cast(arithmetic.maximum(last - first + 1, 1), "float32") / float(cells)
        low = cast(intrin.floor(cast(cell, "float32") * size), "int32") + first
        high = cast(intrin.ceil(cast(cell + 1, "float32") * size), "int32") + first
        clipped = [arithmetic.minimum(arithmetic.maximum(edge, 0), extent) for edge in (low, high)]
        return clipped[0], clipped[1]

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        maps, roi, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with (
            ib.for_range(0, regions, "n", kind="parallel") as n,
            ib.for_range(0, channels, "c") as c,
            ib.for_range(0, tall, "y") as y,
            ib.for_range(0, wide, "x") as x,
        ):
            top, bottom = bounds(roi, n, 1, y, tall, height)
            left, right = bounds(roi, n, 0, x, wide, width)
            most = ib.allocate(data.dtype, (1,), "most", scope="local")
            empty = arithmetic.any(bottom <= top, right <= left)
            most[0] = intrin.select(empty, const(0, data.dtype), intrin.min_value(data.dtype))
            with ib.for_range(top, bottom, "h") as h, ib.for_range(left, right, "w") as w:
                most[0] = arithmetic.maximum(most[0], maps[cast(roi[n, 0], "int32"), c, h, w])
            out[n, c, y, x] = most[0]

    return in_loops([(regions, channels, tall, wide)], [data, rois], body, "roi_pool", [data.dtype])[0]


def _roi_align(
    where: str, data: Tensor, rois: Tensor, pooled_size: Any, scale: float, mode: Any, ratio: int, last: bool, is_aligned: bool = False
) -> Tensor:
    need_rank(where, "data", data, 4)
    need_shape(where, "rois", rois, None, 5)
    kind = mode.decode() if isinstance(mode, bytes) else str(getattr(mode, "value", mode))
    if kind not in ("avg", "max", "max_corner", "0", "1"):
        raise DeclarationError(f'{where}: mode is {mode!r}; it takes "avg" or "max"')
    average = kind in ("avg", "0")
    tall, wide = spread(where, "pooled_size", pooled_size, 2)
    height, width, channels = data.shape[1:] if last else (*data.shape[2:], data.shape[1])

    def sample(maps: BufferVar, image: PrimExpr, c: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        """The bilinear interpolation at a point; 0 more than one element outside."""
        outside = arithmetic.any(y < -1.0, x < -1.0, y > cast(height, "float32"), x > cast(width, "float32"))
        terms: list[PrimExpr] = []
        inside = [arithmetic.minimum(arithmetic.maximum(v, 0.0), cast(e - 1, "float32")) for v, e in ((y, height), (x, width))]
        low = [cast(intrin.floor(v), "int32") for v in inside]
        part = [v - cast(first, "float32") for v, first in zip(inside, low, strict=True)]
        for down in range(2):
            for right in range(2):
                # At the last element the one behind is itself, with a weight of 0.
                at_y, at_x = arithmetic.minimum(low[0] + down, height - 1), arithmetic.minimum(low[1] + right, width - 1)
                weight = (part[0] if down else 1.0 - part[0]) * (part[1] if right else 1.0 - part[1])
                element = maps[image, at_y, at_x, c] if last else maps[image, c, at_y, at_x]
                terms.append(cast(weight, data.dtype) * element)
        found = terms[0]
        for term in terms[1:]:
            found = arithmetic.maximum(found, term) if kind == "max_corner" else found + term
        return intrin.select(outside, const(0, data.dtype), found)

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        maps, roi, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with (
            ib.for_range(0, rois.shape[0], "n", kind="parallel") as n,
            ib.for_range(0, channels, "c") as c,
            ib.for_range(0, tall, "y") as y,
            ib.for_range(0, wide, "x") as x,
        ):
            left, top, right, bottom = (roi[n, 1 + number] * scale - (0.5 if is_aligned else 0.0) for number in range(4))
            extents = [bottom - top, right - left]
            spans = extents if is_aligned else [arithmetic.maximum(extent, 1.0) for extent in extents]
            cell = [span / float(get_const_int(count)) for span, count in zip(spans, (tall, wide), strict=True)]
            samples = [const(ratio, "int32") if ratio > 0 else cast(intrin.ceil(size), "int32") for size in cell]
            found = ib.allocate(data.dtype, (1,), "found", scope="local")
            found[0] = const(0, data.dtype) if average else intrin.min_value(data.dtype)
            with ib.for_range(0, samples[0], "sy") as sy, ib.for_range(0, samples[1], "sx") as sx:
                at_y = top + cell[0] * (cast(y, "float32") + (cast(sy, "float32") + 0.5) / cast(samples[0], "float32"))
                at_x = left + cell[1] * (cast(x, "float32") + (cast(sx, "float32") + 0.5) / cast(samples[1], "float32"))
                value = sample(maps, cast(roi[n, 0], "int32"), c, at_y, at_x)
                found[0] = found[0] + value if average else arithmetic.maximum(found[0], value)
            count = samples[0] * samples[1]
            if average:
                # With is_aligned a region may have no extent, and then there are no samples.
                result = found[0] / cast(arithmetic.maximum(count, 1), data.dtype)
            else:
                result = intrin.select(count > 0, found[0], const(0, data.dtype))
            out[(n, y, x, c) if last else (n, c, y, x)] = result

    shape = (rois.shape[0], tall, wide, channels) if last else (rois.shape[0], channels, tall, wide)
    return in_loops([shape], [data, rois], body, "roi_align", [data.dtype])[0]


def roi_align_nchw(
    data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any, sample_ratio: int = -1, is_aligned: bool = False
) -> Tensor:
    """Interpolated elements of a grid over each region (Mask R-CNN, section 3).

    Args:
        data: [N, C, H, W].
        rois: [regions, 5]: image, left, top, right, bottom, in the coordinates of the image.
        pooled_size: (height, width) of the grid.
        spatial_scale: elements of `data` for a step of these coordinates.
        mode: what a cell makes of its samples: "avg" or "max"; "max_corner" takes the greatest weighted element, not the greatest sum.
        sample_ratio: samples along each side of a cell; -1 for one for each element.
        is_aligned: elements are points in the middle of a step, and regions may be smaller than one.

    Returns:
        [regions, C, height, width].

    Raises:
        DeclarationError: for other ranks or modes.
    """
    return _roi_align("roi_align_nchw", data, rois, pooled_size, spatial_scale, mode, sample_ratio, last=False, is_aligned=is_aligned)


def roi_align_nhwc(data: Tensor, rois: Tensor, pooled_size: Any, spatial_scale: float, mode: Any, sample_ratio: int = -1) -> Tensor:
    """As `roi_align_nchw`, with data [N, H, W, C] and a result [regions, height, width, C]."""
    return _roi_align("roi_align_nhwc", data, rois, pooled_size, spatial_scale, mode, sample_ratio, last=True)


def reorg(data: Tensor, stride: int) -> Tensor:
    """YOLO's reorganisation: [N, C, H, W] as [N, C * stride^2, H / stride, W / stride], as darknet orders the elements.

    Args:
        data: [N, C, H, W], of any dtype.
        stride: divides H and W, and its square C.

    Raises:
        DeclarationError: for another rank, or a stride that doesn't divide.
    """
    need_rank("reorg", "data", data, 4)
    n, channels, height, width = data.shape
    known = [extent_value(extent) for extent in data.shape[1:]]
    divisors = (stride * stride, stride, stride)
    if stride < 1 or any(isinstance(extent, int) and extent % by for extent, by in zip(known, divisors, strict=True)):
        raise DeclarationError(f"reorg: stride is {stride} for {shape_text(data)}; it divides H and W, and its square C")
    out_channels = arithmetic.floordiv(channels, stride * stride)

    def unravelled(place: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
        row = arithmetic.floordiv(place, width)
        return arithmetic.floordiv(place, height * width), arithmetic.floormod(row, height), arithmetic.floormod(place, width)

    def body(b: Var, k: Var, j: Var, i: Var) -> PrimExpr:
        # darknet reads the channels as C / stride^2 images, stride times as high and wide, and writes them in rows
        wide, high = width * stride, height * stride
        offset, channel = arithmetic.floordiv(k, out_channels), arithmetic.floormod(k, out_channels)
        place = (
            ((channel * high) + j * stride + arithmetic.floordiv(offset, stride)) * wide + i * stride + arithmetic.floormod(offset, stride)
        )
        return data(b, *unravelled(place))

    made = injective((n, channels, height, width), body, "reorg_flat")
    out = (n, channels * stride * stride, arithmetic.floordiv(height, stride), arithmetic.floordiv(width, stride))

    def reshaped(b: Var, c: Var, y: Var, x: Var) -> PrimExpr:
        return made(b, *unravelled((c * out[2] + y) * out[3] + x))

    return injective(out, reshaped, "reorg")


def generate_anchor(ratio: float, scale: float, base_size: int) -> tuple[float, float, float, float]:
    """The left, top, right and bottom of an anchor (Ren et al. 2015), of a ratio of height to width, around a square of `base_size`."""
    side = base_size
    middle = 0.5 * (side - 1.0)
    # floor(x + 0.5) rounds halves up; Python's `round` takes the even neighbour.
    width = math.floor(math.sqrt(math.floor(side * side / ratio)) + 0.5)
    height = math.floor(width * ratio + 0.5)
    half_width, half_height = 0.5 * (width * scale - 1.0), 0.5 * (height * scale - 1.0)
    return middle - half_width, middle - half_height, middle + half_width, middle + half_height


def reg_bbox(x1: Any, y1: Any, x2: Any, y2: Any, dx: Any, dy: Any, dw: Any, dh: Any) -> tuple[PrimExpr, PrimExpr, PrimExpr, PrimExpr]:
    """A box whose middle is moved by (dx, dy) of its size, and whose size is multiplied by (exp(dw), exp(dh)): left, top, right, bottom."""

    def moved(low: Any, high: Any, move: Any, grow: Any) -> tuple[PrimExpr, PrimExpr]:
        # Both corners belong to the box: from 3 to 5 are 3 pixels.
        size = arithmetic.convert(high) - low + 1.0
        middle = move * size + (low + 0.5 * (size - 1.0))
        half = 0.5 * (intrin.exp(arithmetic.convert(grow)) * size - 1.0)
        return middle - half, middle + half

    (left, right), (top, bottom) = moved(x1, x2, dx, dw), moved(y1, y2, dy, dh)
    return left, top, right, bottom


def reg_iou(x1: Any, y1: Any, x2: Any, y2: Any, dx1: Any, dy1: Any, dx2: Any, dy2: Any) -> tuple[Any, Any, Any, Any]:
    """A box whose corners are moved: left, top, right, bottom."""
    return x1 + dx1, y1 + dy1, x2 + dx2, y2 + dy2


__getattr__, __dir__ = later(
    __name__,
    {
        # The modules that programs name: of single-shot detectors, and of regions, which are here.
        ".detection": "ssd=. all_class_non_max_suppression multibox_detection multibox_prior multibox_transform_loc "
        "regular_non_max_suppression",
        ".proposals": "proposal",
        ".vision": "rcnn=.",
    },
)
