"""Default schedules of operators that move data: right on awkward sizes, and of the shape that makes them fast."""

from __future__ import annotations

import re

import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.schedule.tree import LoopKind
from tensorexpr.target import Target
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.testing.machine_code import assembly, hot_loop
from tensorexpr.topi.schedules import default_schedule

AVX512 = "llvm -mcpu=skylake-avx512 -num-cores=2"
Tensors = list[te.Tensor]


def data(*shape: int, dtype: str = "float32", name: str = "x") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def check(args: Tensors) -> None:
    assert_schedule_correct(default_schedule(args), args, phases=(2,))


def llvm_text(args: Tensors) -> str:
    target = tvm.Target(AVX512)
    text: str = tvm.build(default_schedule(args, target), args, target).get_source("ll")
    return text


@pytest.mark.parametrize("shape", [(33, 70), (64, 64), (5, 130), (130, 5), (3, 40), (17, 16), (1, 9)])
def test_transposes(shape: tuple[int, int]) -> None:
    x = data(*shape)
    check([x, topi.transpose(x)])


@pytest.mark.parametrize("dtype", ["float64", "int8", "float16", "int32"])
def test_transposes_of_other_types(dtype: str) -> None:
    x = data(20, 37, dtype=dtype)
    check([x, topi.transpose(x)])


