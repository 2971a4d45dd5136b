"""Detectors: the boxes that images are searched for, what a network's results make of these, and the best ones of each class.

Single-shot detectors (Liu et al. 2016) put boxes of a few sizes and ratios around every element of a feature map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute, reduce_axis
from ..te.reducer import sum as te_sum
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import cast, const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr, Var
from ..tir.ir_builder import IRBuilder
from .rows import in_loops
from .sort import argsort
from .transform import injective
from .utils import get_const_float, get_const_int, need_equal, need_rank, need_shape, one_of, shape_text, spread
from .vision import _overlap, non_max_suppression


def multibox_prior(
    data: Tensor,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Tensor:
    """Boxes around the elements of a feature map, in parts of the image.

    Args:
        data: [N, C, height, width]; only its extents matter.
        sizes: heights of boxes; there is a square of each size, and a box of the first size for each ratio but the first.
        ratios: of width to height; the first one isn't looked at, as the squares stand for it.
        steps: from one element to the next, down and to the right; -1 for the height and the width shared out evenly.
        offsets: of the middle of a box from the start of its element, in steps.
        clip: cut boxes off at the borders.

    Returns:
        [1, height * width * (sizes + ratios - 1), 4]: left, top, right, bottom.

    Raises:
        DeclarationError: for another rank, no size or ratio, or other than two steps or offsets.
    """
    where = "multibox_prior"
    need_rank(where, "data", data, 4)
    heights, shapes = ([get_const_float(value) for value in values] for values in (sizes, ratios))
    tall, wide = (get_const_int(extent) for extent in data.shape[2:])
    if not (heights and shapes and tall and wide):
        raise DeclarationError(f"{where}: sizes {heights}, ratios {shapes} and a map of {tall} x {wide}; it takes one or more of each")
    kinds = [(size, 1.0) for size in heights] + [(heights[0], ratio) for ratio in shapes[1:]]
    strides = map(get_const_float, spread(where, "steps", steps, 2))
    down, right = (step if step > 0 else 1.0 / n for step, n in zip(strides, (tall, wide), strict=True))
    offset_y, offset_x = map(get_const_float, spread(where, "offsets", offsets, 2))
    dtype, count = data.dtype, len(kinds)

    # A square of the image is as high as wide, but its sides are parts of the height and of the width.
    half_wide = [const(size * tall / wide * math.sqrt(ratio) / 2, dtype) for size, ratio in kinds]
    half_tall = [const(size / math.sqrt(ratio) / 2, dtype) for size, ratio in kinds]

    def body(_: Var, place: Var, corner: Var) -> PrimExpr:
        pixel, kind = arithmetic.floordiv(place, count), arithmetic.floormod(place, count)
        middle_y = (cast(arithmetic.floordiv(pixel, wide), dtype) + const(offset_y, dtype)) * const(down, dtype)
        middle_x = (cast(arithmetic.floormod(pixel, wide), dtype) + const(offset_x, dtype)) * const(right, dtype)
        is_x = arithmetic.convert(arithmetic.floormod(corner, 2) == 0)
        middle = intrin.select(is_x, middle_x, middle_y)
        half = intrin.select(is_x, one_of(half_wide, kind), one_of(half_tall, kind))
        edge = intrin.select(corner < 2, middle - half, middle + half)
        return arithmetic.maximum(arithmetic.minimum(edge, const(1, dtype)), const(0, dtype)) if clip else edge

    return compute((1, tall * wide * count, 4), body, "multibox_prior", "multibox_prior")


def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> list[Tensor]:
    """Boxes moved by what a network says, with the best class of each; those above a threshold stand in front.

    Args:
        cls_prob: [batch, classes, boxes]; class 0 is the background.
        loc_pred: [batch, boxes * 4]: how far the middle moves right and down, and the logarithms of the growth of width and height.
        anchor: [1 or batch, boxes, 4]: left, top, right, bottom.
        clip: cut boxes off at the borders of the image, 0 and 1.
        threshold: of the probability.
        variances: what each of the four numbers of `loc_pred` is multiplied with.
        keep_background: the background is a class as the others are.

    Returns:
        [boxes [batch, boxes, 6], counts [batch] (int32)]: a box is its class (the background is not counted, without keep_background),
        probability, left, top, right, bottom; behind the counted ones all are -1.

    Raises:
        DeclarationError: for other shapes.
    """
    where = "multibox_transform_loc"
    need_rank(where, "cls_prob", cls_prob, 3)
    batch, classes, count = cls_prob.shape
    need_shape(where, "loc_pred", loc_pred, batch, count * 4)
    need_shape(where, "anchor", anchor, None, count, 4)
    first = 0 if keep_background else 1
    dtype, factors = cls_prob.dtype, [const(get_const_float(v), cls_prob.dtype) for v in spread(where, "variances", variances, 4)]
    shared = get_const_int(anchor.shape[0]) == 1
    if not shared:
        need_equal(where, "the batches of cls_prob and anchor", batch, anchor.shape[0])

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        probability, moves, boxes = (ib.buffer_ptr(buffer) for buffer in ins)
        out, valid = (ib.buffer_ptr(buffer) for buffer in outs)
        limit = const(threshold, dtype)

        def moved(b: Any, i: Any, axis: int) -> tuple[PrimExpr, PrimExpr]:
            low, high = (boxes[0 if shared else b, i, axis + end] for end in (0, 2))
            size = high - low
            middle = (low + high) * const(0.5, dtype) + moves[b, i * 4 + axis] * factors[axis] * size
            half = intrin.exp(moves[b, i * 4 + 2 + axis] * factors[2 + axis]) * size * const(0.5, dtype)
            return middle - half, middle + half

        def held(edge: PrimExpr) -> PrimExpr:
            return arithmetic.maximum(arithmetic.minimum(edge, const(1, dtype)), const(0, dtype)) if clip else edge

        with ib.for_range(0, batch, "b", kind="parallel") as b:
            best = ib.allocate(dtype, (1,), "best", scope="local")
            kind = ib.allocate("int32", (1,), "kind", scope="local")
            valid[b] = 0
            with ib.for_range(0, count, "i") as i:
                best[0], kind[0] = const(-1, dtype), const(first - 1, "int32")
                with ib.for_range(first, classes, "c") as c, ib.if_scope(probability[b, c, i] > best[0]):
                    best[0], kind[0] = probability[b, c, i], c
                with ib.if_scope(arithmetic.all(kind[0] >= first, best[0] >= limit)):
                    (left, right), (top, bottom) = moved(b, i, 0), moved(b, i, 1)
                    # Numbered from 0 on without the background.
                    values = (cast(kind[0] - first, dtype), best[0], held(left), held(top), held(right), held(bottom))
                    for place, value in enumerate(values):
                        out[b, valid[b], place] = value
                    valid[b] = valid[b] + 1
            with ib.for_range(valid[b], count, "rest") as rest, ib.for_range(0, 6, "e") as e:
                out[b, rest, e] = const(-1, dtype)

    return in_loops([(batch, count, 6), (batch,)], [cls_prob, loc_pred, anchor], body, where, [dtype, "int32"])


def multibox_detection(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> Tensor:
    """The boxes of `multibox_transform_loc` that overlap no better ones: [batch, boxes, 6], best first, then -1."""
    boxes, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    places: Tensor = injective(boxes.shape[:2], lambda b, i: i, "places")
    made = non_max_suppression(boxes, counts, places, -1, nms_threshold, force_suppress, nms_topk, return_indices=False)
    assert isinstance(made, Tensor)
    return made


def all_class_non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: str = "onnx",
) -> list[Tensor]:
    """For every class by itself, the boxes of high scores that overlap no better ones.

    Args:
        boxes: [batch, boxes, 4]: two opposite corners.
        scores: [batch, classes, boxes].
        max_output_boxes_per_class: at most so many; a number or a tensor of one element, as the next two are.
        iou_threshold: boxes that overlap by more go.
        score_threshold: boxes of such a score or less go.
        output_format: "onnx" or "tensorflow".

    Returns:
        For "onnx", [rows [batch * classes * boxes, 3] (int64): batch, class, box; how many there are [1] (int64)]. For "tensorflow",
        [rows [batch, classes * boxes, 2] (int64): class, box; their scores; how many there are [batch] (int64)]. By classes, best
        first; rows behind those counted are 0.

    Raises:
        DeclarationError: for other shapes, or another format.
    """
    where = "all_class_non_max_suppression"
    if output_format not in ("onnx", "tensorflow"):
        raise DeclarationError(f'{where}: output_format is {output_format!r}; it takes "onnx" or "tensorflow"')
    need_rank(where, "scores", scores, 3)
    batch, classes, count = scores.shape
    need_shape(where, "boxes", boxes, batch, count, 4)
    order = argsort(scores, axis=2, is_ascend=False, dtype="int32")
    limits = (max_output_boxes_per_class, iou_threshold, score_threshold)
    given = [limit for limit in limits if isinstance(limit, Tensor)]
    kept, found = _kept_of_classes(boxes, scores, order, limits, given)
    onnx = output_format == "onnx"

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        chosen, counts, value = (ib.buffer_ptr(buffer) for buffer in ins)
        rows, total = ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[-1])
        if onnx:
            total[0] = const(0, "int64")
        # In order, as each class begins where those before it end.
        with ib.for_range(0, batch, "b") as b:
            place = 0 if onnx else b
            if not onnx:
                total[b] = const(0, "int64")
            with ib.for_range(0, classes, "c") as c:
                with ib.for_range(0, counts[b, c], "k") as k:
                    row = total[place] + cast(k, "int64")
                    whole = [b, c, chosen[b, c, k]]
                    for column, part in enumerate(whole if onnx else whole[1:]):
                        rows[(row, column) if onnx else (b, row, column)] = cast(part, "int64")
                    if not onnx:
                        ib.buffer_ptr(outs[1])[b, row] = value[b, c, chosen[b, c, k]]
                total[place] = total[place] + cast(counts[b, c], "int64")
            if not onnx:
                _clear(ib, b, total[b], classes * count, rows, 2)
                with ib.for_range(total[b], cast(classes * count, "int64"), "rest") as rest:
                    ib.buffer_ptr(outs[1])[b, rest] = const(0, scores.dtype)
        if onnx:
            _clear(ib, None, total[0], batch * classes * count, rows, 3)

    if onnx:
        shapes: list[Any] = [(batch * classes * count, 3), (1,)]
        return in_loops(shapes, [kept, found, scores], body, where, ["int64", "int64"])
    shapes = [(batch, classes * count, 2), (batch, classes * count), (batch,)]
    return in_loops(shapes, [kept, found, scores], body, where, ["int64", scores.dtype, "int64"])


def _clear(ib: IRBuilder, b: Any, first: PrimExpr, count: Any, rows: Any, width: int) -> None:
    with ib.for_range(first, cast(count, "int64"), "rest") as rest, ib.for_range(0, width, "column") as column:
        rows[(rest, column) if b is None else (b, rest, column)] = const(0, "int64")


def regular_non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> list[Tensor]:
    """The best boxes of all classes, of those that overlap no better one of their class; as TFLite's detection has it.

    Args:
        boxes: [batch, boxes, 4]: two opposite corners.
        scores: [batch, boxes, classes]; the last num_classes count, those before them are the background.
        max_detections_per_class: at most so many boxes of each class.
        max_detections: so many results for each image.
        num_classes: the classes without the background.
        iou_threshold: boxes that overlap by more go.
        score_threshold: boxes of a lower score go.

    Returns:
        [boxes [batch, max_detections, 4], classes and scores [batch, max_detections], how many there are [batch] (int32)], best first;
        classes are counted without the background, in the dtype of the scores. Behind those counted all are 0.

    Raises:
        DeclarationError: for other shapes, or fewer classes than wanted.
    """
    where = "regular_non_max_suppression"
    need_rank(where, "scores", scores, 3)
    batch, count = scores.shape[:2]
    need_shape(where, "boxes", boxes, batch, count, 4)
    background, each = get_const_int(scores.shape[2]) - num_classes, min(max_detections_per_class, get_const_int(count))
    if background < 0 or num_classes < 1 or each < 1 or max_detections < 1:
        raise DeclarationError(
            f"{where}: {max_detections} boxes, {max_detections_per_class} of each of {num_classes} classes, of {shape_text(scores)} "
            "scores; there is one or more of each, and a score of every class"
        )
    of_classes: Tensor = injective((batch, num_classes, count), lambda b, c, i: scores[b, i, c + background], "scores_of_classes")
    order = argsort(of_classes, axis=2, is_ascend=False, dtype="int32")
    kept, found = _kept_of_classes(boxes, of_classes, order, (each, iou_threshold, score_threshold), [], is_least_kept=True)
    total, floor = num_classes * each, intrin.min_value(scores.dtype)

    def candidate(b: Var, j: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        c, k = arithmetic.floordiv(j, each), arithmetic.floormod(j, each)
        return c, arithmetic.maximum(kept[b, c, k], 0)  # behind those kept are -1

    def pooled(b: Var, j: Var) -> PrimExpr:
        c, box = candidate(b, j)
        return intrin.select(arithmetic.floormod(j, each) < found[b, c], of_classes[b, c, box], floor)

    ranked = argsort(compute((batch, total), pooled, "scores_kept"), axis=1, is_ascend=False, dtype="int32")
    n = reduce_axis((0, num_classes), name="n")
    whole: Tensor = compute((batch,), lambda b: te_sum(found[b, n.var], axis=n), "all_kept")
    counts: Tensor = compute((batch,), lambda b: arithmetic.minimum(whole[b], max_detections), "num_detections")

    def best(b: Var, d: Var, value: Any) -> PrimExpr:
        c, box = candidate(b, ranked(b, arithmetic.minimum(d, total - 1)))
        chosen: PrimExpr = value(c, box)
        return intrin.select(d < counts[b], chosen, const(0, chosen.dtype))

    shape = (batch, max_detections)
    return [
        compute((*shape, 4), lambda b, d, e: best(b, d, lambda c, box: boxes[b, box, e]), "detection_boxes"),
        compute(shape, lambda b, d: best(b, d, lambda c, box: cast(c, scores.dtype)), "detection_classes"),
        compute(shape, lambda b, d: best(b, d, lambda c, box: of_classes[b, c, box]), "detection_scores"),
        counts,
    ]


def _kept_of_classes(
    boxes: Tensor, scores: Tensor, order: Tensor, limits: Sequence[Any], given: Sequence[Tensor], is_least_kept: bool = False
) -> list[Tensor]:
    """The boxes that each class of each batch keeps, best first, and how many; is_least_kept: those of the least score too."""
    batch, classes, count = scores.shape

    def body(ib: IRBuilder, ins: list[Buffer], outs: list[Buffer]) -> None:
        box, score, by_score = (ib.buffer_ptr(buffer) for buffer in ins[:3])
        kept, found = (ib.buffer_ptr(buffer) for buffer in outs)

        def limit(number: int, dtype: str) -> PrimExpr:
            value = limits[number]
            if not isinstance(value, Tensor):
                return const(value, dtype)
            place = next(n for n, one in enumerate(given) if one is value)
            return cast(ib.buffer_ptr(ins[3 + place])[() if value.ndim == 0 else (0,)], dtype)

        overlap, least = limit(1, boxes.dtype), limit(2, scores.dtype)
        most = arithmetic.minimum(limit(0, "int64"), cast(count, "int64"))  # ONNX's programs say the largest int64 for all
        with ib.for_range(0, batch * classes, "bc", kind="parallel") as bc:
            b, c = (split(bc, arithmetic.maximum(classes, 1)) for split in (arithmetic.floordiv, arithmetic.floormod))
            alive = ib.allocate("bool", (1,), "alive", scope="local")
            found[b, c] = 0
            with ib.for_range(0, count, "i") as i:
                candidate = by_score[b, c, i]
                own = score[b, c, candidate]
                alive[0] = arithmetic.all(cast(found[b, c], "int64") < most, own >= least if is_least_kept else own > least)
                # Against those that are kept: one that went suppresses none.
                with ib.for_range(0, found[b, c], "k") as k, ib.if_scope(_overlap(box, (b, kept[b, c, k]), (b, candidate), 0) > overlap):
                    alive[0] = const(False, "bool")
                with ib.if_scope(alive[0]):
                    kept[b, c, found[b, c]] = candidate
                    found[b, c] = found[b, c] + 1
            with ib.for_range(found[b, c], count, "rest") as rest:
                kept[b, c, rest] = -1

    return in_loops([scores.shape, (batch, classes)], [boxes, scores, order, *given], body, "nms_of_classes", ["int32", "int32"])
