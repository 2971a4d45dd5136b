"""A trace of blocks as a step of a schedule: it computes what the computation says, it is a record, and nothing follows it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import LoweringError, RecordError, ScheduleError
from tensorexpr.lower.phase0.by_blocks import function_of_blocks
from tensorexpr.schedule.blocks import Schedule as BlockSchedule
from tensorexpr.schedule.layout_rewrite import with_given_layouts, with_transform_stages
from tensorexpr.schedule.steps import Annotate, ByBlocks, Knob
from tensorexpr.schedule.te_schedule import Schedule, create_schedule
from tensorexpr.schedule.trace import Trace
from tensorexpr.tir.arithmetic import as_int


def product(n: int, m: int, depth: int, names: str = "ABCD") -> list[te.Tensor]:
    """relu(A @ B) under names of the caller's."""
    a, b = te.placeholder((n, depth), name=names[0]), te.placeholder((depth, m), name=names[1])
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=names[2])
    return [a, b, te.compute((n, m), lambda i, j: te.max(c[i, j], 0.0), name=names[3])]


def tiled(tensors: list[te.Tensor], seed: int = 1) -> Trace:
    """A trace of random tiles, the innermost loop a vector."""
    sch = BlockSchedule(function_of_blocks(tensors), seed=seed)
    block = sch.get_block("block0")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2, max_innermost_factor=16))
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2, max_innermost_factor=4))
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.parallel(i0)
    trace: Any = sch.trace
    return Trace((ByBlocks(json.dumps(trace.as_json())),))


def ran(schedule: Schedule, tensors: list[te.Tensor]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What a program computes, and what it should."""
    a, b = (np.random.default_rng(0).standard_normal([as_int(n) or 0 for n in one.shape]).astype("float32") for one in tensors[:2])
    out = np.full((a.shape[0], b.shape[1]), np.nan, "float32")
    tvm.build(schedule, tensors)(a, b, out)
    return out, np.maximum(a @ b, 0)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 12), st.integers(1, 24), st.integers(1, 9), st.integers(1, 1 << 20))
def test_the_program_computes_what_is_declared(n: int, m: int, depth: int, seed: int) -> None:
    tensors = product(n, m, depth)
    trace = Trace.from_json(json.loads(json.dumps(tiled(tensors, seed).to_json())))
    np.testing.assert_allclose(*ran(Schedule((tensors[-1].op,), trace), tensors), rtol=1e-4, atol=1e-5)


def test_a_record_fits_equal_computations_of_other_names() -> None:
    trace, others = tiled(product(8, 16, 4)), product(8, 16, 4, names="wxyz")
    np.testing.assert_allclose(*ran(Schedule((others[-1].op,), trace), others), rtol=1e-4, atol=1e-5)


def test_steps_on_stages_and_traces_of_blocks_exclude_each_other() -> None:
    tensors = product(8, 16, 4)
    trace, s = tiled(tensors), create_schedule(tensors[-1].op)
    s[tensors[-1]].parallel(tensors[-1].op.axis[0])
    with pytest.raises(ScheduleError, match=r"as it was declared; D is scheduled already"):
        s.apply_step(trace.steps[0])
    after = Schedule((tensors[-1].op,), Trace((Knob("k", 2, 1), *trace.steps, Annotate(2, 0, "parallel"))))
    with pytest.raises(ScheduleError, match="made by a trace of blocks, which no step on stages follows"):
        tvm.lower(after, tensors)


def test_inputs_stay_as_they_are_declared() -> None:
    tensors = product(8, 16, 4)
    s = Schedule((tensors[-1].op,), tiled(tensors))
    assert with_given_layouts(s.trace, s.initial_tree, tensors[:2]) == with_transform_stages(s.trace, s.initial_tree) == s.trace


@pytest.mark.parametrize("text", ["no JSON", "[]", '[[["GetBlock",[],["block7","main"],["b0"]]],[]]'])
def test_what_is_no_trace_of_the_computation_is_refused(text: str) -> None:
    tensors = product(4, 4, 4)
    with pytest.raises(ScheduleError):
        tvm.lower(Schedule((tensors[-1].op,), Trace((ByBlocks(text),))), tensors)


def test_arguments_and_fields_are_checked() -> None:
    tensors = product(4, 4, 4)
    s = Schedule((tensors[-1].op,), tiled(tensors))
    with pytest.raises(LoweringError, match="has tensors as arguments"):
        tvm.lower(s, [*tensors, te.var("n")])
    with pytest.raises(LoweringError, match="leave binds out"):
        tvm.lower(s, tensors, binds={tensors[0]: tvm.tir.decl_buffer((4, 4), "float32")})
    with pytest.raises(RecordError, match="by_blocks"):
        Trace.from_json([["by_blocks", 3]])


def test_it_is_shown_as_the_lines_of_the_trace() -> None:
    tensors = product(8, 16, 4)
    s = Schedule((tensors[-1].op,), tiled(tensors))
    assert "inputs: A [8, 4], B [4, 16]\nloops by a trace of blocks:" in str(s)
    for text in (str(s), s.as_python()):
        assert 'sch.get_block(name="block0", func_name="main")' in text and "sch.vectorize(loop=" in text
    assert "no trace" in str(Schedule((tensors[-1].op,), Trace((ByBlocks("no trace"),))))
