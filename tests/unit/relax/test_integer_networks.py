"""Quantised networks as wholes: layouts, which kernels read and write bytes, and weights of integers from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.lower.context import PassContext
from tensorexpr.relax import TensorStructInfo, const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.transform.fake_quantization import constant_of
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.function import PrimFunc
from tests.effort import share_of

from .test_integer_kernels import U8, arguments, bias, dq, integers, left, module, q, weights

IMAGE = (1, 16, 9, 8)


def vector(axis: int, extent: int, zero_dtype: str, rng: Any) -> tuple[Any, Any]:
    """Scales and zeros along an axis; of the whole where there is none."""
    count = 1 if axis < 0 else extent
    return const(rng.uniform(0.02, 0.2, count).astype("float32")), const(rng.integers(0, 9, count).astype(zero_dtype))


@settings(max_examples=share_of(40), deadline=None)
@given(order=st.permutations(range(4)), axis=st.integers(-1, 3), kind=st.sampled_from(["quantize", "dequantize", "requantize"]))
def test_transposes_go_behind_scales_along_any_axis(order: Sequence[int], axis: int, kind: str) -> None:
    rng, shape = np.random.default_rng(0), (2, 3, 4, 5)
    extent = shape[order[axis]] if axis >= 0 else 1
    source = {"quantize": "float32", "dequantize": "int8", "requantize": "int32"}[kind]
    scale, zero = vector(axis, extent, "int8", rng)
    out = {"out_dtype": "float32"} if kind == "dequantize" else {}
    mod = module(lambda x: getattr(op, kind)(op.permute_dims(x, list(order)), scale, zero, axis=max(axis, 0), **out), (shape, source))
    made = transform.OptimizeLayoutTransform()(mod)
    if list(order) != sorted(order):
        assert left(made) == f"{kind} permute_dims"
    args = [rng.integers(-60, 60, shape).astype(source)]
    np.testing.assert_array_equal(Evaluator(made)("main", *args), Evaluator(mod)("main", *args))


def test_scales_of_blocks_stay_where_they_are() -> None:
    scales = const(np.ones((2, 2), "float32"))
    mod = module(lambda x: op.dequantize(op.permute_dims(x), scales, const(np.zeros((2, 2), "int8")), 1), ((6, 2), "int8"))
    assert left(transform.OptimizeLayoutTransform()(mod)) == "permute_dims dequantize"


def block(x: Any, outputs: int = 16, size: int = 3, channels: int = 16, seed: int = 1) -> Any:
    """A convolution of bytes with a bias and a ReLU, quantised."""
    w = weights(outputs, channels, size, size, axis=0, seed=seed)
    y = op.nn.conv2d(dq(x), w, 1, size // 2) + op.reshape(bias(outputs, w), (1, outputs, 1, 1))
    return q(op.nn.relu(y))


def residual(x: Any) -> Any:
    first = block(x)
    return q(op.add(dq(block(first, seed=2)), dq(first)))


def shortcut(x: Any) -> Any:
    """A sum of two convolutions, neither of which anything else reads."""
    return q(op.add(dq(block(x, 32, seed=3)), dq(block(block(x), 32, seed=4))))


def windows(x: Any) -> Any:
    """Each channel by itself, which is computed in floats, between convolutions of bytes."""
    w = weights(16, 1, 3, 3, axis=0, seed=5)
    return block(q(op.nn.relu(op.nn.conv2d(dq(block(x)), w, 1, 1, groups=16))), seed=6)


def pooled(x: Any) -> Any:
    return block(op.concat([q(op.nn.max_pool2d(dq(block(x)), 3, 1, 1)), block(x, seed=7)], 1), channels=32)


NETWORKS: dict[str, Callable[[Any], Any]] = {"residual": residual, "shortcut": shortcut, "windows": windows, "pooled": pooled}


def kernels(mod: Any) -> dict[str, tuple[str, ...]]:
    """The dtypes of the tensors of four axes and more than one element along each but the first that each kernel takes, result included."""
    found = {}
    for var, func in mod.functions_items():
        if isinstance(func, PrimFunc):
            shapes = [(buffer.dtype, [as_int(extent) or 0 for extent in buffer.shape]) for buffer in func.buffer_map.values()]
            found[var.name_hint] = tuple(dtype for dtype, shape in shapes if len(shape) == 4 and shape[0] == 1 and min(shape[1:]) > 1)
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_convolutions_of_bytes_have_channels_last(name: str) -> None:
    mod = module(NETWORKS[name], (IMAGE, U8))
    made = relax.build(mod, upto=2)
    values = [binding.value for binding in made["main"].body.bindings()]
    layouts = [str(value.attrs["data_layout"]) for value in values if str(getattr(value, "op", "")) == "relax.nn.conv2d"]
    assert set(layouts) == {"NHWC"}
    assert left(made).split().count("permute_dims") == 2


@pytest.mark.parametrize("name", NETWORKS)
def test_no_kernel_passes_floats_to_another(name: str) -> None:
    made = relax.build(module(NETWORKS[name], (IMAGE, U8)), upto=3)
    assert all(set(dtypes) <= {"uint8", "int8"} for dtypes in kernels(made).values()), kernels(made)


@pytest.mark.parametrize("name", NETWORKS)
def test_layouts_change_no_number(name: str) -> None:
    mod = module(NETWORKS[name], (IMAGE, U8))
    (x,) = arguments(mod, 3)
    found = []
    for left_out in ([], ["ChannelsLast"]):
        with PassContext(disabled_pass=left_out):
            found.append(relax.VirtualMachine(relax.build(mod, "llvm"))["main"](x).numpy().astype(int))
    # Floats of windows are summed in another order, which moves what lies next to a half by a step.
    assert np.abs(found[0] - found[1]).max() <= (1 if name == "windows" else 0)
    assert (found[0] != found[1]).mean() <= 0.01


def test_a_function_of_bytes_reads_them_in_a_kernel_of_its_own() -> None:
    made = relax.build(module(lambda x: q(op.nn.gelu(dq(block(x))), 0.05, 120), (IMAGE, U8)), upto=3)
    assert [name for name in kernels(made) if "dequantize" in name and "gelu" in name and "conv2d" not in name]
    assert all(set(dtypes) <= {"uint8", "int8"} for dtypes in kernels(made).values())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_casts_between_functions_of_elements_split_no_kernel(dtype: str) -> None:
    def make(x: Any, y: Any) -> Any:
        return op.multiply(op.astype(op.greater(x, y), dtype), op.astype(x, dtype))

    made = relax.build(module(make, ((64, 64), "float32"), ((64, 64), "float32")), upto=3)
    assert len(kernels(made)) == 1


def test_sums_of_halves_as_floats_stay_behind_their_product() -> None:
    w = const(np.ones((32, 48), "float16"))
    made = relax.build(
        module(lambda x, y: op.add(op.astype(op.matmul(x, w), "float32"), y), ((16, 32), "float16"), ((16, 48), "float32")), upto=3
    )
    assert [name for name in kernels(made) if "matmul" in name and "add" in name]


def test_what_others_read_as_floats_is_stored_once() -> None:
    def make(x: Any) -> Any:
        y = dq(block(x))
        return op.add(op.multiply(y, y), op.nn.softmax(y, 1))

    made = relax.build(module(make, (IMAGE, U8)), upto=3)
    assert any("float32" in dtypes for dtypes in kernels(made).values())


def test_a_correction_for_the_zero_is_merged_with_no_other_subtraction() -> None:
    def make(x: Any, y: Any) -> Any:
        w = weights(24, 40, axis=1)
        sums = op.subtract(op.matmul(op.astype(x, "int32"), op.astype(w.args[0], "int32")), y)
        scale = w.args[1].data.numpy() * np.float32(0.05)
        return q(op.dequantize(sums, const(scale), const(np.zeros(1, "int32")), 1) + bias(40, w))

    mod = module(make, ((5, 24), U8), ((1, 40), "int32"))
    made = transform.FoldConstant()(transform.FakeQuantizationToInteger()(mod))
    assert "subtract" in left(made)
    args = [integers((5, 24), U8), np.arange(40, dtype="int32").reshape(1, 40)]
    assert np.abs(Evaluator(made)("main", *args).astype(int) - Evaluator(mod)("main", *args).astype(int)).max() <= 1


def test_few_weights_of_a_file_stay_integers() -> None:
    onnx = pytest.importorskip("onnx")
    from tensorexpr.frontend.onnx.importer import from_onnx

    rng, make = np.random.default_rng(0), onnx.helper.make_node
    initial = {
        "w": rng.integers(-127, 128, (16, 8, 1, 1)).astype("int8"),
        "s": rng.uniform(0.01, 0.02, 16).astype("float32"),
        "z": np.zeros(16, "int8"),
        "t": np.float32(0.05),
        "o": np.uint8(3),
    }
    nodes = [
        make("DequantizeLinear", ["x", "t", "o"], ["a"]),
        make("DequantizeLinear", ["w", "s", "z"], ["b"], axis=0),
        make("Conv", ["a", "b"], ["c"]),
        make("QuantizeLinear", ["c", "t", "o"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, (1, 8, 4, 4))],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, (1, 16, 4, 4))],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in initial.items()],
    )
    mod = from_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)]))
    made = relax.build(mod, upto=1)
    convolutions = [binding.value for binding in made["main"].body.bindings() if str(getattr(binding.value, "op", "")) == "relax.nn.conv2d"]
    infos: list[Any] = [one.struct_info for one in convolutions]
    assert all(isinstance(info, TensorStructInfo) for info in infos)
    assert [info.dtype for info in infos] == ["int32"]


def test_what_branches_share_is_looked_at_once() -> None:
    """Whether an operand is one of constants was asked along each way to it: quantising a network of residual branches took no end."""
    last = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    bound: dict[Any, Any] = {}
    for number in range(60):
        var = relax.Var(f"v{number}", relax.TensorStructInfo((2,), "float32"))
        bound[var] = op.add(last, last)
        last = var
    seen: list[Any] = []

    def value(expr: Any) -> Any:
        seen.append(expr)
        return bound.get(expr, expr)

    graph: Any = SimpleNamespace(value=value)
    assert constant_of(graph, last) is None and len(seen) == 61
