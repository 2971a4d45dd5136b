"""Buffers whose axes of one element are read again and again: `decl_buffer(..., buffer_type="auto_broadcast")`."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 1, 1), (1, 4, 1), (1, 1, 1)])
def test_an_axis_of_one_element_stands_for_all(shape: tuple[int, ...]) -> None:
    sizes = [[te.var(f"{tensor}{axis}") for axis in range(3)] for tensor in "mno"]
    A, B = te.placeholder(sizes[0], name="A"), te.placeholder(sizes[1], name="B")
    C = te.compute(sizes[2], lambda i, j, k: A[i, j, k] + B[i, j, k], name="C")
    binds = {t: tir.decl_buffer(t.shape, t.dtype, f"{t.name}b", buffer_type="auto_broadcast") for t in (A, B)}
    func = tvm.build(te.create_schedule(C.op), [A, B, C], binds=binds)
    rng = np.random.default_rng(0)
    a, b, c = rng.random((2, 4, 3), "float32"), rng.random(shape, "float32"), np.empty((2, 4, 3), "float32")
    func(a, b, c)
    np.testing.assert_array_equal(c, a + b)
