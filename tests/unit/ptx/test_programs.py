"""The programs of courses and of TVMScript: the same on CPUs, in the interpreter and as PTX on the emulator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr.lower.device.on_cpu import with_barriers
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.check_func import assert_func_correct
from tensorexpr.tir.interpreter import interpret
from tests import gpu_blocks, gpu_programs

from .running import CASES

SCHEDULES: dict[str, Callable[[], gpu_programs.Program]] = {
    "product": gpu_programs.product,
    "eight threads": lambda: gpu_programs.product(16, 16, 8, 8),
    "scalar fetch": lambda: gpu_programs.product(8, vector=False),
    "double buffers": lambda: gpu_programs.product(8, double=True),
    "tiles that don't fit": lambda: gpu_programs.product(6, 4, 2, 2, vector=False),
    "convolution": gpu_programs.convolution,
    "factored sum": gpu_programs.row_sums,
    "sum": lambda: gpu_programs.row_sums(factored=False),
    "everybody stores": lambda: gpu_programs.row_sums(factored=False, one_stores=False),
    "sum over warps": lambda: gpu_programs.row_sums(4, 70, 64, factored=False),
    "normalised": gpu_programs.normalised,
}
BLOCKS: dict[str, Callable[[], gpu_blocks.Blocks]] = {
    "product": gpu_blocks.product,
    "double buffers": lambda: gpu_blocks.product(double=True),
    "sum": gpu_blocks.row_sums,
    "sum of a warp": lambda: gpu_blocks.row_sums(4, 64, 32),
    "sum over warps": lambda: gpu_blocks.row_sums(4, 130, 64),
    "factored sum": lambda: gpu_blocks.row_sums(factored=True),
    "virtual threads": gpu_blocks.transposed,
    "normalised": gpu_blocks.normalised,
}
SCRIPTS = ("reverse", "reduction", "softmax", "gemm")  # the CPU has no tensor cores


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_on_the_emulator(name: str) -> None:
    assert_schedule_correct(*SCHEDULES[name](), phases=(), compiled=False, emulator=True)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_on_the_emulator(name: str) -> None:
    assert_func_correct(*BLOCKS[name](), phases=(), emulator=True)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_on_cpus(name: str) -> None:
    case = CASES[name]
    ways: dict[str, Callable[..., object]] = {"compiled": tvm.build(case.program, target="llvm")}
    if name != "gemm":  # seconds
        func = with_barriers(tvm.lower(case.program, upto=1))["main"]
        ways["interpreted"] = lambda *arrays: interpret(func, arrays)
    for way, run in ways.items():
        found = np.full(case.result, 113, np.float32)
        run(*case.inputs(), found)
        assert case.is_right(found), way


@settings(max_examples=3, deadline=None, derandomize=True)
@given(n=st.integers(5, 12), tile=st.sampled_from([4, 8]), step=st.integers(1, 4), double=st.booleans(), vector=st.booleans())
def test_tiles_of_any_size(n: int, tile: int, step: int, double: bool, vector: bool) -> None:
    assert_schedule_correct(*gpu_programs.product(n, tile, 2, step, vector, double), phases=(), compiled=False, emulator=True)


@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(1, 70), st.integers(1, 40), st.booleans(), st.booleans())
def test_sums_by_any_threads(rows: int, length: int, threads: int, factored: bool, one_stores: bool) -> None:
    assert_schedule_correct(*gpu_programs.row_sums(rows, length, threads, factored, one_stores), phases=(), compiled=False, emulator=True)
