"""What schedules become, phase by phase, as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tests.conftest import Golden
from tests.packing import packed_matmul
from tests.programs import chain, conv_relu, matmul, matmul_add

Program = tuple[Schedule, list[Tensor]]


def tiled_matmul() -> Program:
    """Blocks in parallel, the multiplication inside its consumer, a register tile."""
    args = matmul_add(16, 64, 24)
    out = args[-1]
    matmul = out.op.input_tensors[0]
    s = create_schedule(out.op)
    i, j = out.op.axis
    io, jo, _, ji = s[out].tile(i, j, 8, 32)
    s[out].parallel(s[out].fuse(io, jo))
    s[out].vectorize(ji)
    s[matmul].compute_at(s[out], s[out].leaf_iter_vars[0])
    (mi, mj), (k,) = matmul.op.axis, matmul.op.reduce_axis
    ko, ki = s[matmul].split(k, factor=8)
    s[matmul].reorder(ko, ki, mi, mj)
    s[matmul].vectorize(mj)
    return s, args


def tail() -> Program:
    """A split that does not divide, vectorised."""
    a = te.placeholder((21,), name="A")
    b = te.compute((21,), lambda i: te.exp(a[i]), name="B")
    s = create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=8)[1])
    return s, [a, b]


def stencil() -> Program:
    """Two stages computed inside a loop of their consumer, with borders."""
    args = chain(20)
    d = args[-1]
    c, b = d.op.input_tensors
    s = create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=4)
    s[c].compute_at(s[d], outer)
    s[b].compute_at(s[d], outer)
    return s, args


def convolution() -> Program:
    """A padded convolution with its activation, nothing scheduled but the last axis."""
    args = conv_relu(2, 4, 4)
    out = args[-1]
    s = create_schedule(out.op)
    s[out].vectorize(out.op.axis[-1])
    return s, args


def uneven_matmul() -> Program:
    """Row tiles of two sizes with a register tile each, columns with a masked tail."""
    args = matmul(11, 37, 5)
    c = args[-1]
    s = create_schedule(c.op)
    cached = s.cache_write(c, "local")
    io, ii = s[c].split(c.op.axis[0], factor=4, balanced=True)
    jo, ji = s[c].split(c.op.axis[1], factor=16)
    s[c].reorder(jo, io, ii, ji)
    s[c].parallel(jo)
    s[c].vectorize(ji)
    s[cached].compute_at(s[c], io)
    (ci, cj), (k,) = cached.op.axis, cached.op.reduce_axis
    s[cached].reorder(k, ci, cj)
    s[cached].vectorize(cj)
    return s, args


def peeled_convolution() -> Program:
    """Padding skipped: taps by dynamic bounds, tiles of columns at the borders with bodies of their own."""
    args = conv_relu(2, 8, 16)
    out = args[-1]
    conv = out.op.input_tensors[0]
    s = create_schedule(out.op)
    s[conv.op.input_tensors[0]].compute_inline()
    o, i, j = out.op.axis
    jo, ji = s[out].split(j, factor=4)
    s[out].reorder(i, jo, ji, o)
    s[out].vectorize(o)
    s[conv].compute_at(s[out], jo)
    (co, _, cj), (rc, ri, rj) = conv.op.axis, conv.op.reduce_axis
    s[conv].reorder(ri, rj, rc, cj, co)
    s[conv].vectorize(co)
    s[conv].skip_padding(assume_finite=True)
    s[out].pragma(jo, "loop_partition_hint")
    return s, args


def tensorized() -> Program:
    """Bytes multiplied by a dot product of groups of four, two vectors of accumulators at a time."""
    a, b = te.placeholder((2, 8), "uint8", name="A"), te.placeholder((2, 2, 16, 4), "int8", name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute(
        (2, 32), lambda i, j: te.sum(a[i, k].astype("int32") * b[j // 16, k // 4, j % 16, k % 4].astype("int32"), axis=k), name="C"
    )
    s = create_schedule(c.op)
    (i, j), (k0,) = c.op.axis, c.op.reduce_axis
    jo, ji = s[c].split(j, factor=16)
    ko, ki = s[c].split(k0, factor=4)
    s[c].reorder(i, ko, jo, ji, ki)
    s[c].unroll(jo)
    s[c].tensorize(ji, te.intrinsics.dot_16x4_vnni())
    return s, [a, b, c]


def symbolic() -> Program:
    """One kernel for all n."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=16)
    s[b].vectorize(inner)
    s[b].parallel(outer)
    return s, [a, b]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "tiled_matmul": tiled_matmul, "tail": tail, "stencil": stencil, "convolution": convolution, "symbolic": symbolic,
    "tensorized": tensorized,
    "uneven_matmul": uneven_matmul, "peeled_convolution": peeled_convolution,
    "packed_matmul": lambda: packed_matmul(9, 40, 24, panel=16, rows=4),
}  # fmt: skip


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lowered(golden: Golden, name: str, phase: int) -> None:
    s, args = PROGRAMS[name]()
    golden(f"lowered/{name}.phase{phase}.py", tvm.lower(s, args, upto=phase).script())


@pytest.mark.parametrize("name", PROGRAMS)
def test_simple_mode(golden: Golden, name: str) -> None:
    s, args = PROGRAMS[name]()
    golden(f"lowered/{name}.simple.py", tvm.lower(s, args, simple_mode=True).script())
