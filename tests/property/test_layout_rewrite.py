"""Programs of random contractions compute the same whatever becomes of inputs whose layout is free, and traces survive it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.auto_scheduler import ComputeDAG, LayoutRewriteOption
from tensorexpr.auto_scheduler.layout_rewrite import rewrite_layouts
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule import Schedule, Trace
from tensorexpr.schedule.steps import PreTransformed
from tensorexpr.target import Target
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample
from tests.effort import share_of

MACHINE = Target("llvm -mcpu=znver5 -num-cores=2")
FREE = "layout_free_placeholders"


def product(rows: int, columns: int, depth: int, transposed: bool, follows: bool) -> list[Tensor]:
    """A matrix product whose second operand may be packed, alone or before an elementwise stage."""
    a = te.placeholder((rows, depth), name="A")
    b = te.placeholder((columns, depth) if transposed else (depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute(
        (rows, columns), lambda i, j: te.sum(a[i, k] * (b[j, k] if transposed else b[k, j]), axis=k), name="C", attrs={FREE: [b]}
    )
    return [a, b, te.compute((rows, columns), lambda i, j: c[i, j] * 2.0, name="D") if follows else c]


def convolution(channels: int, plane: int, outputs: int, taps: int) -> list[Tensor]:
    """A convolution of channels first, whose weights may be packed."""
    a = te.placeholder((channels, plane, plane), name="A")
    w = te.placeholder((outputs, channels, taps, taps), name="W")
    c, y, x = (te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "c"), (taps, "dy"), (taps, "dx")))
    size = plane - taps + 1
    body = te.compute(
        (outputs, size, size),
        lambda o, i, j: te.sum(a[c, i + y, j + x] * w[o, c, y, x], axis=[c, y, x]),
        name="C",
        attrs={FREE: [w]},
    )
    return [a, w, body]


CONTRACTIONS = st.one_of(
    st.builds(product, st.integers(1, 12), st.integers(1, 40), st.integers(1, 12), st.booleans(), st.booleans()),
    st.builds(convolution, st.integers(1, 4), st.integers(3, 6), st.integers(1, 20), st.integers(1, 3)),
)


def drawn_trace(tensors: list[Tensor], options: RuleOptions, seed: int) -> tuple[ComputeDAG, Trace]:
    """A computation and a program that some sketch of it makes."""
    dag, rng = ComputeDAG(tensors), np.random.default_rng(seed)
    sketches = generate_sketches(dag.outputs, dag.initial_tree, options)
    sketch = sketches[rng.integers(len(sketches))]
    rows = sample(sketch, 16, rng)
    valid = rows[extract(sketch, inline_stages(sketch.tree), rows, options.target).valid]
    return dag, sketch.trace_of((valid if len(valid) else rows)[0])


@settings(deadline=None, derandomize=True, max_examples=share_of(20))
@given(CONTRACTIONS, st.booleans(), st.integers(0, 1000))
def test_all_options_compute_the_same(tensors: list[Tensor], only_ansor: bool, seed: int) -> None:
    dag, trace = drawn_trace(tensors, RuleOptions(MACHINE, only_ansor=only_ansor), seed)
    for option in LayoutRewriteOption:
        made = rewrite_layouts(trace, dag.initial_tree, option)
        assert rewrite_layouts(made, dag.initial_tree, option) == made
        assert Trace.from_json(json.loads(json.dumps(made.to_json()))) == made
        given_packed = any(isinstance(step, PreTransformed) for step in made)
        assert not given_packed or option is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        schedule = Schedule(dag.outputs, made)
        assert given_packed == (schedule.arguments(tensors) != tensors)
        assert_schedule_correct(schedule, tensors, phases=(0,), compiled=given_packed)


@settings(deadline=None, derandomize=True, max_examples=6)
@given(CONTRACTIONS, st.integers(0, 1000))
def test_programs_of_a_search_for_packed_inputs_are_right(tensors: list[Tensor], seed: int) -> None:
    options = RuleOptions(MACHINE, layout_rewrite=LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
    dag, trace = drawn_trace(tensors, options, seed)
    assert_schedule_correct(Schedule(dag.outputs, trace), tensors, phases=(2,))


@settings(deadline=None, derandomize=True, max_examples=6)
@given(CONTRACTIONS, st.integers(0, 1000))
def test_a_computation_on_packed_inputs_is_the_same_computation(tensors: list[Tensor], seed: int) -> None:
    dag, trace = drawn_trace(tensors, RuleOptions(MACHINE, only_ansor=True), seed)
    rewritten = dag.rewrite_layout_from_state(trace)
    schedule, args = dag.apply_steps_from_state(trace, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
    assert [tensor.shape for tensor in rewritten.tensors] == [tensor.shape for tensor in args]
    rng = np.random.default_rng(seed)
    arrays = [rng.random([int(str(extent)) for extent in tensor.shape], np.float32) for tensor in tensors[:-1]]
    packed = [schedule.layout_of(tensor).map_ndarray(array) for tensor, array in zip(tensors, arrays, strict=False)]
    (plain,) = evaluate([tensors[-1]], dict(zip(tensors, arrays, strict=False)))
    (other,) = evaluate([rewritten.tensors[-1]], dict(zip(rewritten.tensors, packed, strict=False)))
    np.testing.assert_allclose(plain, other, rtol=1e-6)


@pytest.mark.parametrize("option", list(LayoutRewriteOption))
def test_python_lines_make_the_same_program(option: LayoutRewriteOption) -> None:
    tensors = product(4, 16, 6, False, False)
    dag, trace = drawn_trace(tensors, RuleOptions(MACHINE, only_ansor=True), 3)
    schedule = Schedule(dag.outputs, rewrite_layouts(trace, dag.initial_tree, option))
    again = te.create_schedule(tensors[-1].op)
    names = {"s": again, "te": te, **{tensor.op.name: tensor for tensor in tensors}}
    exec(schedule.as_python(), names)
    assert again.arguments(tensors)[1].shape == schedule.arguments(tensors)[1].shape
    assert_schedule_correct(again, tensors, phases=(0,), compiled=False)
