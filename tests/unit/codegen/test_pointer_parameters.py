"""Functions that take bare pointers, and float8, which code moves and converts."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.errors import ArgumentError, CodegenError

COPY = """
@T.prim_func
def copy(source: T.handle("{dtype}"), target: T.handle("{dtype}"), n: T.int32):
    A = T.decl_buffer((16,), "{dtype}", data=source)
    B = T.decl_buffer((16,), "{dtype}", data=target)
    for i in range(n):
        B[i] = A[i]{more}
"""


@pytest.mark.parametrize("dtype", ["float32", "e4m3_float8"])
def test_a_pointer_without_a_buffer_is_an_address(dtype: str) -> None:
    func = tvm.build(tvm.script.from_source(COPY.format(dtype=dtype, more="")))
    held = "uint8" if "float8" in dtype else dtype
    source, target = np.arange(16).astype(held), np.zeros(16, held)
    func(source.ctypes.data, target.ctypes.data, 12)
    np.testing.assert_array_equal(target[:12], source[:12])
    assert not target[12:].any()
    with pytest.raises(ArgumentError, match=r"argument source .* needs an integer"):
        func(source, target, 12)


def test_float8_is_not_computed_with() -> None:
    with pytest.raises(CodegenError, match="cast the operands to float32"):
        tvm.build(tvm.script.from_source(COPY.format(dtype="e4m3_float8", more=" + A[i]")))
