"""Operators on whole tensors."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.te import Tensor
from tensorexpr.te.dag_text import format_dag
from tensorexpr.tir.expr import Mul, PrimExpr

A = te.placeholder((4, 5), name="A")
B = te.placeholder((5,), name="B")
C = te.placeholder((4, 1), name="C")
s = te.placeholder((), name="s")
alpha = te.var("alpha", "float32")


@pytest.mark.parametrize(
    ("tensor", "line"),
    [
        (A + B, "T_add(ax0, ax1) = (A[ax0, ax1] + B[ax1])"),
        (B - A, "T_subtract(ax0, ax1) = (B[ax1] - A[ax0, ax1])"),
        (C * B, "T_multiply(ax0, ax1) = (C[ax0, 0]*B[ax1])"),
        (A / 2.0, "T_divide(ax0, ax1) = (A[ax0, ax1]/2f)"),
        (3 - A, "T_subtract(ax0, ax1) = (3f - A[ax0, ax1])"),
        (A * alpha, "T_multiply(ax0, ax1) = (A[ax0, ax1]*alpha)"),
        (alpha * A, "T_multiply(ax0, ax1) = (alpha*A[ax0, ax1])"),
        (-A, "T_multiply(ax0, ax1) = (A[ax0, ax1]*-1f)"),
        (s + 1.0, "T_add() = (s[] + 1f)"),
    ],
)
def test_operators_make_computes(tensor: Tensor, line: str) -> None:
    assert isinstance(tensor, Tensor)
    assert format_dag([tensor]).splitlines()[-1] == line


def test_tags_tell_broadcasts_from_maps() -> None:
    assert ((A + B).op.tag, (A + 1.0).op.tag) == ("broadcast", "elemwise")


def test_inside_a_definition_rank_0_is_a_scalar() -> None:
    i = te.var("i")
    made = s * B[i]
    assert isinstance(made, PrimExpr) and made is Mul(s(), B(i))
    assert isinstance(-s, PrimExpr)


def test_symbolic_extents_broadcast() -> None:
    n = te.var("n")
    X, Y = te.placeholder((n, 1), name="X"), te.placeholder((1, 7), name="Y")
    assert [str(extent) for extent in (X + Y).shape] == ["n", "7"]
