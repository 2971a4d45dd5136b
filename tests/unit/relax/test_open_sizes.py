"""Networks whose sizes stay open: extents that are expressions of symbols have kernels with schedules, in vectors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax, te, tir, topi
from tensorexpr.errors import ArgumentError, DeclarationError
from tensorexpr.lower import lower
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, const, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.tensor_function import tensor_function
from tensorexpr.relax.transform.check_extents import CheckExtents
from tensorexpr.runtime.build import build
from tensorexpr.spaces.default import default_schedule

H, W = tir.Var("h", "int64"), tir.Var("w", "int64")


def weights(*shape: int) -> Any:
    rng = np.random.default_rng(sum(shape))
    return const((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))


def convnet() -> Any:
    """Two strided convolutions with what is elementwise behind them, a residual, a pool, and a mean of all pixels."""
    bb, x = BlockBuilder(), Var("x", TensorStructInfo((1, 3, H, W), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.relu(op.nn.conv2d(x, weights(8, 3, 3, 3), 2, 1) + weights(1, 8, 1, 1)))
            z = bb.emit(op.nn.silu(op.nn.conv2d(y, weights(12, 8, 3, 3), 2, 1) + weights(1, 12, 1, 1)))
            p = bb.emit(op.nn.max_pool2d(z, 3, 1, 1) + z)
            out = bb.emit_output(p + op.mean(p, [2, 3], True))
        bb.emit_func_output(out)
    return bb.get()


def test_a_network_of_open_sizes_has_schedules() -> None:
    mod = convnet()
    made = relax.build(mod, "llvm")
    said = made.explain()
    assert "schedule: as given" not in said
    # The epilogue of the second convolution is in its kernel, though nobody can tell h from its (h + 1) // 2 rows.
    assert "fused_conv2d1_add1_silu" in said
    machine = relax.VirtualMachine(made)
    for size in ((33, 47), (5, 3), (64, 16), (1, 1)):
        x = np.random.default_rng(1).standard_normal((1, 3, *size)).astype("float32")
        np.testing.assert_allclose(machine["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-4, atol=1e-5)


def test_sizes_of_its_own_stand_for_expressions() -> None:
    half, x = (H + 1) // 2, TensorStructInfo(((H + 1) // 2, 4), "float32")
    found = tensor_function(lambda a, b: topi.add(a, b), [Var("a", x), Var("b", x)], {})
    assert found.symbols == ()
    assert isinstance(found.result, TensorStructInfo) and found.result.extents is not None
    assert found.result.extents[0] is half
    # Both operands have one size, and a result that nobody computes of it: h itself is an argument, unless the result tells it.
    for extent, symbols in ((H * 2, (H,)), (H, ())):
        other = tensor_function(
            lambda a, shape: topi.full(shape, "float32", 1.0) + topi.sum(a), [Var("a", x), relax.ShapeExpr((extent,))], {}
        )
        assert other.symbols == symbols


@pytest.mark.parametrize("shape", [(1, 32, H, W), (H, 3, W), (2, H, W), (H, W), (W,)])
@pytest.mark.parametrize("axes", [None, (-1,), (0,)])
def test_reductions_of_open_sizes_have_vectors(shape: Any, axes: Any) -> None:
    x = te.placeholder(shape, "float32", "x")
    for reduce in (topi.sum, topi.max):
        y = reduce(x, axes)
        s = default_schedule([x, y], "llvm -mcpu=x86-64-v3")
        assert "T.Ramp(" in str(lower(s, [x, y])["main"])
        function = build(default_schedule([x, y]), [x, y])
        for sizes in ({H: 5, W: 7}, {H: 1, W: 1}, {H: 19, W: 40}):
            given = np.random.default_rng(2).standard_normal([sizes.get(n, n) for n in shape]).astype("float32")
            wanted: Any = (np.sum if reduce is topi.sum else np.max)(given, axis=axes)
            found = np.empty(wanted.shape, "float32")
            function(given, found)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_products_of_open_sizes_have_register_tiles() -> None:
    """Any number of rows, columns and terms: a batch of sequences through a product with weights, scores, their softmax, and values."""
    bb, b = BlockBuilder(), tir.Var("b", "int64")
    x = Var("x", TensorStructInfo((b, H, 24), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.relu(op.matmul(x, weights(24, 40)) + weights(40)))
            scores = bb.emit(op.nn.softmax(op.matmul(y, op.permute_dims(y, [0, 2, 1])) * const(np.float32(0.3))))
            out = bb.emit_output(op.matmul(scores, y))
        bb.emit_func_output(out)
    mod = bb.get()
    made = relax.build(mod, "llvm")
    said = made.explain()
    assert said.count("a contraction: any number of rows") == 3, said
    machine, evaluator = relax.VirtualMachine(made), Evaluator(mod)
    for size in (1, 2, 5, 6, 7, 8, 9, 15, 16, 17, 31, 37, 48, 70):
        given = np.random.default_rng(size).standard_normal((1 + size % 3, size, 24)).astype("float32")
        np.testing.assert_allclose(machine["main"](given).numpy(), evaluator("main", given), rtol=1e-4, atol=1e-5)


def test_weights_for_any_number_of_rows_are_packed_when_the_network_is_built() -> None:
    """As for many rows, where the rows of the weight lie pages apart."""
    bb, x = BlockBuilder(), Var("x", TensorStructInfo((H, 256), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(op.matmul(x, weights(256, 1030)))
        bb.emit_func_output(out)
    mod = bb.get()
    made = relax.build(mod, "llvm")
    assert "argument 1 is packed: [ax0, ax1] -> [ax1 // " in made.explain()
    for size in (1, 7):
        given = np.random.default_rng(size).standard_normal((size, 256)).astype("float32")
        np.testing.assert_allclose(relax.VirtualMachine(made)["main"](given).numpy(), Evaluator(mod)("main", given), rtol=1e-3, atol=1e-5)


def test_products_whose_ends_depend_on_rows_keep_their_loops() -> None:
    """A triangle is no product of open sizes: its tiles would add terms that a row doesn't have."""
    n = te.var("n")
    a, c = te.placeholder((n, n), "float32", "a"), te.placeholder((n, 16), "float32", "c")

    def element(i: Any, j: Any) -> Any:
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(a[i, k] * c[k, j], axis=k)

    product = te.compute((n, 16), element, "product")
    rng = np.random.default_rng(5)
    given, right, found = rng.random((9, 9)).astype("float32"), rng.random((9, 16)).astype("float32"), np.empty((9, 16), "float32")
    build(default_schedule([a, c, product]), [a, c, product])(given, right, found)
    np.testing.assert_allclose(found, np.tril(given) @ right, rtol=1e-5)


