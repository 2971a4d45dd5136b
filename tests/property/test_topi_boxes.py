"""topi's boxes and regions against direct definitions: counted, suppressed, pooled."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, exp, floor, sqrt
from typing import Any

import numpy as np
import pytest

from tensorexpr.topi import vision

from .operator_draws import Values
from .topi_cases import Array, Case, Table, check_table, index, into

CASES: Table = {}
case = into(CASES)


def overlap(a: Array, b: Array, extra: float = 0) -> float:
    """Intersection over union; a corner may be any of a diagonal's two."""
    (low_a, high_a), (low_b, high_b) = ((np.minimum(x[:2], x[2:]), np.maximum(x[:2], x[2:])) for x in (a.astype(float), b.astype(float)))
    shared = np.prod(np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b) + extra, 0))
    union = np.prod(high_a - low_a + extra) + np.prod(high_b - low_b + extra) - shared
    return float(shared / union) if union > 0 else 0.0


def boxes_of(d: Values, *shape: int) -> Array:
    """Corners on a grid of quarters, so that many overlap, none at a limit that rounding decides."""
    low = d.rng.integers(0, 4, (*shape, 2)) / 4
    return np.concatenate([low, low + d.rng.integers(1, 5, (*shape, 2)) / 4], -1).astype("float32")


def marks_of(d: Values, *shape: int) -> Array:
    """Scores that all differ."""
    return np.asarray((d.rng.permutation(int(np.prod(shape))) + 1).reshape(shape).astype("float32") / (np.prod(shape) + 1))


LIMITS = (0.29, 0.53, 0.77)


@case("get_valid_counts")
def _valid(d: Values) -> Case:
    batch, count, more = d.number(1, 3), d.number(0, 5), d.number(0, 2)
    x = np.concatenate([d.rng.integers(-1, 2, (batch, count, 1)), d.rng.random((batch, count, 5 + more))], -1).astype("float32")
    limit, with_class = float(d.of((0.0, 0.3, 0.9))), d.coin()
    counts, rows, places = np.zeros(batch), np.full(x.shape, -1.0), np.full((batch, count), -1)
    for b in range(batch):
        kept = [i for i in range(count) if x[b, i, 1] > np.float32(limit) and (not with_class or x[b, i, 0] >= 0)]
        counts[b], rows[b, : len(kept)], places[b, : len(kept)] = len(kept), x[b, kept], kept
    id_index = 0 if with_class else -1
    if d.coin():
        return Case(lambda t, s: vision.get_valid_counts(t, s, id_index, 1), (x, np.array(limit, "float32")), [counts, rows, places])
    return Case(lambda t: vision.get_valid_counts(t, limit, id_index, 1), (x,), [counts, rows, places])


def kept_of(rows: Array, order: Iterable[int], limit: float, most: int, by_class: bool, at_limit: bool = True) -> list[int]:
    """Best first: those that overlap no kept one (of their class), at most so many."""
    kept: list[int] = []
    for one in order:
        others = [k for k in kept if not by_class or rows[k, 0] == rows[one, 0]]
        ratios = [overlap(rows[k, -4:], rows[one, -4:]) for k in others]
        if not any(r >= limit if at_limit else r > limit for r in ratios) and (most < 0 or len(kept) < most):
            kept.append(one)
    return kept


