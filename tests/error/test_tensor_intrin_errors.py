"""What is refused of the declaration of a tensor intrinsic, and of the calls that it may make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import CodegenError, DeclarationError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.interpreter import interpret

# Declaring


def declared(fcompute: Callable[..., Any], **options: Any) -> str:
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i], name="y")
    with pytest.raises(DeclarationError) as caught:
        te.decl_tensor_intrin(y.op, fcompute, "mine", **options)
    return str(caught.value)


def test_statements_that_do_not_fit() -> None:
    assert "fcompute returns a statement or (body, reduce_init, reduce_update), not 7" in declared(lambda ins, outs: 7)
    assert "fcompute gave neither a body nor a reduce_update" in declared(lambda ins, outs: (None, outs[0].vstore([0], 0.0)))
    assert "y is no reduction, so a reduce_update has nothing to update" in declared(lambda i, o: (None, None, o[0].vstore([0], 0.0)))
    assert "its statement writes x, an input" in declared(lambda ins, outs: ins[0].vstore([0], 0.0))
    stray = te.var("stray", "float32")
    assert "its statement uses stray, which is neither a part of a buffer" in declared(lambda i, o: o[0].vstore([0], stray))
    assert "reduce_init reads the input x" in declared(lambda i, o: (o[0].vstore([0], 0.0), o[0].vstore([0], i[0].vload([0]))))


def test_computations_that_no_intrinsic_does() -> None:
    x, n = te.placeholder((8,), name="x"), te.var("n")
    y = te.compute((8,), lambda i: x[i], name="y")

    def refusal(op: Any) -> str:
        with pytest.raises(DeclarationError) as caught:
            te.decl_tensor_intrin(op, lambda ins, outs: outs[0].vstore([0], 0.0), "mine")
        return str(caught.value)

    assert "it is described by an operation such as C.op" in refusal(x.op)
    assert "reads y, which is computed; describe it over placeholders only" in refusal(te.compute((8,), lambda i: y[i]).op)
    symbolic = te.placeholder((2 * n,), name="s")
    assert "no dimension has the extent n, so nothing says how large it is" in refusal(te.compute((2 * n,), lambda i: symbolic[i]).op)
    assert "reads the elements 0:4 of dimension 0 of x, which has 8" in refusal(te.compute((4,), lambda i: x[i]).op)


def test_buffers_that_do_not_fit() -> None:
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i], name="y")

    def refusal(binds: dict[Tensor, tir.Buffer]) -> str:
        with pytest.raises(DeclarationError) as caught:
            te.decl_tensor_intrin(y.op, lambda ins, outs: outs[0].vstore([0], 0.0), "mine", binds)
        return str(caught.value)

    assert "the buffer bound to x is [4] of float32; the tensor is [8] of float32" in refusal({x: tir.decl_buffer((4,))})
    stride = te.var("s")
    both = {t: tir.decl_buffer((8,), strides=[stride], name=t.name) for t in (x, y)}
    assert "the buffers x and y share the variable s; give each its own" in refusal(both)


def test_a_vector_across_rows_that_lie_apart() -> None:
    x = te.placeholder((2, 4), name="x")
    y = te.compute((8,), lambda i: x[i // 4, i % 4], name="y")
    apart = tir.decl_buffer((2, 4), name="x", strides=[te.var("s"), 1], offset_factor=1)
    with pytest.raises(DeclarationError, match="takes more lanes than a row of x has, whose rows needn't follow each other"):
        te.decl_tensor_intrin(y.op, lambda i, o: o[0].vstore([0], i[0].vload([0, 0], "float32x8")), "mine", {x: apart})


# Pointers and LLVM's intrinsics


def test_access_masks() -> None:
    a = tir.decl_buffer((8,), name="A")
    with pytest.raises(DeclarationError, match='buffer A: access_mask is "r", "w" or "rw"'):
        a.access_ptr("x")
    with pytest.raises(ValueError, match="address_of takes an element of a buffer"):
        tir.address_of(tir.IntImm("int32", 3))


@pytest.mark.parametrize("declare", [tir.call_llvm_pure_intrin, tir.call_llvm_intrin])
def test_llvm_intrinsics_that_are_not_known(declare: Callable[..., tir.PrimExpr]) -> None:
    """As in TVM, they may be declared; who compiles or runs them is told which are known."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: declare("float32", "llvm.x86.nonsense", tir.const(1, "uint32"), a[i]), name="B")
    message = r"no LLVM intrinsic 'llvm.x86.nonsense' is known; known are .*llvm.x86.avx512.vpdpbusd.128.*llvm.<op> of .*sqrt"
    s = create_schedule(b.op)
    with pytest.raises(DeclarationError, match=message):
        tensorexpr.build(s, [a, b], target="llvm")
    with pytest.raises(DeclarationError, match=message):
        interpret(lower(s, [a, b])["main"], [np.zeros(4, np.float32), np.zeros(4, np.float32)])
    with pytest.raises(DeclarationError, match="no LLVM intrinsic 'nonsense' is known; known are "):
        declare("float32", "nonsense", tir.FloatImm("float32", 1.0))


def test_llvm_intrinsics_with_other_operands() -> None:
    one = tir.Broadcast(tir.FloatImm("float32", 1.0), 16)
    with pytest.raises(DeclarationError, match=r"vpdpbusd.512 takes 3 operands, not 1"):
        tir.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", one)
    with pytest.raises(DeclarationError, match="float32 stands where <16 x i32> belongs, which has 512 bits"):
        tir.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", tir.FloatImm("float32", 1.0), one, one)


def test_a_feature_that_the_target_lacks() -> None:
    a = te.placeholder((4, 4), "uint8", name="A")
    b = te.placeholder((1, 1, 16, 4), "int8", name="B")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute(
        (4, 16), lambda i, j: te.sum(a[i, k].astype("int32") * b[j // 16, k // 4, j % 16, k % 4].astype("int32"), axis=k), name="C"
    )
    s = create_schedule(c.op)
    s[c].tensorize(c.op.axis[1], te.intrinsics.dot_16x4_vnni())
    with pytest.raises(CodegenError, match=r"vpdpbusd.512 needs the CPU feature avx512vnni, which the target llvm .*haswell.* lacks"):
        tensorexpr.build(s, [a, b, c], target="llvm -mcpu=haswell")
