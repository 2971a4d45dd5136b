"""Property 32: equal computations have equal keys, others don't."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tensorexpr import te
from tensorexpr.te import Tensor
from tensorexpr.te.identity import canonical_form, dag_equal, dag_key
from tensorexpr.tir.expr import PrimExpr, Var

from .programs import argmax, conv2d, diamond, matmul_add, softmax


def renamed_softmax() -> tuple[Tensor, ...]:
    X = te.placeholder((8, 8), name="X")
    r, q = te.reduce_axis((0, 8), "r"), te.reduce_axis((0, 8), "q")
    a = te.compute((8,), lambda u: te.max(X[u, r], axis=r), name="a", tag="reduction")
    b = te.compute((8, 8), lambda u, v: te.exp(X[u, v] - a[u]), name="b")
    c = te.compute((8,), lambda u: te.sum(b[u, q], axis=q), name="c", attrs={"FLOP": 1})
    return X, te.compute((8, 8), lambda u, v: b[u, v] / c[u], name="d")


def symbolic(kind: Callable[[str], Var] = te.var, twice: bool = False) -> tuple[Tensor, ...]:
    n = kind("rows")
    m = n if twice else kind("columns")
    A = te.placeholder((n, m), name="A")
    return A, te.compute((n, m), lambda i, j: A[i, j] + 1.0)


def test_32_names_tags_and_attributes_do_not_count() -> None:
    assert dag_equal(softmax(), renamed_softmax())
    assert dag_key(softmax()) == dag_key(renamed_softmax())
    assert dag_key(matmul_add()) == dag_key(matmul_add(names="XYZ"))
    assert dag_key(symbolic()) == dag_key(symbolic())
    assert len(dag_key(softmax())) == 32


def transposed_sum(swap: bool) -> tuple[Tensor, ...]:
    A = te.placeholder((8, 8), name="A")
    return A, te.compute((8, 8), lambda i, j: A[j, i] if swap else A[i, j])


DIFFERENT: list[tuple[tuple[Tensor, ...], tuple[Tensor, ...]]] = [
    (matmul_add(64), matmul_add(65)),
    (matmul_add(), matmul_add(dtype="float64")),
    (transposed_sum(True), transposed_sum(False)),
    (softmax(4, 8), softmax(8, 4)),
    (symbolic(), symbolic(te.size_var)),
    (symbolic(), symbolic(twice=True)),
    (diamond(), diamond()[:4]),
    (argmax(), (argmax()[0], *argmax()[:0:-1])),
    (matmul_add(), matmul_add()[::-1]),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_32_what_differs_has_another_key(a: tuple[Tensor, ...], b: tuple[Tensor, ...]) -> None:
    assert not dag_equal(a, b)
    assert dag_key(a) != dag_key(b)


def test_zero_and_minus_zero_differ() -> None:
    def plus(value: float) -> Tensor:
        A = te.placeholder((8,), name="A")
        made: Tensor = te.compute((8,), lambda i: te.max(A[i], value))
        return made

    assert not dag_equal([plus(0.0)], [plus(-0.0)])
    assert dag_equal([plus(float("nan"))], [plus(float("nan"))])


def test_an_axis_used_in_two_operations_is_no_confusion() -> None:
    def shared(same: bool) -> Tensor:
        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), "k")
        other = k if same else te.reduce_axis((0, 8), "k")
        first = te.compute((8,), lambda i: te.sum(A[i, k], axis=k))
        made: Tensor = te.compute((8,), lambda i: te.sum(first[other] * A[i, other], axis=other))
        return made

    assert dag_equal([shared(True)], [shared(False)])


def test_forms_are_small_for_deep_expressions() -> None:
    A = te.placeholder((8,), name="A")

    def squared(i: Var) -> PrimExpr:
        value = A(i)
        for _ in range(200):
            value = value * value  # 2**200 nodes as a tree
        return value

    assert len(canonical_form([te.compute((8,), squared)])[0]) < 400


def test_32_keys_agree_between_processes() -> None:
    code = (
        "from tensorexpr import te; from tensorexpr.te.identity import dag_key\n"
        "A = te.placeholder((8, 8), name='A')\n"
        "print(dag_key([A, te.compute((8, 8), lambda i, j: te.exp(A[j, i]) * 0.5)]))"
    )
    keys = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    A = te.placeholder((8, 8), name="B")
    assert keys == {dag_key([A, te.compute((8, 8), lambda x, y: te.exp(A[y, x]) * 0.5)]) + "\n"}


def test_conv_key_is_stable() -> None:
    assert dag_key(conv2d()) == dag_key(conv2d()) != dag_key(conv2d(8, 5))
