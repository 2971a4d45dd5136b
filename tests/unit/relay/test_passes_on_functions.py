"""What passes on whole functions make, and what they leave: simpler calls, factors in weights, layouts, kernels, branches as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError
from tensorexpr.ir import structural_equal
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import transform
from tensorexpr.relay.quantize import _annotate
from tensorexpr.relay.testing import TempOpAttr, byoc, run_infer_type, run_opt_pass
from tensorexpr.relay.to_graph import to_graph
from tensorexpr.relay.transform.infer_layout_utils import InferCorrectLayoutOutput

X = relay.var("x", shape=(2, 4, 6, 6))
CLIPPED = relay.clip(X, 0.0, 200.0)
BYTES = relay.var("b", shape=(3, 4), dtype="int8")


def same(found: Any, wanted: Any) -> bool:
    return structural_equal(found, run_infer_type(wanted), map_free_vars=True)


def factors(*shape: int, sign: float = 1) -> Any:
    return relay.const((sign * np.linspace(1, 2, int(np.prod(shape)))).astype("float32").reshape(shape))


def blocks(channels: int) -> Any:
    return relay.layout_transform(relay.layout_transform(relay.var("o", shape=(1, channels, 2)), "NCW", "NCW4c"), "NCW4c", "NWC")


C = relay.const(np.linspace(1, 2, 6, dtype="float32"))
SIMPLE: dict[str, tuple[Any, Any]] = {
    "cast to the same": (relay.cast(X, "float32"), X),
    "casts that lose nothing": (relay.cast(relay.cast(BYTES, "int32"), "float32"), relay.cast(BYTES, "float32")),
    "a cast that wraps": (run := relay.cast(relay.cast(BYTES, "uint8"), "int32"), run),
    "a cast that cuts": (cut := relay.cast(relay.cast(X, "int32"), "float32"), cut),
    "a clip that fits": (relay.cast(relay.cast(CLIPPED, "uint8"), "int32"), relay.cast(CLIPPED, "int32")),
    "a clip to floats": (clip := relay.cast(relay.cast(CLIPPED, "uint8"), "float32"), clip),
    "a clip of all bytes": (relay.clip(BYTES, -128.0, 500.0), BYTES),
    "blocks that are gone again": (blocks(4), relay.layout_transform(relay.var("o", shape=(1, 4, 2)), "NCW", "NWC")),
    "blocks that are no divisors": (odd := blocks(6), odd),
    "a transpose as a layout": (
        relay.layout_transform(relay.transpose(X, [0, 2, 3, 1]), "NHWC", "NCHW2c"), relay.layout_transform(X, "NCHW", "NCHW2c"),
    ),
    "constants meet": ((X + C) * C - relay.zeros_like(X), X * C + relay.const(C.data.numpy() * C.data.numpy())),
    "constants that broadcast to more": (more := (X * factors(4, 1, 1)) * C, more),
    "a fill that broadcasts": (wide := BYTES * relay.ones((2, 3, 4), "int8"), wide),
    "a fill as a number": (X - relay.full(relay.const(2.0), (6,)), X - relay.const(2.0)),
    "the order of bytes": (
        relay.argmax(relay.qnn.op.dequantize(BYTES, relay.const(2.0), relay.const(3)), axis=1), relay.argmax(BYTES, axis=1),
    ),
    "the other order of bytes": (
        fall := relay.argmax(relay.qnn.op.dequantize(BYTES, relay.const(-2.0), relay.const(3)), axis=1), fall,
    ),
    "a value twice": (X + X, X * relay.const(2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLE)
def test_simpler_calls(name: str) -> None:
    before, after = SIMPLE[name]
    assert same(run_opt_pass(before, transform.SimplifyExpr()), after)


W = relay.var("w", shape=(4, 4, 3, 3))


def conv(x: Any, w: Any = W, **attrs: Any) -> Any:
    return relay.nn.conv2d(x, w, padding=(1, 1), **attrs)


NEGATIVE, POSITIVE, MIXED = factors(4, 1, 1, sign=-1), factors(4, 1, 1), relay.const(np.array([0, 1, 1, 1], "float32").reshape(4, 1, 1))


@pytest.mark.parametrize(
    ("stays", "value"),
    [
        (False, conv(X * NEGATIVE)),
        (False, conv(relay.nn.relu(X * POSITIVE) + factors(4, 1, 1))),
        (True, conv(relay.nn.relu(X * NEGATIVE))),
        (True, conv(X * MIXED + factors(4, 1, 1))),  # what is added would be divided by zero
        (True, conv(y := X * POSITIVE) + y),
        (True, conv(X * factors(6))),
        (True, conv(X * POSITIVE, relay.var("g", shape=(4, 2, 3, 3)), groups=2)),
        (False, conv(X * POSITIVE, relay.var("d", shape=(4, 1, 3, 3)), groups=4)),
        (False, conv(X) * NEGATIVE),
        (False, (conv(X) + relay.nn.relu(conv(X))) * POSITIVE),
        (True, (conv(X) + relay.nn.relu(conv(X))) * NEGATIVE),
        (True, (y := conv(X)) * POSITIVE + y),
        (True, (conv(X) + X) * POSITIVE),
        (True, conv(X) * factors(2, 4, 1, 1)),
    ],
)
def test_factors_that_find_weights(stays: bool, value: Any) -> None:
    found = run_opt_pass(run_opt_pass(value, transform.ForwardFoldScaleAxis()), transform.BackwardFoldScaleAxis())
    assert same(found, value) is stays


def test_factors_of_both_sides_in_any_context() -> None:
    func = relay.Function((X,), conv(X * POSITIVE, relay.const(np.ones((4, 4, 3, 3), "float32"))) * NEGATIVE)
    assert list(relay.analysis.list_op_freqs(transform.FoldScaleAxis()(tvm.IRModule.from_expr(func)))) == ["nn.conv2d"]


def test_sums_lose_one_factor_alone() -> None:
    """Of two operands that both might lack a factor, one loses it: a factor that nothing takes would be lost."""
    a, b = relay.var("a", shape=(1, 4, 1, 1)), relay.var("c", shape=(1, 4, 1, 1))
    func = relay.Function((a, b, W), conv(a * POSITIVE + b * factors(4, 1, 1)))
    made = transform.ForwardFoldScaleAxis()(tvm.IRModule.from_expr(func))
    data = [
        np.random.default_rng(n).standard_normal(one.type_annotation.concrete_shape).astype("float32") for n, one in enumerate(func.params)
    ]
    np.testing.assert_allclose(Evaluator(to_graph(made))("main", *data), Evaluator(to_graph(func))("main", *data), 1e-5, 1e-5)


def test_borders_that_stay() -> None:
    pad = [[0, 0], [0, 0], [1, 1], [1, 1]]
    least = float(np.finfo("float32").min)
    for folds, value in (
        (True, relay.nn.max_pool2d(relay.nn.pad(X, pad, least), (2, 2))),
        (False, relay.nn.max_pool2d(relay.nn.pad(X, pad, least), (1, 1))),  # windows that see borders alone would be minus infinity
        (True, relay.nn.max_pool2d(relay.nn.pad(X, pad, -np.inf), (1, 1))),
        (False, relay.nn.avg_pool2d(relay.nn.pad(X, pad), (3, 3), padding=(1, 1))),
        (False, conv(relay.nn.pad(X, [[0, 0], [1, 1], [0, 0], [0, 0]]), relay.var("v", shape=(4, 6, 3, 3)))),
        (False, conv(relay.nn.pad(X, pad, pad_mode="edge"))),
    ):
        found = run_opt_pass(value, transform.FoldExplicitPadding())
        assert ("nn.pad" in relay.analysis.list_op_freqs(tvm.IRModule.from_expr(found))) is not folds


def test_branches_as_one() -> None:
    one, other = relay.nn.relu(conv(X) + factors(4, 1, 1)), relay.nn.relu(conv(X) + factors(4, 1, 1, sign=-1))
    combine: Callable[[Any], Any] = lambda value: run_opt_pass(value, transform.CombineParallelConv2D(2))  # noqa: E731
    count: Callable[[Any], Any] = lambda value: relay.analysis.list_op_freqs(tvm.IRModule.from_expr(value))  # noqa: E731
    made = count(combine(relay.Tuple([one, other])))
    assert (made["nn.conv2d"], made["add"], made["nn.relu"], made["strided_slice"]) == (1, 1, 1, 2)
    assert same(run_opt_pass(one * other, transform.CombineParallelConv2D()), one * other)  # three are asked for
    # A branch that needs another one's result comes behind it.
    after = relay.nn.conv2d(X, relay.reshape(relay.strided_slice(conv(X), [0, 0, 0, 0], [1, 4, 6, 6]), (4, 4, 3, 3)), padding=(1, 1))
    assert same(combine(after + conv(X)), after + conv(X))


def test_layouts_by_wish_and_by_rules_of_programs() -> None:
    pooled = relay.nn.max_pool2d(relay.abs(conv(X)), (2, 2))
    convert: Callable[..., Any] = lambda value, **asked: run_opt_pass(value, transform.ConvertLayout(asked))  # noqa: E731
    last = {"nn.conv2d": ["NHWC", "default"]}
    assert str(convert(pooled, **last)).count("layout_transform(") == 3
    assert 'layout="NHWC"' not in str(convert(pooled, **last, **{"nn.max_pool2d": ["NCHW"]})).rpartition("max_pool2d")[2]
    seen: list[Any] = []

    def rule(attrs: Any, new: Any, old: Any, types: Any) -> Any:
        seen.append((new[0].name, old[0].name, tuple(types[0].shape)))
        return InferCorrectLayoutOutput(old, [old[0]], attrs)  # as it was

    with TempOpAttr("abs", "FInferCorrectLayout", rule):
        assert str(convert(pooled, **last)).count("layout_transform(") == 3
        assert "nn.max_pool2d(%4, pool_size=[2, 2])" in str(convert(pooled, **last)) and seen[0] == ("NHWC", "NCHW", (2, 4, 6, 6))
    with transform.LayoutConfig(skip_layers=[0]):
        assert same(convert(pooled, **last), pooled)
    with pytest.raises(DeclarationError, match=r"ConvertLayout: .*data of CNHW take a layout of weights"):
        convert(pooled, **{"nn.conv2d": ["CNHW", "default"]})


def test_kernels_as_the_context_and_the_target_allow() -> None:
    table = relay.const(np.arange(4))
    value = relay.take(relay.concatenate([X, X], 1), table, 1)
    for link in (False, True):
        with tvm.transform.PassContext(config={"relay.FuseOps.link_params": link}):
            assert len(run_opt_pass(value, transform.FuseOps(2)).op.params) == 2 - link
    total: Any = relay.var("t", shape=(3,))
    for n in range(20):
        total = total + relay.var(f"t{n}", shape=(3,))
    func = relay.Function(tuple(relay.analysis.free_vars(total)), total)
    for limit, target in ((0, "llvm"), (8, {"kind": "opencl", "max_function_args": 8})):
        with tvm.target.Target(target):
            found = run_opt_pass(func, transform.FuseOps(2))
        sizes: list[int] = []
        nodes: list[Any] = []
        relay.analysis.post_order_visit(found, nodes.append)
        sizes += [len(node.params) for node in nodes if "Primitive" in getattr(node, "attrs", ())]
        assert (len(sizes) == 1) is (limit == 0) and (limit == 0 or max(sizes) + 1 <= limit)


def test_precisions_by_rules_of_programs() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    value = relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w)))
    made = run_opt_pass(value, transform.ToMixedPrecision())
    # The product has sums of float32, which softmax reads behind a relu of half precision.
    assert [str(one.op) for one in (made, made.args[0], made.args[0].args[0], made.args[0].args[0].args[0])] == [
        "nn.softmax", "cast", "nn.relu", "cast",
    ]  # fmt: skip
    assert made.args[0].args[0].args[0].args[0].attrs.out_dtype == "float32"
    asked: list[str] = []

    def rule(call: Any, dtype: str) -> list[Any]:
        asked.append(dtype)
        return [2, dtype, dtype] if len(asked) == 1 else [0, dtype, dtype]

    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", rule):
        assert same(run_opt_pass(value, transform.ToMixedPrecision("bfloat16")), value)
        half = run_opt_pass(relay.nn.dense(x, w), transform.ToMixedPrecision())
    assert (half.attrs.out_dtype, asked) == ("float16", ["bfloat16", "float16"])
    with pytest.raises(DeclarationError, match=r'ToMixedPrecision: the type is "float16" or "bfloat16", not \'float64\''):
        transform.ToMixedPrecision("float64")


def test_marks_of_lists_and_simulated_integers() -> None:
    marked = byoc.WhiteListAnnotator(["nn.relu"], "mine").visit(relay.exp(relay.nn.relu(X)))
    assert [str(one.op) for one in (marked.args[0], marked.args[0].args[0])] == ["annotation.compiler_end", "nn.relu"]
    once = _annotate.attach_simulated_quantize(X, _annotate.QAnnotateKind.INPUT)
    assert _annotate.attach_simulated_quantize(once, _annotate.QAnnotateKind.INPUT) is once
    assert [one.name_hint for one in relay.analysis.free_vars(once)] == ["x", "dom_scale", "clip_min", "clip_max"]


def test_types_of_weights_in_blocks_and_lists_of_several_lengths() -> None:
    y = relay.nn.conv2d(
        relay.var("y", shape=(1, 2, 6, 6, 4)), relay.var("v"), channels=16, kernel_size=3, data_layout="NCHW4c", kernel_layout="OIHW4i2o"
    )
    typed = run_opt_pass(relay.Function(tuple(relay.analysis.free_vars(y)), y), transform.InferType())
    assert typed.params[1].checked_type.concrete_shape == (8, 2, 3, 3, 4, 2)
    cut = relay.strided_slice(X, [1], [2, 3, -1], [1, 2, 2, 5])
    assert cut.checked_type.concrete_shape == (1, 2, 3, 2)
    folded = run_opt_pass(relay.Let(v := relay.var("v"), relay.const(2.0), v + v * X), transform.FoldConstant())
    assert "let" not in str(folded)


def test_functions_that_are_called_where_they_stand_have_types() -> None:
    p, q, x = relay.var("p"), relay.var("q"), relay.var("x", shape=(3,))
    func = relay.Function((x,), relay.exp(relay.Call(relay.Function((p, q), p + q), [x, relay.const(1.0)])))
    typed = run_opt_pass(func, transform.InferType())
    assert [str(one.type_annotation) for one in typed.body.args[0].op.params] == ["Tensor[(3), float32]", "float32"]
    data = np.arange(3, dtype="float32")
    np.testing.assert_allclose(Evaluator(to_graph(func))("main", data), np.exp(data + 1), 1e-6)
