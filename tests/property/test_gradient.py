"""Gradients of random computations against central differences, and compiled."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.te.operation import PlaceholderOp
from tensorexpr.te.reference import evaluate
from tensorexpr.testing import random_array, random_inputs
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import DagCase, compute_dags
from tensorexpr.testing.strategies.dags import extents_of
from tests.effort import share_of

LAYERS = ("unary_float", "binary", "reduction", "matmul", "convolution", "transpose", "reshape", "slice")
_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
_STEP = 1e-6


@settings(deadline=None, derandomize=True, max_examples=share_of(120), suppress_health_check=_QUIET)
@given(compute_dags(max_ops=4, layers=LAYERS, dtypes=("float64",)), st.integers(0, 100))
def test_slope_in_a_random_direction(case: DagCase, seed: int) -> None:
    output, inputs = case.results[0], list(case.inputs)
    arrays = random_inputs(inputs, seed)
    directions = random_inputs(inputs, seed + 1)
    head = te.placeholder(output.shape, "float64", "head")
    weights = random_array(extents_of(output), "float64", seed + 2)
    slopes = evaluate(te.gradient(output, inputs, head), {**arrays, head: weights})
    above, below = (evaluate([output], {t: arrays[t] + s * directions[t] for t in inputs})[0] for s in (_STEP, -_STEP))
    assume(np.isfinite(above).all() and np.isfinite(below).all() and np.abs(above).max(initial=0.0) < 1e4)
    expected = float((weights * (above - below)).sum()) / (2 * _STEP)
    found = sum(float((slope * directions[t]).sum()) for slope, t in zip(slopes, inputs, strict=True))
    scale = sum(float(np.abs(slope * directions[t]).sum()) for slope, t in zip(slopes, inputs, strict=True)) + np.abs(weights * above).sum()
    assert abs(found - expected) <= 1e-6 * (1.0 + scale)


@settings(deadline=None, derandomize=True, max_examples=share_of(40), suppress_health_check=_QUIET)
@given(compute_dags(max_ops=3, layers=LAYERS, dtypes=("float64",)), st.integers(0, 100))
def test_a_head_is_multiplied_with_the_jacobian(case: DagCase, seed: int) -> None:
    output, inputs = case.results[0], list(case.inputs)
    assume(np.prod(extents_of(output)) * max(np.prod(extents_of(t)) for t in inputs) <= 4000)
    head = te.placeholder((2, *output.shape), "float64", "head")
    arrays = {**random_inputs(inputs, seed), head: random_array((2, *extents_of(output)), "float64", seed + 2)}
    whole, products = te.gradient(output, inputs), te.gradient(output, inputs, head)
    for jacobian, product in zip(evaluate(whole, arrays), evaluate(products, arrays), strict=True):
        expected = np.tensordot(arrays[head], jacobian, axes=output.ndim)
        np.testing.assert_allclose(product, expected, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(expected).max(initial=0.0)))


@settings(deadline=None, derandomize=True, max_examples=share_of(12), suppress_health_check=_QUIET)
@given(compute_dags(max_ops=3, layers=LAYERS, dtypes=("float64", "float32")), st.integers(0, 100))
def test_gradients_lower_and_run(case: DagCase, seed: int) -> None:
    output = case.results[0]
    results = te.gradient(output, list(case.inputs), te.placeholder(output.shape, output.dtype, "head"))
    results = [result for result in results if not isinstance(result.op, PlaceholderOp)]
    ops = post_dfs_order([result.op for result in results])
    given_tensors = [op.output(0) for op in ops if isinstance(op, PlaceholderOp)]
    schedule = te.create_schedule([result.op for result in results])
    assert_schedule_correct(schedule, [*given_tensors, *results], seed=seed, phases=(0,))
