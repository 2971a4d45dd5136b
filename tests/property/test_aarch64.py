"""For AArch64, under an emulator: random programs and expressions give what the interpreter gives, math functions keep their bounds."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import interpret

from ..emulator import CPUS, needs_emulator, run_functions, target_of
from ..unit.codegen.harness import elementwise
from ..unit.codegen.test_vector_math import BINARY, UNARY, check_results, intrinsic, samples
from .test_codegen_expressions import functions_of_expressions, same_bits
from .test_codegen_programs import programs

# Of each of the functions' samples, so that the emulator has done with them soon; 1021 is a prime.
_EVERY = 7


@needs_emulator
@settings(deadline=None, derandomize=True, max_examples=2)
@given(st.lists(programs(), min_size=30, max_size=30), st.sampled_from(CPUS), st.sampled_from((0, 3)))
def test_programs_equal_interpreted_ones(drawn: list[tuple[PrimFunc, list[Any], int]], cpu: str, opt_level: int) -> None:
    with TemporaryDirectory() as folder:
        calls = [(func, arrays, (count,)) for func, arrays, count in drawn]
        results = run_functions(calls, target_of(cpu), Path(folder), opt_level)
    for (func, arrays, count), got in zip(drawn, results, strict=True):
        expected = [array.copy() for array in arrays]
        interpret(func, [*expected, count])
        assert same_bits(got, expected), func


@needs_emulator
@settings(deadline=None, derandomize=True, max_examples=2)
@given(st.lists(functions_of_expressions(), min_size=30, max_size=30), st.sampled_from(CPUS), st.sampled_from((0, 3)))
def test_expressions_equal_interpreted_ones(drawn: list[tuple[PrimFunc, list[Any]]], cpu: str, opt_level: int) -> None:
    with TemporaryDirectory() as folder:
        results = run_functions([(func, arrays, ()) for func, arrays in drawn], target_of(cpu), Path(folder), opt_level)
    for (func, arrays), got in zip(drawn, results, strict=True):
        expected = [array.copy() for array in arrays]
        interpret(func, expected)
        assert same_bits(got, expected), func


@needs_emulator
@pytest.mark.parametrize(("cpu", "lanes"), [("neoverse-n1", 4), ("neoverse-n1", 1), ("apple-m1", 8)])
def test_math_functions_keep_their_bounds(cpu: str, lanes: int, tmp_path: Path) -> None:
    calls = []
    for name in (*UNARY, *BINARY):
        args = [a[: len(a) // lanes * lanes] for a in (array[::_EVERY] for array in samples(name))]
        func = elementwise(lambda *xs, name=name: intrinsic(name, *xs), ["float32"] * len(args), "float32", lanes)
        calls.append((func, [*args, np.zeros(len(args[0]), np.float32)], (len(args[0]),)))
    for name, (*inputs, got) in zip((*UNARY, *BINARY), run_functions(calls, target_of(cpu), tmp_path), strict=True):
        check_results(name, tuple(inputs), got)
