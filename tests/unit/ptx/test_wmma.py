"""Fragments of `wmma` on the emulator: what TVM's te programs tensorize to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.testing.ptx import OutOfBounds, assembled, emulator
from tests.warp_programs import WMMA, fragment_arrays, fragment_product

from .running import needs_ptxas

TARGET = "cuda -arch=sm_80"


def run(dtype: str, out: str, shape: tuple[int, int, int], rows: str, cols: str, more: int = 0) -> tuple[Any, Any]:
    """What the product is, and what it should be."""
    module: Any = tvm.build(fragment_product(dtype, out, shape, rows, cols, more), target=TARGET)
    left, right, wanted = fragment_arrays(dtype, shape, rows, cols)
    device = emulator()
    result = tvm.nd.empty((wanted.size,), out, device)
    module(tvm.nd.array(left, device), tvm.nd.array(right, device), result)
    return result.numpy().reshape(wanted.T.shape).T, wanted


@pytest.mark.parametrize("dtype, out, shape, rows, cols", WMMA)
def test_fragments_multiply(dtype: str, out: str, shape: tuple[int, int, int], rows: str, cols: str) -> None:
    found, wanted = run(dtype, out, shape, rows, cols)
    np.testing.assert_array_equal(found, wanted)


def test_a_fragment_that_is_stored_beyond_its_array() -> None:
    with pytest.raises(OutOfBounds, match="outside all arrays"):
        run("float16", "float32", (16, 16, 16), "row_major", "row_major", more=1)


@needs_ptxas
@pytest.mark.parametrize(
    "dtype, out",
    [("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32")],
)
def test_the_assembler_takes_fragments_of_all_types(dtype: str, out: str) -> None:
    layouts = [(rows, cols) for rows in ("row_major", "col_major") for cols in ("row_major", "col_major")]
    for number, shape in enumerate([(16, 16, 16), (32, 8, 16), (8, 32, 16)]):
        for rows, cols in layouts[number::2]:
            module: Any = tvm.build(fragment_product(dtype, out, shape, rows, cols), target=TARGET)
            assembly = module.code.assembly
            assert "wmma.mma" in assembly and assembled(assembly, "sm_80").spilled == 0
