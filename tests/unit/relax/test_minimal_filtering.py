"""Convolutions by Winograd's minimal filtering: which of them, and that graphs with them mean the same and run so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import autotvm, relax
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.lower.context import PassContext
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.target import Target

PAIRS = "llvm -mcpu=haswell"  # multiplies bytes as words, and sums them by twos
GROUPS = "llvm -mcpu=icelake-server"  # sums them by fours
LAYOUTS = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
RNG = np.random.default_rng(5)


def graph(make: Callable[[Any], Any], shape: Sequence[int], dtype: str = "float32") -> Any:
    """A module whose "main" is what `make` returns for a tensor."""
    x, bb = Var("x", TensorStructInfo(shape, dtype)), BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(bb.normalize(make(x)))
        bb.emit_func_output(out)
    return bb.get()


def floats(*shape: int) -> Any:
    return const((RNG.standard_normal(shape) * 0.1).astype("float32"))


def conv(x: Any, inputs: int, outputs: int, taps: int = 3, **attrs: Any) -> Any:
    return op.nn.relu(op.nn.conv2d(x, floats(taps, taps, inputs, outputs), padding=taps // 2, **LAYOUTS, **attrs) + floats(outputs))


def of_bytes(x: Any, inputs: int = 16, outputs: int = 32) -> Any:
    weight = const(RNG.integers(-128, 128, (3, 3, inputs, outputs)).astype("int8"))
    sums = op.nn.conv2d(x, weight, padding=1, out_dtype="int32", **LAYOUTS) + const(RNG.integers(-999, 999, outputs).astype("int32"))
    factors = const((RNG.random(outputs) * 1e-3).astype("float32")), const(np.array(7, "uint8"))
    return op.requantize(sums, *factors, 3, "uint8")


def operators(mod: Any, target: str = PAIRS) -> str:
    """Those of the function behind the pass, convolutions alone."""
    with Target(target):
        made = transform.MinimalFiltering()(mod)
    main: Any = made["main"]
    values = [binding.value for binding in main.body.bindings()]
    return " ".join(str(value.op).rpartition(".")[2] for value in values if "conv2d" in str(getattr(value, "op", "")))


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (lambda x: conv(x, 32, 64), (1, 28, 28, 32), "conv2d_winograd"),
        (lambda x: conv(x, 32, 64), (2, 9, 30, 32), "conv2d_winograd"),
        (lambda x: conv(x, 32, 64, strides=2), (1, 28, 28, 32), "conv2d"),
        (lambda x: conv(x, 32, 64, dilation=2), (1, 28, 28, 32), "conv2d"),
        (lambda x: conv(x, 32, 64, taps=5), (1, 28, 28, 32), "conv2d"),
        (lambda x: conv(x, 3, 64), (1, 28, 28, 3), "conv2d"),  # few channels
        (lambda x: conv(x, 12, 64), (1, 28, 28, 12), "conv2d"),  # that fill one vector and half of another one
        (lambda x: conv(x, 512, 512), (1, 7, 7, 512), "conv2d"),  # weights that are used seldom
        (lambda x: conv(x, 512, 512), (8, 7, 7, 512), "conv2d_winograd"),
        (lambda x: conv(x, 64, 64), (4, 3, 3, 64), "conv2d"),  # a quarter of the tiles' results isn't there
    ],
)
def test_which_convolutions_of_floats(make: Callable[[Any], Any], shape: Sequence[int], expected: str) -> None:
    assert operators(graph(make, shape)) == expected


def test_bytes_where_they_are_summed_by_twos() -> None:
    mod = graph(of_bytes, (1, 12, 12, 16), "uint8")
    assert operators(mod) == "conv2d_winograd" and operators(mod, GROUPS) == "conv2d"


def test_weights_that_are_no_constants_and_other_layouts_stay() -> None:
    w = Var("w", TensorStructInfo((3, 3, 32, 32), "float32"))
    x, bb = Var("x", TensorStructInfo((1, 20, 20, 32), "float32")), BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            out = bb.emit_output(op.nn.conv2d(x, w, padding=1, **LAYOUTS))
        bb.emit_func_output(out)
    assert operators(bb.get()) == "conv2d"
    assert operators(graph(lambda x: op.nn.conv2d(x, floats(32, 32, 3, 3), padding=1), (1, 32, 20, 20))) == "conv2d"


def test_a_device_or_a_context_that_has_it_disabled_leaves_them() -> None:
    mod = graph(lambda x: conv(x, 32, 64), (1, 28, 28, 32))
    assert operators(mod, "cuda") == "conv2d"
    with PassContext(disabled_pass=["MinimalFiltering"]):
        assert operators(mod) == "conv2d"
    with autotvm.apply_history_best([]):  # records of convolutions, which kernels follow
        assert operators(mod) == "conv2d"


def residual(x: Any) -> Any:
    """A result that two others read."""
    first = conv(x, 32, 32)
    return op.add(conv(first, 32, 32), first)


def planes(x: Any) -> Any:
    """Channels first behind it."""
    return op.permute_dims(conv(x, 32, 40), (0, 3, 1, 2))


def joined(x: Any) -> Any:
    """Parts of a whole that both write."""
    return conv(op.concat([conv(x, 32, 32), conv(x, 32, 64)], 3), 96, 32)


def pooled(x: Any) -> Any:
    return op.mean(conv(x, 32, 64), (1, 2))


@pytest.mark.parametrize("make", [residual, planes, joined, pooled])
@pytest.mark.parametrize("shape", [(1, 14, 14, 32), (2, 11, 17, 32)])
def test_kernels_are_what_the_definition_says(make: Callable[[Any], Any], shape: Sequence[int]) -> None:
    mod = graph(make, shape)
    x = RNG.standard_normal(shape).astype("float32")
    expected = Evaluator(mod)("main", x)
    with Target("llvm"):
        rewritten = transform.MinimalFiltering()(mod)
    assert "conv2d_winograd" in operators(mod, "llvm")
    largest = np.abs(expected).max()
    assert np.abs(Evaluator(rewritten)("main", x) - expected).max() <= 1e-5 * largest
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for _ in range(2):
        assert np.abs(machine["main"](tvm.nd.array(x)).numpy() - expected).max() <= 1e-5 * largest


@pytest.mark.parametrize("target", ("llvm", "llvm -vector-width=128"))
def test_bytes_are_exact(target: str) -> None:
    mod = graph(lambda x: of_bytes(of_bytes(x), 32, 24), (1, 13, 10, 16), "uint8")
    x = RNG.integers(0, 256, (1, 13, 10, 16)).astype("uint8")
    expected = Evaluator(mod)("main", x)
    with Target(PAIRS):
        assert (Evaluator(transform.MinimalFiltering()(mod))("main", x) == expected).all()
    assert (relax.VirtualMachine(relax.build(mod, target), tvm.cpu())["main"](tvm.nd.array(x)).numpy() == expected).all()


def test_the_kernel_says_how_it_is_computed() -> None:
    built = relax.build(graph(lambda x: conv(x, 32, 64), (1, 28, 28, 32)), "llvm")
    assert "minimal filtering: products of tiles of pixels by channels" in str(built.explain())


def test_weights_and_data_that_do_not_fit_are_refused() -> None:
    x = Var("x", TensorStructInfo((1, 8, 8, 4), "float32"))
    for shape in ((3, 3, 4, 8), (4, 4, 5, 8)):
        with pytest.raises(DeclarationError, match=r"weights \[4, 4, I, O\] for data \[N, H, W, I\]"):
            op.nn.conv2d_winograd(x, Var("w", TensorStructInfo(shape, "float32")), 1)
    with pytest.raises(TypeMismatchError, match="data of float32 with weights of int16"):
        op.nn.conv2d_winograd(x, Var("w", TensorStructInfo((4, 4, 4, 8), "int16")), 1)
    with pytest.raises(DeclarationError, match="data has 4 axes"):
        op.nn.conv2d_winograd(Var("x", TensorStructInfo((8, 8, 4), "float32")), Var("w", TensorStructInfo((4, 4, 4, 8), "float32")))
    open_data = Var("x", TensorStructInfo(None, "float32", ndim=4))
    assert op.nn.conv2d_winograd(open_data, Var("w", TensorStructInfo((4, 4, 4, 8), "float32"))) is not None
