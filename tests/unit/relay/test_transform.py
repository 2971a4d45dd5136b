"""Passes and analyses by Relay's names: what they make, and that it means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError, PassError, TypeMismatchError
from tensorexpr.ir import structural_equal
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import analysis, transform
from tensorexpr.relay.to_graph import to_graph

X = np.random.default_rng(0).standard_normal((1, 2, 6, 6)).astype("float32")
W = np.random.default_rng(1).standard_normal((4, 2, 3, 3)).astype("float32")


def network() -> tvm.IRModule:
    x = relay.var("x", shape=X.shape)
    made = relay.nn.conv2d(x, relay.const(W), padding=(1, 1))
    ones = [relay.const(np.linspace(0.5, 2, 4).astype("float32") + n) for n in range(4)]
    made = relay.nn.dropout(relay.nn.batch_norm(made, *ones)[0])
    made = relay.nn.relu(relay.nn.bias_add(made, relay.const(np.ones(4, "float32")) * relay.const(2.0)))
    v = relay.var("v")
    return tvm.IRModule.from_expr(
        relay.Function((x,), relay.Let(v, made, relay.nn.global_avg_pool2d(v + relay.exp(relay.exp(v) * relay.const(0.0)))))
    )


def meaning(mod: tvm.IRModule) -> Any:
    return Evaluator(to_graph(mod))("main", X)


PASSES = {
    "InferType": transform.InferType(),
    "FoldConstant": transform.FoldConstant(),
    "SimplifyInference": transform.SimplifyInference(),
    "CanonicalizeOps": transform.CanonicalizeOps(),
    "EliminateCommonSubexpr": transform.EliminateCommonSubexpr(),
    "DeadCodeElimination": transform.DeadCodeElimination(inline_once=True),
    "ToANormalForm": transform.ToANormalForm(),
    "ToGraphNormalForm": transform.ToGraphNormalForm(),
    "FastMath": transform.FastMath(),
    "FoldScaleAxis": transform.Sequential([transform.SimplifyInference(), transform.FoldConstant(), transform.FoldScaleAxis()]),
    "SimplifyExpr": transform.SimplifyExpr(),
    "ConvertLayout": transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
    "FuseOps": transform.FuseOps(),
    "RemoveUnusedFunctions": transform.RemoveUnusedFunctions(),
    "Legalize": transform.Legalize(),
    "AlterOpLayout": transform.AlterOpLayout(),
    "CombineParallelDense": transform.CombineParallelDense(),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_keeps_the_meaning(name: str) -> None:
    mod = network()
    with tvm.transform.PassContext(opt_level=4):
        made = PASSES[name](mod)
    np.testing.assert_allclose(meaning(made), meaning(mod), 1e-3, 1e-4)
    if all(isinstance(func, relay.Function) for _, func in made.functions_items()) and name != "FuseOps":
        assert structural_equal(relay.fromtext(made.astext()), made)


def text_of(one: Any) -> str:
    return str(one(network()))


def test_what_passes_make() -> None:
    with tvm.transform.PassContext(opt_level=4):
        assert "-> Tensor[(1, 4, 1, 1), float32]" in text_of(transform.InferType())
        assert "%v: Tensor[(1, 4, 6, 6), float32]" in text_of(transform.InferType())
        assert "multiply(meta" in text_of(transform.Sequential([])) and "multiply(meta" not in text_of(transform.FoldConstant())
        simple = text_of(transform.SimplifyInference())
        assert "batch_norm" not in simple and "dropout" not in simple and "= sqrt(" in simple and "= divide(1f, " in simple
        assert "bias_add" not in text_of(transform.CanonicalizeOps())
        assert "fast_exp" in text_of(transform.FastMath())
        assert "let" not in text_of(transform.ToGraphNormalForm()) and text_of(transform.ToANormalForm()).count("let") > 8
        assert 'data_layout="NHWC"' in text_of(transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))
        folded = text_of(PASSES["FoldScaleAxis"])
        assert "multiply(%0" not in folded and "nn.conv2d" in folded


def test_common_expressions_once() -> None:
    x = relay.var("x", shape=(2,))
    given = tvm.IRModule.from_expr(relay.Function((x,), relay.exp(x) + relay.exp(x)))
    # Levels choose among the passes of a sequence; one that is called runs, unless its name is forbidden.
    mod = transform.EliminateCommonSubexpr()(given)
    assert transform.Sequential([transform.EliminateCommonSubexpr()])(given) is given
    with tvm.transform.PassContext(disabled_pass=["EliminateCommonSubexpr"]):
        assert transform.EliminateCommonSubexpr()(given) is given
    assert analysis.list_op_freqs(mod) == {"exp": 1, "add": 1}


def test_passes_and_rules_of_users() -> None:
    @transform.function_pass(opt_level=1)
    class Doubled:
        def transform_function(self, func: Any, mod: Any, ctx: Any) -> Any:
            return relay.Function(func.params, func.body + func.body)

    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function((x,), relay.nn.relu(x)))
    make: Any = Doubled
    assert "add(%0, %0)" in str(make()(mod))
    with pytest.raises(PassError, match=r"pass wrong returned Var for function 'main', not a relay.Function"):
        transform.function_pass(lambda func, mod, ctx: func.params[0], 0, "wrong")(mod)
    relay.op.register_legalize("fast_erf", lambda attrs, inputs, types: relay.erf(inputs[0]) if types[0].dtype == "float32" else None)
    assert "fast_erf" not in str(transform.Legalize()(tvm.IRModule.from_expr(relay.Call(relay.op.get("fast_erf"), (x,)))))


def test_branches_stay_branches_in_normal_form() -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(2,))
    func = relay.Function((c, x), relay.If(c, relay.exp(x) + x, relay.sqrt(x)))
    made = transform.ToANormalForm()(tvm.IRModule.from_expr(func))
    assert str(made).count("let") == 4
    run = Evaluator(to_graph(made))
    np.testing.assert_allclose(run("main", np.array(False), np.array([4, 9], "float32")), [2, 3])


def test_types_are_checked() -> None:
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(DeclarationError, match=r"relay.nn.batch_matmul|relay.add"):
        transform.InferType()(tvm.IRModule.from_expr(relay.Function((x,), x + relay.const(np.ones(4, "float32")))))


def test_analyses() -> None:
    mod = network()
    main: Any = mod["main"]
    assert [one.name_hint for one in analysis.all_vars(main)] == ["x", "v"]
    assert [one.name_hint for one in analysis.bound_vars(main)] == ["v", "x"]
    assert analysis.free_vars(main) == [] and [one.name_hint for one in analysis.free_vars(main.body)] == ["x"]
    assert analysis.get_total_mac_number(main) == 4 * 6 * 6 * 2 * 9
    assert analysis.list_op_freqs(mod)["exp"] == 2 and analysis.count_layers(main.body, ["nn.conv2d", "nn.softmax"]) == 1
    assert analysis.count_layers(main.body.value, ["nn.conv2d", "nn.relu"]) == 2
    assert analysis.all_dtypes(main) == {"float32"} and analysis.well_formed(main) and analysis.well_formed(mod)
    assert "nn.batch_norm" not in str(analysis.extract_intermdeiate_expr(mod, 0))
    seen: list[str] = []
    analysis.post_order_visit(main, lambda node: seen.append(type(node).__name__))
    assert seen[-1] == "Function" and seen.count("Var") == 2


def test_functions_that_ask_for_it_are_inlined() -> None:
    x = relay.var("x", shape=(2,))
    half, twice, loop = (relay.GlobalVar(name) for name in ("half", "twice", "loop"))
    mod: Any = tvm.IRModule()
    mod[half] = relay.Function((x,), x * relay.const(0.5)).with_attr("Inline", 1)
    y = relay.var("y", shape=(2,))
    mod[twice] = relay.Function((y,), half(half(y))).with_attr("Inline", 1)
    z = relay.var("z", shape=(2,))
    mod[loop] = relay.Function((z,), loop(z), relay.TensorType((2,))).with_attr("Inline", 1)
    w = relay.var("w", shape=(2,))
    mod["main"] = relay.Function((w,), twice(w) + half(w))
    made = transform.Inline()(mod)
    assert [var.name_hint for var in made.get_global_vars()] == ["loop", "main"] and "@" not in str(made["main"].body)
    found = relay.create_executor("vm", mod=tvm.IRModule({"main": made["main"]})).evaluate()(np.array([4, 8], "float32"))
    np.testing.assert_array_equal(found.numpy(), [3, 6])


def test_quotients_pads_and_layouts() -> None:
    x = relay.var("x", shape=(1, 3, 8, 8))
    made = transform.DivToMul()(tvm.IRModule.from_expr(relay.Function((x,), x / relay.const(4.0) + relay.const(1.0) / x)))
    assert str(made).count("multiply") == 1 and str(made).count("divide") == 1
    conv = relay.nn.conv2d(relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), relay.var("w", shape=(4, 3, 3, 3)))
    mod = tvm.IRModule.from_expr(relay.nn.max_pool2d(conv).as_function())
    assert "pad(" not in str(transform.FoldExplicitPadding()(mod))
    wanted = {"nn.conv2d": ["NHWC", "HWIO"], "qnn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]}
    assert 'kernel_layout="HWIO"' in str(transform.ConvertLayout(wanted)(mod))
    taken = relay.If(relay.const(True), relay.reshape(x, relay.shape_of(x)), x)
    assert str(transform.DynamicToStatic()(tvm.IRModule.from_expr(taken.as_function()))["main"].body).endswith("newshape=[1, 3, 8, 8])")


def test_recast_puts_casts_around_what_is_asked_for() -> None:
    x, w = relay.var("x", shape=(1, 2, 4, 4)), relay.var("w", shape=(2, 2, 1, 1))
    first = relay.nn.conv2d(x, w)
    made = relay.transform.recast(relay.Function((x, w), relay.nn.conv2d(first, w)), "int8", "int32", skip_layers=[0])
    text = str(made)
    assert text.count('dtype="int8"') == 2 and text.count('out_dtype="int32"') == 1 and text.rstrip().endswith('dtype="float32")\n}')
    assert made.checked_type.ret_type.dtype == "float32"
    joined = relay.transform.recast(relay.concatenate((x, x), 1), "float16", "float32", ops=["concatenate"])
    assert joined.checked_type.dtype == "float32" and joined.args[0].args[0].fields[0].op == "cast"
    with pytest.raises(TypeMismatchError, match="what returns several tensors can't be cast"):
        relay.transform.recast(relay.split(x, 2, 1).astuple(), "float16", "float32", ops=["split"])


def test_features_of_programs() -> None:
    feature, x = relay.analysis.Feature, relay.var("x", shape=(2,))
    shared = relay.add(x, x)
    assert relay.analysis.detect_feature(shared) == {feature.fVar, feature.fOp, feature.fCall}
    assert feature.fGraph in relay.analysis.detect_feature(relay.multiply(shared, shared))
    f = relay.Var("f")
    loop = relay.Let(f, relay.Function((x,), relay.If(relay.const(True), x, f(x))), f(x))
    assert {feature.fLetRec, feature.fIf, feature.fFunction} <= relay.analysis.detect_feature(tvm.IRModule.from_expr(loop))
