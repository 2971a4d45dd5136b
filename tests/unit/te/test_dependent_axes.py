"""Reductions whose range differs between elements: what they mean, their loops, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.te.reference import evaluate, evaluate_points
from tensorexpr.te.serialize import dumps, loads
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tir.structural_digest import structural_hash

ROW_STARTS = np.array([0, 2, 2, 5], np.int32)
COLUMNS = np.array([3, 0, 1, 2, 3], np.int32)
VALUES = np.arange(1, 6, dtype=np.float32)
DENSE = np.arange(8, dtype=np.float32).reshape(2, 4)
PRODUCT = np.stack([[sum(VALUES[e] * row[COLUMNS[e]] for e in range(ROW_STARTS[r], ROW_STARTS[r + 1])) for r in range(3)] for row in DENSE])


def triangle(n: int = 6) -> tuple[te.Tensor, te.Tensor]:
    A = te.placeholder((n, n), name="A")

    def row(i: Any) -> Any:
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(A[i, k], axis=k)

    return A, te.compute((n,), row, "B")


def sparse_product() -> list[te.Tensor]:
    D, V = te.placeholder((2, 4), name="D"), te.placeholder((5,), name="V")
    J, S = te.placeholder((5,), "int32", "J"), te.placeholder((4,), "int32", "S")
    R = te.compute((2, 4), lambda i, j: D[i, j] + 0.0, "R")

    def element(i: Any, row: Any) -> Any:
        k = te.reduce_axis((0, S[row + 1] - S[row]), "k")
        return te.sum(V[S[row] + k] * R[i, J[S[row] + k]], axis=k)

    return [D, V, J, S, te.compute((2, 3), element, "C")]


def run(s: te.Schedule, args: list[te.Tensor], arrays: list[Any]) -> Any:
    out = np.zeros([as_int(extent) or 0 for extent in args[-1].shape], np.float32)
    tvm.build(s, args)(*arrays, out)
    return out


def test_the_range_is_read_before_what_is_summed() -> None:
    *_, C = sparse_product()
    assert [tensor.name for tensor in C.op.input_tensors] == ["S", "V", "J", "R"]


def test_the_reference_sums_as_far_as_each_element_goes() -> None:
    *inputs, C = sparse_product()
    given = dict(zip(inputs, [DENSE, VALUES, COLUMNS, ROW_STARTS], strict=True))
    np.testing.assert_allclose(evaluate([C], given)[0], PRODUCT)
    np.testing.assert_allclose(evaluate_points(C, given, np.array([[1, 2]])), PRODUCT[1, 2])


def test_a_range_may_depend_on_another_range() -> None:
    A = te.placeholder((5,), name="A")

    def row(i: Any) -> Any:
        k = te.reduce_axis((0, i), "k")
        m = te.reduce_axis((k, i), "m")
        return te.sum(A[k] * A[m], axis=[k, m])

    B = te.compute((5,), row, "B")
    a = np.arange(5, dtype=np.float32)
    wanted = [sum(a[k] * a[m] for k in range(i) for m in range(k, i)) for i in range(5)]
    np.testing.assert_allclose(evaluate([B], {A: a})[0], wanted)
    np.testing.assert_allclose(run(te.create_schedule(B.op), [A, B], [a]), wanted)


@pytest.mark.parametrize("inner", [2, 4])
def test_the_ranges_of_split_loops_follow_them(inner: int) -> None:
    A, B = triangle()
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], inner)
    s[B].split(B.op.reduce_axis[0], 2)
    a = np.arange(36, dtype=np.float32).reshape(6, 6)
    np.testing.assert_allclose(run(s, [A, B], [a]), np.tril(a).sum(1))


def test_a_loop_outside_of_the_one_that_says_its_length_is_refused() -> None:
    A, B = triangle()
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], 2)
    s[B].reorder(B.op.reduce_axis[0], inner)
    with pytest.raises(ScheduleError, match=r"'k' runs over .* which depends on 'i\.inner', a loop inside of it; reorder 'i\.inner'"):
        tvm.lower(s, [A, B])


def test_ranges_that_tensors_hold_are_lowered_wherever_the_stages_stand() -> None:
    args = sparse_product()
    C, R = args[-1], args[-1].op.input_tensors[3]
    E = te.compute((2, 3), lambda i, j: C[i, j] * 2.0, "E")
    s = te.create_schedule(E.op)
    s[R].compute_inline()
    outer, _ = s[E].split(E.op.axis[1], 2)
    s[C].compute_at(s[E], outer)
    s[C].parallel(C.op.axis[0])
    np.testing.assert_allclose(run(s, [*args[:-1], E], [DENSE, VALUES, COLUMNS, ROW_STARTS]), 2 * PRODUCT)


def test_row_starts_may_be_computed_and_inlined() -> None:
    L, A = te.placeholder((3,), "int32", "L"), te.placeholder((4,), name="A")
    N = te.compute((3,), lambda i: L[i] + 1, "N")

    def element(i: Any) -> Any:
        k = te.reduce_axis((0, N[i]), "k")
        return te.sum(A[k], axis=k)

    B = te.compute((3,), element, "B")
    for inline in (True, False):
        s = te.create_schedule(B.op)
        if inline:
            s[N].compute_inline()
        else:
            s[N].compute_at(s[B], B.op.axis[0])
        found = run(s, [L, A, B], [np.array([0, 3, 1], np.int32), np.ones(4, np.float32)])
        np.testing.assert_allclose(found, [1, 4, 2])


def test_such_computations_are_written_and_read() -> None:
    *inputs, C = sparse_product()
    *_, again = loads(dumps([*inputs, C]))
    assert str(again.op.reduce_axis[0].dom) == str(C.op.reduce_axis[0].dom)
    text = dumps([*inputs, C]).replace('"int32"', '"float32"')
    with pytest.raises(RecordError):
        loads(text)


def test_reductions_over_dependent_ranges_are_equal_by_structure() -> None:
    a = te.placeholder((8, 8), name="A")

    def made(end: int) -> Any:
        rows = te.reduce_axis((0, 8), "r")
        columns = te.reduce_axis((0, rows.var + end), "c")
        return te.sum(a[rows, columns], axis=[rows, columns])

    def window() -> Any:
        rows = te.reduce_axis((0, 6), "r")
        columns = te.reduce_axis((rows.var, rows.var + 3), "c")
        return te.sum(a[rows, columns], axis=[rows, columns])

    assert structural_equal(window(), window()) and structural_hash(window()) == structural_hash(window())
    assert structural_equal(made(1), made(1)) and structural_hash(made(1)) == structural_hash(made(1))
    assert not structural_equal(made(1), made(0))
