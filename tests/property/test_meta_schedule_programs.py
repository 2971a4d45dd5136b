"""Whatever rules, decisions, mutators and postprocessors make of a program computes what it computed."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr.meta_schedule.search_strategy.population import Programs
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret
from tests.design_space_programs import PROGRAMS, program, spaces_of


def arrays(func: tvm.tir.PrimFunc, seed: int) -> list[np.ndarray]:
    """Values for the parameters of a function; the last one is its result."""
    rng = np.random.default_rng(seed)
    shapes = [[as_int(extent) or 1 for extent in func.buffer_map[param].shape] for param in func.params]
    return [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes]


def context(mod: tvm.IRModule, seed: int) -> ms.TuneContext:
    """A task with the default rules, on four cores."""
    space = ms.space_generator.PostOrderApply()
    return ms.TuneContext(mod, target="llvm --num-cores=4", space_generator=space, search_strategy="replay-trace", rand_state=seed)


def check(mod: tvm.IRModule, made: tvm.IRModule, seed: int, compiled: bool) -> None:
    """The result of a program against the unscheduled one's."""
    before, after = arrays(mod["main"], seed), arrays(mod["main"], seed)
    interpret(mod["main"], before)
    if compiled:
        tvm.build(made, target="llvm")["main"](*after)
    else:
        interpret(made["main"], after)
    np.testing.assert_allclose(after[-1], before[-1], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs_of_design_spaces_compute_the_same(name: str) -> None:
    mod = program(name)
    task = context(mod, seed=5)
    spaces = spaces_of(task)
    programs = Programs(task)
    rng = random.Random(name)
    made = 0
    for number in range(6):
        drawn = programs.drawn(rng.choice(spaces))
        child = drawn and programs.varied(drawn)
        for individual in (drawn, child):
            if individual is not None:
                made += 1
                check(mod, individual.sch.mod, number, compiled=number < 2)
    assert made >= 6, programs.failures


@pytest.mark.parametrize("name", ["matmul", "softmax", "conv"])
def test_replaying_a_record_makes_the_same_program(name: str) -> None:
    mod = program(name)
    task = context(mod, seed=9)
    programs = Programs(task)
    for space in spaces_of(task):
        individual = programs.drawn(space)
        if individual is not None:
            replayed = tvm.tir.Schedule(mod)
            tvm.tir.schedule.Trace.apply_json_to_schedule(individual.trace.as_json(), replayed)
            tvm.ir.assert_structural_equal(replayed.mod, individual.sch.mod)
