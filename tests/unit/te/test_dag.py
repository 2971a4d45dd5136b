"""Order, readers and cost of a graph. The orders were compared with TVM 0.19 on 600 random graphs; these are the telling ones."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.te import Tensor
from tensorexpr.te.dag import consumer_map, output_ops, post_dfs_order, producer_map, topological_order
from tensorexpr.te.flops import flop_count
from tensorexpr.tir.arithmetic import logical_not
from tensorexpr.tir.expr import Let
from tensorexpr.tir.intrin import call_pure_extern, select

from .programs import argmax, conv2d, diamond, matmul_add, softmax


def graph(edges: list[list[int]]) -> list[Tensor]:
    """Tensor t<n> reads those listed; a placeholder where none is."""
    tensors: list[Tensor] = []
    for number, inputs in enumerate(edges):
        read = [tensors[i] for i in inputs]
        if read:
            tensors.append(te.compute((4,), lambda i, read=read: te.sum(*(t[i] for t in read), 0.0), name=f"t{number}"))
        else:
            tensors.append(te.placeholder((4,), name=f"t{number}"))
    return tensors


# edges, outputs, order of a compute DAG, order of the stages of a te schedule
ORDERS: list[tuple[list[list[int]], list[int], list[int], list[int]]] = [
    ([[], [], [1, 0], [0, 2, 2]], [3], [0, 1, 2, 3], [0, 1, 2, 3]),
    ([[], [0], [], [2, 0], []], [1, 3], [0, 1, 2, 3], [0, 1, 2, 3]),
    ([[], [], [0, 1], [0, 0], [], [1]], [2, 3, 5], [0, 3, 1, 2, 5], [0, 1, 2, 3, 5]),
    ([[], [0], [1, 1], [0, 2, 0], [], [1]], [3, 5, 2], [0, 1, 5, 2, 3], [0, 1, 2, 3, 5]),
    ([[], [0], [], [], [2], [2], [0]], [1, 4, 5, 6], [2, 4, 5, 0, 1, 6], [0, 1, 2, 4, 5, 6]),
]


@pytest.mark.parametrize(("edges", "outputs", "dag", "stages"), ORDERS)
def test_orders(edges: list[list[int]], outputs: list[int], dag: list[int], stages: list[int]) -> None:
    tensors = graph(edges)
    chosen = [tensors[i] for i in outputs]
    assert [op.name for op in topological_order(chosen)] == [f"t{i}" for i in dag]
    assert [op.name for op in post_dfs_order([t.op for t in chosen])] == [f"t{i}" for i in stages]


def test_the_order_follows_the_inputs_of_each_operation() -> None:
    A, B, C, out = matmul_add()
    assert [op.name for op in topological_order([A, B, C, out])] == ["A", "B", "matmul", "C", "out"]
    assert [op.name for op in topological_order([out])] == ["A", "B", "matmul", "C", "out"]


def test_placeholders_that_nothing_reads_are_left_out() -> None:
    _, _, _, out = matmul_add()
    unread = te.placeholder((3,), name="unread")
    assert unread.op not in topological_order([unread, out])
    assert topological_order([unread]) == ()


def test_readers_and_producers() -> None:
    V, a, b, c, d = diamond()
    ops = topological_order([d])
    assert consumer_map(ops)[a.op] == (c.op, b.op) and consumer_map(ops)[d.op] == ()
    assert producer_map(ops)[d.op] == (c.op, b.op) and producer_map(ops)[V.op] == ()
    assert output_ops(ops) == (d.op,)


def test_deep_chains_need_no_recursion() -> None:
    tensor = te.placeholder((2,), name="x")
    for _ in range(3000):
        tensor = te.compute((2,), lambda i, source=tensor: source[i] + 1.0)
    assert len(topological_order([tensor])) == 3001 == len(post_dfs_order([tensor.op]))


V = te.placeholder((8,), name="V")
I32 = te.placeholder((8,), "int32", name="I")
Flag = te.placeholder((8,), "bool", name="Flag")
n = te.var("n")
alpha = te.var("alpha", "float32")


@pytest.mark.parametrize(
    ("tensors", "flops"),
    [
        (matmul_add(64), 528384.0),
        (conv2d(), 18432.0 + 256),
        (softmax(), 256.0),
        (argmax(), 0.0),
        ([te.compute((8,), lambda i: te.max(te.min(V[i], 1.0), 0.0))], 16.0),
        ([te.compute((8,), lambda i: V[i].astype("int32"))], 0.0),
        ([te.compute((8,), lambda i: te.floordiv(I32[i], 3) + te.floormod(I32[i], 3))], 24.0),
        ([te.compute((8,), lambda i: te.all(V[i] > 0.0, V[i] <= 1.0, V[i].equal(0.5)))], 16.0),
        ([te.compute((8,), lambda i: te.any(Flag[i], logical_not(Flag[i])))], 16.0),
        ([te.compute((8,), lambda i: select(i < 4, V[i] * V[i] + 1.0, V[i]))], 16.0),
        ([te.compute((8,), lambda i: V[i] + 1.0, attrs={"FLOP": 77})], 77.0),
        ([te.compute((8,), lambda i: (V[i] * 2.0, V[i] + 1.0))[0]], 16.0),
        ([te.compute((n,), lambda i: te.exp(V[i] + 1.0))], -1.0),
        ([te.compute((8,), lambda i: call_pure_extern("float32", "sinf", V[i]))], -1.0),
        ([te.compute((8,), lambda i: Let(alpha, V(i), alpha * alpha))], -1.0),
        ([te.compute((), lambda: V[0] + 1.0)], 1.0),
    ],
)
def test_flops(tensors: list[Tensor], flops: float) -> None:
    assert flop_count(tensors) == flops


def test_a_shared_subexpression_counts_as_often_as_it_is_written() -> None:
    assert flop_count([te.compute((8,), lambda i: (V[i] + 1.0) * (V[i] + 1.0))]) == 24.0
