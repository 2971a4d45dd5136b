"""Calls in the layouts that rules of programs state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import analysis, transform
from tensorexpr.relay.testing import TempOpAttr, run_opt_pass
from tensorexpr.relay.to_graph import to_graph
from tests.effort import share_of

RULE = "FTVMAlterOpLayout"
SHAPES: dict[str, tuple[int, ...]] = {"x": (1, 8, 6, 6), "w": (8, 8, 3, 3), "b": (8,)}


def blocked(block: int, kernel: bool) -> Any:
    """A rule: data in blocks of channels, with the weights in blocks, too, or as they are."""

    def rule(attrs: Any, inputs: Any, types: Any, result: Any) -> Any:
        assert tuple(types[0].shape) and result.dtype == "float32"
        layouts = {"data_layout": f"NCHW{block}c", "kernel_layout": f"OIHW{block}i{block}o" if kernel else "OIHW"}
        make = relay.nn.contrib_conv2d_nchwc if kernel else relay.nn.conv2d
        return make(*inputs, **{**attrs, **layouts})

    return rule


def variables() -> dict[str, Any]:
    return {name: relay.var(name, shape=shape) for name, shape in SHAPES.items()}


def conv(x: Any, w: Any) -> Any:
    return relay.nn.conv2d(x, w, padding=(1, 1), channels=8, kernel_size=(3, 3))


STEPS: dict[str, Any] = {
    "conv": lambda v, y: conv(y, v["w"]),
    "relu": lambda v, y: relay.nn.relu(y),
    "bias": lambda v, y: relay.nn.bias_add(y, v["b"]),
    "twice": lambda v, y: y + y,
    "number": lambda v, y: y * relay.const(0.5),
    "residual": lambda v, y: conv(y, v["w"]) + y,
    "pool": lambda v, y: relay.nn.max_pool2d(y, (3, 3), padding=(1, 1)),
    "mean": lambda v, y: y - relay.nn.global_avg_pool2d(y),
    "concat": lambda v, y: relay.strided_slice(relay.concatenate([conv(y, v["w"]), y], 1), [4], [12], axes=[1]),
    "softmax": lambda v, y: relay.nn.softmax(y, 1),
    "columns": lambda v, y: y * relay.const(np.arange(6, dtype="float32")),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=5), st.sampled_from([2, 4]), st.booleans())
@settings(max_examples=share_of(25), deadline=None)
def test_rules_keep_the_meaning(steps: list[str], block: int, kernel: bool) -> None:
    v = variables()
    y = conv(v["x"], v["w"])
    for step in steps:
        y = STEPS[step](v, y)
    func = relay.Function(tuple(v.values()), y)
    with TempOpAttr("nn.conv2d", RULE, blocked(block, kernel)):
        made = run_opt_pass(func, transform.AlterOpLayout())
    assert f"NCHW{block}c" in str(made)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-0.3, 0.3, shape).astype("float32") for shape in SHAPES.values()]
    one, other = (Evaluator(to_graph(each))("main", *arrays) for each in (func, made))
    np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_values_stay_in_their_layout() -> None:
    v = variables()
    y = relay.nn.max_pool2d(relay.nn.relu(relay.nn.bias_add(conv(v["x"], v["w"]), v["b"])), (2, 2), (2, 2))
    func = relay.Function(tuple(v.values()), conv(y, v["w"]) + relay.const(1.0))
    with TempOpAttr("nn.conv2d", RULE, blocked(4, False)):
        made = run_opt_pass(func, transform.AlterOpLayout())
    # Of the data, of the bias, and of the result.
    assert analysis.list_op_freqs(made)["layout_transform"] == 3
    assert RULE not in tvm.ir.Op.get("nn.conv2d").name and tvm.ir.Op.get("nn.conv2d").get_attr(RULE) is None


def test_a_build_follows_rules_from_level_3_on() -> None:
    seen = []

    def rule(attrs: Any, inputs: Any, types: Any, result: Any) -> None:
        seen.append(len(inputs))

    v = variables()
    func = relay.Function((v["x"], v["w"]), relay.nn.relu(conv(v["x"], v["w"])))
    with TempOpAttr("nn.conv2d", RULE, rule):
        for level, count in ((2, 0), (3, 1)):
            with tvm.transform.PassContext(opt_level=level):
                relay.build_module.bound_graph(func, None)
            assert len(seen) == count


def test_other_results_of_rules() -> None:
    x = relay.var("x", shape=(2, 3))
    func = relay.Function((x,), relay.exp(x))
    with TempOpAttr("exp", RULE, lambda attrs, inputs, types, result: relay.multiply(inputs[0], inputs[0])):
        assert "multiply" in str(run_opt_pass(func, transform.AlterOpLayout()))
    v = variables()
    wrong = relay.Function((v["x"], v["w"]), relay.nn.relu(conv(v["x"], v["w"])))
    with (
        TempOpAttr("nn.conv2d", RULE, lambda attrs, inputs, types, result: conv(inputs[0], inputs[0])),
        pytest.raises(DeclarationError, match=r"AlterOpLayout: what a rule of FTVMAlterOpLayout returned"),
    ):
        run_opt_pass(wrong, transform.AlterOpLayout())


@pytest.mark.parametrize(("data", "kernel"), [("NCHW8c", "OIHW8i8o"), ("NCHW4c", "OIHW16o")])
def test_blocks_of_channels_that_are_asked_for(data: str, kernel: str) -> None:
    x, w, v = (relay.var(name, shape=shape) for name, shape in (("x", (1, 16, 6, 6)), ("w", (16, 16, 3, 3)), ("v", (16, 16, 1, 1))))
    y = relay.nn.conv2d(relay.nn.max_pool2d(relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1))), (2, 2), (2, 2)), v)
    func = relay.Function((x, w, v), y)
    made = relay.transform.ConvertLayout({"nn.conv2d": [data, kernel], "nn.conv3d": ["NDHWC", "default"]})(tvm.IRModule.from_expr(func))
    # Two of weights, one in front and one behind.
    assert str(made).count("layout_transform(") == 4 and str(made).count(f'layout="{data}"') >= 3
    again = relay.transform.ConvertLayout({"nn.conv2d": [data, kernel]})(made)
    assert tvm.ir.structural_equal(made, again)
    values = [np.random.default_rng(n).random(one.type_annotation.concrete_shape, "float32") for n, one in enumerate((x, w, v))]
    np.testing.assert_allclose(Evaluator(to_graph(made))("main", *values), Evaluator(to_graph(func))("main", *values), rtol=1e-5)


def test_blocks_that_do_not_fit() -> None:
    x, w, v = (relay.var(name, shape=shape) for name, shape in (("x", (1, 8, 6, 6)), ("w", (24, 8, 3, 3)), ("v", (16, 8, 3, 3))))
    func = relay.Function((x, w), relay.nn.conv2d(x, w))
    for layouts, said in (["NCHW16c", "default"], "take a layout of weights"), (["NCHW16c", "OIHW16i16o"], "ConvertLayout: .* doesn't fit"):
        with pytest.raises(DeclarationError, match=said):
            relay.transform.ConvertLayout({"nn.conv2d": layouts})(tvm.IRModule.from_expr(func))
    for weights in w, v:
        with pytest.raises(DeclarationError, match="an axis C of 8 has no blocks of 16"):
            func = relay.Function((x, weights), relay.nn.conv2d(x, weights))
            relay.transform.ConvertLayout({"nn.conv2d": ["NCHW16c", "OIHW16i16o"]})(tvm.IRModule.from_expr(func))