@pytest.mark.parametrize(
    ("shape", "order"), [((2, 5, 7, 20), (0, 2, 3, 1)), ((2, 9, 7, 20), (0, 3, 1, 2)), ((2, 6, 3, 8), (0, 2, 1, 3)), ((4, 5, 6), (2, 1, 0))]
)
def test_transposes_of_images(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = data(*shape)
    check([x, topi.transpose(x, order)])


def injective_cases() -> dict[str, Tensors]:
    x, y, z = data(34, 30), data(30, 34, name="y"), data(6, 7, 9)
    return {
        "relu of a transpose and more": [x, y, topi.nn.relu(topi.add(topi.transpose(x), y))],
        "reshape": [z, topi.reshape(z, (42, 9))],
        "flip rows": [x, topi.flip(x, 0)],
        "flip columns": [x, topi.flip(x, 1)],
        "slice": [z, topi.strided_slice(z, [0, 1, 0], [6, 7, 9], [1, 2, 2])],
        "bias": [z, data(9, name="b"), None],  # type: ignore[list-item]
        "pad": [z, topi.nn.pad(z, (1, 0, 2), (0, 3, 0))],
        "chain": [x, topi.tanh(topi.exp(topi.negative(topi.multiply(x, x))))],
        "one element": [data(1, name="o"), None],  # type: ignore[list-item]
    }


@pytest.mark.parametrize("name", list(injective_cases()))
def test_injective_operators(name: str) -> None:
    args = injective_cases()[name]
    if args[-1] is None:
        inputs = args[:-1]
        args = [*inputs, topi.add(*inputs) if len(inputs) == 2 else topi.exp(inputs[0])]
    check(args)


@pytest.mark.parametrize(("shape", "axis"), [((7, 101), -1), ((8, 16), -1), ((3, 4, 40), -1), ((16, 24), 0), ((4, 6, 20), 1), ((5, 3), -1)])
@pytest.mark.parametrize("operator", [topi.nn.softmax, topi.nn.log_softmax])
def test_softmax(operator: object, shape: tuple[int, ...], axis: int) -> None:
    x = data(*shape)
    check([x, operator(x, axis)])  # type: ignore[operator]


def norm_cases() -> dict[str, Tensors]:
    x, g, b = data(8, 40), data(40, name="g"), data(40, name="b")
    many = data(64, 24)
    g24, b24 = data(24, name="g"), data(24, name="b")
    half, g16, b16 = data(4, 33, dtype="float16"), data(33, dtype="float16", name="g"), data(33, dtype="float16", name="b")
    image, (scale, shift, mean, variance) = data(2, 6, 5, 7), (data(6, name=name) for name in ("s", "t", "m", "v"))
    return {
        "layer_norm": [x, g, b, topi.nn.layer_norm(x, g, b, 1)],
        "layer_norm of several rows at once": [many, g24, b24, topi.nn.layer_norm(many, g24, b24, 1)],
        "layer_norm in float16": [half, g16, b16, topi.nn.layer_norm(half, g16, b16, 1)],
        "rms_norm": [x, g, topi.nn.rms_norm(x, g, 1)],
        "batch_norm": [image, scale, shift, mean, variance, topi.nn.batch_norm(image, scale, shift, mean, variance)[0]],
        "instance_norm": [image, scale, shift, topi.nn.instance_norm(image, scale, shift, 1, (2, 3))],
        "group_norm": [image, scale, shift, topi.nn.group_norm(image, scale, shift, 2, 1, (2, 3))],
    }


@pytest.mark.parametrize("name", list(norm_cases()))
def test_norms(name: str) -> None:
    check(norm_cases()[name])


def test_both_moments_of_a_layer_norm_are_summed_in_one_loop() -> None:
    x, g = data(32, 96), data(96, name="g")
    args = [x, g, topi.nn.layer_norm(x, g, None, 1)]
    target = tvm.Target("llvm -mcpu=znver3 -num-cores=2")
    with target:
        text = str(tvm.lower(default_schedule(args, target), args))
    sums = [body.split("Shuffle")[0] for body in text.split("for k1_outer")[1:]]
    assert sums and all("T_moments_rf_v0" in body and "T_moments_rf_v1" in body for body in sums)


@pytest.mark.parametrize("shape", [(9, 40), (40, 9), (130, 70), (1, 300), (300, 1)])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("operator", [topi.sum, topi.max])
def test_reductions(operator: object, shape: tuple[int, int], axis: object) -> None:
    x = data(*shape)
    check([x, operator(x, axis)])  # type: ignore[operator]


@pytest.mark.parametrize("axis", [0, 1, None])
def test_places_of_extrema(axis: int | None) -> None:
    x = data(9, 40)
    check([x, topi.argmax(x, axis)])
    check([x, topi.argmin(x, axis)])


def test_a_large_sum_and_what_follows_it_are_shared_by_the_threads() -> None:
    x = data(1, 200, 300)
    total = te.reduce_axis((0, 200), name="i"), te.reduce_axis((0, 300), name="j")
    squares = te.compute((1,), lambda b: te.sum(x[b, total[0], total[1]] * x[b, total[0], total[1]], axis=total), name="C")
    args = [x, te.compute((1,), lambda b: te.sqrt(squares[b]), name="D")]
    schedule = default_schedule(args, AVX512)
    assert "C.rf" in str(schedule) and "parallel" in str(schedule)
    check(args)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation"),
    [
        ((1, 2, 7, 9), 3, 1, 1, 1),
        ((1, 2, 7, 9), 3, 2, 1, 1),
        ((2, 3, 15, 33), 3, 1, 1, 1),
        ((1, 2, 17, 20), 5, 2, 2, 1),
        ((1, 2, 9, 9), 3, 1, 1, 2),
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_depthwise_channels_first(shape: tuple[int, ...], kernel: int, stride: int, padding: int, dilation: int, fused: bool) -> None:
    x, w = data(*shape), data(shape[1], 1, kernel, kernel, name="w")
    out = topi.nn.depthwise_conv2d_nchw(x, w, stride, padding, dilation)
    if not fused:
        return check([x, w, out])
    bias = data(shape[1], name="b")
    return check([x, w, bias, topi.clip(topi.nn.bias_add(out, bias), 0.0, 6.0)])


@pytest.mark.parametrize(("shape", "stride"), [((1, 6, 7, 17), 1), ((1, 9, 8, 33), 2), ((1, 5, 5, 130), 1)])
def test_depthwise_channels_last(shape: tuple[int, ...], stride: int) -> None:
    x, w = data(*shape), data(3, 3, shape[3], 1, name="w")
    check([x, w, topi.nn.depthwise_conv2d_nhwc(x, w, stride, 1, 1)])


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(("size", "stride", "padding"), [(3, 2, 1), (2, 2, 0), (3, 1, 1)])
@pytest.mark.parametrize("include", [True, False])
def test_pooling(kind: str, size: int, stride: int, padding: int, include: bool) -> None:
    x = data(1, 2, 9, 21)
    pooled = topi.nn.pool2d(x, (size, size), (stride, stride), (1, 1), (padding,) * 4, kind, count_include_pad=include)
    check([x, pooled])


@pytest.mark.parametrize(("cpu", "peeled"), [("znver3", True), ("neoverse-n1 -mtriple=aarch64-linux-gnu", True), ("znver5", False)])
def test_borders_are_peeled_where_masks_are_vectors(cpu: str, peeled: bool) -> None:
    x, w = data(1, 4, 24, 40), data(4, 1, 3, 3, name="w")
    args = [x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)]
    target = tvm.Target(f"llvm -mcpu={cpu} -num-cores=2")
    with target:
        func = tvm.lower(default_schedule(args, target), args)["main"]
    innermost = [loop for loop in loops_of(func.body) if len(loops_of(loop)) == 1]
    assert any("predicate" not in str(loop) for loop in innermost) is peeled


def loops_of(stmt: tvm.tir.Stmt) -> list[tvm.tir.For]:
    found: list[tvm.tir.For] = []
    tvm.tir.stmt_functor.post_order_visit(stmt, lambda node: found.append(node) if isinstance(node, tvm.tir.For) else None)
    return found


def test_a_border_is_told_by_its_structure() -> None:
    x, k = data(1, 4, 10, 20), te.reduce_axis((0, 3), name="k")
    border = te.compute(
        (1, 4, 12, 20), lambda n, c, i, j: tvm.tir.if_then_else(tvm.tir.all(i >= 1, i < 11), x[n, c, i - 1, j], 0.0), name="P"
    )
    out = te.compute((1, 4, 10, 20), lambda n, c, i, j: te.max(border[n, c, i + k, j], axis=k), name="M")
    assert "inlined: P" in str(default_schedule([x, out], AVX512))
    check([x, out])


def test_pooling_of_the_whole_plane() -> None:
    x = data(2, 3, 7, 7)
    check([x, topi.nn.global_pool(x, "avg")])


def window_cases() -> dict[str, Tensors]:
    line, image, last, box = data(2, 3, 17), data(1, 6, 9, 18), data(1, 7, 9, 20), data(1, 2, 5, 6, 18)
    small = data(1, 2, 9, 18, dtype="int8")
    pooled = topi.nn.pool2d(image, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    means = topi.nn.pool2d(image, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "avg")
    return {
        "two of one result": [image, topi.subtract(pooled, means)],
        "one axis": [line, topi.nn.pool1d(line, 3, 2, 1, 1, "max")],
        "three axes": [box, topi.nn.pool3d(box, (2, 3, 2), (1, 2, 2), (1, 1, 1), (0, 1, 0), "max")],
        "channels last": [last, topi.nn.pool2d(last, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max", layout="NHWC")],
        "along channels": [image, topi.nn.lrn(image, 5)],
        "bytes": [small, topi.nn.pool2d(small, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")],
        "read twice": [image, topi.add(pooled, topi.nn.relu(pooled))],
        "an output that is read": [image, pooled, topi.exp(pooled)],
    }


@pytest.mark.parametrize("name", list(window_cases()))
def test_windows(name: str) -> None:
    check(window_cases()[name])


def test_stages_of_different_rows_share_no_loop() -> None:
    x = data(6, 10)
    check([x, topi.nn.softmax(topi.transpose(x))])
    check([x, topi.sum(topi.nn.softmax(x), 1)])


def test_neighbours_in_memory_become_one_loop() -> None:
    x, y = data(3, 5, 7), data(3, 5, 7, name="y")
    schedule = default_schedule([x, y, topi.add(x, y)])
    assert str(schedule).count("for ") == 2  # vectors, and what is in one


def test_a_transpose_gathers_nothing() -> None:
    x = data(128, 192)
    text = llvm_text([x, topi.transpose(x)])
    assert "gather" not in text and "scatter" not in text
    assert len(re.findall(r"shufflevector <16 x float>", text)) >= 64
    assert not re.search(r"load float,", text)


def test_images_are_transposed_across_rows_of_pixels() -> None:
    x = data(2, 6, 10, 32)
    text = llvm_text([x, topi.transpose(x, (0, 3, 1, 2))])
    assert "gather" not in text and "scatter" not in text and "shufflevector <16 x float>" in text


def test_results_larger_than_the_caches_are_written_past_them() -> None:
    size = tvm.Target(AVX512).l3_cache_size_bytes // 8
    for extent, expected in ((size, True), (size // 4, False)):
        x = data(extent)
        assert ("non-temporal" in str(default_schedule([x, topi.exp(x)], tvm.Target(AVX512)))) is expected


def test_a_depthwise_convolution_keeps_its_tile_in_registers() -> None:
    x, w = data(1, 2, 28, 16), data(2, 1, 3, 3, name="w")
    args = [x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)]
    text = llvm_text(args)
    assert "alloca" not in text and "gather" not in text
    assert len(re.findall(r"= fmul [a-z ]*<16 x float>", text)) >= 9 * 14


@pytest.mark.parametrize("cpu, stride, columns_first", [("haswell", 1, True), ("haswell", 2, False), ("skylake-avx512", 1, False)])
def test_rows_go_on_together_where_weights_do_not_stay_in_registers(cpu: str, stride: int, columns_first: bool) -> None:
    x, w = data(1, 2, 14, 40), data(2, 1, 3, 3, name="w")
    args = [x, w, topi.nn.depthwise_conv2d_nchw(x, w, stride, 1, 1)]
    text = tvm.lower(default_schedule(args, f"llvm -mcpu={cpu} -num-cores=2"), args, simple_mode=True).script()
    first = re.findall(r"\[(\d+)\] = \w+\[\1\] \+ ", text)[:3]
    assert first == (["0", "1", "2"] if columns_first else ["0", "0", "0"])
    assert_schedule_correct(default_schedule(args, f"llvm -mcpu={cpu} -num-cores=2"), args, phases=(2,))


@pytest.mark.parametrize(
    ("caches", "vector", "columns", "stored_past"),
    [("-l3=32M/16", 16, 1, True), ("-l2=64M/16 -l3=256M/16", 8, 4, False), ("-l2=64M/16 -l3=32M/16", 8, 4, False)],
)
def test_channels_from_memory_go_along_rows_in_whole_lines(caches: str, vector: int, columns: int, stored_past: bool) -> None:
    """Registers of 8 lanes are half a line: they come in pairs, or nothing is stored past the caches."""
    x, w = data(16, 112, 112, 32), data(3, 3, 32, 1, name="w")
    args = [x, w, topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1)]
    steps = str(default_schedule(args, f"llvm -mcpu=znver3 -num-cores=2 {caches}").trace)
    assert (f"sizes=(8, 16, 24, 32), decision={vector})" in steps) is (vector > 8)
    assert re.search(rf"SampleTile\(stage=3, axis=2, sizes=[^)]+\), decision={columns}\)", steps)
    assert ("StoreNontemporal" in steps) is stored_past


@pytest.mark.parametrize("channels", [8, 24, 48])
def test_rows_of_channels_that_no_cache_holds(channels: int) -> None:
    x, w = data(1, 9, 8, channels), data(3, 3, channels, 1, name="w")
    args = [x, w, topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1)]
    assert_schedule_correct(default_schedule(args, "llvm -mcpu=haswell -num-cores=2 -l2=1K/8 -l3=2K/8"), args, phases=(2,))


def test_every_second_column_is_shuffled_out_of_whole_vectors() -> None:
    x, w = data(1, 8, 32, 64), data(8, 1, 3, 3, name="w")
    text = llvm_text([x, w, topi.nn.depthwise_conv2d_nchw(x, w, 2, 1, 1)])
    assert "gather" not in text
    assert not re.search(r"insertelement <16 x float> %\S+, float %\S+, i64 15", text)


def test_channels_are_loaded_without_branches() -> None:
    x, w = data(1, 16, 16, 16), data(3, 3, 16, 1, name="w")
    text = llvm_text([x, w, topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1)])
    assert "@llvm.masked.load.v16f32" in text
    assert text.count("br i1") < 20


def test_a_sum_over_rows_reads_several_of_them_for_each_result() -> None:
    x = data(512, 256)
    schedule = default_schedule([x, topi.sum(x, 0)], AVX512)
    assert "(0, 8) unroll" in str(schedule) and ".rf" in str(schedule)


def test_small_work_runs_on_one_thread() -> None:
    for extent, expected in ((1 << 13, False), (1 << 17, True)):
        x = data(extent)
        assert ("parallel" in str(default_schedule([x, topi.nn.relu(x)], AVX512))) is expected
    x = data(1 << 13)  # a polynomial each
    assert "parallel" in str(default_schedule([x, topi.exp(x)], AVX512))


def test_many_results_of_one_row_are_shared_by_the_threads() -> None:
    # 64 sums are little work, and the row of them all is one iteration: what is made of it isn't little.
    x, y = data(1, 64), data(1, 1 << 18)
    k = te.reduce_axis((0, 64), name="k")
    total = te.compute((1,), lambda n: te.sum(x[n, k], axis=k), name="total")
    scaled = te.compute(y.shape, lambda n, i: y[n, i] * total[n], name="scaled")
    args = [x, y, scaled]
    assert "T.parallel" in str(tvm.lower(default_schedule(args, tvm.Target(AVX512)), args))


def test_transposes_that_stay_in_the_caches_go_along_rows_of_the_result() -> None:
    """Equal blocks of rows, of which each thread takes some; past the caches a thread goes along rows of the operand."""
    x = data(256, 300)
    args = [x, topi.transpose(x)]
    with tvm.Target("llvm -mcpu=haswell -num-cores=2"):
        text = str(tvm.lower(default_schedule(args, tvm.Target.current()), args))
    assert "T.likely" not in text and "predicate" not in text
    assert "for ax0_outer_ax1_outer_fused in T.parallel(20):" in text
    with tvm.Target("llvm -mcpu=haswell -num-cores=2 -l3=256K/8"):
        assert "ax1_outer_ax0_outer_fused" in str(tvm.lower(default_schedule(args, tvm.Target.current()), args))


@pytest.mark.parametrize(("size", "expected"), (("256K/8", True), ("8M/16", False)))
def test_rows_that_outgrow_the_caches_are_stored_past_them(size: str, expected: bool) -> None:
    x = data(256, 128)
    args = [x, topi.nn.softmax(x)]
    schedule = default_schedule(args, tvm.Target(f"llvm -mcpu=haswell -num-cores=2 -l3={size}"))
    assert ("StoreNontemporal" in str(schedule.trace)) == expected


@pytest.mark.parametrize(
    ("shape", "loops"),
    [
        # rows of 148 bytes lie all over the first level: by rows of the result
        ((70, 37), ["10", "4", "2", "4", "8"]),
        # rows of 4 KB share one set: 16 of them at a time, by columns of lines
        ((70, 1024), ["4", "16", "2", "4", "8"]),
    ],
)
def test_transposes_past_the_caches_fill_lines_at_once(shape: tuple[int, int], loops: list[str]) -> None:
    """Of 8 rows by 8 elements all 8 lines would be half full until the next 8: 4 rows, and the other half of their lines."""
    target = tvm.Target("llvm -mcpu=znver3 -num-cores=2 -l1d=32K/8 -l2=1K/8 -l3=1K/16")
    x = data(*shape)
    args = [x, topi.transpose(x)]
    s = default_schedule(args, target)
    assert re.findall(r"for \S+ \(0, (\d+)\)", str(s))[-5:] == loops
    assert_schedule_correct(s, args, phases=(2,))


def sums_of_columns() -> dict[str, Tensors]:
    """Sums that go down the columns of their operand, and something made of each."""
    x, planes, row, b = data(40, 24), data(2, 3, 5, 16), data(1, 40, name="a"), data(40, 24, name="b")
    return {
        "mean": [x, topi.divide(topi.sum(x, 0), 40.0)],
        "norm": [x, topi.sqrt(topi.sum(x * x, 0))],
        "mean of channels": [planes, topi.divide(topi.sum(planes, [0, 1, 2]), 30.0)],
        "mean of each plane": [planes, topi.nn.relu(topi.divide(topi.sum(planes, [1, 2]), 15.0))],
        "one row": [row, b, topi.nn.relu(topi.nn.matmul(row, b))],
        "pages of one row": [
            (left := data(3, 1, 8, name="left")),
            (right := data(3, 8, 24, name="right")),
            topi.nn.relu(topi.nn.batch_matmul(left, right, transpose_b=False)),
        ],
        "place": [x, topi.argmax(x, 0)],
        "place among channels": [planes, topi.argmax(planes, 1)],
    }


@pytest.mark.parametrize("name", sums_of_columns())
def test_columns_are_no_rows(name: str) -> None:
    """Columns are lanes, whatever is made of their sums: computed one after the other each would read one element of a line."""
    args = sums_of_columns()[name]
    check(args)
    target = tvm.target.Target("llvm -mcpu=haswell -num-cores=2")
    loop = hot_loop(assembly(default_schedule(args, target), args, target))
    assert loop is not None
    assert loop.bits == 256


@pytest.mark.parametrize(("components", "dtype"), [((2, 2), "float32"), ((3,), "float32"), ((2,), "int16"), ((2,), "float64")])
def test_short_last_axes_leave_the_lanes_to_others(components: tuple[int, ...], dtype: str) -> None:
    x = te.placeholder((5, 37, *components), dtype, name="x")
    out = te.compute(x.shape, lambda b, i, *c: x(b, i, *c[:-1], (c[-1] + 1) % components[-1]) + x(b, i, *c), name="y")
    wide = Target("llvm -num-cores=2 -vector-width=256")
    s = default_schedule([x, out], wide)
    node = s.tree[s[out].id]
    (lane,) = (node.axes[axis].name for axis, mark in node.marks.items() if mark.kind is LoopKind.VECTORIZE)
    assert lane.startswith("i")
    assert_schedule_correct(s, [x, out], phases=(2,))
