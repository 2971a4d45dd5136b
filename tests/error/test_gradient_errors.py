"""Everything that `te.gradient` refuses says why, and what would do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import DeclarationError
from tensorexpr.te import Tensor
from tensorexpr.te.derivative import derivative
from tensorexpr.te.tensor import element
from tensorexpr.tir import arithmetic, intrin
from tensorexpr.tir.expr import Broadcast, ProducerLoad

A = te.placeholder((4,), "float64", "A")


def test_an_unknown_intrinsic_is_named() -> None:
    output = te.compute((4,), lambda i: intrin.copysign(A[i], 1.0), name="output")
    with pytest.raises(DeclarationError, match=r"the intrinsic copysign is known, in .*express it by others: acos, .*exp, "):
        te.gradient(output, [A])


def test_an_unknown_intrinsic_of_something_else_is_no_matter() -> None:
    B = te.placeholder((4,), "float64", "B")
    output = te.compute((4,), lambda i: intrin.copysign(A[i], 1.0) * B[i], name="output")
    assert te.gradient(output, [B])


def test_extern_calls_are_named() -> None:
    output = te.compute((4,), lambda i: intrin.call_pure_extern("float64", "bessel", A[i]), name="output")
    with pytest.raises(DeclarationError, match=r"intrinsic call_pure_extern is known, in .*bessel"):
        te.gradient(output, [A])


def test_other_nodes_are_named() -> None:
    load = element(A, (0,))
    assert isinstance(load, ProducerLoad)
    with pytest.raises(DeclarationError, match=r"Broadcast \(.*\) has no derivative; known: Add, Sub"):
        derivative(Broadcast(load, 4), load)


def product() -> Tensor:
    k = te.reduce_axis((0, 4), "k")
    reducer = te.comm_reducer(lambda x, y: x * y, lambda dtype: arithmetic.const(1, dtype), "product")
    result: Tensor = te.compute((), lambda: reducer(A[k], axis=k), name="product")
    return result


def test_other_reductions_are_refused() -> None:
    message = r"te.gradient: product reduces by \(x \* y\), which has no derivative here; te.sum, te.max and te.min of one value have one"
    with pytest.raises(DeclarationError, match=message):
        te.gradient(product(), [A])


def test_other_reductions_of_something_else_are_no_matter() -> None:
    B = te.placeholder((4,), "float64", "B")
    total = product()
    output = te.compute((4,), lambda i: total() * B[i], name="output")
    assert te.gradient(output, [B])


def test_reductions_of_several_values_that_are_no_sums_are_refused() -> None:
    k = te.reduce_axis((0, 4), "k")
    reducer = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]), lambda a, b: (arithmetic.const(0, a), arithmetic.const(1, b)), "sum_and_product"
    )
    _, second = te.compute((), lambda: reducer((A[k], A[k] * 2.0), axis=k), name="two")
    with pytest.raises(DeclarationError, match=r"two reduces by \(x_0 \+ y_0, x_1 \* y_1\)"):
        te.gradient(second, [A])


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4,), "float32"), ((5,), "float64"), ((2, 4, 1), "float64"), ((), "float64")],
    ids=["dtype", "extent", "order", "ndim"],
)
def test_the_head_must_fit(shape: tuple[int, ...], dtype: str) -> None:
    output = te.compute((4,), lambda i: A[i] * 2.0, name="output")
    head = te.placeholder(shape, dtype, "seed")
    shown = re.escape(f"the head seed is {dtype} of shape [{', '.join(map(str, shape))}]")
    with pytest.raises(DeclarationError, match=shown + r"; its shape ends in that of output, \[4\], and its dtype is float64"):
        te.gradient(output, [A], head)


@pytest.mark.parametrize("wrong", [3, "A", None])
def test_only_tensors_are_differentiated(wrong: Any) -> None:
    output = te.compute((4,), lambda i: A[i] * 2.0, name="output")
    with pytest.raises(DeclarationError, match="is no tensor; it takes a tensor, a list of tensors"):
        te.gradient(output, [wrong])
    with pytest.raises(DeclarationError, match="is no tensor; it takes a tensor, a list of tensors"):
        te.gradient(wrong, [A])


def test_the_head_is_a_tensor() -> None:
    output = te.compute((4,), lambda i: A[i] * 2.0, name="output")
    with pytest.raises(DeclarationError, match=r"the head 1\.0 is no tensor"):
        te.gradient(output, [A], 1.0)  # type: ignore[arg-type]
