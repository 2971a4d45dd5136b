"""Passes that make graphs smaller: what is left of graphs as exporters write them, and that it means the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import PassError
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.transform.rewriting import rule_pass
from tensorexpr.relax.visitor import walk
from tensorexpr.tir.expr import Var as Symbol

RNG = np.random.default_rng(3)


def weights(*shape: int) -> Any:
    return const(RNG.uniform(0.2, 1, shape).astype("float32"))


def graph(make: Callable[..., Any], *shapes: Sequence[Any], dtype: str = "float32") -> Any:
    """A module whose "main" is what `make` returns for tensors of these shapes."""
    params = [Var(f"x{n}", TensorStructInfo(shape, dtype)) for n, shape in enumerate(shapes)]
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(bb.normalize(make(*params)))
        bb.emit_func_output(out)
    return bb.get()


def left(mod: Any) -> str:
    """The operators of a function, in order."""
    values = [binding.value for binding in mod["main"].body.bindings()]
    return " ".join(str(value.op).removeprefix("relax.").removeprefix("nn.") for value in values if hasattr(value, "op"))


def checked(mod: Any, run: Any, tolerance: float = 1e-5) -> Any:
    """The module after a pass, which has to mean the same."""
    made = run(mod)
    rng = np.random.default_rng(0)
    args = []
    for param in mod["main"].params:
        info: Any = param.struct_info
        shape = [getattr(extent, "value", 3) for extent in info.extents]
        args.append((rng.uniform(-2, 2, shape) * (1 if info.dtype.startswith("float") else 10)).astype(info.dtype))
    before, after = Evaluator(mod)("main", *args), Evaluator(made)("main", *args)
    np.testing.assert_allclose(after, before, rtol=tolerance, atol=tolerance)
    assert after.dtype == before.dtype
    return made


def normalized(x: Any, channels: int, axis: int = 1) -> Any:
    vectors = [weights(channels) for _ in range(4)]
    return relax.TupleGetItem(op.nn.batch_norm(x, *vectors, axis=axis), 0)


IMAGE = (1, 4, 6, 6)


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda x: normalized(op.nn.conv2d(x, weights(6, 4, 3, 3), padding=1), 6), IMAGE, "conv2d add"),
        (lambda x: normalized(op.nn.conv2d(x, weights(6, 2, 3, 3), groups=2), 6), IMAGE, "conv2d add"),
        (lambda x: normalized(op.nn.conv2d_transpose(x, weights(4, 3, 2, 2), strides=2, groups=2), 6), IMAGE, "conv2d_transpose add"),
        (
            lambda x: normalized(op.nn.conv2d(x, weights(3, 3, 6, 5), data_layout="NHWC", kernel_layout="HWIO"), 5, 3),
            (1, 4, 4, 6),
            "conv2d add",
        ),
        (lambda x: normalized(op.matmul(x, weights(4, 3)) + weights(3), 3, 1), (2, 4), "matmul add"),
        (lambda x: op.nn.conv2d(x * weights(4, 1, 1), weights(6, 2, 3, 3), groups=2), IMAGE, "conv2d"),
        (lambda x: op.nn.conv2d_transpose(x * weights(4, 1, 1), weights(4, 3, 2, 2), groups=2), IMAGE, "conv2d_transpose"),
        (lambda x: op.matmul((x - weights(4)) / weights(4), weights(4, 3)), (2, 4), "matmul add"),
        (lambda x: op.matmul(x, weights(4, 3)) / 8.0, (2, 4), "matmul"),
        (lambda x: op.matmul(x, weights(4, 3)) * weights(2, 1), (2, 4), "matmul multiply"),  # factors of rows stay
        (lambda x: op.matmul(x, weights(4, 3)) * weights(5, 1, 1), (2, 4), "matmul multiply"),  # more than the product has
        (lambda x: ((x + 1.0) + weights(4)) * 2.0 * 3.0, (2, 4), "add multiply"),
        (lambda x: op.multiply(op.matmul(x, weights(4, 3)), op.matmul(x, weights(4, 3))), (2, 4), "matmul matmul multiply"),
        (lambda x: x / 0.0, (2, 4), "divide"),
    ],
)  # fmt: skip
def test_factors_and_summands(make: Any, shape: Any, expected: str) -> None:
    mod = graph(make, shape)
    if "0.0)" in expected or expected == "divide":
        assert left(transform.FoldScaleAxis()(mod)) == expected
        return
    assert left(checked(mod, transform.Simplify(), 1e-4)) == expected


def test_products_that_sum_in_higher_precision_keep_their_weights() -> None:
    narrow = [const(RNG.uniform(0.2, 1, shape).astype("float16")) for shape in ((4, 3), (4,))]
    mod = graph(lambda x: op.matmul(x + narrow[1], narrow[0], "float32") * 0.1, (2, 4), dtype="float16")
    assert left(checked(mod, transform.Simplify(), 1e-2)) == "add matmul multiply"


def test_shared_products_keep_their_weights() -> None:
    def make(x: Any) -> Any:
        product = op.matmul(x, weights(4, 3))
        return op.add(product * 2.0, product)

    mod = transform.CanonicalizeBindings()(graph(make, (2, 4)))
    made: Any = transform.EliminateCommonSubexpr()(mod)
    once = transform.CanonicalizeBindings()(made)
    assert left(checked(once, transform.FoldScaleAxis())) == left(once)


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda x: op.permute_dims(op.nn.relu(op.permute_dims(x, (0, 2, 3, 1))), (0, 3, 1, 2)), IMAGE, "relu"),
        (lambda x: op.permute_dims(op.permute_dims(x, (0, 2, 3, 1)) * weights(4), (0, 3, 1, 2)), IMAGE, "multiply"),
        (lambda x: op.mean(op.permute_dims(x, (0, 2, 3, 1)), (1, 2)), IMAGE, "mean"),
        (lambda x: op.sum(op.permute_dims(x, (3, 1, 2, 0)), (1,), keepdims=True), IMAGE, "sum permute_dims"),
        (lambda x: op.max(op.permute_dims(x, (3, 2, 1, 0)), (3,)), IMAGE, "max permute_dims"),
        (lambda x: op.permute_dims(op.concat([op.permute_dims(x), op.permute_dims(op.exp(x))], 1)), (2, 3), "exp concat"),
        (lambda x: op.permute_dims(op.split(op.permute_dims(x, (1, 0)), 2, 0)[1], (1, 0)), (2, 4), "split"),
        (lambda x: op.permute_dims(x, (0, 2, 3, 1)), (1, 1, 6, 6), "reshape"),
        (lambda x: op.squeeze(op.expand_dims(x, (0, 2))), (2, 3), ""),
        (lambda x: op.reshape(op.flatten(op.reshape(x, (3, 2))), (6, 1)), (2, 3), "reshape"),
        (lambda x: op.nn.relu(op.reshape(op.matmul(x, weights(4, 3)), (1, 2, 3)) + weights(3)), (2, 4), "matmul add relu reshape"),
        (lambda x: op.reshape(x, (1, 2, 3)) + weights(2, 1), (2, 3), "reshape add"),
        (lambda x: op.permute_dims(x, (1, 0)) + weights(2, 4), (4, 2), "add permute_dims"),
        (lambda x: op.broadcast_to(op.permute_dims(x, (1, 0)), (5, 2, 4)), (4, 2), "permute_dims broadcast_to"),
        (lambda x: op.nn.prelu(op.permute_dims(x, (0, 2, 1)), weights(4), 2), (3, 4, 4), "permute_dims prelu"),
        (lambda x: op.nn.prelu(op.reshape(x, (4, 4, 2)), weights(4), 1), (4, 2, 4), "reshape prelu"),
    ],
)  # fmt: skip
def test_transposes_and_reshapes(make: Any, shape: Any, expected: str) -> None:
    assert left(checked(graph(make, shape), transform.Simplify())) == expected


def channels_last(blocks: int = 2) -> Any:
    """A residual network as exporters of channels-last frameworks write it: convolutions between transposes."""

    def conv(x: Any, given: int, made: int) -> Any:
        found = op.nn.conv2d(op.permute_dims(x, (0, 3, 1, 2)), weights(made, given, 3, 3), padding=1)
        return op.permute_dims(found, (0, 2, 3, 1)) * weights(made) + weights(made)

    x = Var("x", TensorStructInfo((1, 5, 5, 3)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y: Any = bb.emit(op.nn.relu(conv(x, 3, 4)))
            for _ in range(blocks):
                z = bb.emit(op.nn.relu(conv(y, 4, 4)))
                y = bb.emit(op.nn.relu(op.add(y, conv(z, 4, 4))))
            out = bb.emit_output(op.mean(y, (1, 2)))
        bb.emit_func_output(out)
    return bb.get()


def test_channels_last_exports_have_one_transpose() -> None:
    made = checked(channels_last(), transform.Simplify(), 1e-4)
    assert Counter(left(made).split()) == {"permute_dims": 1, "conv2d": 5, "add": 7, "relu": 5, "mean": 1}


def test_transposes_that_nothing_cancels_are_not_made_more() -> None:
    x = Var("x", TensorStructInfo((3, 4)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.permute_dims(x))
            a, b = bb.emit(op.exp(y)), bb.emit(op.nn.softmax(y))
            out = bb.emit_output(op.matmul(op.permute_dims(a), b))
        bb.emit_func_output(out)
    made = checked(bb.get(), transform.OptimizeLayoutTransform())
    assert left(made) == left(bb.get())


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda x: op.nn.conv2d(op.nn.pad(x, (0, 0, 0, 0, 1, 2, 0, 1)), weights(6, 4, 3, 3), padding=1), IMAGE, "conv2d"),
        (lambda x: op.nn.conv2d(op.nn.pad(x, (0, 0, 0, 0, 1, 2, 0, 1), 1.0), weights(6, 4, 3, 3)), IMAGE, "pad conv2d"),
        (lambda x: op.nn.conv2d(op.nn.pad(x, (0, 0, 0, 1, 0, 0, 0, 0)), weights(6, 5, 3, 3)), IMAGE, "pad conv2d"),
        (lambda x: op.nn.conv2d(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1), 0, "reflect"), weights(6, 4, 3, 3)), IMAGE, "pad conv2d"),
        (lambda x: op.nn.avg_pool2d(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3)), IMAGE, "avg_pool2d"),
        (lambda x: op.nn.max_pool2d(op.nn.pad(op.nn.relu(x), (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3)), IMAGE, "relu max_pool2d"),
        (lambda x: op.nn.max_pool2d(op.nn.pad(x, (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3)), IMAGE, "pad max_pool2d"),
    ],
)  # fmt: skip
def test_borders(make: Any, shape: Any, expected: str) -> None:
    assert left(checked(graph(make, shape), transform.FoldPads(), 1e-4)) == expected


@pytest.mark.parametrize(
    ("make", "dtype", "expected"),
    [
        (lambda x: (x * 1.0 + 0.0 - 0.0) / 1.0, "float32", ""),
        (lambda x: op.add(op.zeros((1, 3), "float32"), op.multiply(op.ones((3,), "float32"), x)), "float32", ""),
        (lambda x: x + const(np.zeros((4, 2, 3), "float32")), "float32", "broadcast_to"),
        (lambda x: op.negative(op.negative(op.nn.relu(op.nn.relu(x)))), "float32", "relu"),
        (lambda x: op.astype(op.astype(x, "float64"), "float32"), "float32", ""),
        (lambda x: op.astype(op.astype(x, "int64"), "int32"), "int32", ""),
        (lambda x: op.astype(op.astype(x, "int32"), "float32"), "float32", "astype astype"),
        (lambda x: op.astype(op.astype(x, "float64"), "int32"), "int64", "astype astype"),
        (lambda x: op.concat([op.strided_slice(x, [0], [0], [2])], 1), "float32", ""),
        (lambda x: op.flip(op.strided_slice(x, [1], [-1], [-4], [-1]), 1), "float32", "strided_slice flip"),
        (lambda x: op.clip(op.clip(x, -1.0, 3.0), 0.0, 6.0), "float32", "clip"),
        (lambda x: op.clip(op.nn.relu(x), 0.0, 6.0), "float32", "clip"),
        (lambda x: op.clip(x, 0.0, float("inf")), "float32", "relu"),
        (lambda x: op.clip(op.clip(x, 2.0, 3.0), 0.0, 1.0), "float32", "clip clip"),
        (lambda x: relax.TupleGetItem(op.nn.dropout(op.broadcast_to(x, (2, 3))), 0), "float32", ""),
    ],
)  # fmt: skip
def test_identities(make: Any, dtype: str, expected: str) -> None:
    mod = graph(make, (2, 3), dtype=dtype)
    found = left(checked(mod, transform.Simplify()))
    assert found == expected or (expected == "broadcast_to" and found == "add")


TINY = np.array([0.5, 1e-41, -3e-39, 0.0, 2e-38, 0.25], "float32")


def test_weights_below_the_least_normal_number_are_zero() -> None:
    """A multiply-add that meets one takes a hundred times as long; constants elsewhere stay, as a bound under a logarithm has a purpose."""

    def make(x: Any) -> Any:
        summed = op.matmul(x, const(np.outer(TINY[::-1], TINY + 1) * np.float32(1) + TINY)) + const(TINY)
        filtered = op.nn.conv2d(op.reshape(summed, (1, 6, 2, 1)), const(np.tile(TINY, (6, 1)).reshape(6, 6, 1, 1)))
        return op.log(op.maximum(op.abs(filtered), const(np.full((6, 1, 1), 1e-41, "float32"))))

    made = checked(graph(make, (2, 6)), transform.DropSubnormals())
    values = [node.data.numpy() for node in walk(made["main"].body) if isinstance(node, relax.Constant)]
    subnormal = [one.size for one in values if ((np.abs(one) < np.finfo("float32").smallest_normal) & (one != 0)).any()]
    assert subnormal == [6]  # the bound
    assert left(made) == left(graph(make, (2, 6)))


def test_weights_of_lower_precision_keep_small_numbers() -> None:
    """Of float16 these are 6e-5 and less."""
    mod = graph(lambda x: op.matmul(x, const(np.full((6, 2), 3e-6, "float16"))), (2, 6), dtype="float16")
    assert transform.DropSubnormals()(mod)["main"] is mod["main"]


def test_products_in_another_order() -> None:
    shapes = (1, 40), (40, 1), (1, 30)
    assert left(checked(graph(lambda x, a, b: op.matmul(x, op.matmul(a, b)), *shapes), transform.AdjustMatmulOrder())) == "matmul matmul"
    low_rank = graph(lambda x, w, a, b: op.matmul(x, op.add(w, op.matmul(a, b))), (2, 4), (4, 3), (4, 1), (1, 3))
    assert left(checked(low_rank, transform.ExpandMatmulOfSum())) == "matmul matmul matmul add"
    columns = graph(lambda x, w: op.matmul(x, op.take(w, const(np.array([2, 0], "int64")), 1)), (5, 2, 4), (4, 3))
    assert left(checked(columns, transform.ReorderTakeAfterMatmul())) == "matmul take"
    joined = graph(lambda x, y: op.concat([op.permute_dims(x), op.permute_dims(y)], 1), (2, 4), (5, 4))
    assert left(checked(joined, transform.ReorderPermuteDimsAfterConcat())) == "concat permute_dims"


def test_shapes_that_are_symbols() -> None:
    n = Symbol("n", "int64")
    mod = graph(lambda x: op.reshape(op.permute_dims(op.permute_dims(x)) * 1.0, (n, 4)), (n, 4))
    assert left(checked(mod, transform.Simplify())) == ""


def test_batches_in_training() -> None:
    vectors = [weights(4) for _ in range(4)]
    mod = graph(lambda x: op.nn.batch_norm(x, *vectors, axis=1), (3, 4, 2, 2))
    x = RNG.standard_normal((3, 4, 2, 2)).astype("float32")
    found, mean, variance = Evaluator(transform.DecomposeOpsForTraining()(mod))("main", x)
    old = [vector.data.numpy() for vector in vectors]
    np.testing.assert_allclose(mean, 0.9 * old[2] + 0.1 * x.mean((0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.9 * old[3] + 0.1 * x.var((0, 2, 3)), rtol=1e-5)
    centred = (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, centred * old[0].reshape(4, 1, 1) + old[1].reshape(4, 1, 1), rtol=1e-4, atol=1e-5)


def test_rules_that_come_to_no_end_are_an_error() -> None:
    rules = {"relax.add": [lambda graph, call: relax.Call(call.op, call.args[::-1])]}
    with pytest.raises(PassError, match="don't come to an end"):
        rule_pass("turn", rules)(graph(lambda x, y: op.add(x, y), (2,), (2,)))


def heads(count: int = 3, activation: Any = None, biases: int = 3) -> Any:
    """Products of one value with several matrices."""
    x = Var("x", TensorStructInfo((2, 4)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            found = []
            for n in range(count):
                y = bb.emit(op.matmul(x, weights(4, 3 + n)))
                y = bb.emit(op.add(y, weights(3 + n))) if n < biases else y
                found.append(bb.emit(activation(y)) if activation is not None else y)
            out = bb.emit_output(op.concat(found, 1))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize(
    ("mod", "expected"),
    [
        (heads(), "concat matmul concat add split concat"),
        (heads(2, op.nn.relu), "concat matmul concat add relu split concat"),
        (heads(2, op.nn.gelu, 0), "concat matmul gelu split concat"),
        (heads(3, None, 1), "matmul add concat matmul split concat"),
        (heads(1), "matmul add concat"),
    ],
)
def test_parallel_products(mod: Any, expected: str) -> None:
    assert left(checked(mod, transform.CombineParallelMatmul())) == expected


def test_parallel_products_that_a_check_refuses() -> None:
    seen: list[Any] = []

    def check(x: Any, rights: Any, biases: Any, activations: Any) -> bool:
        seen.append((x.name_hint, len(rights), len(biases), dict(activations)))
        return False

    mod = heads(2, op.nn.silu)
    assert left(transform.CombineParallelMatmul(check)(mod)) == left(mod)
    assert seen == [("x", 2, 2, {0: "relax.nn.silu", 1: "relax.nn.silu"})]


def test_products_with_transposed_matrices() -> None:
    mod = graph(lambda x, w: op.matmul(x, op.permute_dims(w, (0, 2, 1))), (2, 3, 4), (1, 5, 4))
    made: Any = checked(mod, transform.FuseTransposeMatmul())
    assert left(made) == "call_tir" and "NT_matmul" in made
    other = graph(lambda x, w: op.matmul(x, op.permute_dims(w, (1, 0, 2))), (2, 3, 4), (4, 2, 5))
    assert left(transform.FuseTransposeMatmul()(other)) == "permute_dims matmul"


def test_polynomials_for_functions() -> None:
    mod = graph(lambda x: op.tanh(op.exp(op.erf(x))), (3, 4))
    made: Any = checked(mod, transform.FastMathTransform(), 1e-3)
    assert {"fast_exp", "fast_erf", "fast_tanh"} <= {var.name_hint for var in made.get_global_vars()}