def test_rows_whose_lengths_a_tensor_says_keep_their_loops() -> None:
    n = te.var("n")
    x, ends = te.placeholder((n, n), "float32", "x"), te.placeholder((n,), "int32", "ends")

    def row(i: Any) -> Any:
        k = te.reduce_axis((0, ends[i]), "k")
        return te.sum(x[i, k], axis=k)

    sums = te.compute((n,), row, "sums")
    given, lengths, found = np.random.default_rng(3).random((9, 9)).astype("float32"), np.arange(9, dtype="int32"), np.empty(9, "float32")
    build(default_schedule([x, ends, sums]), [x, ends, sums])(given, lengths, found)
    np.testing.assert_allclose(found, [given[i, :i].sum() for i in range(9)], rtol=1e-5)


def test_an_onnx_network_of_open_sizes_agrees_with_its_runtime() -> None:
    onnx: Any = pytest.importorskip("onnx", reason="models of ONNX are made by it")
    runtime: Any = pytest.importorskip("onnxruntime", reason="the oracle of this test")
    from tensorexpr.frontend.onnx import from_onnx

    node: Any = onnx.helper.make_node

    def numbers(name: str, *shape: int) -> Any:
        return onnx.numpy_helper.from_array(weights(*shape).data.numpy(), name)

    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], strides=[2, 3], pads=[1, 1, 1, 1]),
        node("LeakyRelu", ["c"], ["r"]),
        node("Conv", ["r", "v"], ["d"], strides=[3, 1], pads=[1, 0, 0, 1]),
        node("GlobalAveragePool", ["d"], ["g"]),
        node("Mul", ["d", "g"], ["y"]),
    ]
    value = onnx.helper.make_tensor_value_info
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", floats, [1, 3, "h", "w"])], [value("y", floats, [1, 6, None, None])],
        [numbers("w", 8, 3, 3, 3), numbers("b", 8), numbers("v", 6, 8, 3, 3)],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    made = relax.build(from_onnx(model), "llvm")
    assert "schedule: as given" not in made.explain()
    machine, oracle = relax.VirtualMachine(made), runtime.InferenceSession(model.SerializeToString())
    for size in ((17, 31), (40, 9), (6, 64)):
        x = np.random.default_rng(4).standard_normal((1, 3, *size)).astype("float32")
        found, (wanted,) = machine["main"](x), oracle.run(None, {"x": x})
        np.testing.assert_allclose((found if hasattr(found, "numpy") else found[0]).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(DeclarationError, match="match_cast"):
        tensor_function(lambda a: a, [Var("a", TensorStructInfo(None, "float32", ndim=2))], {})


def test_rows_whose_ends_depend_on_an_open_size_are_not_kept_at_their_bound() -> None:
    """Padded rows of n + 2 elements, read by windows two apart, took 2^31 elements for each thread."""
    x = te.placeholder((2, 3, H), name="x")
    pooled = topi.nn.pool1d(x, [3], [2], [1], [1, 1], "avg", layout="NCW")
    module = lower(default_schedule([pooled]), [x, pooled])
    sizes = [extent for extents in re.findall(r"T.allocate\(\[([^]]*)\]", str(module)) for extent in re.findall(r"\d+", extents)]
    assert all(int(size) < 1 << 20 for size in sizes)


@pytest.mark.parametrize("parts", [3, 1, [2], [0, 2, 5]])
@pytest.mark.parametrize("axis", [0, -1])
def test_an_open_size_is_split(parts: Any, axis: int) -> None:
    bb, x = BlockBuilder(), Var("x", TensorStructInfo((H, W), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.split(x, parts, axis)))
    machine = relax.VirtualMachine(relax.build(bb.get()))
    for size in (6, 5, 7):
        given = np.arange(size * size, dtype="float32").reshape(size, size)
        cuts = [-(-size // parts) * n for n in range(1, parts)] if isinstance(parts, int) else parts
        for found, expected in zip(machine["main"](given), np.split(given, cuts, axis), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("operator", ["reshape", "broadcast_to"])
def test_shapes_that_are_values_are_checked_before_kernels_rely_on_them(operator: str) -> None:
    a, b = (tir.Var(name, "int64") for name in "ab")
    extents = (6, 2) if operator == "reshape" else (1, 3)
    x = relax.Var("x", relax.TensorStructInfo(extents, "float32"))
    s = relax.Var("s", relax.TensorStructInfo((2,), "int64"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, s]):
        bb.match_cast(bb.emit(relax.op.tensor_to_shape(s)), relax.ShapeStructInfo((a, b)))
        bb.emit_func_output(bb.emit(relax.op.nn.relu(bb.emit(getattr(relax.op, operator)(x, relax.ShapeExpr((a, b)))))))
    run = relax.VirtualMachine(relax.build(bb.get()))["main"]
    data = np.arange(np.prod(extents), dtype="float32").reshape(extents)
    for shape in ((4, 3), (1, 12)) if operator == "reshape" else ((4, 3), (1, 3)):
        expected = data.reshape(shape) if operator == "reshape" else np.broadcast_to(data, shape)
        np.testing.assert_array_equal(run(data, np.array(shape)).numpy(), expected)
    for shape in ((50, 50), (2, 2)):
        with pytest.raises(ArgumentError, match=operator):
            run(data, np.array(shape))


def test_an_open_axis_goes_where_it_is_1() -> None:
    a, b = tir.Var("a", "int64"), tir.Var("b", "int64")
    x = relax.Var("x", relax.TensorStructInfo((a, 3, b), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.squeeze(x, [-1])))
    run = relax.VirtualMachine(relax.build(bb.get()))["main"]
    data = np.arange(6, dtype="float32").reshape(2, 3, 1)
    np.testing.assert_array_equal(run(data).numpy(), data[..., 0])
    with pytest.raises(ArgumentError, match="squeeze"):
        run(data.reshape(1, 3, 2))


def test_shapes_that_fit_anyhow_are_not_checked() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 6), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        apart = bb.emit(relax.op.reshape(x, (n, 2, 3)))
        bb.emit_func_output(bb.emit(relax.op.broadcast_to(apart, (4, n, 2, 3))))
    assert CheckExtents()(bb.get())["main"] is bb.get()["main"]
