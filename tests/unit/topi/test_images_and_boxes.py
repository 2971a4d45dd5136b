"""Resizes, crops, dilation, boxes and regions, against direct definitions in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.te.reference import evaluate
from tensorexpr.topi import image, vision
from tests.unit.topi.test_orders import Array, run
from tests.unit.topi.test_scatter_and_sparse import randoms


def resized(data: Array, size: tuple[int, ...], **options: Any) -> Array:
    A = te.placeholder(data.shape, name="A")
    resize = {3: image.resize1d, 4: image.resize2d, 5: image.resize3d}[data.ndim]
    return run([A], [data], resize(A, options.pop("roi", None), size, **options))[0]


def test_whole_factors_repeat_the_nearest_element() -> None:
    data = randoms(1, 2, 3, 4)
    wanted = data.repeat(2, axis=2).repeat(3, axis=3)
    found = resized(data, (6, 12), method="nearest_neighbor", coordinate_transformation_mode="asymmetric")
    np.testing.assert_array_equal(found, wanted)
    channels_last, options = (
        data.transpose(0, 2, 3, 1).copy(),
        {"method": "nearest_neighbor", "coordinate_transformation_mode": "asymmetric"},
    )
    last = resized(channels_last, (6, 12), layout="NHWC", **options)
    np.testing.assert_array_equal(last, wanted.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("mode", ["align_corners", "half_pixel", "asymmetric"])
def test_linear_interpolation_is_numpys_along_an_axis(mode: str) -> None:
    data = randoms(1, 1, 5)
    out = np.arange(9.0)
    places = {"align_corners": out * 4 / 8, "half_pixel": (out + 0.5) * 5 / 9 - 0.5, "asymmetric": out * 5 / 9}[mode]
    found = resized(data, (9,), method="linear", coordinate_transformation_mode=mode)
    np.testing.assert_allclose(found[0, 0], np.interp(places, np.arange(5), data[0, 0]), rtol=1e-5)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
@pytest.mark.parametrize("mode", sorted(image.COORDINATES))
def test_a_resize_to_the_same_size_changes_nothing_and_constants_stay(method: str, mode: str) -> None:
    roi = [0.0, 0.0, 1.0, 1.0]
    if mode != "tf_half_pixel_for_nn":
        data = randoms(1, 2, 4, 5)
        np.testing.assert_allclose(resized(data, (4, 5), roi=roi, method=method, coordinate_transformation_mode=mode), data, rtol=1e-5)
    flat = resized(np.ones((1, 1, 4, 5), "float32"), (7, 3), roi=roi, method=method, coordinate_transformation_mode=mode, bicubic_exclude=1)
    np.testing.assert_allclose(flat, 1, rtol=1e-6)


@pytest.mark.parametrize(("rounding", "chosen"), [("round", 2), ("floor", 1), ("ceil", 2), ("round_prefer_floor", 1)])
def test_coordinates_are_rounded_as_asked(rounding: str, chosen: int) -> None:
    data = np.arange(4, dtype="float32").reshape(1, 1, 4)  # 3 elements out of 4, at 0, 1.5 and 3
    found = resized(data, (3,), method="nearest_neighbor", coordinate_transformation_mode="align_corners", rounding_method=rounding)
    assert found[0, 0].tolist() == [0, chosen, 3]


def test_crops_are_resized_and_filled_beyond_the_image() -> None:
    data = randoms(2, 3, 6, 7)
    D, B, N = te.placeholder(data.shape), te.placeholder((2, 4)), te.placeholder((2,), "int32")
    boxes = np.array([[0, 0, 1, 1], [0.0, 0.0, 2.0, 1.0]], "float32")
    [found] = run([D, B, N], [data, boxes, np.array([1, 0], "int32")], image.crop_and_resize(D, B, N, (6, 7), extrapolation_value=9.0))
    np.testing.assert_allclose(found[0], data[1], rtol=1e-5)
    np.testing.assert_allclose(found[1, :, 0], data[0, :, 0], rtol=1e-5)
    assert (found[1, :, 3:] == 9).all()


def test_dilation_takes_the_largest_sum_of_a_window() -> None:
    data, kernel = randoms(1, 2, 5, 6), randoms(2, 3, 3, seed=1)
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = (windows + kernel[None, :, None, None]).max((-1, -2))
    D, K = te.placeholder(data.shape), te.placeholder(kernel.shape)
    np.testing.assert_allclose(run([D, K], [data, kernel], image.dilation2d_nchw(D, K, 1, 1, 1))[0], wanted, rtol=1e-6)
    last, taps = (np.ascontiguousarray(a.transpose(o)) for a, o in ((data, (0, 2, 3, 1)), (kernel, (1, 2, 0))))
    D, K = te.placeholder(last.shape), te.placeholder(taps.shape)
    [found] = run([D, K], [last, taps], image.dilation2d_nhwc(D, K, 1, 1, 1))
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 3, 1), rtol=1e-6)


def test_dilation_of_the_least_integers_does_not_wrap_at_the_border() -> None:
    D, K = te.placeholder((1, 1, 2, 2), "int8"), te.placeholder((1, 3, 3), "int8")
    [found] = run([D, K], [np.full((1, 1, 2, 2), -100, "int8"), np.full((1, 3, 3), -20, "int8")], image.dilation2d_nchw(D, K, 1, 1, 1))
    assert (found == -120).all()


def test_what_a_resize_doesnt_know_is_named() -> None:
    A = te.placeholder((1, 1, 4, 4))
    with pytest.raises(DeclarationError, match='method is \'sinc\'; it takes "nearest_neighbor", "linear" or "cubic"'):
        image.resize2d(A, None, (8, 8), method="sinc")
    with pytest.raises(DeclarationError, match="no coordinate_transformation_mode 'middle'"):
        image.resize2d(A, None, (8, 8), coordinate_transformation_mode="middle")
    with pytest.raises(DeclarationError, match="layout is 'NXYC'"):
        image.resize2d(A, None, (8, 8), layout="NXYC")


def overlap(a: Array, b: Array) -> float:
    wide, high = (max(0.0, min(a[n + 2], b[n + 2]) - max(a[n], b[n])) for n in range(2))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / union if union > 0 else 0.0


def some_boxes() -> Array:
    rng = np.random.default_rng(3)
    boxes = rng.random((2, 12, 6)).astype("float32")
    boxes[:, :, 0] = rng.integers(-1, 3, (2, 12))
    boxes[:, :, 4:6] = boxes[:, :, 2:4] + rng.random((2, 12, 2)) * 0.6
    return boxes


@pytest.mark.parametrize("as_tensor", [False, True])
def test_valid_boxes_move_to_the_front(as_tensor: bool) -> None:
    boxes = some_boxes()
    A, limit = te.placeholder(boxes.shape, name="A"), te.placeholder((), name="limit")
    given = ([A, limit], [boxes, np.array(0.3, "float32")]) if as_tensor else ([A], [boxes])
    counts, kept, places = run(*given, vision.get_valid_counts(A, limit if as_tensor else 0.3, 0, 1))
    for b in range(2):
        good = np.flatnonzero((boxes[b, :, 1] > 0.3) & (boxes[b, :, 0] >= 0))
        assert counts[b] == len(good)
        np.testing.assert_array_equal(kept[b, : len(good)], boxes[b, good])
        np.testing.assert_array_equal(places[b], [*good, *[-1] * (12 - len(good))])
        assert (kept[b, len(good) :] == -1).all()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("most", [-1, 2])
@pytest.mark.parametrize("top_k", [-1, 4])
def test_the_best_of_overlapping_boxes_stay(force: bool, most: int, top_k: int) -> None:
    boxes = some_boxes()
    A = te.placeholder(boxes.shape, name="A")
    counts, kept, places = run([A], [boxes], vision.get_valid_counts(A, 0.2, 0, 1))
    B, C, P = te.placeholder(kept.shape), te.placeholder(counts.shape, "int32"), te.placeholder(places.shape, "int32")
    found, number = run([B, C, P], [kept, counts, places], vision.non_max_suppression(B, C, P, most, 0.3, force, top_k))
    [in_place] = run(
        [B, C, P], [kept, counts, places],
        vision.non_max_suppression(B, C, P, most, 0.3, force, top_k, return_indices=False, invalid_to_bottom=True),
    )  # fmt: skip
    for b in range(2):
        order = np.argsort(-kept[b, : counts[b], 1], kind="stable")
        alive: list[int] = []
        for i in order if top_k < 0 else order[:top_k]:
            suppressed = any(overlap(kept[b, i, 2:], kept[b, j, 2:]) >= 0.3 and (force or kept[b, i, 0] == kept[b, j, 0]) for j in alive)
            if not suppressed and (most < 0 or len(alive) < most):
                alive.append(int(i))
        assert number[b, 0] == len(alive)
        np.testing.assert_array_equal(found[b, : len(alive)], places[b, alive])
        np.testing.assert_array_equal(in_place[b, : len(alive)], kept[b, alive])
        assert (found[b, len(alive) :] == -1).all()


def test_pooled_regions_of_an_image_that_is_a_ramp() -> None:
    data = np.arange(10 * 12, dtype="float32").reshape(1, 1, 10, 12)
    rois = np.array([[0, 0, 0, 11, 9], [0, 4, 4, 7, 7]], "float32")
    D, R = te.placeholder(data.shape), te.placeholder(rois.shape)
    [found] = run([D, R], [data, rois], vision.roi_pool_nchw(D, R, (2, 2), 1.0))
    np.testing.assert_array_equal(found[0, 0], [[4 * 12 + 5, 4 * 12 + 11], [9 * 12 + 5, 9 * 12 + 11]])
    np.testing.assert_array_equal(found[1, 0], [[5 * 12 + 5, 5 * 12 + 7], [7 * 12 + 5, 7 * 12 + 7]])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("last", [False, True])
def test_aligned_regions_of_an_image_that_is_a_ramp(mode: str, last: bool) -> None:
    rows, columns = np.mgrid[0:10, 0:12].astype("float32")
    data = (rows * 100 + columns)[None, :, :, None] if last else (rows * 100 + columns)[None, None]
    rois = np.array([[0, 2, 1, 6, 5]], "float32")
    D, R = te.placeholder(data.shape), te.placeholder(rois.shape)
    align = vision.roi_align_nhwc if last else vision.roi_align_nchw
    [found] = run([D, R], [data.copy(), rois], align(D, R, (2, 2), 1.0, mode, 2))
    samples = [(y, x) for y in (1.5, 2.5) for x in (2.5, 3.5)]
    corner = (np.mean if mode == "avg" else np.max)([100 * y + x for y, x in samples])
    assert found.reshape(-1)[0] == pytest.approx(corner)


def test_an_unknown_mode_of_alignment_is_refused() -> None:
    with pytest.raises(DeclarationError, match='mode is \'min\'; it takes "avg" or "max"'):
        vision.roi_align_nchw(te.placeholder((1, 1, 4, 4)), te.placeholder((1, 5)), (2, 2), 1.0, "min")


def test_reorganised_channels_hold_every_element_once() -> None:
    data = np.arange(8 * 4 * 6, dtype="float32").reshape(1, 8, 4, 6)
    D = te.placeholder(data.shape)
    [found] = run([D], [data], vision.reorg(D, 2))
    assert found.shape == (1, 32, 2, 3)
    np.testing.assert_array_equal(np.sort(found.ravel()), data.ravel())
    assert found[0, 0, 0].tolist() == [0, 2, 4]


def test_schedules_by_name_are_the_default_ones() -> None:
    A = te.placeholder((32, 32), name="A")
    out = topi.nn.softmax(A)
    wanted = str(topi.schedules.default_schedule([out]))
    for schedule in (topi.generic.schedule_softmax, topi.x86.schedule_softmax):
        assert str(schedule([out])) == str(schedule(out)) == wanted
    assert topi.generic.schedule_pool.__doc__ is not None
    with pytest.raises(DeclarationError, match=r"schedule_softmax takes the output tensors, not \[3\]"):
        topi.generic.schedule_softmax([3])


def test_anchors_and_boxes_that_move() -> None:
    assert topi.vision.generate_anchor(0.5, 8, 16) == (-84.0, -40.0, 99.0, 55.0)
    assert topi.vision.generate_anchor(1, 8, 16) == (-56.0, -56.0, 71.0, 71.0)
    assert topi.vision.reg_iou(0, 1, 2, 3, 4, 5, 6, 7) == (4, 6, 8, 10)
    corners = [te.placeholder((1,), name=f"c{n}") for n in range(4)]
    x1, y1, x2, y2 = corners
    boxes = te.compute((4, 1), lambda side, i: _chosen(side, topi.vision.reg_bbox(x1[i], y1[i], x2[i], y2[i], 0.1, 0.2, 0.3, 0.4)))
    found = evaluate([boxes], {c: np.array([v], "float32") for c, v in zip(corners, (0, 0, 10, 20), strict=True)})[0][:, 0]
    width, height = 11 * np.exp(0.3), 21 * np.exp(0.4)
    wanted = [6.1 - (width - 1) / 2, 14.2 - (height - 1) / 2, 6.1 + (width - 1) / 2, 14.2 + (height - 1) / 2]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def _chosen(side: Any, values: Any) -> Any:
    first, second, third, last = values
    return tir.Select(side == 0, first, tir.Select(side == 1, second, tir.Select(side == 2, third, last)))
