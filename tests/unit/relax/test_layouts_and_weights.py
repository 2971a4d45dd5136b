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
from tensorexpr.script import from_source
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


def test_layouts_that_cannot_be_asked_for() -> None:
    for name, layouts, said in (
        ("nn.add", ["NHWC"], r"can be asked for, not of relax\.nn\.add"),
        ("nn.conv2d", ["NCDHW"], r"nn\.conv2d: layouts are orders of NCHW"),
        ("nn.conv2d", ["N2nHWC4c", "OIHW4o"], "with blocks of C, not N2nHWC4c"),
        ("nn.conv2d", ["NCHW4c", "OIHW4c"], "orders of OIHW, with blocks of IO"),
        ("nn.conv2d", [], "takes layouts of data, weights and result"),
        ("image.resize2d", ["NHWC", "OIHW"], "takes layouts of data"),
    ):
        with pytest.raises(DeclarationError, match=said):
            transform.ConvertLayout({f"relax.{name}": layouts})
    blocked = graph(lambda x, w: op.nn.conv2d(x, w, data_layout="NCHW4c", kernel_layout="OIHW4o"), (1, 2, 8, 8, 4), (1, 8, 3, 3, 4))
    with pytest.raises(DeclarationError, match="NHWC is no layout of the axes NCHW4c"):
        transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(blocked)


BLOCKS = {"relax.nn.conv2d": ["NCHW4c", "OIHW4i4o"]}


def test_blocks_of_channels() -> None:
    def make(x: Any) -> Any:
        stem = op.nn.relu(op.nn.conv2d(x, weights(8, 3, 3, 3), padding=1))  # of 3 channels, which fill no block
        y = op.nn.relu(op.nn.conv2d(stem, weights(8, 8, 3, 3), padding=1) + weights(1, 8, 1, 1))
        y = op.nn.max_pool2d(op.nn.pad(y, (0, 0, 0, 0, 0, 1, 1, 0)), (2, 2), (2, 2))
        z = op.nn.conv2d(op.concat([y, y], 1), weights(8, 16, 1, 1)) + y
        return op.mean(op.image.resize2d(z, (8, 8)) * weights(8, 8, 8), (2, 3))

    mod = graph(make, (1, 3, 8, 8))
    made = checked(mod, transform.ConvertLayout(BLOCKS), 1e-4)
    # Of weights, one in front of the first convolution that can have blocks and one behind the mean, and of what is multiplied.
    kinds = {b.value.attrs["data_layout"] for b in made["main"].body.bindings() if getattr(b.value, "op", "") == "relax.nn.conv2d"}
    assert kinds == {"NCHW", "NCHW4c"} and left(made).split().count("layout_transform") == 6
    assert left(made).split()[-1] == "layout_transform"


def test_blocks_of_channels_run() -> None:
    mod = graph(lambda x: op.nn.relu(op.nn.conv2d(x, weights(8, 4, 3, 3), groups=2) + weights(1, 8, 1, 1)), (1, 8, 6, 6))
    made = transform.ConvertLayout({"relax.nn.conv2d": ["NCHW4c", "OIHW4o"]})(mod)
    x = np.random.default_rng(1).random((1, 8, 6, 6), "float32")
    found = relax.VirtualMachine(relax.build(made, "llvm"))["main"](x).numpy()
    np.testing.assert_allclose(found, Evaluator(mod)("main", x), rtol=1e-4, atol=1e-5)


