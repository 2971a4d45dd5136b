"""Random sequences of all primitives of tir.Schedule keep what a function computes; illegal ones change nothing.

What is drawn is whatever is registered, so a new primitive is covered as soon as it exists.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule.blocks.instruction import KINDS
from tensorexpr.script import from_source
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.te.operation import ComputeOp, PlaceholderOp
from tensorexpr.testing import assert_func_correct, random_array
from tensorexpr.testing.strategies import compute_dags, tir_schedules
from tensorexpr.testing.strategies.tir_schedules import BY_PROMISE, drawable_kinds
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tir.verify import verify_well_formed
from tests import placement_programs as placement
from tests.block_programs import BY_HAND
from tests.effort import share_of

OF_COMPUTES = compute_dags().filter(lambda dag: {type(op) for op in post_dfs_order(dag.outputs)} <= {ComputeOp, PlaceholderOp})
DECORATED: dict[str, Callable[[], tir.PrimFunc]] = {
    "guarded_copy": BY_HAND["guarded_copy"],
    "tiles": BY_HAND["tiles"],
    "guarded": placement.guarded,
    "carried": placement.carried,
    "overlapping": placement.overlapping,
    "prefix_sums": placement.prefix_sums,
    "updated": placement.updated,
    "written_twice": placement.written_twice,
    "two_places": placement.two_places,
    "repeated": placement.repeated,
    "halves": placement.halves,
}
# They copy all of a buffer, also what was never written there.
WHOLE_COPIES = ("CacheRead", "CacheWrite", "CacheInplace", "ReIndex", "ReindexCacheRead", "ReindexCacheWrite", "ReadAt", "WriteAt")


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_random_primitives_keep_what_tensors_say(data: st.DataObject) -> None:
    dag = data.draw(OF_COMPUTES)
    func = te.create_prim_func(dag.tensors)
    sch = data.draw(tir_schedules(func, max_steps=8))
    note(str(sch.trace))
    check_forms(func, sch)
    assert_func_correct(sch.mod["main"], dag.tensors, phases=(0, 2))


@pytest.mark.parametrize("name", DECORATED)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.data())
def test_random_primitives_keep_what_programs_do(name: str, data: st.DataObject) -> None:
    func = DECORATED[name]()
    sch = data.draw(tir_schedules(func, max_steps=8, without=WHOLE_COPIES if name == "guarded" else ()))
    note(str(sch.trace))
    check_forms(func, sch)
    expected = results(func, 0)
    for phase in (0, 2, None):
        for have, want in zip(results(sch.mod["main"], phase), expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4, err_msg=f"phase {phase}")


def check_forms(func: tir.PrimFunc, sch: tir.Schedule) -> None:
    """The module is well formed, is read back from its text, and the trace's JSON makes it again."""
    verify_well_formed(sch.mod)
    assert structural_equal(from_source(sch.mod.script()), sch.mod)
    assert sch.trace is not None
    again = tir.Schedule(func)
    sch.trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(again.mod, sch.mod)
    assert again.trace is not None
    assert again.trace.as_json() == sch.trace.as_json()


def results(func: tir.PrimFunc, phase: int | None) -> list[Any]:
    """All arrays after a run on random ones: by the interpreter after a phase, or as machine code."""
    arrays = [
        random_array([as_int(extent) or 0 for extent in func.buffer_map[param].shape], func.buffer_map[param].dtype, seed)
        for seed, param in enumerate(func.params)
    ]
    if phase is None:
        tensorexpr.build(func)(*arrays)
    else:
        interpret(tensorexpr.lower(func, upto=phase)["main"], arrays)
    return arrays


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(st.data())
def test_other_decisions_are_valid_or_refused(data: st.DataObject) -> None:
    dag = data.draw(OF_COMPUTES)
    func = te.create_prim_func(dag.tensors)
    sch = data.draw(tir_schedules(func, max_steps=8))
    assert sch.trace is not None
    sampling = [inst for inst in sch.trace.insts if inst.primitive.is_sampling]
    if not sampling:
        return
    inst = sampling[data.draw(st.integers(0, len(sampling) - 1))]
    old = sch.trace.get_decision(inst)
    numbers = st.integers(-3, 9)
    decision = data.draw(st.lists(numbers, min_size=len(old), max_size=len(old)) if isinstance(old, list) else numbers)
    again = tir.Schedule(func)
    try:
        sch.trace.with_decision(inst, decision, False).apply_to_schedule(again, False)
    except ScheduleError:
        return
    note(str(again.trace))
    assert_func_correct(again.mod["main"], dag.tensors, phases=(0,), compiled=False)


def test_all_primitives_are_drawn() -> None:
    assert set(KINDS) - set(drawable_kinds()) <= BY_PROMISE