@case("non_max_suppression")
def _nms(d: Values) -> Case:
    batch, count = d.number(1, 2), d.number(1, 7)
    x = np.concatenate([d.rng.integers(0, 2, (batch, count, 1)), marks_of(d, batch, count)[..., None], boxes_of(d, batch, count)], -1)
    x = x.astype("float32")
    valid, places = d.rng.integers(0, count + 1, batch).astype("int32"), np.stack([d.rng.permutation(count) for _ in range(batch)])
    most, limit, force, top_k = d.of((-1, 0, 1, 3)), d.of((*LIMITS, 0.0)), d.coin(), d.of((-1, 2, 5))
    with_class, indices, front = d.coin(), d.coin(), d.coin()
    rows, chosen, counts = np.full(x.shape, -1.0), np.full((batch, count), -1), np.zeros((batch, 1))
    for b in range(batch):
        order = [int(i) for i in np.argsort(-x[b, : valid[b], 1])][: top_k if top_k >= 0 else None]
        kept = kept_of(x[b], order, limit, most, with_class and not force)
        if not limit:  # nothing suppresses, and nothing is sorted
            order = kept = list(range(valid[b]))
        counts[b], chosen[b, : len(kept)] = len(kept), places[b, kept]
        for n, i in enumerate(kept):
            rows[b, n if front else order.index(i)] = x[b, i]

    def make(*t: Any) -> Any:
        return vision.non_max_suppression(t[0], t[1], t[2], most, limit, force, top_k, 2, 1, 0 if with_class else -1, indices, front)

    return Case(make, (x, valid, places.astype("int32")), [chosen, counts] if indices else rows)


@case("all_class_non_max_suppression")
def _all_class(d: Values) -> Case:
    batch, classes, count = d.number(1, 2), d.number(1, 3), d.number(0, 6)
    boxes, scores = boxes_of(d, batch, count), marks_of(d, batch, classes, count)
    most, limit, least, tensorflow = d.of((0, 1, 2, 9)), d.of(LIMITS), d.of((0.0, 0.51)), d.coin()
    found = [
        (b, c, n)
        for b, c in np.ndindex(batch, classes)
        for n in kept_of(boxes[b], [i for i in np.argsort(-scores[b, c]) if scores[b, c, i] > np.float32(least)], limit, most, False, False)
    ]
    kind = "tensorflow" if tensorflow else "onnx"
    if tensorflow:
        rows, marks, counts = np.zeros((batch, classes * count, 2)), np.zeros((batch, classes * count)), np.zeros(batch, int)
        for b, c, n in found:
            rows[b, counts[b]], marks[b, counts[b]] = (c, n), scores[b, c, n]
            counts[b] += 1
        wanted = [rows, marks, counts]
    else:
        rows = np.zeros((batch * classes * count, 3))
        rows[: len(found)] = np.array(found).reshape(-1, 3)
        wanted = [rows, np.array([len(found)])]
    if d.coin():
        given = (np.array([most if most < 9 else 2**63 - 1], "int64"), np.array([limit], "float32"), np.array([least], "float32"))
        return Case(lambda x, s, *t: vision.all_class_non_max_suppression(x, s, *t, kind), (boxes, scores, *given), wanted)
    return Case(lambda x, s: vision.all_class_non_max_suppression(x, s, most, limit, least, kind), (boxes, scores), wanted)


@case("regular_non_max_suppression")
def _regular(d: Values) -> Case:
    batch, background, classes, count = d.number(1, 2), d.number(0, 1), d.number(1, 3), d.number(1, 5)
    boxes, scores = boxes_of(d, batch, count), marks_of(d, batch, count, background + classes)
    each, most, limit, least = d.number(1, 4), d.number(1, 6), d.of(LIMITS), d.of((0.0, 0.51))
    wanted = [np.zeros((batch, most, 4)), np.zeros((batch, most)), np.zeros((batch, most)), np.zeros(batch)]
    for b in range(batch):
        best = []
        for c in range(classes):
            own = scores[b, :, background + c]
            order = [i for i in np.argsort(-own) if own[i] >= np.float32(least)]
            best += [(float(own[i]), c, i) for i in kept_of(boxes[b], order, limit, each, False, False)]
        best = sorted(best, reverse=True)[:most]
        wanted[3][b] = len(best)
        for n, (mark, c, i) in enumerate(best):
            wanted[0][b, n], wanted[1][b, n], wanted[2][b, n] = boxes[b, i], c, mark
    return Case(lambda x, s: vision.regular_non_max_suppression(x, s, each, most, classes, limit, least), (boxes, scores), wanted)


