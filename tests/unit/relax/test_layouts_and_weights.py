"""Passes that change layouts, precision and where weights are transformed; users' own groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op, transform
from tensorexpr.relax.dpl import is_op, wildcard
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.tir.expr import Var as Symbol

from .test_simplify import checked, graph, left, weights


def dense(x: Any, w: Any, b: Any) -> Any:
    return op.exp(op.nn.relu(op.matmul(x, w) + b))


SHAPES = (2, 4), (4, 3), (3,)


@pytest.mark.parametrize("with_weights", [False, True])
def test_layouts_of_convolutions(with_weights: bool) -> None:
    def make(x: Any, *given: Any) -> Any:
        w, b = given or (weights(4, 3, 3, 3), weights(1, 4, 1, 1))
        y = op.nn.max_pool2d(op.nn.pad(op.nn.relu(op.nn.conv2d(x, w, padding=1) + b), (0, 0, 0, 0, 0, 1, 1, 0)), (2, 2), (2, 2))
        return op.nn.conv2d(y, weights(2, 4, 1, 1))

    mod = graph(make, (1, 3, 8, 8), *(((4, 3, 3, 3), (1, 4, 1, 1)) if with_weights else ()))
    made = checked(mod, transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]}), 1e-4)
    operators = left(made).split()
    assert operators.count("permute_dims") == 4
    layouts = {b.value.attrs["data_layout"] for b in made["main"].body.bindings() if getattr(b.value, "op", "") == "relax.nn.conv2d"}
    assert layouts == {"NHWC"}
    folded = transform.FoldConstant()(made)
    assert left(folded).split().count("permute_dims") == (3 if with_weights else 2)
    with pytest.raises(DeclarationError, match="no order of the axes NCHW"):
        transform.ConvertLayout({"relax.nn.conv2d": ["NCHW4c", "OIHW"]})(mod)
    with pytest.raises(DeclarationError, match=r"can be asked for, not of relax\.add"):
        transform.ConvertLayout({"relax.add": ["NHWC"]})


@pytest.mark.parametrize("out_dtype", ["float32", "float16"])
def test_mixed_precision(out_dtype: str) -> None:
    mod = graph(dense, *SHAPES)
    made = checked(mod, transform.ToMixedPrecision(out_dtype), 2e-2)
    casts = "astype astype matmul astype astype" if out_dtype == "float32" else "astype astype matmul astype"
    assert left(made) == f"{casts} add relu exp"
    assert made["main"].ret_struct_info == mod["main"].ret_struct_info
    followed = graph(lambda x, w: op.permute_dims(op.nn.relu(op.matmul(x, w) * 0.5)), *SHAPES[:2])
    assert left(checked(followed, transform.ToMixedPrecision("float16"), 2e-2)) == "astype astype matmul multiply relu permute_dims astype"


def test_parameters_of_half_precision() -> None:
    made: Any = transform.ToMixedPrecision(fp16_input_names=["x1"])(graph(dense, *SHAPES))
    assert [param.struct_info.dtype for param in made["main"].params] == ["float32", "float16", "float32"]
    assert left(made) == "astype matmul astype astype add relu exp"
    with pytest.raises(DeclarationError, match="float16"):
        transform.ToMixedPrecision("float64")


def with_weights(symbol: Any = 4) -> Any:
    params = [Var(name, TensorStructInfo(shape)) for name, shape in (("x", (2, symbol)), ("w", (3, symbol)), ("b", (3,)))]
    bb = BlockBuilder()
    for name in ("main", "again"):
        own = [Var(param.name_hint, param.struct_info) for param in params]
        with bb.function(name, own, {"num_input": 1}):
            with bb.dataflow():
                scaled = bb.emit(op.permute_dims(own[1]) * 2.0)
                out = bb.emit_output(op.add(op.matmul(own[0], scaled), own[2]))
            bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("shared", [False, True])
def test_weights_are_transformed_once(shared: bool) -> None:
    mod = with_weights()
    made: Any = transform.LiftTransformParams(shared)(mod)
    names = sorted(var.name_hint for var in made.get_global_vars())
    assert names == (
        ["again", "main", "transform_params"] if shared else ["again", "again_transform_params", "main", "main_transform_params"]
    )
    assert left(made) == "matmul add"
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype("float32") for shape in ((2, 4), (3, 4), (3,)))
    evaluate = Evaluator(made)
    found = evaluate("main", x, *evaluate("transform_params" if shared else "main_transform_params", (w, b)))
    np.testing.assert_allclose(found, Evaluator(mod)("main", x, w, b), rtol=1e-6)
    with pytest.raises(DeclarationError, match="shapes with symbols"):
        transform.LiftTransformParams()(with_weights(Symbol("n", "int64")))


def test_groups_by_pattern() -> None:
    product = is_op("relax.matmul")(wildcard(), wildcard())
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(product, wildcard()))
    mod = graph(dense, *SHAPES)
    made: Any = checked(mod, transform.FuseOpsByPattern([("mine.dense", pattern)]))
    func = made["fused_matmul_add_relu"]
    assert (dict(func.attrs) == {"Composite": "mine.dense", "Primitive": 1} and left(made) == "<unknown>") or "exp" in left(made)
    wrapped: Any = checked(mod, transform.FuseOpsByPattern([("mine.dense", pattern)], annotate_codegen=True))
    assert wrapped["fused_matmul_add_relu"].attrs["Codegen"] == "mine"
    ex = relax.build(made)
    assert "fused_matmul_add_relu" in ex.origins
    x, w, b = (np.random.default_rng(n).standard_normal(shape).astype("float32") for n, shape in enumerate(SHAPES))
    found = relax.VirtualMachine(ex)["main"](x, w, b).numpy()
    np.testing.assert_allclose(found, Evaluator(mod)("main", x, w, b), rtol=1e-4)


def test_matches_that_are_refused() -> None:
    seen: list[Any] = []
    product = is_op("relax.matmul")(wildcard(), wildcard())

    def check(context: transform.PatternCheckContext) -> bool:
        seen.append((str(context.annotated_expr["product"].op), len(context.matched_bindings)))
        return False

    mod = graph(dense, *SHAPES)
    run = transform.FuseOpsByPattern([("a", is_op("relax.add")(product, wildcard()), {"product": product}, check)])
    assert left(run(mod)) == left(mod) and seen == [("relax.matmul", 2)]
    twice = graph(lambda x, w: op.add(op.matmul(x, w), op.exp(op.matmul(x, w))), *SHAPES[:2])
    once = transform.CanonicalizeBindings()(transform.EliminateCommonSubexpr()(twice))
    kept = transform.FuseOpsByPattern([("a", is_op("relax.exp")(product))])(once)
    assert left(kept) == left(once)
    with pytest.raises(DeclarationError, match=r"\(name, pattern\)"):
        transform.FuseOpsByPattern(["a"])
    with pytest.raises(DeclarationError, match="no function 'f'"):
        transform.FuseOpsByPattern([("a", product)], entry_functions=["f"])(mod)


def test_constants_of_groups() -> None:
    w = weights(4, 3)
    mod = graph(lambda x: op.matmul(x, w), (2, 4))
    pattern = [("a", is_op("relax.matmul")(wildcard(), wildcard()))]
    for bind, count in ((True, 1), (False, 2)):
        made: Any = checked(mod, transform.FuseOpsByPattern(pattern, bind_constants=bind))
        assert len(made["fused_matmul"].params) == count
