"""What people try first and mean otherwise: each says what to do, and nothing runs on forever."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import CodegenError, DeclarationError, LoweringError

A: Any = te.placeholder((8,), name="A")
M: Any = te.placeholder((8, 8), name="M")
K = te.reduce_axis((0, 8), "k")
SIZE = te.var("size")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")

PROTOCOLS: dict[str, Callable[[], Any]] = {
    "list": lambda: list(A),
    "sum": lambda: sum(A),
    "in": lambda: 3 in A,
    "for": lambda: [item for item in M[0]],
    "unpack": lambda: [*A],
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tensors_are_no_sequences(name: str) -> None:
    with pytest.raises(TypeError, match=r"'Tensor(Slice)?' object is not"):
        PROTOCOLS[name]()


def built(body: Callable[[Any], Any]) -> Any:
    made = te.compute((8,), body, name="C")
    return tvm.build(te.create_schedule(made.op), [A, made])


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "spatial axis": (lambda: built(lambda i: te.sum(A[i], axis=i)), DeclarationError, "sum over i, which is no reduction axis"),
    "no axis": (lambda: te.max(A[0]), DeclarationError, "max takes an axis to reduce over, or another value to combine with"),
    "free variable": (
        lambda: built(lambda i: A[i] + SIZE),
        CodegenError,
        "the variable size is used, but nothing defines it; give a te.var",
    ),
    "loose reduction axis": (lambda: built(lambda i: A[K]), CodegenError, "the variable k is used, but nothing defines it"),
    "tensor in place of a schedule": (lambda: tvm.build(B, [A, B]), LoweringError, "make a schedule of a tensor with te.create_schedule"),
    "division by zero": (lambda: te.compute((8,), lambda i: A[i // 0]), DeclarationError, "the integer division by 0 has no result"),
    "a combiner of several that gives one": (
        lambda: te.comm_reducer(lambda a, b: a[0], lambda *_: te.const(0.0))((A[K], A[K]), axis=K),
        DeclarationError,
        "a reducer of 2 values: fcombine and fidentity return a tuple of as many",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSOREXPR_VERIFY", raising=False)  # which would find the free variables first, as if passes had freed them
    request, kind, message = REFUSED[name]
    with pytest.raises(kind) as caught:
        request()
    assert message in str(caught.value)


def test_values_are_combined_by_position() -> None:
    c = te.compute((8,), lambda i: te.max(A[i], i), name="C")
    out = np.zeros(8, "float32")
    tvm.build(te.create_schedule(c.op), [A, c])(np.full(8, 3.5, "float32"), out)
    np.testing.assert_array_equal(out, np.maximum(3.5, np.arange(8)))
    total = te.compute((1,), lambda _: te.sum(A[K], K), name="total")
    assert total.op.reduce_axis == (K,)


def test_copies_of_what_does_not_change_are_itself() -> None:
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    assert copy.copy(A) is A and copy.deepcopy([B, B.op]) == [B, B.op]
    for made in (copy.copy(s), copy.deepcopy(s)):
        made[B].unroll(made[B].leaf_iter_vars[1])
        assert (len(made.trace), len(s.trace)) == (2, 1)


def test_one_tensor_is_a_list_of_one() -> None:
    zero = te.compute((4,), lambda i: i * 2, name="Z")
    assert "Z: T.Buffer((4,)" in str(tvm.lower(te.create_schedule(zero.op), zero))