def test_layout_transforms_that_cancel() -> None:
    def blocks(x: Any, **more: Any) -> Any:
        return op.layout_transform(x, lambda n, c, h, w: (n, c // 4, h, w, c % 4), **more)

    def plain(x: Any) -> Any:
        return op.layout_transform(x, lambda n, c, h, w, b: (n, c * 4 + b, h, w))

    for make, shape, wanted in (
        (lambda x: op.exp(plain(blocks(x))), (1, 8, 2, 3), "exp"),
        (lambda x: op.exp(plain(blocks(x))), (1, 6, 2, 3), "layout_transform exp layout_transform"),  # what is padded is longer afterwards
        (lambda x: blocks(op.exp(plain(x))), (1, 2, 2, 3, 4), "exp"),
        (lambda x: op.permute_dims(plain(x), (0, 2, 3, 1)), (1, 2, 2, 3, 4), "layout_transform"),
        (lambda x: blocks(op.permute_dims(x, (0, 3, 1, 2))), (1, 2, 3, 8), "layout_transform"),
        (lambda x: blocks(op.permute_dims(x, (0, 3, 1, 2)), pad_value=2.0), (1, 2, 3, 6), "permute_dims layout_transform"),
        (lambda x: op.exp(plain(x)), (1, 2, 2, 3, 3), "layout_transform exp"),  # with gaps
        (lambda x: op.sum(plain(x), 1, keepdims=True), (1, 2, 2, 3, 4), "layout_transform sum"),
        (lambda x: op.sum(plain(x), (1, 3)), (1, 2, 2, 3, 4), "sum"),
    ):
        assert left(checked(graph(make, shape), transform.OptimizeLayoutTransform(), 1e-5)) == wanted


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
    again: Any = transform.LiftTransformParams(shared)(made)
    assert again.script() == made.script()
    with pytest.raises(DeclarationError, match="symbols that no weight determines"):
        transform.LiftTransformParams()(with_weights(Symbol("n", "int64") * 2))


def test_weights_of_open_sizes_are_transformed() -> None:
    made: Any = transform.LiftTransformParams()(with_weights(Symbol("n", "int64")))
    assert left(made) == "matmul add"
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype("float32") for shape in ((2, 5), (3, 5), (3,)))
    weights = Evaluator(made)("main_transform_params", (w, b))
    np.testing.assert_allclose(
        Evaluator(made)("main", x, *weights), Evaluator(with_weights(Symbol("n", "int64")))("main", x, w, b), rtol=1e-6
    )
    machine: Any = relax.VirtualMachine(relax.build(made))
    np.testing.assert_allclose(
        machine["main"](x, *machine["main_transform_params"]((w, b))).numpy(), x @ (w.T * 2) + b, rtol=1e-4, atol=1e-5
    )


def test_functions_share_the_transforms_that_all_of_them_have() -> None:
    """A weight of which they make different things is passed as it is; what stands behind a stop stays, what reads nothing is copied."""
    shapes = ((2, 4), (3, 4), (3, 4))
    bb = BlockBuilder()
    for name in ("main", "again"):
        x, w, v = (Var(name, TensorStructInfo(shape)) for name, shape in zip("xwv", shapes, strict=True))
        with bb.function(name, [x, w, v], {"num_input": 1}):
            with bb.dataflow():
                turned = bb.emit(op.permute_dims(v))
                turned = bb.emit(turned + bb.emit(op.ones((4, 3), "float32")))
                other = bb.emit(op.permute_dims(w * 2.0) if name == "main" else op.permute_dims(w) + 1.0)
                stopped = bb.emit(op.builtin.stop_lift_params(turned))
                out = bb.emit_output(op.matmul(x, other) + op.matmul(x, stopped * 3.0))
            bb.emit_func_output(out)
    mod = bb.get()
    made: Any = transform.LiftTransformParams(["main", "again"])(mod)
    assert sorted(var.name_hint for var in made.get_global_vars()) == ["again", "main", "transform_params"]
    assert [param.struct_info.extents for param in made["again"].params] == [(2, 4), (3, 4), (4, 3)]
    assert "stop_lift_params" not in made.script()
    arrays = [np.random.default_rng(n).standard_normal(shape).astype("float32") for n, shape in enumerate(shapes)]
    weights = Evaluator(made)("transform_params", tuple(arrays[1:]))
    for name in ("main", "again"):
        np.testing.assert_allclose(Evaluator(made)(name, arrays[0], *weights), Evaluator(mod)(name, *arrays), rtol=1e-5)
        one = relax.transform.LiftTransformParams()(mod)
        own = Evaluator(one)(f"{name}_transform_params", tuple(arrays[1:]))
        np.testing.assert_allclose(Evaluator(one)(name, arrays[0], *own), Evaluator(mod)(name, *arrays), rtol=1e-5)
    with pytest.raises(DeclarationError, match="again has other weights than main"):
        wider = with_weights()
        wider.update_func("again", bb.get()["again"])
        transform.LiftTransformParams(True)(wider)


def test_groups_by_pattern() -> None:
    product = is_op("relax.matmul")(wildcard(), wildcard())
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(product, wildcard()))
    mod = graph(dense, *SHAPES)
    made: Any = checked(mod, transform.FuseOpsByPattern([("mine.dense", pattern)]))
    func = made["fused_relax_matmul_relax_add_relax_nn_relu"]
    assert (dict(func.attrs) == {"Composite": "mine.dense", "Primitive": 1} and left(made) == "<unknown>") or "exp" in left(made)
    wrapped: Any = checked(mod, transform.FuseOpsByPattern([("mine.dense", pattern)], annotate_codegen=True))
    assert wrapped["fused_relax_matmul_relax_add_relax_nn_relu_mine"].attrs["Codegen"] == "mine"
    ex = relax.build(made)
    assert "fused_relax_matmul_relax_add_relax_nn_relu" in ex.origins
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
        assert len(made["fused_relax_matmul"].params) == count


