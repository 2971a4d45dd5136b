"""Default schedules of products whose operands are computed: stored, computed while panels are packed, or computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir, topi
from tensorexpr.arith import Analyzer
from tensorexpr.schedule.domain import axis_extents
from tensorexpr.schedule.steps import Materialize
from tensorexpr.schedule.tree import At, Inline
from tensorexpr.spaces import parts
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.topi.schedules import default_schedule

TARGET = Target("llvm -mcpu=znver3 -num-cores=2")
Tensors = list[Tensor]


def product(a: Tensor, b: Tensor, name: str) -> Tensor:
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=name)


def layers(rows: int, columns: int) -> Tensors:
    """Y = relu(X @ W + b) @ V."""
    x, w, b = te.placeholder((rows, 24), name="X"), te.placeholder((24, 16), name="W"), te.placeholder((16,), name="b")
    v = te.placeholder((16, columns), name="V")
    first = product(x, w, "P")
    hidden = topi.nn.relu(te.compute(first.shape, lambda i, j: first[i, j] + b[j], name="S"))
    return [x, w, b, v, product(hidden, v, "Y")]


def inlined(tensors: Tensors) -> set[str]:
    tree = default_schedule(tensors, TARGET).tree
    return {stage.name for stage in tree.stages if isinstance(stage.attach, Inline)}


def test_what_follows_one_product_and_precedes_another_is_stored_in_tiles_of_the_first() -> None:
    """Each panel of V would compute it again: 128 x 512 x 713 x 512 in 1.87 ms, 1.14 stored (two cores of Zen 3)."""
    assert inlined(layers(12, 40)) == {"S"}
    tree = default_schedule(layers(12, 40), TARGET).tree
    (held,) = [stage for stage in tree.stages if stage.name == "P"]
    assert isinstance(held.attach, At) and tree[held.attach.stage].name == "T_relu"


def scaled(rows: int, columns: int, depth: int, of_left: bool) -> Tensors:
    a, b, c = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B"), te.placeholder((depth,), name="c")
    if of_left:
        return [a, b, c, product(te.compute(a.shape, lambda i, k: a[i, k] * c[k], name="S"), b, "Y")]
    return [a, b, c, product(a, te.compute(b.shape, lambda k, j: b[k, j] * c[k], name="S"), "Y")]


@pytest.mark.parametrize(("rows", "columns", "stored"), [(64, 64, False), (1024, 512, True)])
def test_a_loop_of_its_own_has_to_be_worth_it(rows: int, columns: int, stored: bool) -> None:
    assert ("S" not in inlined(scaled(rows, columns, 64, of_left=True))) is stored


@pytest.mark.parametrize(("rows", "packed"), [(4, False), (16, True)])
def test_panels_are_made_of_what_is_computed(rows: int, packed: bool) -> None:
    schedule = default_schedule(scaled(rows, 40, 64, of_left=False), TARGET)
    (scale,) = [stage for stage in schedule.tree.stages if stage.name == "S"]
    assert isinstance(scale.attach, At if packed else Inline)


@pytest.mark.parametrize(
    "tensors", [layers(12, 40), layers(7, 4), scaled(17, 21, 9, True), scaled(17, 21, 9, False), scaled(3, 21, 9, False)]
)
def test_they_compute_what_is_declared(tensors: Tensors) -> None:
    assert_schedule_correct(default_schedule(tensors, TARGET), tensors, phases=(0,))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("shape", [(21, 13), (64, 40), (300, 20)])
def test_products_of_a_matrix_and_its_transpose(shape: tuple[int, int], dtype: str) -> None:
    a, k, total = te.placeholder(shape, dtype, name="A"), te.reduce_axis((0, shape[1]), "k"), "int32" if dtype == "int8" else dtype
    out = te.compute((shape[0], shape[0]), lambda i, j: te.sum(a[i, k].astype(total) * a[j, k].astype(total), axis=k), name="G")
    data, found = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype), np.empty((shape[0], shape[0]), total)
    tvm.build(default_schedule([a, out], "llvm"), [a, out])(data, found)
    np.testing.assert_array_equal(found, data.astype(total) @ data.astype(total).T)


FORMS: dict[str, Callable[[Tensor, Tensor, Tensor, Any], Callable[..., Any]]] = {
    "a scaled row": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] * c[k] * b[k, j], axis=k),
    "a scaled column": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] * (c[k] * b[k, j]), axis=k),
    "a triangle": lambda a, b, c, k: lambda i, j: te.sum(tir.if_then_else(k <= i, a[i, k], 0.0) * b[k, j], axis=k),
    "both": lambda a, b, c, k: lambda i, j: te.sum(te.exp(a[i, k]) * ((b[k, j] - c[j]) * c[k]), axis=k),
    "the largest": lambda a, b, c, k: lambda i, j: te.max(a[i, k] + c[k] + b[k, j], axis=k),
}


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_one_side_are_computed_once(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A[i, k] * c[k] * B[k, j] of 424 x 256 x 473 took 1.46 ms, 0.71 since; exp(A[i, k]) * B[k, j] 9.0 and 0.66 (two cores of Zen 3)."""
    a, b, c = te.placeholder((17, 21), name="A"), te.placeholder((21, 21), name="B"), te.placeholder((21,), name="c")
    out = te.compute((17, 19), FORMS[form](a, b, c, te.reduce_axis((0, 21), "k")), name="Y")
    tensors = [tensor for tensor in (a, b, c) if any(tensor.op is read.op for read in out.op.input_tensors)] + [out]

    def made() -> int:
        return sum(isinstance(step, Materialize) for step in default_schedule(tensors, TARGET).trace)

    assert made() == form.count("column") + (form == "both")
    monkeypatch.setattr(parts, "WORTH_A_LOOP", 1)
    assert made() == 1 + (form == "both")
    assert_schedule_correct(default_schedule(tensors, TARGET), tensors, phases=(0,))


def beside(quantised: int, copied: int, is_first: bool) -> Tensors:
    """Bytes of another scale, beside bytes that are copied."""
    a, b = te.placeholder((6, quantised), "uint8", name="A"), te.placeholder((6, copied), "uint8", name="B")
    scale, zero = te.placeholder((1,), "float32", name="S"), te.placeholder((1,), "uint8", name="Z")
    real = te.compute(a.shape, lambda i, j: (a[i, j].astype("int32") - zero[0].astype("int32")).astype("float32") * scale[0], name="R")
    bytes_ = te.compute(a.shape, lambda i, j: te.max(te.min(te.nearbyint(real[i, j]), 255.0), 0.0).astype("uint8"), name="Q")
    return [a, b, scale, zero, topi.concatenate([bytes_, b] if is_first else [b, bytes_], axis=1)]


@pytest.mark.parametrize(
    "quantised, copied, is_first, lanes",
    [(64, 64, True, 64), (32, 96, False, 32), (40, 24, True, 8), (61, 67, True, 128)],
    ids=["halves", "unequal", "short", "odd"],
)
def test_vectors_end_where_a_row_goes_on_with_another_operand(quantised: int, copied: int, is_first: bool, lanes: int) -> None:
    tensors = beside(quantised, copied, is_first)
    s = default_schedule(tensors, Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -num-cores=2"))
    stored = [stage for stage in s.tree.stages if not stage.is_placeholder and not isinstance(stage.attach, Inline)]
    assert [stage.name for stage in stored] == ["T_concat"], "scales and zeros are no operands of a product"
    # behind the rows, the columns and the loop over vectors
    assert as_int(axis_extents(stored[0], Analyzer())[3]) == lanes
    assert_schedule_correct(s, tensors)
