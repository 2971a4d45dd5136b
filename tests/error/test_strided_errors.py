"""What is refused about buffers that stand for tensors, at the declaration, at lowering and at the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ArgumentError, DeclarationError, LoweringError, ScheduleError
from tensorexpr.lower.pipeline import lower

N, M = te.var("n"), te.var("m")
A = te.placeholder((N, M), name="A")
B = te.compute((N, M), lambda i, j: A[i, j] * 2.0, name="B")


def lowered(**declared: Any) -> None:
    """Lower with a buffer of A's own."""
    shape = declared.pop("shape", (N, M))
    lower(te.create_schedule(B.op), [A, B], binds={A: tir.decl_buffer(shape, name="A", **declared)})


def test_one_stride_for_each_dimension() -> None:
    with pytest.raises(DeclarationError, match="buffer A has 2 dimensions and 1 strides; give one for each dimension, or none"):
        lowered(strides=[3])


def test_strides_are_integers() -> None:
    with pytest.raises(DeclarationError, match=r"buffer A: the stride .*1\.5.* is no integer; strides count elements"):
        lowered(strides=[1.5, 1])


def test_the_dtype_is_the_tensors() -> None:
    with pytest.raises(LoweringError, match="argument 0, A: its buffer holds float64, the tensor float32; declare the buffer with float32"):
        lowered(dtype="float64")


@pytest.mark.parametrize(
    ("shape", "text"), [((N,), r"\[n\]"), ((M, N), r"\[m, n\]"), ((4, 4), r"\[4, 4\]"), ((N, M + 1), r"\[n, m \+ 1\]")]
)
def test_the_shape_is_the_tensors(shape: tuple[Any, ...], text: str) -> None:
    with pytest.raises(LoweringError, match=rf"its buffer has the shape {text}, the tensor \[n, m\]; declare the buffer with the tensor's"):
        lowered(shape=shape)


def test_a_constant_offset_is_a_view() -> None:
    with pytest.raises(LoweringError, match=r"its buffer starts at element 4, but an argument points at its first element; .* x\[4:\]"):
        lowered(elem_offset=4)


def test_calls_with_other_strides_or_shapes() -> None:
    rows = tir.decl_buffer((N, M), name="A", strides=[te.var("row"), 1])
    f = tvm.build(te.create_schedule(B.op), [A, B], name="twice", binds={A: rows})
    out = np.zeros((4, 6), np.float32)
    wide = np.zeros((4, 12), np.float32)
    f(wide[:, :6], out)
    with pytest.raises(ArgumentError, match=r"twice: argument A \(1 of 2\) has stride 1 2, needs 1"):
        f(wide[:, ::2], out)
    with pytest.raises(ArgumentError, match=r"twice: argument B \(2 of 2\) has extent 1 6, but m is 12 \(extent 1 of A\)"):
        f(wide, out)
    with pytest.raises(ArgumentError, match=r"twice: argument B \(2 of 2\) has strides \(96, 8\), needs compact rows"):
        f(wide, np.zeros((4, 24), np.float32)[:, ::2])


def test_shared_strides_must_agree() -> None:
    row = te.var("row")
    binds = {t: tir.decl_buffer((N, M), name=t.name, strides=[row, 1]) for t in (A, B)}
    f = tvm.build(te.create_schedule(B.op), [A, B], name="twice", binds=binds)
    wide = np.zeros((4, 12), np.float32)
    f(wide[:, :6], np.zeros((4, 12), np.float32)[:, :6])
    with pytest.raises(ArgumentError, match=r"twice: argument B \(2 of 2\) has stride 0 6, but row is 12 \(stride 0 of A\)"):
        f(wide[:, :6], np.zeros((4, 6), np.float32))


def test_written_elements_that_share_an_address() -> None:
    strides = [te.var("s0"), te.var("s1")]
    f = tvm.build(te.create_schedule(B.op), [A, B], name="twice", binds={B: tir.decl_buffer((N, M), name="B", strides=strides)})
    windows = np.lib.stride_tricks.as_strided(np.zeros(20, np.float32), (4, 6), (8, 4))
    with pytest.raises(
        ArgumentError, match=r"twice: argument B \(2 of 2\) is written, and its strides \(8, 4\) repeat elements; pass x.copy"
    ):
        f(np.zeros((4, 6), np.float32), windows)


@pytest.mark.parametrize("factor", [2.5, True, "8", 0])
def test_factors_of_splits_are_constants(factor: Any) -> None:
    s = te.create_schedule(B.op)
    with pytest.raises(ScheduleError, match="a factor is an integer of at least 1"):
        s[B].split(B.op.axis[0], factor=factor)
    assert not len(s.trace)
