"""Operators called as programs of several releases call them: results that are tensors of their own, other signatures, other places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import topi
from tensorexpr.errors import DeclarationError
from tensorexpr.runtime.build import build
from tensorexpr.te.declare import placeholder
from tensorexpr.te.operation import ComputeOp
from tensorexpr.topi import testing
from tensorexpr.topi.schedules import default_schedule
from tests.operators import assert_same, run, values


def test_a_dtype_stands_where_older_releases_have_it() -> None:
    x, w = placeholder((1, 5, 5, 4), "int8"), placeholder((3, 3, 4, 2), "int8")
    assert topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1, "int32").dtype == "int32"
    assert topi.generic.conv2d.schedule_depthwise_conv2d_nhwc is topi.generic.schedule_depthwise_conv2d_nhwc
    with pytest.raises(DeclarationError, match="kernel_layout is 'OHWI'"):
        topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1, "OHWI")


def test_images_of_several_times_the_size_repeat_elements_by_a_division() -> None:
    x = values(1, 2, 3, 4)
    data = placeholder(x.shape, name="x")
    made = topi.nn.upsampling(data, 3, 2)
    # no float is made of an index: it says which part a tile reads, and 2^24 is no limit
    assert isinstance(made.op, ComputeOp) and str(made.op.body[0]) == "x[ax0, ax1, ax2 // 3, ax3 // 2]"
    assert_same(run(lambda t: topi.nn.upsampling(t, 3, 2), x), x.repeat(3, 2).repeat(2, 3))


def test_a_sum_of_bool_is_whether_any_is_true() -> None:
    x = values(3, 40) > 0.9
    found = run(lambda t: topi.sum(t, 1), x)
    assert found.dtype == np.bool_ and found.tolist() == x.any(1).tolist()


def test_windows_in_the_padding_alone_count_where_numbers_of_windows_are_rounded_up() -> None:
    x = values(1, 1, 7)
    # 7 + 2 + 2 elements in steps of 3: ceil((11 - 2) / 3) + 1 = 4 windows, of which the last one starts behind the data's end
    for kind, last in (("max", np.finfo("float32").min), ("avg", 0.0)):
        found = run(lambda t, kind=kind: topi.nn.pool1d(t, 2, 3, 1, (2, 2), kind, True), x)
        assert found.shape == (1, 1, 4) and found[0, 0, -1] == last and found[0, 0, 0] == last
        assert_same(found, testing.poolnd_python(x, [2], [3], [1], [2], [2], kind, kind == "avg", True))
        # programs compare what a relu leaves with the reference that counts the padding's zeros
        positive = np.abs(x)
        behind = run(lambda t, kind=kind: topi.nn.relu(topi.nn.pool1d(t, 2, 3, 1, (2, 2), kind, True)), positive)
        assert_same(behind, testing.poolnd_python(positive, [2], [3], [1], [2], [2], kind, True, True))


def test_batch_norm_gives_vectors_that_are_no_inputs() -> None:
    x = placeholder((2, 3, 4), name="x")
    vectors = [placeholder((3,), name=name) for name in ("gamma", "beta", "mean", "variance")]
    outputs = topi.nn.batch_norm(x, vectors[0], vectors[1], vectors[2], vectors[3])
    function = build(default_schedule([x, *vectors, *outputs]), [x, *vectors, *outputs])
    given = [values(2, 3, 4), *(np.abs(values(3)) + 0.5 for _ in range(4))]
    made = [np.zeros((2, 3, 4), "float32"), np.zeros(3, "float32"), np.zeros(3, "float32")]
    function(*given, *made)
    assert_same(made[1], given[3])
    assert_same(made[2], given[4])


@pytest.mark.parametrize("name", ["all", "any", "sum", "max"])
def test_a_reduction_over_no_axes_is_computed(name: str) -> None:
    x = values(3, 4) > 0 if name in ("all", "any") else values(3, 4)
    assert_same(run(lambda t: getattr(topi, name)(t, ()), x), x)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("...j->...", [(2, 3, 4)]),
        ("...j, j", [(2, 3, 4), (4,)]),
        ("..., ...", [(2, 3), (3,)]),
        ("...ij, ...jk -> ...ik", [(2, 3, 4), (4, 5)]),
        ("...ik, ...jk -> i...j", [(2, 3, 4), (2, 5, 4)]),
        ("ij...,j...->i...", [(2, 3, 4), (3, 4)]),
    ],
)
def test_einsum_with_axes_that_have_no_letter(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [values(*shape) for shape in shapes]
    assert_same(run(lambda *x: topi.einsum(subscripts, *x), *arrays), np.einsum(subscripts, *arrays), 1e-4)


def test_einsum_without_a_term_for_an_operand() -> None:
    x = placeholder((2, 3), name="x")
    with pytest.raises(DeclarationError, match=r"einsum: 'ij,jk' with 1 operands"):
        topi.einsum("ij,jk", x)


def test_instance_norm_without_channels_is_a_layer_norm() -> None:
    x, gamma, beta = values(2, 3, 4), values(3, 4), values(3, 4)
    found = run(lambda t, g, b: topi.nn.instance_norm(t, g, b, (1, 2), 1e-4), x, gamma, beta)
    assert_same(found, testing.layer_norm_python(x, gamma, beta, (1, 2), 1e-4), 1e-4)


@pytest.mark.parametrize("layout", ["NWC", "NCW"])
def test_the_reference_of_pooling_takes_layouts(layout: str) -> None:
    x = values(1, 9, 2) if layout == "NWC" else values(1, 2, 9)
    found = run(lambda t: topi.nn.pool1d(t, (3,), (2,), (1,), (1, 1), "max", layout=layout), x)
    assert_same(found, testing.poolnd_python(x, [3], [2], [1], [1], [1], "max", False, layout=layout))


def test_names_of_gpus_and_of_the_helpers_of_networks() -> None:
    from tensorexpr.topi.nn.utils import get_pad_tuple

    assert get_pad_tuple("SAME", (3, 3)) == (1, 1, 1, 1)
    x = placeholder((3, 5), name="x")
    out: Any = topi.cuda.cumsum(x, 1)
    s = topi.cuda.schedule_scan(out)
    made, given = np.zeros((3, 5), "float32"), values(3, 5)
    build(s, [x, out])(given, made)
    assert_same(made, np.cumsum(given, 1), 1e-5)


def test_what_loops_of_an_operator_read_is_not_inlined() -> None:
    boxes = placeholder((1, 4, 6), name="boxes")
    count, places = placeholder((1,), "int32", "count"), placeholder((1, 4), "int32", "places")
    kept = topi.vision.non_max_suppression(boxes, count, places, return_indices=False)
    function = build(topi.generic.schedule_nms([kept]), [boxes, count, places, kept])
    rows = np.array([[[0, 0.9, 0, 0, 2, 2], [0, 0.8, 0, 0, 2, 2.1], [0, 0.7, 5, 5, 6, 6], [-1, -1, -1, -1, -1, -1]]], "float32")
    made = np.zeros((1, 4, 6), "float32")
    function(rows, np.array([3], "int32"), np.arange(4, dtype="int32")[None], made)
    assert made[0, :, 1].tolist() == pytest.approx([0.9, -1, 0.7, -1])


@pytest.mark.parametrize(
    ("shape", "axis", "exclusive"), [((3, 5, 32), 1, False), ((3, 5, 32), 1, True), ((7, 64), 0, False), ((5, 3), 0, False)]
)
def test_running_sums_of_rows_that_are_neighbours(shape: tuple[int, ...], axis: int, exclusive: bool) -> None:
    x = values(*shape)
    wanted = np.cumsum(x, axis) - (x if exclusive else 0)
    assert_same(run(lambda t: topi.cumsum(t, axis, exclusive=exclusive), x), wanted, 1e-4)


def test_a_running_sum_begins_with_the_first_element() -> None:
    x = np.full((2, 16), -0.0, "float32")
    assert np.signbit(run(lambda t: topi.cumsum(t, 0), x)).all()


@pytest.mark.parametrize("shape", [(2, 3, 7, 7), (2, 3, 14, 14), (1, 2, 3, 50)])
@pytest.mark.parametrize("name", ["max", "sum", "argmax"])
def test_planes_are_reduced_as_one_axis(name: str, shape: tuple[int, ...]) -> None:
    """Rows of 7 fill no register; planes of 49 elements do, and the loops over both are one unless the position is asked for."""
    x = values(*shape)
    wanted = {"max": x.max((2, 3)), "sum": x.sum((2, 3)), "argmax": x.reshape(*shape[:2], -1).argmax(-1)}[name]
    tensor = placeholder(shape, name="x")
    out = getattr(topi, name)(tensor, (2, 3))
    made = np.zeros(shape[:2], out.dtype)
    s = default_schedule([tensor, out], "llvm -mcpu=haswell")
    assert any("fused" in str(axis) for stage in s.stages for axis in stage.leaf_iter_vars) or name == "argmax"
    build(default_schedule([tensor, out]), [tensor, out])(x, made)
    assert_same(made, wanted, 1e-4)
