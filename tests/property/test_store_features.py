"""The per-store features of sampled candidates are those of the programs that lowering makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tensorexpr import auto_scheduler, te, topi
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.features.per_store import per_store, per_store_names
from tensorexpr.tune.population import sample
from tests.property.store_features import slow_features


def matmul_add() -> list[Tensor]:
    """A product and what is added to it."""
    a, b, d = (te.placeholder((48, 48), name=name) for name in "ABD")
    k = te.reduce_axis((0, 48), name="k")
    product = te.compute((48, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")
    return [a, b, d, te.compute((48, 48), lambda i, j: product[i, j] + d[i, j], name="out")]


def uneven_matmul() -> list[Tensor]:
    """Extents that few factors divide, and no consumer."""
    a, b = te.placeholder((35, 22), name="A"), te.placeholder((22, 45), name="B")
    k = te.reduce_axis((0, 22), name="k")
    return [a, b, te.compute((35, 45), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def conv2d_relu() -> list[Tensor]:
    """A padded convolution."""
    x, w = te.placeholder((1, 8, 14, 14), name="X"), te.placeholder((16, 8, 3, 3), name="W")
    return [x, w, topi.nn.relu(topi.nn.conv2d_nchw(x, w, stride=2, padding=1, dilation=1))]


def softmax() -> list[Tensor]:
    """Four stages, two of them reductions."""
    x = te.placeholder((24, 64), name="X")
    return [x, topi.nn.softmax(x, axis=1)]


def integers() -> list[Tensor]:
    """Sums of small integers, with a comparison."""
    a = te.placeholder((20, 40), "int8", name="A")
    k = te.reduce_axis((0, 40), name="k")
    total = te.compute((20,), lambda i: te.sum(a[i, k].astype("int32"), axis=k), name="total")
    return [a, te.compute((20,), lambda i: te.if_then_else(total[i] > 3, total[i] * 2, total[i] // 3), name="out")]


def transposed() -> list[Tensor]:
    """Two reads of one tensor, one of them across."""
    x = te.placeholder((32, 32), name="X")
    return [x, te.compute((32, 32), lambda i, j: te.exp(x[i, j]) + x[j, i], name="out")]


def batch_matmul() -> list[Tensor]:
    """A batch of products."""
    x, y = te.placeholder((3, 16, 8), name="X"), te.placeholder((3, 24, 8), name="Y")
    return [x, y, topi.nn.batch_matmul(x, y)]


DAGS = (matmul_add, uneven_matmul, conv2d_relu, softmax, integers, transposed, batch_matmul)
SAMPLES = {"ansor": 6, "all": 2}  # of each of a few sketches, or of tens
NAMES = per_store_names()


@pytest.mark.parametrize("make", DAGS)
@pytest.mark.parametrize("rules", ["ansor", "all"])
def test_features_are_those_of_the_lowered_program(make: Callable[[], list[Tensor]], rules: str) -> None:
    task = auto_scheduler.SearchTask(compute_dag=make(), target="llvm -num-cores=4")
    rng = np.random.default_rng(0)
    stores = 0
    for sketch in auto_scheduler.SketchPolicy(task, params={"rules": rules}).generate_sketches():
        rows = sample(sketch, SAMPLES[rules], rng)
        made = per_store(sketch, inline_stages(sketch.tree), rows)
        assert np.isfinite(made.features).all()
        for row, features in zip(rows, made.features, strict=True):
            schedule = Schedule(sketch.outputs, replace(sketch, finish=None).trace_of(row))
            slow = slow_features(lower(schedule, task.compute_dag.tensors, upto=0)["main"])
            for tensor, found in zip(made.stores, features, strict=True):
                wanted = np.array([slow[tensor.name].get(name, 0.0) for name in NAMES])
                apart = [f"{name}: {f:.4f}, lowered {w:.4f}" for name, f, w in zip(NAMES, found, wanted, strict=True) if abs(f - w) > 1e-6]
                assert not apart, f"{tensor.name} of {sketch.name}, row {row.tolist()}: {'; '.join(apart)}"
                stores += 1
    assert stores
