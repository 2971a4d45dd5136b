"""Kernels ask ahead for what other kernels have put out of the caches, and for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.tir.expr import Call
from tensorexpr.tir.rewriting import walk

CPUS = ("x86-64-v4", "znver3")


def asked(function: Any, shape: tuple[int, ...], cpu: str) -> set[str]:
    """The arguments for whose lines the kernel of a function of one tensor asks."""
    x = Var("x", TensorStructInfo(shape))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(function(x))
        bb.emit_func_output(out)
    mod = relax.build(bb.get(), f"llvm -mcpu={cpu}", upto=4)
    kernels: list[Any] = [func for var, func in mod.functions_items() if var.name_hint != "main"]
    found: list[Any] = [node for kernel in kernels for node in walk(kernel.body) if isinstance(node, Call) and node.op == "tir.prefetch"]
    return {str(node.args[0].buffer.data.name).partition("_")[0] for node in found}


def convolution(channels: int, kernel: int) -> Any:
    weight = relax.const(np.zeros((channels, channels, kernel, kernel), np.float32))
    return lambda x: op.nn.relu(op.nn.conv2d(x, weight, padding=kernel // 2))


@pytest.mark.parametrize("cpu", CPUS)
def test_a_convolution_asks_for_weights_and_for_wide_rows_of_pixels(cpu: str) -> None:
    assert asked(convolution(256, 1), (1, 256, 14, 14), cpu) == {"x", "param"}
    assert "param" in asked(convolution(128, 3), (1, 128, 14, 14), cpu)


@pytest.mark.parametrize("cpu", CPUS)
def test_what_stays_in_the_cache_or_follows_in_memory_is_not_asked_for(cpu: str) -> None:
    assert asked(convolution(32, 1), (1, 32, 7, 7), cpu) == set()
    rows = relax.const(np.zeros((512, 512), np.float32))
    assert "x" not in asked(lambda x: op.matmul(x, rows), (128, 512), cpu)
    assert asked(lambda x: op.nn.softmax(x), (512, 512), cpu) == set()


def test_results_stay_what_they_are() -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((64, 96, 3, 3), np.float32)
    x = Var("x", TensorStructInfo((1, 96, 14, 14)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(op.nn.conv2d(x, relax.const(w), padding=1))
        bb.emit_func_output(out)
    given = rng.standard_normal((1, 96, 14, 14), np.float32)
    found = relax.VirtualMachine(relax.build(bb.get()))["main"](given).numpy()
    padded = np.pad(given, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_allclose(found, np.einsum("ncyxij,ocij->noyx", windows, w), rtol=1e-3, atol=1e-3)
