"""Corners of Relay's operators, walks and conversions: what is refused, and what isn't."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, relay
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.from_graph import from_graph, function_from_graph
from tensorexpr.relay.to_graph import to_graph


def x(*extents: Any, dtype: str = "float32", name: str = "x") -> Any:
    return relay.var(name, shape=extents, dtype=dtype)


PICTURE, WEIGHTS = x(1, 4, 6, 6), x(3, 4, 3, 3, name="w")
ROWS = x(relay.Any(), 3, name="rows")

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "channels": (lambda: relay.nn.conv2d(PICTURE, WEIGHTS, channels=7), "channels=7, and the weights have 3"),
    "transposed channels": (lambda: relay.nn.conv2d_transpose(PICTURE, x(4, 2, 3, 3), channels=7), "channels=7"),
    "layout of regions": (lambda: relay.vision.roi_align(PICTURE, x(2, 5), (2, 2), 1.0, layout="XX"), "NCHW or NHWC, not XX"),
    "layout of pooled regions": (lambda: relay.vision.roi_pool(PICTURE, x(2, 5), (2, 2), 1.0, "NHWC"), "is NCHW, not NHWC"),
    "layout of bits": (lambda: relay.nn.bitserial_conv2d(PICTURE, WEIGHTS, data_layout="CHWN"), "not CHWN"),
    "layout of results": (lambda: relay.nn.global_avg_pool2d(PICTURE, "NCHW", "NHWC"), "not NHWC"),
    "split in none": (lambda: relay.reshape(PICTURE, (-4, 0, -1, -2)), "behind -4"),
    "grid of no shape": (lambda: relay.image.affine_grid(x(1, 2, 3)), "target_shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(DeclarationError, match=said):
        _ = make().checked_type


def test_a_fraction_beside_integers_is_refused() -> None:
    with pytest.raises(TypeMismatchError, match=r"0\.5 beside a tensor of int32"):
        _ = x(3, dtype="int32") + 0.5
    assert (x(3, dtype="int32") + 2).checked_type.dtype == "int32"


def evaluated(value: Any, *data: Any) -> Any:
    return Evaluator(to_graph(tvm.IRModule.from_expr(value.as_function())))("main", *data)


def test_numbers_at_the_ends() -> None:
    quantized = relay.qnn.op.quantize(x(3), relay.const(1e-9), relay.const(3, "int32"))
    np.testing.assert_array_equal(evaluated(quantized, np.array([100, -100, 2e-9], "float32")), [127, -128, 5])
    tiny = relay.qnn.op.requantize(x(2, dtype="int32"), relay.const(1e-14), relay.const(0), relay.const(1.0), relay.const(2))
    np.testing.assert_array_equal(evaluated(tiny, np.array([1 << 30, -5], "int32")), [2, 2])
    with np.errstate(invalid="ignore"):
        assert np.isnan(evaluated(relay.variance(x(1, 2), 0, unbiased=True), np.ones((1, 2), "float32"))).all()
    given = np.array([[1, 2, 2], [4, 1, 1]], "float32")
    np.testing.assert_allclose(evaluated(relay.variance(ROWS, axis=0, unbiased=True), given), given.var(0, ddof=1))
    entropy = relay.nn.cross_entropy_with_logits(ROWS, x(relay.Any(), 3, name="targets"))
    assert evaluated(entropy, given, np.eye(3, dtype="float32")[:2]) == -1  # a mean over rows whose number isn't known


def test_quantized_values_become_kernels_of_integers() -> None:
    one, zero = relay.const(0.5), relay.const(1, "int32")
    left = relay.qnn.op.dequantize(x(2, 4, dtype="uint8"), one, zero)
    right = relay.qnn.op.dequantize(relay.const(np.arange(12, dtype="int8").reshape(3, 4)), one, relay.const(0))
    func = relay.qnn.op.quantize(relay.nn.dense(left, right), relay.const(4.0), zero, out_dtype="uint8").as_function()
    made = relax.build(to_graph(tvm.IRModule.from_expr(func)), upto=1)
    assert "R.requantize" in made.script() and "R.dequantize" not in made.script()


def test_functions_that_call_each_other() -> None:
    number, boolean = relay.TensorType((), "int32"), relay.TensorType((), "bool")
    names = {"even": ("odd", True), "odd": ("even", False)}
    mod = tvm.IRModule()
    for name, (other, at_zero) in names.items():
        n = relay.var("n", number)
        step = relay.Call(relay.GlobalVar(other), [n - relay.const(1)])
        func: Any = relay.Function((n,), relay.If(relay.equal(n, relay.const(0)), relay.const(at_zero), step), boolean)
        mod[relay.GlobalVar(name)] = func
    n = relay.var("n", number)
    main: Any = relay.Function((n,), relay.Call(relay.GlobalVar("even"), [n]))
    mod["main"] = main
    assert relay.GlobalVar("even").astext() == "@even"
    run = Evaluator(to_graph(mod))
    assert [bool(run("main", np.array(given, "int32"))) for given in (0, 3, 4)] == [True, False, True]


def test_pools_of_graphs_are_relays() -> None:
    func = relay.nn.max_pool2d(PICTURE, (2, 2), ceil_mode=True).as_function()
    assert "relax." not in str(from_graph(to_graph(tvm.IRModule.from_expr(func))))


def test_walks_pass_shapes_and_numbers() -> None:
    n = tvm.tir.Var("n", "int64")
    builder, given = relax.BlockBuilder(), relax.Var("p", relax.TensorStructInfo((2, n), "float32"))
    with builder.function("main", [given]):
        clipped = builder.emit(relax.op.clip(given, relax.PrimValue(tvm.tir.const(0, "int64")), relax.PrimValue(n)))
        builder.emit_func_output(builder.emit(relax.op.reshape(clipped, (n, 2))))
    made: Any = builder.get()["main"]
    func = function_from_graph(made)
    assert "prim_value(n)" in str(func)  # a bound that isn't known is none of an attribute
    assert relay.ExprMutator().visit(func) is func and relay.ExprVisitor().visit(func) is None
    data = np.array([[-1, 1, 9], [3, 2, 4]], "float32")
    np.testing.assert_array_equal(Evaluator(to_graph(func))("main", data), np.clip(data, 0, 3).reshape(3, 2))


def test_well_formed_and_free() -> None:
    v, a = relay.var("v"), x(1, 4, 6, 6, name="a")
    assert relay.analysis.well_formed(relay.Function((PICTURE,), relay.add(PICTURE, a)))  # free in the whole
    outside = relay.Function((PICTURE,), relay.add(relay.Let(v, PICTURE, v), v))  # v behind its Let
    assert not relay.analysis.well_formed(outside) and not relay.analysis.well_formed(tvm.IRModule.from_expr(outside))
    assert relay.analysis.well_formed(relay.Let(v, PICTURE, relay.add(v, v)))


def test_what_stands_between_quantized_values_is_counted() -> None:
    scale = relay.const(0.5), relay.const(0)
    floats = relay.add(relay.nn.relu(relay.qnn.op.dequantize(x(4, dtype="int8"), *scale)), relay.const(1.0))
    ends = [relay.qnn.op.quantize(one, *scale) for one in (floats, relay.nn.relu(x(4, name="open")))]
    assert relay.analysis.list_fake_quantized_op_freqs(tvm.IRModule.from_expr(relay.Tuple(ends).as_function())) == {"nn.relu": 1, "add": 1}


def test_what_a_branch_meets_first_and_code_behind_it_uses_is_computed_once() -> None:
    c, data = x(dtype="bool", name="c"), x(3)
    root = relay.sqrt(data)
    inner = relay.If(c, data, relay.negative(root))
    func = relay.Function((data, c), relay.add(relay.If(c, relay.exp(root), inner), root))
    graph = to_graph(tvm.IRModule.from_expr(func))
    assert str(graph).count("R.sqrt") == 1
    values = np.array([1, 4, 9], "float32")
    for taken, expected in ((True, np.exp([1, 2, 3])), (False, np.array([-1, -2, -3]))):
        np.testing.assert_allclose(Evaluator(graph)("main", values, np.array(taken)), expected + np.array([1, 2, 3]), rtol=1e-6)
    # What branches alone use stays in them, as it may never be wanted.
    lazy = to_graph(tvm.IRModule.from_expr(relay.Function((data, c), relay.If(c, relay.exp(root), inner))))
    assert str(lazy).count("R.sqrt") == 2 and "R.sqrt" not in str(lazy).partition("if c:")[0]


def test_what_a_function_meets_first_is_computed_before_it() -> None:
    data, given, name = x(3), x(3, name="given"), relay.var("f")
    root = relay.sqrt(data)
    times = relay.Function((given,), relay.multiply(given, root), relay.TensorType((3,), "float32"))
    called = relay.add(relay.Call(times, (data,)), root)
    bound = relay.Let(name, times, relay.add(root, relay.Call(name, (data,))))
    for body in (called, bound):
        graph = to_graph(tvm.IRModule.from_expr(relay.Function((data,), body)))
        assert str(graph).count("R.sqrt") == 1
        np.testing.assert_allclose(Evaluator(graph)("main", np.array([1, 4, 9], "float32")), [2, 10, 30], rtol=1e-6)


@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWOI")])
def test_weights_by_channel_and_multiplier(layouts: tuple[str, str]) -> None:
    rng = np.random.default_rng(3)
    picture, weights = rng.random((1, 4, 5, 5), "float32"), rng.random((4, 2, 3, 3), "float32")
    orders = [tuple("NCHW".index(one) for one in layouts[0]), tuple("OIHW".index(one) for one in layouts[1])]
    data, rows = picture.transpose(orders[0]), weights.transpose(orders[1])
    made = relay.nn.conv2d(x(*data.shape), x(*rows.shape, name="w"), groups=4, channels=8, data_layout=layouts[0], kernel_layout=layouts[1])
    windows = np.lib.stride_tricks.sliding_window_view(picture, (3, 3), (2, 3))
    wanted = np.einsum("nchwij,cmij->ncmhw", windows, weights).reshape(1, 8, 3, 3)  # the channels of one follow each other
    np.testing.assert_allclose(evaluated(made, data, rows), wanted.transpose(orders[0]), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_of_halves_are_taken_in_float32(dtype: str) -> None:
    # float16 has no 70,000, and bfloat16 no 257.
    data = x(70000, dtype=dtype)
    ones = np.ones(70000, dtype if dtype == "float16" else ml_dtypes.bfloat16)
    func = relay.Function((data,), relay.Tuple([relay.mean(data), *relay.mean_variance(data)]))
    for found in relay.create_executor("graph", tvm.IRModule.from_expr(func)).evaluate()(ones), Evaluator(to_graph(func))("main", ones):
        assert [float(np.asarray(one.numpy() if hasattr(one, "numpy") else one)) for one in found] == [1.0, 1.0, 0.0]


def test_means_of_integers_are_rounded_towards_zero() -> None:
    x = relay.var("x", shape=(1, 1, 2, 4), dtype="int32")
    func = relay.Function((x,), relay.nn.avg_pool2d(x, (2, 2), strides=(2, 2)))
    data = np.array([[-1, -2, 3, 3], [-3, -1, 4, 1]], "int32").reshape(1, 1, 2, 4)
    np.testing.assert_array_equal(relay.create_executor("graph").evaluate(func)(data).numpy().ravel(), [-1, 2])


def test_blocks_of_channels_that_run_slowest_have_two_names() -> None:
    x = relay.var("x", shape=(1, 8, 2, 2))
    data = np.arange(32, dtype="float32").reshape(1, 8, 2, 2)
    got = [
        relay.create_executor("graph").evaluate(relay.Function((x,), relay.nn.depth_to_space(x, 2, mode=mode)))(data).numpy()
        for mode in ("CDR", "CRD")
    ]
    np.testing.assert_array_equal(got[0], data.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 4))
    np.testing.assert_array_equal(got[1], got[0])


def test_four_numbers_for_windows_are_those_of_a_layout() -> None:
    x, w = relay.var("x", shape=(1, 2, 5, 6)), relay.var("w", shape=(2, 2, 3))
    four = relay.image.dilation2d(x, w, strides=[1, 1, 2, 1], dilations=[1, 1, 1, 2])
    two = relay.image.dilation2d(x, w, strides=[2, 1], dilations=[1, 2])
    assert four.checked_type == two.checked_type == relay.TensorType((1, 2, 2, 2))


def test_lets_in_parentheses() -> None:
    func = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: float32) -> float32 { (let %y = %x + 1f; %y * %y) + 2f }')["main"]
    np.testing.assert_allclose(relay.create_executor().evaluate(func)(np.float32(2)).numpy(), 11)


@pytest.mark.parametrize("compute_dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize(("rounding", "halves"), [("UPWARD", [-2, -1, 0, 1, 2, 3]), ("TONEAREST", [-3, -2, -1, 1, 2, 3])])
def test_halves_of_requantised_numbers(compute_dtype: str, rounding: str, halves: list[int]) -> None:
    x = relay.var("x", shape=(6,), dtype="int32")
    scale, zero = (lambda value: relay.const(value, "float32")), relay.const(0, "int32")
    value = relay.qnn.op.requantize(x, scale(0.5), zero, scale(1.0), zero, -1, rounding, compute_dtype, "int8")  # type: ignore[no-untyped-call]
    data = np.array([-5, -3, -1, 1, 3, 5], "int32")
    np.testing.assert_array_equal(relay.create_executor("graph").evaluate(relay.Function((x,), value))(data).numpy(), halves)


def test_the_type_of_the_last_of_thousands_of_layers() -> None:
    """A network is one expression, each layer within the next; what is known of the first is known last."""
    data = x(2, 4)
    last: Any = data
    for _ in range(1000):
        last = relay.TupleGetItem(relay.Tuple([relay.nn.relu(last) + data]), 0)
    assert last.struct_info == data.struct_info


@pytest.mark.parametrize(("padding", "kept"), [(1, (1, 1, 1, 1)), ((1, 2), (1, 2, 1, 2)), ((0, 1, 2, 3), (0, 1, 2, 3))])
def test_convolutions_keep_padding_in_front_and_behind(padding: Any, kept: tuple[int, ...]) -> None:
    assert relay.nn.conv2d(PICTURE, WEIGHTS, padding=padding).attrs.padding == kept
    assert relay.nn.conv1d(x(1, 2, 5), x(2, 2, 3, name="w"), padding=1, kernel_size=3).attrs == {
        **relay.nn.conv1d(x(1, 2, 5), x(2, 2, 3, name="w")).attrs, "padding": (1, 1), "kernel_size": (3,),
    }  # fmt: skip


def test_operators_say_how_they_are_fused() -> None:
    names = {"exp": "ELEMWISE", "add": "BROADCAST", "concatenate": "INJECTIVE", "sum": "COMM_REDUCE", "nn.conv2d": "OUT_ELEMWISE_FUSABLE"}
    for name, kind in names.items():
        assert relay.op.get(name).get_attr("TOpPattern") == getattr(relay.op.OpPattern, kind)


def test_numbers_of_attributes_are_equal_however_they_are_written() -> None:
    y = x(3)
    func = relay.Function((y,), relay.nn.relu(y))
    marked, other = func.with_attr("Primitive", 1), func.with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    assert tvm.ir.structural_equal(marked, other) and tvm.ir.structural_hash(marked) == tvm.ir.structural_hash(other)
    assert not tvm.ir.structural_equal(marked, func.with_attr("Primitive", tvm.tir.IntImm("int32", 0)))


def test_values_of_expressions_by_another_name() -> None:
    y = x(2)
    functions: Any = {"twice": relay.Function((y,), y * relay.const(2.0))}
    mod = tvm.IRModule(functions)
    found = relay.testing.run_as_python(relay.Tuple([mod.get_global_var("twice")(relay.const(np.array([1, 2], "float32")))]), mod)
    np.testing.assert_array_equal(found[0].numpy(), [2, 4])


def test_indices_count_from_the_end() -> None:
    gathered = relay.gather(x(2, 3), 1, x(2, 1, dtype="int32", name="i"), support_negative_indices=True)
    found = relay.create_executor("graph", tvm.IRModule.from_expr(gathered.as_function())).evaluate()(
        np.arange(6, dtype="float32").reshape(2, 3), np.array([[-1], [-3]], "int32")
    )
    np.testing.assert_array_equal(found.numpy(), [[2], [3]])


def test_names_in_other_modules() -> None:
    module = importlib.import_module("tensorexpr.relay.transform.transform")
    assert module.DynamicToStatic is relay.transform.DynamicToStatic
    assert tvm.ir.TypeCall is relay.TypeCall and tvm.ir.RelayRefType is relay.RefType


def test_weights_of_numpys_floats() -> None:
    """np.random makes float64; products and convolutions take them in the floats of the data, as do parameters without types."""
    rng = np.random.default_rng(0)
    x, image = relay.var("x", shape=(2, 3)), relay.var("image", shape=(1, 3, 4, 4))
    weights, window = rng.standard_normal((5, 3)), rng.standard_normal((2, 3, 3, 3))
    body = relay.Tuple([relay.nn.dense(x, relay.const(weights)), relay.nn.conv2d(image, relay.const(window))])
    given = rng.standard_normal((2, 3)).astype("float32"), rng.standard_normal((1, 3, 4, 4)).astype("float32")
    rows, planes = (
        one.numpy()
        for one in relay.create_executor("graph", mod=tvm.IRModule.from_expr(relay.Function((x, image), body))).evaluate()(*given)
    )
    assert rows.dtype == planes.dtype == "float32"
    np.testing.assert_allclose(rows, given[0] @ weights.T, rtol=1e-4, atol=1e-5)
    free = relay.Function((image, w := relay.var("w")), relay.nn.conv2d(image, w, channels=2, kernel_size=(3, 3)))
    bound = relay.build_module.bind_params_by_name(free, {"w": window})
    found = relay.create_executor("graph", mod=tvm.IRModule.from_expr(bound)).evaluate()(given[1]).numpy()
    np.testing.assert_allclose(found, planes, rtol=1e-5, atol=1e-6)