@case("multibox_prior")
def _prior(d: Values) -> Case:
    tall, wide = d.number(1, 4), d.number(1, 4)
    sizes, ratios = [d.of((0.2, 0.5, 0.9)) for _ in range(d.number(1, 3))], [d.of((1.0, 2.0, 0.5)) for _ in range(d.number(1, 3))]
    steps, offsets, clip = d.of(((-1, -1), (0.25, 0.5))), d.of(((0.5, 0.5), (0.25, 0.75))), d.coin()
    wanted = []
    for y, x in np.ndindex(tall, wide):
        middle = (np.array([x, y]) + offsets[::-1]) * [s if s > 0 else 1 / n for s, n in zip(steps[::-1], (wide, tall), strict=True)]
        for size, ratio in [*((s, 1.0) for s in sizes), *((sizes[0], r) for r in ratios[1:])]:
            half = np.array([size * tall / wide * sqrt(ratio), size / sqrt(ratio)]) / 2
            wanted.append([*(middle - half), *(middle + half)])
    found = np.clip([wanted], 0, 1) if clip else np.array([wanted])
    data = np.zeros((1, 2, tall, wide), d.of(("float32", "float64")))
    return Case(lambda x: vision.multibox_prior(x, sizes, ratios, steps, offsets, clip), (data,), found)


def moved_rows(chances: Array, moves: Array, anchors: Array, clip: bool, limit: float, variances: Any, first: int) -> list[Array]:
    """For each image the rows of those boxes whose class is likely enough."""
    found = []
    for b in range(len(chances)):
        rows = []
        for i in range(chances.shape[2]):
            kind = int(chances[b, first:, i].argmax()) if chances.shape[1] > first else 0
            if chances.shape[1] > first and chances[b, first + kind, i] >= np.float32(limit):
                anchor, move = anchors[b % len(anchors), i].astype(float), moves[b, 4 * i : 4 * i + 4] * variances
                size = anchor[2:] - anchor[:2]
                middle, half = (anchor[:2] + anchor[2:]) / 2 + move[:2] * size, np.exp(move[2:]) * size / 2
                edges = np.concatenate([middle - half, middle + half])
                rows.append(np.array([kind, chances[b, first + kind, i], *(np.clip(edges, 0, 1) if clip else edges)]))
        found.append(np.array(rows).reshape(-1, 6))
    return found


@case("multibox_transform_loc")
@case("multibox_detection")
def _multibox(d: Values) -> Case:
    batch, classes, count = d.number(1, 2), d.number(1, 3), d.number(1, 5)
    chances, moves = marks_of(d, batch, classes, count), d.values((batch, 4 * count), "float32", -1, 1, special=False)
    anchors = boxes_of(d, d.of((1, batch)), count)
    clip, limit, variances = d.coin(), d.of((0.0, 0.51)), (0.1, 0.2, 0.3, 0.1)
    background, detects = d.coin(), d.coin()
    rows = moved_rows(chances, moves, anchors, clip, limit, variances, 0 if background and not detects else 1)
    wanted = np.full((batch, count, 6), -1.0)
    if not detects:
        for b, own in enumerate(rows):
            wanted[b, : len(own)] = own
        counts = np.array([len(own) for own in rows])
        return Case(
            lambda *t: vision.multibox_transform_loc(*t, clip, limit, variances, background), (chances, moves, anchors), [wanted, counts]
        )
    overlaps, force, top_k = d.of((0.2912, 0.5334)), d.coin(), d.of((-1, 3))
    for b, own in enumerate(rows):
        order = [int(i) for i in np.argsort(-own[:, 1])][: top_k if top_k >= 0 else None]
        for i in kept_of(own, order, overlaps, -1, not force):
            wanted[b, order.index(i)] = own[i]
    return Case(lambda *t: vision.multibox_detection(*t, clip, limit, overlaps, force, variances, top_k), (chances, moves, anchors), wanted)


