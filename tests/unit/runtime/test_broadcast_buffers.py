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


@pytest.mark.parametrize("shape", [(2, 4), (1, 4), (2, 1), (1, 1)])
def test_an_input_whose_sizes_nothing_ties_to_the_output_stands_for_all_by_default(shape: tuple[int, int]) -> None:
    m, n, rows, columns = (te.size_var(name) for name in ("m", "n", "rows", "columns"))
    A = te.placeholder((m, n), name="A")
    B = te.compute((rows, columns), lambda i, j: A[i, j] * 2, name="B")
    func = tvm.build(te.create_schedule(B.op), [A, B])
    a, b = np.random.default_rng(0).random(shape, "float32"), np.empty((2, 4), "float32")
    func(a, b)
    np.testing.assert_array_equal(b, np.broadcast_to(a * 2, b.shape))


def test_an_input_that_the_loops_follow_keeps_its_compact_form() -> None:
    n, rows = te.size_var("n"), te.size_var("rows")
    A, B, at = te.placeholder((n,), name="A"), te.placeholder((n, 3), name="B"), te.placeholder((rows,), "int32", name="at")
    C = te.compute((n,), lambda i: A[n - 1 - i] + A[0] + B[i, 1], name="C")
    D = te.compute((rows,), lambda i: te.if_then_else(i < n, A[i], 0.0) + A[at[i]], name="D")
    for args in ([A, B, C], [A, at, D]):
        func = tvm.lower(te.create_schedule(args[-1].op), args)["main"]
        assert not any(buffer.strides for buffer in func.buffer_map.values())


def test_the_kind_of_a_buffer_is_printed_and_read() -> None:
    A = tir.decl_buffer((te.size_var("m"),), name="A", buffer_type="auto_broadcast")
    a = tir.Var("a", "handle")
    func = tir.PrimFunc((a,), tir.Evaluate(A[0]), buffer_map={a: A})
    assert 'buffer_type="auto"' in func.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)
