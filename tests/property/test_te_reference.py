"""The reference evaluator against the shortest program that could be right: loops over points, one number at a time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.te import ComputeOp, Tensor
from tensorexpr.te import reference as reference_module
from tensorexpr.te.evaluation import apply_node, children
from tensorexpr.te.reference import evaluate, evaluate_points
from tensorexpr.testing import assert_close, random_inputs, tolerance_of
from tensorexpr.testing.strategies import DagCase, compute_dags
from tensorexpr.tir.dtype import parse_dtype, to_numpy
from tensorexpr.tir.expr import Call, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Select, Var
from tests.effort import share_of


class Loops:
    """Evaluates elements one by one; branches are taken, not computed."""

    def __init__(self, arrays: Mapping[Tensor, Any]) -> None:
        self.arrays = dict(arrays)

    def whole(self, tensor: Tensor) -> Any:
        op = tensor.op
        if tensor not in self.arrays and isinstance(op, ComputeOp):
            shape = [extent.value for extent in tensor.shape if isinstance(extent, IntImm)]
            results = [np.empty(shape, to_numpy(body.dtype)) for body in op.body]
            for point in np.ndindex(*shape):
                env = {axis.var: np.int32(i) for axis, i in zip(op.axis, point, strict=True)}
                for result, element in zip(results, self.element(op, env), strict=True):
                    result[point] = element
            self.arrays.update({op.output(i): result for i, result in enumerate(results)})
        return self.arrays[tensor]

    def element(self, op: ComputeOp, env: dict[Var, Any]) -> list[Any]:
        first = op.body[0]
        if not isinstance(first, Reduce):
            return [self.value(body, env) for body in op.body]
        combiner = first.combiner
        values = [self.value(e, env) for e in (first.init or combiner.identity_element)]
        exact = len(values) == 1 and parse_dtype(first.dtype).is_float  # accumulated in float64, as sums are
        values = [np.float64(v) for v in values] if exact else values
        for point in product(*(indices(axis) for axis in first.axis)):
            inner = env | {axis.var: np.int32(i) for axis, i in zip(first.axis, point, strict=True)}
            if self.value(first.condition, inner):
                new = [self.value(source, inner) for source in first.source]
                pairs = dict(zip(combiner.lhs, values, strict=True)) | dict(zip(combiner.rhs, new, strict=True))
                values = [self.value(result, pairs) for result in combiner.result]
        return values

    def value(self, node: PrimExpr, env: Mapping[Var, Any]) -> Any:
        match node:
            case Var():
                return env[node]
            case Select(condition, yes, no) | Call(op="tir.if_then_else", args=(condition, yes, no)):
                return self.value(yes if self.value(condition, env) else no, env)
            case ProducerLoad(producer=producer, indices=at):
                index = tuple(int(self.value(i, env)) for i in at)
                assert isinstance(producer, Tensor) and all(i >= 0 for i in index)
                return self.whole(producer)[index]
        with np.errstate(all="ignore"):
            return apply_node(node, [self.value(child, env) for child in children(node)])


def indices(axis: IterVar) -> range:
    assert axis.dom is not None and isinstance(axis.dom.min, IntImm) and isinstance(axis.dom.extent, IntImm)
    return range(axis.dom.min.value, axis.dom.min.value + axis.dom.extent.value)


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(compute_dags(), st.integers(0, 3))
def test_evaluation_agrees_with_loops(case: DagCase, seed: int) -> None:
    inputs = random_inputs(case.results, seed)
    loops = Loops(inputs)
    for tensor, actual in zip(case.results, evaluate(case.results, inputs), strict=True):
        assert_close(actual, loops.whole(tensor), tolerance_of(tensor, 4.0), tensor.name)


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(compute_dags(), st.sampled_from([1 << 6, 1 << 9, 1 << 12]))
def test_block_sizes_do_not_matter(case: DagCase, size: int) -> None:
    inputs = random_inputs(case.results)
    expected = evaluate(case.results, inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference_module, "BLOCK_BYTES", size)
        for tensor, a, b in zip(case.results, evaluate(case.results, inputs), expected, strict=True):
            assert_close(a, b, tolerance_of(tensor, 4.0), tensor.name)


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(st.data(), compute_dags())
def test_points_agree_with_the_whole(data: st.DataObject, case: DagCase) -> None:
    inputs = random_inputs(case.results)
    for tensor, whole in zip(case.results, evaluate(case.results, inputs), strict=True):
        flat = data.draw(st.lists(st.integers(0, whole.size - 1), max_size=3))
        points = (
            np.stack(np.unravel_index(np.asarray(flat, np.int64), whole.shape), axis=1)
            if whole.ndim
            else np.zeros((len(flat), 0), np.int64)
        )
        expected = whole[tuple(points.T)] if whole.ndim else np.full(len(flat), whole)
        assert_close(evaluate_points(tensor, inputs, points), expected, tolerance_of(tensor, 4.0), tensor.name)


def overflowing_product() -> DagCase:
    """1e20 * 1e20 is infinite in float32, also where the evaluator could multiply in float64."""
    A, B = te.placeholder((7, 9), name="A"), te.placeholder((9, 5), name="B")
    k = te.reduce_axis((0, 9), "k")
    return DagCase((A, B), (te.compute((7, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k)),))


SPECIAL_LAYERS = ("binary", "reduction", "matmul", "convolution", "transpose", "argmax")


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(compute_dags(layers=SPECIAL_LAYERS, dtypes=("float32", "float64")), st.integers(0, 3))
@example(overflowing_product(), 0)
def test_28_special_values_agree_with_loops(case: DagCase, seed: int) -> None:
    """NaN, infinities and signed zeros go through products, maxima and sums as they do one by one."""
    inputs = random_inputs(case.results, seed, special=True)
    for array in inputs.values():  # beside the largest numbers the order of a sum decides about overflow
        array[...] = np.where(np.isfinite(array) & (np.abs(array) > 1e20), np.sign(array) * 1e20, array)
    loops = Loops(inputs)
    for tensor, actual in zip(case.results, evaluate(case.results, inputs), strict=True):
        expected = loops.whole(tensor)
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        np.testing.assert_array_equal(np.where(np.isinf(actual), actual, 0), np.where(np.isinf(expected), expected, 0))
