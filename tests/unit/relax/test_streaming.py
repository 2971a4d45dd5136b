"""Kernels ask ahead for what other kernels have put out of the caches, and for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op
from tensorexpr.tir.expr import Call
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import Evaluate, For, SeqStmt

CPUS = ("x86-64-v4", "znver3")


def module_of(function: Any, shape: tuple[int, ...]) -> Any:
    """A function of one tensor as a module."""
    x = Var("x", TensorStructInfo(shape))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(function(x))
        bb.emit_func_output(out)
    return bb.get()


def asked(function: Any, shape: tuple[int, ...], cpu: str) -> set[str]:
    """The arguments for whose lines the kernel of a function of one tensor asks; convolutions by their definition."""
    with PassContext(opt_level=3, disabled_pass=["MinimalFiltering"]):
        mod = relax.build(module_of(function, shape), f"llvm -mcpu={cpu}", upto=4)
    kernels: list[Any] = [func for var, func in mod.functions_items() if var.name_hint != "main"]
    found: list[Any] = [node for kernel in kernels for node in walk(kernel.body) if isinstance(node, Call) and node.op == "tir.prefetch"]
    return {str(node.args[0].buffer.data.name).partition("_")[0] for node in found}


def convolution(channels: int, kernel: int) -> Any:
    weight = relax.const(np.zeros((channels, channels, kernel, kernel), np.float32))
    return lambda x: op.nn.relu(op.nn.conv2d(x, weight, padding=kernel // 2))


@pytest.mark.parametrize("cpu", CPUS)
def test_a_convolution_asks_for_weights_and_for_wide_rows_of_pixels(cpu: str) -> None:
    assert "param" in asked(convolution(256, 3), (1, 256, 5, 7), cpu)
    if cpu == "x86-64-v4":
        assert asked(convolution(256, 1), (1, 256, 14, 14), cpu) == {"x", "param"}
        assert "param" in asked(convolution(128, 3), (1, 128, 14, 14), cpu)


def test_vectors_of_half_a_line_ask_for_nothing_that_an_earlier_tile_has_left() -> None:
    rows = relax.const(np.zeros((768, 3072), np.float32))
    assert asked(lambda x: op.matmul(x, rows), (128, 768), "znver3") == set()
    assert asked(lambda x: op.matmul(x, rows), (128, 768), "x86-64-v4") != set()
    assert asked(convolution(256, 3), (1, 256, 14, 14), "znver3") == set()


@pytest.mark.parametrize("cpu", CPUS)
def test_what_stays_in_the_cache_or_follows_in_memory_is_not_asked_for(cpu: str) -> None:
    assert asked(convolution(32, 1), (1, 32, 7, 7), cpu) == set()
    rows = relax.const(np.zeros((512, 512), np.float32))
    assert "x" not in asked(lambda x: op.matmul(x, rows), (128, 512), cpu)
    assert asked(lambda x: op.nn.softmax(x), (512, 512), cpu) == set()


@pytest.mark.parametrize(("channels", "kernel", "plane"), [(64, 3, (112, 15)), (192, 1, (6, 80)), (32, 1, (80, 80))])
def test_asking_is_no_loop_inside_a_step_and_for_no_more_than_the_step_reads(channels: int, kernel: int, plane: tuple[int, int]) -> None:
    """A loop over lines ends, predicted wrongly, in each step; tiles that run on over row ends read parts of two rows, not all of both."""
    x = Var("x", TensorStructInfo((1, channels, *plane)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(convolution(channels, kernel)(x))
        bb.emit_func_output(out)
    mod = relax.build(bb.get(), "llvm -mcpu=icelake-server", upto=4)
    kernels: list[Any] = [func for var, func in mod.functions_items() if var.name_hint != "main"]
    loops: list[Any] = [one for kernel in kernels for one in walk_statements(kernel.body) if isinstance(one, For)]
    bodies: list[Any] = [one.body for one in loops if isinstance(one.body, SeqStmt)]
    steps = [[child.value for child in body.seq if _asks(child)] for body in bodies]
    assert any(steps)
    assert not any(_asks(one.body) for one in loops)
    lines = [sum(call.args[0].buffer.data.name.startswith("x") for call in step) for step in steps]
    assert max(lines) <= 4


def _asks(stmt: Any) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.prefetch"


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


def loops_around_prefetches(function: Any, shape: tuple[int, ...]) -> int:
    """How many loops over tiles are around what a kernel asks ahead for; 0 if it asks for nothing."""
    mod = relax.build(module_of(function, shape), "llvm -mcpu=znver3 -num-cores=2", upto=4)
    (kernel,) = (func for var, func in mod.functions_items() if var.name_hint != "main")
    loops: list[Any] = [one for one in walk_statements(kernel.body) if isinstance(one, For)]
    asking = {one.loop_var.name for one in loops if any("prefetch" in str(inner) for inner in walk_statements(one.body))}
    return len({name for name in asking if not name.startswith("line")})


def test_windows_ask_for_the_lines_of_the_next_tile() -> None:
    """In the loop over tiles of columns, or over vectors of channels inside of it where a tile brings 128 new lines."""
    weight = relax.const(np.zeros((3, 3, 1, 144), np.float32))

    def depthwise(x: Any) -> Any:
        return op.nn.conv2d(x, weight, padding=1, groups=144, data_layout="NHWC", kernel_layout="HWIO")

    def pool(x: Any) -> Any:
        return op.nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1, 1, 1), layout="NHWC")

    assert loops_around_prefetches(depthwise, (1, 56, 56, 144)) == 2, "rows of pixels in parallel, tiles of columns"
    assert loops_around_prefetches(pool, (1, 112, 112, 64)) == 3
    assert loops_around_prefetches(pool, (1, 8, 8, 16)) == 0, "in the first cache"