REWRITTEN = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(X: T.Buffer((6, 4), "float32"), W: T.Buffer((4, 8), "float32"), V: T.Buffer((8,), "float32"), Out: T.Buffer((6, 8), "float32")):
        T.func_attr({"layout_free_buffers": [1, 2]})
        P = T.alloc_buffer((2, 4, 4))
        Q = T.alloc_buffer((2, 4))
        for i, j in T.grid(4, 8):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                P[vj // 4, vi, vj % 4] = W[vi, vj]
        for j in range(8):
            with T.block("Q"):
                vj = T.axis.spatial(8, j)
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                Q[vj // 4, vj % 4] = V[vj]
        for i, j, k in T.grid(6, 8, 4):
            with T.block("Out"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Out[vi, vj] = Q[vj // 4, vj % 4]
                Out[vi, vj] = Out[vi, vj] + X[vi, vk] * P[vj // 4, vk, vj % 4]

    @R.function
    def main(x: R.Tensor((6, 4), "float32"), w: R.Tensor((4, 8), "float32"), v: R.Tensor((8,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            out = R.call_tir(Module.f, (x, w, v), out_sinfo=R.Tensor((6, 8), "float32"))
            R.output(out)
        return out
"""


def test_rewritten_layouts_become_functions_of_their_own() -> None:
    mod: Any = from_source(REWRITTEN)
    made: Any = checked(mod, transform.SplitLayoutRewritePreproc())
    assert sorted(var.name_hint for var in made.get_global_vars()) == ["f_prepacked", "f_weight_prepack", "main"]
    assert "layout_rewrite_preproc" not in made.script() and not made["f_prepacked"].attrs
    assert [tuple(buffer.shape) for buffer in made["f_prepacked"].buffer_map.values()] == [(6, 4), (2, 4, 4), (2, 4), (6, 8)]
    # So they run once, before the first call.
    lifted: Any = transform.LiftTransformParams()(made)
    assert left(lifted) == "call_tir" and "f_weight_prepack" in lifted["main_transform_params"].script()
    args = [np.random.default_rng(n).standard_normal(shape).astype("float32") for n, shape in enumerate(((6, 4), (4, 8), (8,)))]
    found = relax.VirtualMachine(relax.build(made, progress=False))["main"](*args).numpy()
    np.testing.assert_allclose(found, args[0] @ args[1] + args[2], rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ("X[vi, vk] * P", "(X[vi, vk] + W[0, 0]) * P"),  # the rest reads the weight as it was
        ("= V[vj]", "= V[vj] * W[0, 0]"),  # a block that reads two arguments
        ('T.block_attr({"meta_schedule.layout_rewrite_preproc": True})', 'T.block_attr({"other": True})'),
    ],
)
def test_functions_whose_layouts_cannot_be_taken_out_stay(given: str, other: str) -> None:
    assert given in REWRITTEN
    mod: Any = from_source(REWRITTEN.replace(given, other))
    assert transform.SplitLayoutRewritePreproc()(mod) is mod


def test_a_function_that_others_may_call_stays_beside_its_parts() -> None:
    mod: Any = from_source(REWRITTEN.replace("@T.prim_func(private=True)", "@T.prim_func"))
    assert "f" in transform.SplitLayoutRewritePreproc()(mod)


def test_images_are_resized_in_the_layout_that_is_asked_for() -> None:
    """What moves transposes puts a resize in any layout; here that would go back and forth for ever."""
    mod = graph(lambda x: op.nn.conv2d(op.image.resize2d(x, (12, 12)), weights(4, 3, 3, 3)), (1, 3, 6, 6))
    made = checked(mod, transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"], "relax.image.resize2d": ["NHWC"]}), 1e-4)
    assert left(made) == "permute_dims image.resize2d permute_dims conv2d permute_dims"
