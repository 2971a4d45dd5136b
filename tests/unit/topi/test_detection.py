"""Boxes of single-shot detectors, proposals and the best boxes of each class, against direct definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi import vision
from tests.operators import Array, assert_same, run, values


def test_boxes_around_the_elements_of_a_map() -> None:
    sizes, ratios, steps, offsets = (0.5, 0.3), (1.0, 2.0, 0.5), (-1, 0.25), (0.5, 0.4)
    found = run(lambda x: vision.ssd.multibox_prior(x, sizes, ratios, steps, offsets, True), values(1, 2, 3, 4))
    wanted = []
    for y, x in np.ndindex(3, 4):
        middle = np.array([(x + 0.4) * 0.25, (y + 0.5) / 3])
        for size, ratio in ((0.5, 1), (0.3, 1), (0.5, 2), (0.5, 0.5)):
            half = np.array([size * 3 / 4 * ratio**0.5, size / ratio**0.5]) / 2
            wanted.append(np.clip([*(middle - half), *(middle + half)], 0, 1))
    assert_same(found, np.array(wanted)[None])
    with pytest.raises(DeclarationError, match="one or more of each"):
        vision.multibox_prior(te.placeholder((1, 1, 2, 2)), ())


def suppressed(boxes: Array, order: Any, limit: float, strict: bool = True, extra: float = 0.0) -> list[int]:
    """The boxes that overlap no better one by more, or as much."""
    kept: list[int] = []
    for one in order:
        ratios = []
        for other in kept:
            low, high = np.maximum(boxes[one, :2], boxes[other, :2]), np.minimum(boxes[one, 2:], boxes[other, 2:])
            shared = np.prod(np.maximum(high - low + extra, 0))
            areas = [np.prod(boxes[n, 2:] - boxes[n, :2] + extra) for n in (one, other)]
            ratios.append(shared / (sum(areas) - shared))
        if all(ratio <= limit if strict else ratio < limit for ratio in ratios):
            kept.append(one)
    return kept


def corners(*shape: int) -> Array:
    low = values(*shape, 2, low=0, high=1)
    return np.concatenate([low, low + values(*shape, 2, low=0.3, high=1)], -1)


@pytest.mark.parametrize("keep_background", [False, True])
def test_boxes_are_moved_and_the_likely_ones_stand_in_front(keep_background: bool) -> None:
    chances, moves, anchors = values(2, 3, 5, low=0, high=1), values(2, 20), corners(1, 5)
    options = {"clip": False, "threshold": 0.6, "variances": (0.1, 0.2, 0.3, 0.1), "keep_background": keep_background}
    boxes, counts = run(lambda *t: vision.multibox_transform_loc(*t, **options), chances, moves, anchors)
    first = 0 if keep_background else 1
    for b in range(2):
        wanted = []
        for i in range(5):
            kind = int(chances[b, first:, i].argmax())
            if chances[b, first + kind, i] >= 0.6:
                move, size = moves[b, 4 * i : 4 * i + 4] * options["variances"], anchors[0, i, 2:] - anchors[0, i, :2]
                middle = (anchors[0, i, :2] + anchors[0, i, 2:]) / 2 + move[:2] * size
                half = np.exp(move[2:]) * size / 2
                wanted.append([kind, chances[b, first + kind, i], *(middle - half), *(middle + half)])
        assert counts[b] == len(wanted)
        assert_same(boxes[b], np.array([*wanted, *[[-1] * 6] * (5 - len(wanted))]), 1e-4)


def test_detections_overlap_no_better_ones_of_their_class() -> None:
    chances, moves, anchors = values(1, 3, 6, low=0, high=1), values(1, 24, low=-0.1, high=0.1), corners(1, 6)
    [moved, counts] = run(lambda *t: vision.multibox_transform_loc(*t), chances, moves, anchors)
    found = run(lambda *t: vision.multibox_detection(*t, nms_threshold=0.3), chances, moves, anchors)
    rows = moved[0, : counts[0]]
    wanted = {
        kept for kind in (0, 1) for kept in suppressed(rows[:, 2:], [n for n in np.argsort(-rows[:, 1]) if rows[n, 0] == kind], 0.3, False)
    }
    shown = found[0][found[0, :, 0] >= 0]
    assert_same(shown, rows[sorted(wanted, key=lambda n: -rows[n, 1])])


@pytest.mark.parametrize("limits", [(2, 0.3, 0.2), (10, 0.6, 0.0), (0, 0.5, 0.0)])
def test_the_best_boxes_of_each_class(limits: tuple[int, float, float]) -> None:
    boxes, scores = corners(2, 6), values(2, 3, 6, low=0, high=1)
    most, overlap, least = limits
    wanted = {
        (b, c): [n for n in suppressed(boxes[b], [n for n in np.argsort(-scores[b, c]) if scores[b, c, n] > least], overlap)][:most]
        for b, c in np.ndindex(2, 3)
    }
    rows, count = run(lambda x, s: vision.all_class_non_max_suppression(x, s, *limits), boxes, scores)
    flat = [[b, c, n] for (b, c), kept in wanted.items() for n in kept]
    assert count.tolist() == [len(flat)] and rows[: len(flat)].tolist() == flat and not rows[len(flat) :].any()
    given = [np.array([value], dtype) for value, dtype in zip(limits, ("int64", "float32", "float32"), strict=True)]
    again, marks, counts = run(lambda x, s, *t: vision.all_class_non_max_suppression(x, s, *t, "tensorflow"), boxes, scores, *given)
    for b in range(2):
        own = [row[1:] for row in flat if row[0] == b]
        assert counts[b] == len(own) and again[b, : len(own)].tolist() == own and not again[b, len(own) :].any()
        assert marks[b, : len(own)].tolist() == [scores[b, c, n] for c, n in own] and not marks[b, len(own) :].any()
    with pytest.raises(DeclarationError, match='"onnx" or "tensorflow"'):
        vision.all_class_non_max_suppression(te.placeholder((1, 2, 4)), te.placeholder((1, 1, 2)), 1, 0.5, 0.0, "torch")


def test_the_best_boxes_of_all_classes() -> None:
    boxes, scores = corners(2, 9), values(2, 9, 4, low=0, high=1)
    # the second image has fewer than five, some of them of the least score, which counts
    scores[1] *= 0.4
    least = float(np.sort(scores[1, :, 1:].ravel())[-4])
    found = run(lambda x, s: vision.regular_non_max_suppression(x, s, 2, 5, 3, 0.4, least), boxes, scores)
    for b in range(2):
        kept = []
        for c in range(3):
            own = scores[b, :, c + 1]
            kept += [(own[n], c, n) for n in suppressed(boxes[b], [n for n in np.argsort(-own) if own[n] >= least], 0.4)[:2]]
        kept = sorted(kept, key=lambda one: -one[0])[:5]
        count, rest = len(kept), 5 - len(kept)
        assert found[3][b] == count and (b == 0 or rest)
        assert_same(found[0][b], np.array([*(boxes[b, n] for *_, n in kept), *[[0] * 4] * rest]))
        assert found[1][b].tolist() == [*(c for _, c, _ in kept), *[0] * rest]
        assert_same(found[2][b], np.array([*(score for score, *_ in kept), *[0] * rest]))
    with pytest.raises(DeclarationError, match="a score of every class"):
        vision.regular_non_max_suppression(te.placeholder((1, 2, 4)), te.placeholder((1, 2, 2)), 1, 1, 3, 0.5, 0.0)


@pytest.mark.parametrize("iou_loss", [False, True])
def test_proposals_are_the_best_anchors_moved(iou_loss: bool) -> None:
    scales, ratios, stride, after = (1.0, 2.0), (1.0,), 4, 4
    chances, moves = values(1, 4, 2, 3, low=0, high=1), values(1, 8, 2, 3, low=-0.4, high=0.4)
    info = np.array([[9, 13, 1]], "float32")
    found = run(lambda *t: vision.proposal(*t, scales, ratios, stride, 0.4, 9, after, 4, iou_loss), chances, moves, info)
    boxes, marks = [], []
    for y, x, a in np.ndindex(2, 3, 2):
        box = np.array(vision.generate_anchor(1.0, scales[a], stride)) + np.array([x, y, x, y]) * stride
        move = moves[0, 4 * a : 4 * a + 4, y, x]
        if iou_loss:
            box = box + move
        else:
            size = box[2:] - box[:2] + 1
            middle, half = box[:2] + (size - 1) / 2 + move[:2] * size, (np.exp(move[2:]) * size - 1) / 2
            box = np.concatenate([middle - half, middle + half])
        box = np.clip(box, 0, [12, 8, 12, 8])
        boxes.append(box)
        small = (box[2:] - box[:2] + 1 < 4).any()
        marks.append(-1 if small else chances[0, 2 + a, y, x])
        boxes[-1] = box + np.array([-2, -2, 2, 2]) * small  # half of the least size is added on each side
    kept = suppressed(np.array(boxes), np.argsort(-np.array(marks), kind="stable")[:9], 0.4, True, 1.0)
    wanted = [[0, *boxes[kept[n % min(len(kept), after)]]] for n in range(after)]
    assert_same(found, np.array(wanted), 1e-4)


COUNTS, PLACES = te.placeholder((2,), "int32"), te.placeholder((2, 5), "int32")


def proposal(info: int, looked_at: int) -> Any:
    return [(1, 4, 2, 3), (1, 8, 2, 3), (1, info)], lambda *t: vision.proposal(*t, (1, 2), (1,), 4, 0.4, looked_at, 4, 4, False)


@pytest.mark.parametrize(
    ("shapes", "call", "message"),
    [
        ([(1, 1, 2, 2)], lambda x: vision.multibox_prior(x, steps=(1, 2, 3)), "steps"),
        ([(2, 3, 5), (1, 20), (1, 5, 4)], vision.multibox_transform_loc, "extent 0 of loc_pred"),
        ([(2, 3, 5), (2, 20), (3, 5, 4)], vision.multibox_transform_loc, "batches of cls_prob and anchor"),
        ([(2, 3, 5), (2, 20), (1, 5, 3)], vision.multibox_transform_loc, "extent 2 of anchor"),
        ([(2, 3, 5), (2, 20), (1, 5, 4)], lambda *t: vision.multibox_transform_loc(*t, variances=(1, 2)), "variances"),
        ([(1, 5, 4), (2, 3, 5)], lambda *t: vision.all_class_non_max_suppression(*t, 1, 0.5, 0.1), "extent 0 of boxes"),
        (*proposal(2, 9), "extent 1 of im_info"),
        (*proposal(3, 0), "each must be one or more"),
        ([(1, 4, 6, 6), (2, 4)], lambda x, r: vision.roi_align_nchw(x, r, (2, 2), 1.0, "avg"), "extent 1 of rois"),
        ([(2, 5, 6)], lambda x: vision.get_valid_counts(x, 0, 0, 6), "score_index names element 6"),
        ([(2, 5, 6)], lambda x: vision.non_max_suppression(x, PLACES, PLACES), "valid_count"),
        ([(2, 5, 6)], lambda x: vision.non_max_suppression(x, COUNTS, PLACES, coord_start=3), "coord_start names element 6"),
    ],
)
def test_shapes_that_loops_would_read_past_are_refused(shapes: Any, call: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        call(*map(te.placeholder, shapes))


def test_programs_find_the_operators_of_other_processors() -> None:
    assert topi.arm_cpu.conv2d_nchw_winograd is topi.nn.conv2d_winograd_nchw and topi.cuda.proposal is vision.rcnn.proposal
    x, w = te.placeholder((4, 8)), te.placeholder((6, 8))
    assert topi.mali.schedule_dense(topi.mali.dense(x, w)).outputs


def test_a_convolution_as_a_record_and_its_fallback_knobs() -> None:
    from tensorexpr import autotvm
    from tensorexpr.topi.nn.workload import conv2d_workload, depthwise_workload
    from tensorexpr.topi.x86.conv2d_avx_common import fallback_knobs

    made = conv2d_workload(te.placeholder((1, 12, 9, 30)), te.placeholder((20, 6, 3, 5)), (1, 2), (1, 2), (2, 1), "float32")
    assert made[2:] == (9, 30, 12, 2, 20, 3, 5, 1, 2, 1, 2, 2, 1, 1, 2)
    cfg: Any = autotvm.FallbackContext().query(autotvm_target(), ("none",))
    fallback_knobs(cfg, made)
    assert [int(np.prod(cfg[name].size)) for name in ("tile_ic", "tile_oc", "tile_ow")] == [12, 20, 15]
    blocked = depthwise_workload(te.placeholder((1, 2, 7, 7, 8)), te.placeholder((2, 1, 3, 3, 1, 8)), 1, 0, 1, "float32", "NCHWc")
    assert (blocked.in_filter, blocked.out_filter, blocked.kernel_w) == (16, 16, 3)
    with pytest.raises(DeclarationError, match="the layout is 'CHWN'"):
        conv2d_workload(te.placeholder((1, 1, 2, 2)), te.placeholder((1, 1, 1, 1)), 1, 0, 1, "float32", "CHWN")


def autotvm_target() -> Any:
    from tensorexpr.target import Target

    return Target("llvm")
