"""The predicates of sketch rules."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.te import ComputeOp, Tensor
from tensorexpr.te.access import AccessAnalysis, SimpleAccess, is_strictly_inlineable, needs_multi_level_tiling, simple_access
from tensorexpr.tir.expr import ProducerLoad
from tensorexpr.tir.intrin import select

from .programs import conv2d, diamond, matmul_add, softmax

A = te.placeholder((16, 16), name="A")
V = te.placeholder((16,), name="V")
k = te.reduce_axis((0, 16), "k")


def access(tensor: Tensor) -> SimpleAccess | None:
    assert isinstance(tensor.op, ComputeOp)
    body = tensor.op.body[0]
    assert isinstance(body, ProducerLoad)
    return simple_access(tensor.op, body.indices)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (te.compute((16, 16), lambda i, j: A[i, j]), SimpleAccess(False, False, True)),
        (te.compute((8, 8), lambda i, j: A[i + 3, j + 1]), SimpleAccess(False, False, True)),
        (te.compute((8, 8), lambda i, j: A[i, 15 - 15 + j]), SimpleAccess(False, False, True)),
        (te.compute((16, 16), lambda i, j: A[j, i]), SimpleAccess(False, False, False)),
        (te.compute((16, 16), lambda i, j: A[i, i]), SimpleAccess(True, True, True)),
        (te.compute((16, 16), lambda i, j: A[i, 3]), SimpleAccess(True, False, True)),
        (te.compute((8, 8), lambda i, j: A[i * 2, j]), None),
        (te.compute((16, 16), lambda i, j: A[15 - i, j]), None),
    ],
)
def test_simple_access(tensor: Tensor, expected: SimpleAccess | None) -> None:
    assert access(tensor) == expected


INLINEABLE: list[tuple[Tensor, bool]] = [
    (te.compute((16, 16), lambda i, j: A[i, j] * 2.0), True),
    (te.compute((16, 16), lambda i, j: A[i, j] + V[j]), True),
    (te.compute((4, 4), lambda i, j: select(i.equal(j), 1.0, 0.0)), True),  # a constant tensor
    (te.compute((16, 16), lambda i, j: te.tanh(A[i, j])), True),
    (te.compute((16, 16), lambda i, j: te.exp(A[i, j])), False),
    (te.compute((16, 16), lambda i, j: A[j, i]), False),
    (te.compute((16,), lambda i: A[i, i]), False),
    (te.compute((8,), lambda i: V[i * 2]), False),
    (te.compute((16,), lambda i: te.if_then_else(i < 3, V[i], 0.0)), False),
    (te.compute((16,), lambda i: select(V[i] > 0.0, V[i], 0.0)), False),
    (te.compute((16,), lambda i: te.sum(A[i, k], axis=k)), False),
    (A, False),
]


@pytest.mark.parametrize(("tensor", "expected"), INLINEABLE)
def test_strictly_inlineable(tensor: Tensor, expected: bool) -> None:
    assert is_strictly_inlineable(tensor.op) is expected


def test_needs_multi_level_tiling() -> None:
    matmul = matmul_add()[3].op.input_tensors[0]
    assert needs_multi_level_tiling(matmul.op)
    data, _, relu = conv2d()
    conv = relu.op.input_tensors[0]
    assert needs_multi_level_tiling(conv.op) and not needs_multi_level_tiling(relu.op) and not needs_multi_level_tiling(data.op)
    rows = te.compute((16,), lambda i: te.sum(A[i, k], axis=k))
    assert not needs_multi_level_tiling(rows.op)
    once = te.compute((16, 16), lambda i, j: A[i, 0] + V[i])
    assert needs_multi_level_tiling(once.op)  # j is missing in both producers
    assert not needs_multi_level_tiling(te.compute((16, 1), lambda i, j: te.sum(A[i, k], axis=k)).op)
    hinted = te.compute((16, 16), lambda i, j: A[i, 0] + V[i], attrs={"auto_scheduler_simplify_const_tensor_indices": ["i"]})
    assert not needs_multi_level_tiling(hinted.op)


def test_graph_predicates_on_a_matmul() -> None:
    A, _, C, out = matmul_add()
    analysis = AccessAnalysis.of([out])
    matmul = out.op.input_tensors[0].op
    assert analysis.is_output(out.op) and not analysis.is_output(matmul)
    assert analysis.elementwise_match(matmul, out.op) and analysis.elementwise_match(out.op, out.op)
    assert not analysis.elementwise_match(A.op, matmul)
    assert analysis.num_common_outer_iterators(matmul, out.op) == 2
    assert analysis.num_common_outer_iterators(out.op, matmul) == 0
    assert len(analysis.reads(matmul, A.op)) == 1 and analysis.reads(matmul, C.op) == []


def test_graph_predicates_on_a_softmax() -> None:
    _, norm = softmax()
    analysis = AccessAnalysis.of([norm])
    exp, total = (tensor.op for tensor in norm.op.input_tensors)
    assert not analysis.elementwise_match(exp, norm.op)  # read twice
    assert not analysis.elementwise_match(total, norm.op)  # other shape
    assert analysis.num_common_outer_iterators(exp, norm.op) == 1  # 2 directly, 1 by way of the sum
    assert analysis.num_common_outer_iterators(total, norm.op) == 1


def test_a_chain_matches_only_along_single_consumers() -> None:
    _, a, b, _, d = diamond()
    analysis = AccessAnalysis.of([d])
    assert analysis.elementwise_match(b.op, d.op) and not analysis.elementwise_match(a.op, d.op)
    assert analysis.num_common_outer_iterators(a.op, d.op) == 1
