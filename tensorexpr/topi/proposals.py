"""Region proposals (Ren et al. 2015): anchors around every element of a feature map, in pixels of the image, moved by a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import cast, const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr, Var
from ..tir.ir_builder import IRBuilder
from .rows import in_loops
from .sort import argsort
from .transform import injective
from .utils import get_const_int, need_shape, one_of
from .vision import generate_anchor, reg_bbox, reg_iou


def proposal(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Tensor:
    """Regions that may hold something: anchors moved by what a network says, the best of those that overlap.

    Args:
        cls_prob: [batch, 2 * anchors, height, width]; the second half are the probabilities of something being there.
        bbox_pred: [batch, 4 * anchors, height, width]: for each anchor the moves of `vision.reg_bbox`, or with iou_loss of `reg_iou`.
        im_info: [batch, 3]: height, width and scale of the image.
        scales, ratios: an anchor for each pair, see `vision.generate_anchor`; the ratios run slower.
        feature_stride: pixels from one element to the next.
        threshold: regions that overlap by more go.
        rpn_pre_nms_top_n: look at so many of the best only; -1 for all.
        rpn_post_nms_top_n: regions of each image.
        rpn_min_size: of width and height, in pixels of the unscaled image; smaller regions come last, and half of it is added on each of
            their sides, past the border too.
        iou_loss: what bbox_pred means.

    Returns:
        [batch * rpn_post_nms_top_n, 5]: image, left, top, right, bottom. Where fewer regions are left they are repeated from the best on.

    Raises:
        DeclarationError: for other shapes, or no region to look at or to give.
    """
    where = "proposal"
    anchors = [generate_anchor(float(ratio), float(scale), feature_stride) for ratio in ratios for scale in scales]
    kinds = len(anchors)
    need_shape(where, "cls_prob", cls_prob, None, 2 * kinds, None, None)
    dtype = cls_prob.dtype
    batch, _, tall, wide = (get_const_int(extent) for extent in cls_prob.shape)
    need_shape(where, "bbox_pred", bbox_pred, batch, 4 * kinds, tall, wide)
    need_shape(where, "im_info", im_info, batch, 3)
    total = tall * wide * kinds
    # Rows behind those that are left repeat them, so there must be one.
    if rpn_pre_nms_top_n == 0 or rpn_post_nms_top_n < 1 or total == 0:
        raise DeclarationError(
            f"{where}: of {total} regions the best {rpn_pre_nms_top_n} are looked at and {rpn_post_nms_top_n} given; "
            "each must be one or more (rpn_pre_nms_top_n=-1 looks at all)"
        )

    regions = _moved(anchors, bbox_pred, im_info, feature_stride, reg_iou if iou_loss else reg_bbox)

    def least(b: Var) -> PrimExpr:
        return im_info(b, 2) * const(rpn_min_size, dtype)

    def small(b: Var, i: Var) -> PrimExpr:
        return arithmetic.any(*(regions(b, i, n + 2) - regions(b, i, n) + const(1, dtype) < least(b) for n in range(2)))

    def likely(b: Var, i: Var) -> PrimExpr:
        kind, y, x = _place(i, kinds, wide)
        return intrin.select(small(b, i), const(-1, dtype), cls_prob(b, kinds + kind, y, x))

    def grown(b: Var, i: Var, e: Var) -> PrimExpr:
        half = intrin.select(e < 2, const(-0.5, dtype), const(0.5, dtype)) * least(b)
        return regions(b, i, e) + intrin.select(small(b, i), half, const(0, dtype))

    order = argsort(compute((batch, total), likely, "likely"), axis=1, is_ascend=False, dtype="int32")
    looked_at = total if rpn_pre_nms_top_n < 0 else min(total, rpn_pre_nms_top_n)
    return _best_apart(where, compute(regions.shape, grown, "grown"), order, looked_at, rpn_post_nms_top_n, threshold)


def _place(i: Var, kinds: int, wide: int) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """The anchor of a region, and where its element is."""
    pixel, kind = arithmetic.floordiv(i, kinds), arithmetic.floormod(i, kinds)
    return kind, arithmetic.floordiv(pixel, wide), arithmetic.floormod(pixel, wide)


def _moved(anchors: Sequence[Sequence[float]], moves: Tensor, im_info: Tensor, stride: int, move: Callable[..., Any]) -> Tensor:
    """[batch, regions, 4]: the anchors around all elements, moved, and cut off at the borders of the image."""
    kinds, dtype = len(anchors), moves.dtype
    batch, _, tall, wide = (get_const_int(extent) for extent in moves.shape)
    flat = [const(edge, dtype) for anchor in anchors for edge in anchor]
    corners: Tensor = injective((kinds, 4), lambda a, e: one_of(flat, a * 4 + e), "anchors")

    def region(b: Var, i: Var, e: Var) -> PrimExpr:
        kind, y, x = _place(i, kinds, wide)
        shift = [cast(x * stride, dtype), cast(y * stride, dtype)] * 2
        edges = move(*(corners(kind, n) + shift[n] for n in range(4)), *(moves(b, kind * 4 + n, y, x) for n in range(4)))
        ends = [im_info(b, 1 - n % 2) - const(1, dtype) for n in range(4)]
        return one_of([arithmetic.maximum(arithmetic.minimum(*pair), const(0, dtype)) for pair in zip(edges, ends, strict=True)], e)

    made: Tensor = compute((batch, tall * wide * kinds, 4), region, "regions")
    return made


def _best_apart(name: str, regions: Tensor, order: Tensor, looked_at: int, most: int, threshold: float) -> Tensor:
    """So many regions of each image as rows (image, corners): from the best on those that overlap no better one by more."""
    batch, dtype = get_const_int(regions.shape[0]), regions.dtype

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        boxes, by_score = (ib.buffer_ptr(buffer) for buffer in ins)
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            kept = ib.allocate("int32", (most,), "kept")
            state = ib.allocate("int32", (2,), "state", scope="local")  # how many are kept, and whether this one is
            state[0] = 0
            with ib.for_range(0, looked_at, "i") as i, ib.if_scope(state[0] < most):
                state[1] = 1
                with ib.for_range(0, state[0], "k") as k:
                    overlap = _pixels_shared(boxes, (b, kept[k]), (b, by_score[b, i]))
                    state[1] = intrin.select(overlap > const(threshold, dtype), const(0, "int32"), state[1])
                with ib.if_scope(arithmetic.convert(state[1] == 1)):
                    kept[state[0]] = by_score[b, i]
                    state[0] = state[0] + 1
            with ib.for_range(0, most, "n") as n:
                out[b * most + n, 0] = cast(b, dtype)
                with ib.for_range(0, 4, "e") as e:
                    # Where fewer are left they are repeated; the best one always is.
                    out[b * most + n, e + 1] = boxes[b, kept[arithmetic.floormod(n, state[0])], e]

    return in_loops([(batch * most, 5)], [regions, order], body, name, [dtype])[0]


def _pixels_shared(boxes: Any, a: tuple[Any, ...], b: tuple[Any, ...]) -> PrimExpr:
    """Intersection over union of two regions in pixels, whose corners belong to them: from 3 to 5 are 3."""
    one = const(1, boxes.dtype)

    def sides(low: tuple[PrimExpr, PrimExpr], high: tuple[PrimExpr, PrimExpr]) -> list[PrimExpr]:
        return [arithmetic.maximum(h - w + one, const(0, boxes.dtype)) for w, h in zip(low, high, strict=True)]

    def corner(box: tuple[Any, ...], first: int) -> tuple[PrimExpr, PrimExpr]:
        x, y = (*box, first), (*box, first + 1)
        return boxes[x], boxes[y]

    starts, ends = ([corner(box, first) for box in (a, b)] for first in (0, 2))
    areas = [side[0] * side[1] for side in (sides(low, high) for low, high in zip(starts, ends, strict=True))]
    both = sides(
        (arithmetic.maximum(starts[0][0], starts[1][0]), arithmetic.maximum(starts[0][1], starts[1][1])),
        (arithmetic.minimum(ends[0][0], ends[1][0]), arithmetic.minimum(ends[0][1], ends[1][1])),
    )
    shared = both[0] * both[1]
    return shared / (areas[0] + areas[1] - shared)