def anchor_of(ratio: float, scale: float, side: int) -> Array:
    """The corners of an anchor in pixels (Ren et al. 2015), around the middle of a square."""
    width = floor(sqrt(side * side // ratio) + 0.5)
    whole = np.array([width, floor(width * ratio + 0.5)]) * scale
    middle = (side - 1) / 2
    return np.concatenate([middle - (whole - 1) / 2, middle + (whole - 1) / 2])


@case("proposal")
@case("generate_anchor reg_bbox reg_iou")
def _proposal(d: Values) -> Case:
    scales, ratios = [(1.0,), (1.0, 2.0)][d.number(0, 1)], [(1.0,), (0.5, 2.0)][d.number(0, 1)]
    batch, tall, wide, stride, by_corners = d.number(1, 2), d.number(1, 3), d.number(1, 3), d.of((4, 8)), d.coin()
    kinds = len(scales) * len(ratios)
    chances, moves = (
        marks_of(d, batch, 2 * kinds, tall, wide),
        d.values((batch, 4 * kinds, tall, wide), "float32", -0.5, 0.5, special=False),
    )
    info = np.array([[d.number(8, 20), d.number(8, 20), d.of((0.5, 1, 2))] for _ in range(batch)], "float32")
    limit, before, after, least = d.of((0.4123, 0.7123)), d.of((-1, 1, 5)), d.number(1, 5), d.number(1, 6)
    wanted = []
    for b in range(batch):
        boxes, marks = [], []
        for y, x, a in np.ndindex(tall, wide, kinds):
            box = anchor_of(ratios[a // len(scales)], scales[a % len(scales)], stride) + np.array([x, y, x, y]) * stride
            move = moves[b, 4 * a : 4 * a + 4, y, x].astype(float)
            if not by_corners:
                size = box[2:] - box[:2] + 1
                middle, half = box[:2] + (size - 1) / 2 + move[:2] * size, (np.array([exp(v) for v in move[2:]]) * size - 1) / 2
                box = np.concatenate([middle - half, middle + half])
            else:
                box = box + move
            box = np.clip(box, 0, np.array([info[b, 1], info[b, 0]] * 2) - 1)
            is_small = (box[2:] - box[:2] + 1 < info[b, 2] * least).any()
            boxes.append(box + np.array([-1, -1, 1, 1]) * info[b, 2] * least / 2 * is_small)
            marks.append(-1 if is_small else chances[b, kinds + a, y, x])
        kept: list[int] = []
        for i in np.argsort(-np.array(marks), kind="stable")[: before if before > 0 else None]:
            if len(kept) < after and all(overlap(boxes[k], boxes[i], 1) <= limit for k in kept):
                kept.append(int(i))
        wanted += [[b, *boxes[kept[n % len(kept)]]] for n in range(after)]

    def make(*t: Any) -> Any:
        return vision.proposal(*t, scales, ratios, stride, limit, before, after, least, by_corners)

    return Case(make, (chances, moves, info), np.array(wanted))


@case("reorg")
def _reorg(d: Values) -> Case:
    s = d.number(1, 3)
    n, c, h, w = d.number(1, 2), d.number(1, 2) * s * s, d.number(1, 2) * s, d.number(1, 2) * s
    x = d.values((n, c, h, w), d.of(("float32", "int32")), special=False)
    flat = np.empty_like(x)
    for b, k, j, i in np.ndindex(n, c, h, w):
        offset, channel = divmod(k, c // (s * s))
        place = i * s + offset % s + w * s * (j * s + offset // s + h * s * channel)
        flat[b, k, j, i] = x[b].reshape(-1)[place]
    return Case(lambda t: vision.reorg(t, s), (x,), flat.reshape(n, c * s * s, h // s, w // s))


def regions_of(d: Values, images: int) -> Array:
    corners = d.rng.integers(-4, 24, (d.number(1, 3), 4)) / 2 + 0.125
    return np.concatenate([d.rng.integers(0, images, (len(corners), 1)), corners], 1).astype("float32")


@case("roi_pool_nchw")
def _roi_pool(d: Values) -> Case:
    x, scale = d.values([d.number(1, 4) for _ in range(4)], "float32", special=False), d.of((1.0, 0.5))
    rois, size = regions_of(d, x.shape[0]), (d.number(1, 3), d.number(1, 3))
    wanted = np.zeros((len(rois), x.shape[1], *size))
    for n, (image, *edges) in enumerate(rois):
        left, top, right, bottom = (int(np.copysign(floor(abs(e * scale) + 0.5), e)) for e in edges)
        for i, j in np.ndindex(*size):
            cell = []
            for at, low, high, m, extent in ((i, top, bottom, size[0], x.shape[2]), (j, left, right, size[1], x.shape[3])):
                width = np.float32(max(high - low + 1, 1)) / np.float32(m)
                first, last = (min(max(v + low, 0), extent) for v in (floor(at * width), ceil((at + 1) * width)))
                cell.append(slice(first, last))
            inside = x[index(int(image), slice(None), *cell)]
            if inside.size:
                wanted[n, :, i, j] = inside.max((1, 2))
    return Case(lambda a, r: vision.roi_pool_nchw(a, r, size, scale), (x, rois), wanted)


@case("roi_align_nchw")
@case("roi_align_nhwc")
def _roi_align(d: Values) -> Case:
    x, scale, last = d.values([d.number(1, 4) for _ in range(4)], "float32", special=False), d.of((1.0, 0.5)), d.coin()
    rois, size, kind, ratio = regions_of(d, x.shape[0]), (d.number(1, 3), d.number(1, 3)), d.of(("avg", "max")), d.of((-1, 1, 2))
    aligned = d.coin() and not last
    wanted = np.zeros((len(rois), x.shape[1], *size))
    for n, (image, *edges) in enumerate(rois):
        left, top, right, bottom = (e * scale - (0.5 if aligned else 0) for e in edges)
        starts, spans = (top, left), [v if aligned else max(v, 1) for v in (bottom - top, right - left)]
        cells = [np.float32(span) / np.float32(m) for span, m in zip(spans, size, strict=True)]
        counts = [ratio if ratio > 0 else ceil(cell) for cell in cells]
        for i, j in np.ndindex(*size):
            seen = [np.zeros(x.shape[1])][: 0 if min(counts) > 0 else 1]
            for sy, sx in np.ndindex(*(max(c, 0) for c in counts)):
                y, z = (s + c * (at + (k + 0.5) / m) for s, c, at, k, m in zip(starts, cells, (i, j), (sy, sx), counts, strict=True))
                value = np.zeros(x.shape[1])
                if -1 <= y <= x.shape[2] and -1 <= z <= x.shape[3]:
                    y, z = (min(max(v, 0.0), e - 1.0) for v, e in ((y, x.shape[2]), (z, x.shape[3])))
                    for row, column in {(r, c) for r in (floor(y), ceil(y)) for c in (floor(z), ceil(z))}:
                        value += x[int(image), :, row, column] * (1 - abs(y - row)) * (1 - abs(z - column))
                seen.append(value)
            wanted[n, :, i, j] = np.mean(seen, 0) if kind == "avg" else np.max(seen, 0)
    if not last:
        return Case(lambda a, r: vision.roi_align_nchw(a, r, size, scale, kind, ratio, aligned), (x, rois), wanted)
    data = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    return Case(lambda a, r: vision.roi_align_nhwc(a, r, size, scale, kind, ratio), (data, rois), wanted.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("name", CASES)
def test_boxes(name: str) -> None:
    check_table(CASES, name, 8)
