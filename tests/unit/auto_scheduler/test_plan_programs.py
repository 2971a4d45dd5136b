"""Programs of plans as sketches: which sizes they leave open, which of them come first, and what the model makes of them."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.auto_scheduler import default
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.default import default_schedule
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule.steps import BalancedSplit, SampleCategorical, SampleTile, Sampling, SkipPadding, Split, TransformLayout
from tensorexpr.spaces import default_schedule as planned
from tensorexpr.spaces.sizes import opened
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.evolution import Candidate, preferred
from tensorexpr.tune.features import extract
from tensorexpr.tune.space import Sketch
from tests.programs import matmul, softmax

AVX512 = Target("llvm -mcpu=znver5 -num-cores=2")


def conv(channels: int, plane: int, filters: int, kernel: int = 3, padding: int = 1) -> list[Tensor]:
    x, w = te.placeholder((1, channels, plane, plane), name="X"), te.placeholder((filters, channels, kernel, kernel), name="W")
    return [x, w, topi.nn.relu(topi.nn.conv2d(x, w, 1, padding, 1))]


def depthwise(channels: int, plane: int) -> list[Tensor]:
    x, w = te.placeholder((1, channels, plane, plane), name="X"), te.placeholder((channels, 1, 3, 3), name="W")
    return [x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)]


def plan_sketches(args: list[Tensor], only_ansor: bool = False) -> list[Sketch]:
    dag = ComputeDAG(args)
    found = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(AVX512, only_ansor=only_ansor))
    return [sketch for sketch in found if ":Plan" in sketch.name]


def open_values(sketch: Sketch) -> dict[tuple[int, ...], tuple[int, ...]]:
    """What is tried for each open size, by the size that the plan has."""
    assert sketch.preferred is not None
    return {value: tuple(decision.values[:, 0]) for value, decision in zip(sketch.preferred, sketch.decisions, strict=True)}


def test_a_product_leaves_rows_and_vectors_of_its_tile_open() -> None:
    sketch = plan_sketches(matmul(256, 256, 256))[0]
    found = [step for step in sketch.trace if isinstance(step, Sampling)]
    assert all(step.decision is None for step in found)
    rows = next(step for step in found if isinstance(step, SampleTile))
    assert {6, 7, 8, 9, 14} <= set(rows.sizes)
    assert sum(isinstance(step, SampleCategorical) for step in found) == 1


def test_what_a_layout_is_made_of_stays_closed() -> None:
    """The panel of 32 channels is an index of the accumulators and of the packed weights, so only its pixels are open."""
    sketch = plan_sketches(conv(64, 56, 64))[0]
    assert any(isinstance(step, TransformLayout) for step in sketch.trace)
    assert any(isinstance(step, SkipPadding) for step in sketch.trace)
    (decision,) = sketch.decisions
    assert sketch.preferred == ((14,),)
    assert decision.values.max() <= 30
    balanced = [step for step in sketch.trace if isinstance(step, BalancedSplit)]
    assert [step.factors for step in balanced] == [(None, (0, 0))]


def test_windows_leave_the_rows_of_a_tile_open_and_sums_their_accumulators() -> None:
    (rows,) = [values for value, values in open_values(plan_sketches(depthwise(32, 56))[0]).items() if value == (14,)]
    assert {1, 7, 14, 28} <= set(rows)
    x = te.placeholder((512, 4096), name="X")
    widths = open_values(plan_sketches([x, topi.sum(x, 1)])[0])
    assert widths[(128,)] == (16, 32, 48, 64, 128, 256)


def test_a_size_of_one_vector_stays_closed() -> None:
    sketch = plan_sketches(matmul(256, 256, 256))[0]
    assert sum(isinstance(step, Split) and step.factors == (None, 16) for step in sketch.trace) == 2


def test_tiles_of_one_size_on_two_stages_are_one_decision() -> None:
    """A product in blocks of the sum cuts its accumulators like its result."""
    args = matmul(128, 64, 20000)
    steps = [step for step in plan_sketches(args)[0].trace if isinstance(step, BalancedSplit) and step.factors[0] is None]
    assert len(steps) == 2
    assert steps[0].factors == steps[1].factors
    assert steps[0].stage != steps[1].stage


@pytest.mark.parametrize("args", [matmul(256, 256, 256), conv(64, 28, 128), depthwise(32, 56), softmax(512, 512)])
def test_the_plan_is_the_first_program_and_each_plan_is_there_once(args: list[Tensor]) -> None:
    sketches = plan_sketches(args)
    assert sketches[0].preferred_row is not None
    decided, _ = ComputeDAG(args).schedule(sketches[0].trace_of(sketches[0].preferred_row))
    assert str(decided) == str(planned(args, AVX512))
    assert len({tuple(map(str, sketch.trace)) for sketch in sketches}) == len(sketches)
    assert preferred(sketches)[0] == Candidate(0, sketches[0].preferred_row)


def test_contractions_have_plans_of_several_shapes() -> None:
    names = [sketch.name.partition(":")[2] for sketch in plan_sketches(conv(64, 56, 64))]
    assert names == ["Plan", "Plan2", "Plan3", "Plan4"]
    packed = [any(isinstance(step, TransformLayout) for step in sketch.trace) for sketch in plan_sketches(matmul(256, 256, 256))]
    assert set(packed) == {True, False}


@pytest.mark.parametrize("cpu", ["icelake-server", "sapphirerapids"])
def test_panels_beat_rows_that_are_half_a_page_apart(cpu: str) -> None:
    """Every multiply-add behind a line of such a row waits in the scheduler, which is full long before the reorder buffer is.

    On an Ice Lake server a product of 512 takes 1.42 times as long with its columns read where they lie as with panels of them.
    """
    target, dag, cycles = Target(f"llvm -mcpu={cpu} -num-cores=2"), ComputeDAG(matmul(512, 512, 512)), dict[bool, float]()
    for sketch in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))[:2]:
        made = extract(sketch, inline_stages(sketch.tree), np.array([sketch.preferred_row], np.int64), target)
        cycles[any(isinstance(step, TransformLayout) for step in sketch.trace)] = float(made.cycles[0])
    assert cycles[True] < cycles[False]


def test_ansor_has_no_plans() -> None:
    assert plan_sketches(matmul(64, 64, 64), only_ansor=True) == []


def test_opening_leaves_a_trace_without_sizes_as_it_is() -> None:
    s = te.create_schedule(matmul(8, 8, 8)[2].op)
    steps, preferred = opened(s.trace)
    assert steps == list(s.trace)
    assert preferred == []


def test_a_pixel_of_a_window_is_loaded_once_for_all_that_read_it() -> None:
    """14 rows of a tile read 16 rows of data for 3 taps, and each row of it at 3 columns."""
    sketch = plan_sketches(depthwise(32, 56))[0]
    rows = np.array([sketch.preferred_row, [0] * len(sketch.decisions)], np.int64)
    made = extract(sketch, inline_stages(sketch.tree), rows, AVX512)
    assert made.valid[0]
    assert made.cycles[0] < made.cycles[1] / 2  # a tile of one row waits for its only accumulator


MULTIPLY_ADD = re.compile(r"\w+_local_1\[\d+\] = \w+_local_1\[\d+\] \+ ")


def test_tiles_inside_have_no_conditions_where_they_are_the_parallel_loop() -> None:
    """Of `parallel tile in 5: 13 pixels`, three pixels wide windows, the first and the last tile meet the border.

    parallel tile in 5: if 1 <= tile < 4: for rx, rc: C[0] += ..., C[1] += ...; else: with conditions
    """
    x, w = te.placeholder((1, 64, 64), name="X"), te.placeholder((3, 64, 64), name="W")
    args = [x, w, topi.nn.conv1d(x, w, 1, 1, data_layout="NWC")]
    programs = []
    for trace in (sketch.trace_of(candidate.row) for sketch in plan_sketches(args) for candidate in preferred([sketch])[:1]):
        s, arrays = ComputeDAG(args).apply_steps_from_state(trace)
        with AVX512:
            text = str(tvm.lower(s, arrays))
        if re.search(r"T\.parallel\(5\)", text) and any(isinstance(step, SkipPadding) for step in trace):
            inside, border = text.split("else:", 1)
            programs.append(inside)
            assert MULTIPLY_ADD.search(inside) and MULTIPLY_ADD.search(border)
    assert programs
    for inside in programs:
        lines = inside.splitlines()
        assert not [line for line, after in pairwise(lines) if "if " in line and MULTIPLY_ADD.search(after)]


@pytest.mark.parametrize("args", [matmul(1009, 1009, 1009), conv(512, 7, 512), depthwise(144, 56)], ids=["product", "conv", "depthwise"])
def test_the_zero_trial_schedule_is_the_plan(args: list[Tensor]) -> None:
    """Only what promises half as much again is preferred to it."""
    assert str(default_schedule(args, AVX512)) == str(planned(args, AVX512))


def test_the_zero_trial_schedule_leaves_a_plan_for_what_promises_much_more(monkeypatch: pytest.MonkeyPatch) -> None:
    args = conv(512, 7, 512)
    monkeypatch.setattr(default, "_WORTH_LEAVING_A_PLAN", 1e-3)
    assert str(default_schedule(args, AVX512)) != str(planned(args, AVX512))
