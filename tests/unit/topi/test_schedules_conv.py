"""Default schedules of convolutions: what is recognised, which plan it gets, and that every branch computes the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.codegen.spills import count_spills
from tensorexpr.spaces import products
from tensorexpr.spaces.contraction_plan import Order, Pack, Plan
from tensorexpr.spaces.conv_plan import convolution_plans, written_plan
from tensorexpr.spaces.convolutions import Convolution, convolution_of
from tensorexpr.spaces.products import flat_plan
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.testing.machine_code import assembly, hot_loop
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.workloads import operators, suite

AVX512 = Target("llvm -mcpu=skylake-avx512 -num-cores=2")
AVX2 = Target("llvm -mcpu=haswell -num-cores=2")
Tensors = list[Tensor]


def found_in(tensors: Tensors) -> Convolution:
    """The convolution of a program."""
    for stage in te.create_schedule(tensors[-1].op).tree.in_order():
        found = convolution_of(stage.op)
        if found is not None:
            return found
    raise AssertionError("no convolution")


def plan_of(tensors: Tensors, target: Target = AVX512) -> Plan:
    return convolution_plans(found_in(tensors), target)[0]


def flat_of(tensors: Tensors, target: Target = AVX512) -> Plan | None:
    tree = te.create_schedule(tensors[-1].op).tree
    stage, found = next((stage, found) for stage in tree.in_order() if (found := convolution_of(stage.op)) is not None)
    return flat_plan(found, tree, stage, target)


def check(tensors: Tensors, target: Target = AVX512) -> None:
    assert_schedule_correct(default_schedule(tensors, target), tensors, phases=(0, 3))


def with_plan(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let tiles of pixels be chosen, by plans with some decisions changed."""

    def changed(found: Convolution, target: Target) -> list[Plan]:
        plan = convolution_plans(found, target)[0]
        of_tile = {name: changes[name] for name in ("sizes", "vectors", "chunks") if name in changes}
        others = {name: value for name, value in changes.items() if name not in of_tile}
        return [replace(plan, tile=replace(plan.tile, cycles=0.0, **of_tile), **others)]

    monkeypatch.setattr(products, "convolution_plans", changed)


def bias_relu(n: int, ci: int, h: int, w: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> Tensors:
    return operators.conv2d_bias_relu(n, ci, h, w, co, kernel, stride, padding)


@pytest.mark.parametrize(
    "args",
    [
        (1, 16, 2, 15, 16, 3, 1, 1),  # peeled borders
        (1, 3, 5, 7, 24, 3, 2, 1),  # few channels of the data; half a vector of channels is padding
        (1, 16, 4, 3, 16, 3, 1, 1),  # tiles of two rows
        (2, 3, 7, 7, 40, 1, 1, 0),  # tiles of pixels that end inside a row
        (1, 5, 6, 6, 32, 1, 2, 0),  # single pixels, but not neighbours
    ],
)
def test_channels_first(args: tuple[int, ...]) -> None:
    check(bias_relu(*args))


def test_few_channels_of_the_data_are_no_loop() -> None:
    few, many = bias_relu(1, 3, 9, 31, 32, 3, 2, 1), bias_relu(1, 5, 9, 31, 32, 3, 2, 1)
    loops = [re.findall(r"for (.*) in ", tvm.lower(default_schedule(tensors, AVX512), tensors).script()) for tensors in (few, many)]
    assert any("ry" in names for names in loops[0])
    assert not any("rc" in names for names in loops[0])
    assert any("rc" in names for names in loops[1])


def test_few_channels_are_a_loop_where_no_register_is_free() -> None:
    """6 x 2 accumulators, 2 vectors, a broadcast and a product are 16 registers: written out, the next channel's pixels would spill."""
    target, tensors = tvm.Target("llvm -mcpu=x86-64-v2"), bias_relu(1, 3, 5, 31, 16, 3, 2, 1)
    asm = assembly(default_schedule(tensors, target), tensors, target)
    found = hot_loop(asm)
    assert found is not None and (found.multiply_adds, found.spills) == (12, 0), asm


def test_channels_first_for_registers_of_eight_lanes() -> None:
    check(bias_relu(1, 4, 2, 6, 16, 3, 1, 1), AVX2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: operators.conv1d(2, 9, 5, 32, 3, 2, 1),
        lambda: operators.conv2d(1, 3, 4, 16, 16, 3, 1, 1),
        lambda: operators.conv2d(1, 4, 5, 4, 16, 3, 1, 2, 2),
        lambda: operators.conv2d(1, 3, 3, 32, 32, 3, 1, 1, 1, 2),
        lambda: operators.conv2d(1, 3, 4, 6, 20, 3, 1, 1),
        lambda: operators.conv3d(1, 2, 2, 3, 16, 8, 3, 1, 1),
        lambda: operators.conv_layer(1, 6, 6, 3, 16, 3, 2, 1),
        lambda: operators.capsule(1, 3, 3, 3, 16, 3, 1, 1, 2),
    ],
    ids=["line", "plane", "dilated", "groups", "odd channels", "space", "layer", "capsules"],
)
def test_channels_last(make: Callable[[], Tensors]) -> None:
    tensors = make()
    assert plan_of(tensors).lanes == min(16, found_in(tensors).sizes[found_in(tensors).column])
    check(tensors)


