"""What is refused of buffers that an intrinsic binds to parts of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, LoweringError, TypeMismatchError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import create_schedule
from tensorexpr.tir.interpreter import InterpreterError, interpret

ZERO = tir.IntImm("int32", 0)


def with_layout(strides: Sequence[Any] | None = None, shape: Sequence[int] = (8, 4), **options: Any) -> str:
    """What is said of an intrinsic on tiles of 8 x 4 whose output buffer is declared so."""
    a = te.placeholder((8, 4), name="A")
    c = te.compute((8, 16), lambda i, j: a[i, j % 4] + 1.0, name="C")
    x = te.placeholder((8, 4), name="x")
    y = te.compute((8, 4), lambda i, j: x[i, j] + 1.0, name="y")
    out = tir.decl_buffer(shape, name="y", strides=strides, **options)
    free = tir.decl_buffer((8, 4), name="x", strides=[te.var("a"), te.var("b")], offset_factor=1)
    intrin = te.decl_tensor_intrin(y.op, lambda ins, outs: outs[0].vstore([0, 0], ins[0].vload([0, 0])), "tile", {x: free, y: out})
    s = create_schedule(c.op)
    jo, ji = s[c].split(c.op.axis[1], factor=4)
    s[c].reorder(jo, c.op.axis[0], ji)
    s[c].tensorize(c.op.axis[0], intrin)
    with pytest.raises(LoweringError) as caught:
        lower(s, [a, c], upto=1)
    return str(caught.value)


def test_a_layout_that_the_place_does_not_have() -> None:
    assert "buffer y is declared compact, so with stride 4 in dimension 0, but its box of C has stride 16 there" in with_layout(
        offset_factor=1
    )
    assert "buffer y is declared with stride 2 in dimension 1, but its box of C has stride 1 there" in with_layout([16, 2], offset_factor=1)
    assert "buffer y is declared with elem_offset 0, but its box of C starts at element j_outer * 4" in with_layout([16, 1])
    assert "declared with offset_factor=8, but its box of C starts at element j_outer * 4" in with_layout([16, 1], offset_factor=8)
    assert "declared with data_alignment=128, but the memory of C is aligned to 64" in with_layout(
        [16, 1], offset_factor=1, data_alignment=128
    )


def bound(buffer: tir.Buffer, source: tir.Buffer, region: Sequence[tuple[int, int]]) -> tir.PrimFunc:
    box = tuple(tir.Range.from_min_extent(tir.IntImm("int32", low), tir.IntImm("int32", extent)) for low, extent in region)
    body = tir.BufferBind(buffer, tir.BufferRegion(source, box), buffer.vstore([0] * buffer.ndim, 1.0))
    handle = tir.Var(source.name, "handle")
    return tir.PrimFunc((handle,), body, None, {handle: source})


@pytest.mark.parametrize(
    ("buffer", "region", "lowered", "interpreted"),
    [
        (((4,), None), [(0, 2), (0, 4)], "its dimension 0 is left out, but has extent 2, not 1", "is bound to a box of shape [2, 4]"),
        (
            ((4,), None),
            [(0, 1), (0, 5)],
            "declared with extent 4 in dimension 0, but its box of A has 5",
            "is bound to a box of shape [1, 5]",
        ),
        (((2, 4), None), [(0, 2), (0, 4)], "compact, so with stride 4 in dimension 0", "is compact, but is bound"),
        (((2, 4), [9, 1]), [(0, 2), (0, 4)], "with stride 9 in dimension 0", "stride 0 of b is 9, but its box has 8"),
    ],
)
def test_boxes_that_do_not_fit(buffer: Any, region: Any, lowered: str, interpreted: str) -> None:
    shape, strides = buffer
    source = tir.decl_buffer((8, 8), name="A")
    func = bound(tir.decl_buffer(shape, name="b", strides=strides, offset_factor=1), source, region)
    with pytest.raises(LoweringError) as caught:
        lower(func, upto=1)
    assert lowered in str(caught.value)
    with pytest.raises(InterpreterError) as seen:
        interpret(func, [np.zeros((8, 8), np.float32)])
    assert interpreted in str(seen.value)


def test_an_interpreted_box_out_of_bounds() -> None:
    func = bound(tir.decl_buffer((4,), name="b", offset_factor=1), tir.decl_buffer((8,), name="A"), [(6, 4)])
    with pytest.raises(InterpreterError, match="b is bound to A at 6:10, out of 0:8"):
        interpret(func, [np.zeros(8, np.float32)])


def test_bindings_that_make_no_sense() -> None:
    source = tir.decl_buffer((8,), name="A")
    with pytest.raises(TypeMismatchError, match="buffer b of int8 can't stand for a part of A, which is float32"):
        tir.BufferBind(
            tir.decl_buffer((4,), "int8", name="b"), tir.BufferRegion(source, (tir.Range.from_min_extent(ZERO, ZERO),)), tir.Evaluate(ZERO)
        )
    with pytest.raises(DeclarationError, match="buffer b has 2 dimensions, more than the 1 of A"):
        bound(tir.decl_buffer((1, 4), name="b"), source, [(0, 4)])
    with pytest.raises(DeclarationError, match="a box of A has 1 dimensions, not 2"):
        bound(tir.decl_buffer((4,), name="b"), source, [(0, 4), (0, 1)])