@pytest.mark.parametrize(
    "args, phases",
    [
        ((1, 3, 4, 5, 32, 4, 2, 1), (2, 2)),
        ((1, 2, 3, 4, 16, 4, 4, 0), (4, 4)),
        ((1, 2, 3, 4, 3, 4, 2, 1), (2, 2)),
        # 5 x 7, 3 x 5 and 7 x 5 results: the last ones of a phase are more than there are
        ((1, 2, 3, 3, 16, 3, 2, 0), (2, 2)),
        ((1, 2, 3, 3, 5, 3, 2, 1), (2, 2)),
        ((1, 3, 2, 4, 8, 3, 2, 0), (2, 2)),
        ((1, 2, 3, 2, 8, 5, 3, 1), (3, 3)),
    ],
)
def test_transposed(args: tuple[int, ...], phases: tuple[int, ...]) -> None:
    """Results with the same taps are computed together, and no others are multiplied."""
    tensors = operators.conv2d_transpose(*args)
    assert found_in(tensors).phases == phases
    assert convolution_plans(found_in(tensors), AVX512)
    check(tensors)


def test_borders_beside_phases_have_bodies_of_their_own() -> None:
    """Each pixel of a tile asked for its border in each step: 64 channels from 28 x 28 to 56 x 56 by 4 x 4 took twice PyTorch's time."""
    x, w = te.placeholder((2, 13), name="X"), te.placeholder((2, 8, 4), name="W")
    k, r = te.reduce_axis((0, 2), name="k"), te.reduce_axis((0, 4), name="r")

    def element(y: te.Var, o: te.Var) -> te.PrimExpr:
        met = y + 1 - r
        inside = te.all(met >= 0, met < 26, (met % 2).equal(0))
        return te.sum(te.if_then_else(inside, x[k, met // 2] * w[k, o, r], 0.0), axis=[k, r])

    tensors = [x, w, te.compute((26, 8), element, name="Y")]
    assert found_in(tensors).phases == (2,)
    s = default_schedule(tensors, AVX2)
    with AVX2:
        asked = re.findall(r"if (.*) % 2 == 0:\n", tvm.lower(s, tensors).script())
    assert any("<" not in condition for condition in asked) and any("<" in condition for condition in asked)
    check(tensors, AVX2)


@pytest.mark.parametrize("make", [operators.conv2d, operators.conv2d_transpose])
def test_few_channels_are_short_vectors_without_masks(make: Callable[..., Tensors]) -> None:
    """Three channels of a result are four lanes: what the fourth one has is never stored, so no step masks it."""
    tensors = make(1, 3, 5, 4, 3, 4, 2, 1)
    assert plan_of(tensors, AVX2).lanes == 4
    check(tensors, AVX2)
    assert "vblend" not in assembly(default_schedule(tensors, AVX2), tensors, AVX2)


def test_weights_that_are_packed_already_stay_where_they_are() -> None:
    tensors = operators.conv2d_bias_relu_packed(1, 3, 4, 5, 40, 3, 1, 1, 32)
    plan = plan_of(tensors)
    assert plan.pack is Pack.NONE
    assert 32 % plan.width == 0
    check(tensors)


@pytest.mark.parametrize("order", [order for order in Order if order is not Order.CHUNKS])
@pytest.mark.parametrize("pack", [Pack.PANEL, Pack.ROOT])
def test_every_order_of_loops_is_right(monkeypatch: pytest.MonkeyPatch, order: Order, pack: Pack) -> None:
    with_plan(monkeypatch, order=order, pack=pack, chunks=2, sizes=(1, 3), vectors=1)
    check(bias_relu(1, 3, 3, 5, 32, 3, 1, 1))


def test_a_line_with_borders_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    with_plan(monkeypatch, order=Order.ROWS, peeled=True, chunks=2, sizes=(4,))
    check(operators.conv1d(1, 11, 3, 16, 3, 1, 1))


@pytest.mark.parametrize("args", [(2, 4, 6, 5, 32, 3, 2, 1), (2, 4, 6, 5, 32, 1, 1, 0)], ids=["rows under a border", "a plane"])
def test_the_pixels_of_the_next_iteration_are_fetched(monkeypatch: pytest.MonkeyPatch, args: tuple[int, ...]) -> None:
    with_plan(monkeypatch, order=Order.ROWS, pack=Pack.NONE, chunks=1, prefetched=True)
    tensors = operators.conv2d(*args)
    assert "T.prefetch(data" in tvm.lower(default_schedule(tensors, AVX512), tensors).script()
    check(tensors)


def test_what_is_computed_while_it_is_read_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    with_plan(monkeypatch, order=Order.ROWS, pack=Pack.NONE, chunks=1, prefetched=True)
    data, weight = te.placeholder((1, 4, 5, 4), name="data"), te.placeholder((1, 1, 4, 32), name="weight")
    tensors = [data, weight, topi.nn.conv(topi.nn.relu(data), weight, 1, 0, 1, 1, "NHWC", "HWIO")]
    assert "prefetch" not in default_schedule(tensors, AVX512).as_python()
    check(tensors)


@pytest.mark.parametrize(
    "args, expected",
    [
        ((2, 8, 56, 16, 64, 1, 1, 0), True),  # a tile of pixels after the other
        ((4, 32, 32, 8, 64, 3, 1, 1), True),  # row after row
        ((2, 8, 55, 16, 64, 1, 1, 0), False),  # tiles of two sizes
        ((2, 2, 28, 8, 64, 3, 1, 1), False),  # the caches hold all of it
        ((4, 32, 32, 64, 64, 3, 1, 1), False),  # weights that the cache doesn't hold are outside
    ],
)
def test_pixels_are_fetched_ahead_where_caches_hold_but_a_part(args: tuple[int, ...], expected: bool) -> None:
    small = Target(f"{AVX512} -l1d=4K/8 -l2={'64K' if args[5] == 3 else '8K'}/8 -l3=1M/16")
    assert plan_of(operators.conv2d(*args), small).prefetched is expected


def test_panels_that_no_cache_holds_are_packed() -> None:
    """Their lines follow each other then; in rows of 512 channels, a page would have two steps of the reduction."""
    near, far = (operators.conv3d(1, 8, 7, 7, channels, 512, 3, 1, 1) for channels in (64, 512))
    assert plan_of(near).pack is not Pack.NONE
    for plan in (plan_of(far), plan_of(operators.conv3d(16, 8, 7, 7, 512, 512, 3, 1, 1))):
        assert plan.pack is not Pack.NONE
        assert plan.tile.vectors == 2


def test_rows_that_share_few_sets_are_packed_for_few_tiles() -> None:
    """256 rows at a distance of 2 KB stay in 512 KB of 8 ways, so 4,608 come from further away for each of five tiles of 25 pixels."""
    zen = Target("llvm -mcpu=znver1 -num-cores=2")
    many, few = (operators.conv2d(1, 7, 7, channels, 512, 3, 1, 1, 2) for channels in (512, 16))
    assert [plan_of(tensors, zen).pack for tensors in (many, few)] == [Pack.PANEL, Pack.NONE]


def test_panels_of_groups_read_a_part_of_the_data() -> None:
    """16 panels of four groups read small images four times, not sixteen: fewer bytes than all weights for each image."""
    assert plan_of(operators.conv2d(16, 7, 7, 512, 512, 3, 1, 1, 1, 4)).order is Order.PANELS
    assert plan_of(operators.conv2d(16, 28, 28, 512, 512, 3, 1, 1, 1, 4)).order is Order.BATCHES


@pytest.mark.parametrize(
    "make, rows",
    [
        (lambda: bias_relu(1, 1, 3, 4, 8, 3, 1, 1), 3),  # the whole plane
        (lambda: bias_relu(1, 1, 3, 4, 8, 3, 1, 1), 1),  # first, middle and last rows
        (lambda: bias_relu(1, 3, 5, 5, 8, 1, 2, 0), 3),  # single pixels, which are no neighbours
        (lambda: operators.conv3d(2, 2, 2, 3, 1, 8, 3, 1, 1), 2),  # channels last, planes one after the other
    ],
    ids=["plane", "rows", "strides", "space"],
)
def test_tiles_over_row_ends(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Tensors], rows: int) -> None:
    tensors = make()
    plan = written_plan(found_in(tensors), AVX2)
    assert plan is not None
    monkeypatch.setattr(products, "convolution_plans", lambda found, target: [])
    monkeypatch.setattr(products, "written_plan", lambda found, target: replace(plan, written=rows))
    monkeypatch.setattr(products, "flat_plan", lambda found, tree, stage, target: None)
    check(tensors, AVX2)


def test_no_term_of_a_written_tile_asks_whether_it_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 81 products of 9 pixels and 9 taps 49 = (3*3 - 2)**2 are of no border; each is written once for each vector."""
    tensors = operators.conv2d_bias_relu_packed(1, 8, 3, 3, 32, 3, 1, 1, 16)
    plan = written_plan(found_in(tensors), AVX2)
    assert plan is not None
    monkeypatch.setattr(products, "convolution_plans", lambda found, target: [])
    with AVX2:
        text = tvm.lower(default_schedule(tensors, AVX2), tensors).script()
    terms = [line for line in text.splitlines() if "weight_1[" in line]
    assert "if " not in text.split("T.parallel")[-1]
    assert len(terms) == 49 * plan.tile.vectors


@pytest.mark.parametrize(
    "channels, plane, written",
    [
        (512, 7, True),  # 7 pixels are 4 + 3: of 3 by two vectors the ends leave 4 multiply-adds
        (256, 14, True),  # 5 + 5 + 4
        (128, 12, False),  # 6 + 6
        (128, 28, False),  # as many tiles as in rows
        (64, 56, False),
    ],
)
def test_planes_that_rows_of_tiles_fit_badly_are_written_out(channels: int, plane: int, written: bool) -> None:
    zen3 = Target("llvm -mcpu=znver3 -num-cores=2")
    tensors = operators.conv2d_bias_relu_packed(1, channels, plane, plane, channels, 3, 1, 1, 32)
    text = str(default_schedule(tensors, zen3))
    assert bool(re.search(r"for ax2\.ax3\.fused.*outer \(.*\) unroll", text)) is written


def test_registers_of_avx512_fit_rows_as_they_are() -> None:
    for plane in (7, 14):
        tensors = operators.conv2d_bias_relu_packed(1, 512, plane, plane, 512, 3, 1, 1, 32)
        written = written_plan(found_in(tensors), AVX512)
        assert written is None or written.tile.cycles > plan_of(tensors).tile.cycles


def test_pixels_under_each_tap() -> None:
    found = found_in(bias_relu(1, 4, 7, 8, 16, 3, 2, 1))
    assert [found.live_pixels(pixel, False) for pixel in found.rows] == [
        [range(1, 4), range(0, 4), range(0, 3)],
        [range(1, 4), range(0, 4), range(0, 4)],
    ]
    assert found.live_pixels(found.rows[0], True) == [range(4)] * 3
    plain = found_in(bias_relu(1, 4, 7, 8, 16, 3))
    assert plain.live_pixels(plain.rows[1], False) == [range(6)] * 3


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_taps_inside_the_sum_over_channels(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    tensors = bias_relu(1, 5, 3, 4, 16, 3)
    with_plan(monkeypatch, taps_inside=True)
    monkeypatch.setattr(products, "written_plan", lambda found, target: None)
    assert "no_load_merge" in tvm.lower(default_schedule(tensors, target), tensors).script()
    check(tensors, target)


def test_pixels_that_come_back_late_meet_all_taps_at_once() -> None:
    """A tile of 14 has more multiply-adds for the lines that it reads than one of 6; channels last, pixels are no line."""
    tensors = operators.conv2d_bias_relu_packed(1, 128, 28, 28, 128, 3, 1, 1, 32)
    assert plan_of(tensors, AVX2).taps_inside
    assert not plan_of(tensors, AVX512).taps_inside
    assert not plan_of(operators.conv2d(1, 28, 28, 128, 128, 3, 1, 1), AVX2).taps_inside
    assert not plan_of(bias_relu(1, 128, 28, 28, 128, 1), AVX2).taps_inside
    assert not plan_of(bias_relu(1, 3, 56, 56, 64, 7, 2, 3), AVX2).taps_inside


def test_lines_of_a_few_pixels_far_apart_delay_what_a_machine_says() -> None:
    """Vectors of pixels read whole lines; planes of 14 x 14 are less than half a page, so that prefetchers follow."""
    near, far = (Target(f"llvm -mcpu={cpu} -num-cores=2") for cpu in ("skylake-avx512", "icelake-server"))
    assert not near.machine.far_line and far.machine.far_line
    for plane, pixels in ((28, True), (14, False)):
        tensors = bias_relu(1, 512, plane, plane, 256, 1)
        flat = flat_of(tensors, far)
        assert flat is not None and (flat.tile.cycles < plan_of(tensors, far).tile.cycles) is pixels


def test_what_follows_may_read_other_tensors() -> None:
    data, weight = te.placeholder((1, 4, 5, 5), name="data"), te.placeholder((16, 4, 3, 3), name="weight")
    other = te.placeholder((1, 16, 5, 5), name="other")
    out = topi.nn.relu(topi.add(topi.nn.conv2d_nchw(data, weight, 1, 1, 1), other))
    check([data, weight, other, out])


def test_a_reader_that_moves_results_gets_a_schedule_of_its_own() -> None:
    data, weight = te.placeholder((1, 4, 5, 5), name="data"), te.placeholder((16, 4, 3, 3), name="weight")
    out = topi.transpose(topi.nn.conv2d_nchw(data, weight, 1, 1, 1), (0, 2, 3, 1))
    check([data, weight, out])


def test_channels_in_blocks() -> None:
    data, weight = te.placeholder((1, 2, 3, 4, 8), name="data"), te.placeholder((2, 2, 3, 3, 8, 16), name="weight")
    tensors = [data, weight, topi.nn.conv2d_NCHWc(data, weight, 1, 1, 1, "NCHW8c", "NCHW16c")]
    assert (plan_of(tensors).pack, found_in(tensors).batch) == (Pack.NONE, (0, 1))
    check(tensors)


def test_weights_that_are_read_backwards() -> None:
    data, weight = te.placeholder((12,), name="data"), te.placeholder((3, 20), name="weight")
    tap = te.reduce_axis((0, 3), name="t")
    out = te.compute((10, 20), lambda i, o: te.sum(data[i + tap] * weight[2 - tap, o], axis=tap), name="out")
    assert plan_of([data, weight, out]).pack is not Pack.NONE
    check([data, weight, out])


def test_every_other_channel_of_the_weights() -> None:
    data, weight = te.placeholder((12,), name="data"), te.placeholder((3, 40), name="weight")
    tap = te.reduce_axis((0, 3), name="t")
    out = te.compute((10, 20), lambda i, o: te.sum(data[i + tap] * weight[tap, o * 2], axis=tap), name="out")
    assert not convolution_plans(found_in([data, weight, out]), AVX512)
    check([data, weight, out])


def test_two_convolutions_in_a_row() -> None:
    data = te.placeholder((1, 3, 3, 3), name="data")
    first, second = te.placeholder((16, 3, 3, 3), name="first"), te.placeholder((16, 16, 3, 3), name="second")
    middle = topi.nn.relu(topi.nn.conv2d_nchw(data, first, 1, 1, 1))
    check([data, first, second, topi.nn.conv2d_nchw(middle, second, 1, 1, 1)])


@pytest.mark.parametrize("dtype, out_dtype", [("float64", "float64"), ("int8", "int32"), ("float16", "float32")])
def test_types(dtype: str, out_dtype: str) -> None:
    data, weight = te.placeholder((1, 5, 5, 4), dtype, "data"), te.placeholder((3, 3, 4, 32), dtype, "weight")
    target = Target("llvm -num-cores=2") if dtype == "int8" else AVX512  # whose instructions for bytes this CPU may lack
    check([data, weight, topi.nn.conv(data, weight, 1, 1, 1, 1, "NHWC", "HWIO", out_dtype=out_dtype)], target)


def test_a_border_that_is_not_zero_is_kept() -> None:
    data, weight = te.placeholder((1, 16, 4, 4), name="data"), te.placeholder((16, 16, 3, 3), name="weight")
    bordered = topi.nn.pad(data, (0, 0, 1, 1), pad_value=1.0)
    out = topi.nn.conv2d_nchw(bordered, weight, 1, 0, 1)
    assert not plan_of([data, weight, out]).peeled
    check([data, weight, out])


def test_a_border_around_something_that_is_computed_is_stored() -> None:
    data, weight = te.placeholder((1, 16, 3, 3), name="data"), te.placeholder((16, 16, 3, 3), name="weight")
    padded = te.compute(
        (1, 16, 5, 5),
        lambda n, c, y, x: te.if_then_else(te.all(y >= 1, y < 4, x >= 1, x < 4), te.exp(data[n, c, y - 1, x - 1]), 0.0),
        name="padded",
    )
    tensors = [data, weight, topi.nn.conv2d_nchw(padded, weight, 1, 0, 1)]
    assert plan_of(tensors).peeled
    s = default_schedule(tensors, AVX512)
    assert "skip_padding" not in s.as_python()
    assert_schedule_correct(s, tensors, phases=(0, 3))


def test_a_border_that_is_a_result_too_stays() -> None:
    data, weight = te.placeholder((1, 16, 3, 3), name="data"), te.placeholder((16, 16, 3, 3), name="weight")
    padded = topi.nn.pad(data, (0, 0, 1, 1))
    check([data, weight, padded, topi.nn.conv2d_nchw(padded, weight, 1, 0, 1)])


def test_products_and_windows_of_one_channel_are_no_convolutions() -> None:
    for tensors in (operators.gemm(8, 8, 8), operators.depthwise(1, 8, 8, 16, 3, 1, 1), operators.norm(1, 8, 8)):
        assert all(convolution_of(stage.op) is None for stage in te.create_schedule(tensors[-1].op).tree.in_order())


def test_the_roles_of_axes() -> None:
    found = found_in(operators.conv2d(2, 9, 9, 16, 32, 3, 1, 1, 1, 2))
    assert (found.column, found.batch, found.rows, found.per_group) == (3, (0,), (1, 2), 16)
    assert found.names(*found.taps) == "ry, rx"
    assert found.names(*found.channels) == "rc"
    assert found.merged_rows() == ()
    assert found_in(bias_relu(1, 4, 5, 6, 16, 1)).merged_rows() == (2, 3)
    assert found_in(bias_relu(1, 4, 6, 6, 16, 1, 2)).merged_rows() == ()


@pytest.mark.parametrize("args", [(1, 64, 56, 56, 64, 1), (1, 3, 224, 224, 64, 7, 2, 3)])
def test_where_loads_delay_tiles_have_fewer_of_them(args: tuple[int, ...]) -> None:
    """14 pixels by two vectors are 16 loads for 28 multiply-adds, 6 by four are 10 for 24."""
    delayed, plain = Target("llvm -mcpu=icelake-server -num-cores=2"), Target("llvm -mcpu=znver5 -num-cores=2")
    assert delayed.machine.load_delay > plain.machine.load_delay
    tensors = operators.conv2d(args[0], args[2], args[3], args[1], args[4], *args[5:])
    assert plan_of(tensors, plain).tile.vectors == 2
    assert plan_of(tensors, delayed).tile.vectors == 4


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_tiles_fit_the_registers(target: Target) -> None:
    """MR*NV accumulators, NV vectors and one broadcast."""
    for case in (*suite("resnet50"), *suite("mobilenet"), *suite("ansor")):
        if case.workload in ("suite.conv2d_bias_relu", "suite.conv1d", "suite.conv2d", "suite.conv3d", "suite.capsule"):
            found = found_in(case.tensors())
            plan, flat = convolution_plans(found, target)[0], flat_of(case.tensors(), target)
            sizes = [] if flat is None else [(flat.tile.rows, flat.tile.vectors)]
            sizes.append((plan.tile.rows, plan.tile.vectors))
            assert sizes, case.name
            assert all(rows * vectors + vectors + 1 <= target.vector_registers for rows, vectors in sizes), case.name


@pytest.mark.parametrize("args", [(1, 64, 14, 28, 64, 3, 1, 1), (1, 64, 56, 56, 64, 1, 1, 0), (1, 3, 56, 56, 64, 7, 2, 3)])
def test_loops_over_the_reduction_keep_their_registers(args: tuple[int, ...]) -> None:
    tensors = bias_relu(*args)
    module = tvm.build(default_schedule(tensors, AVX512), tensors, AVX512)
    loops = [loop for loop in innermost_loops(module.get_source("asm")) if "vfmadd" in loop]
    assert loops
    assert all(count_spills(loop).total == 0 for loop in loops)


def innermost_loops(asm: str) -> list[str]:
    """The text between each label and a jump back to it that has no other label in between."""
    loops, label, lines = [], "", list[str]()
    for line in asm.splitlines():
        if line.startswith(".L") and ":" in line:
            label, lines = line.split(":")[0], [line]
            continue
        lines.append(line)
        if label and line.split()[-1:] == [label]:
            loops.append("\n".join(lines))
    return loops
