"""Property 21: after every pass each variable is defined once and before its uses, in random programs under every option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.expr import IntImm, Var
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.stmt import Evaluate, For, ForKind, LetStmt, seq
from tensorexpr.tir.verify import verify_ssa
from tests.effort import share_of
from tests.programs import chain, conv_relu, matmul_add, softmax


class EveryPass:
    """An instrument that checks each module that a pass returns."""

    def __init__(self) -> None:
        self.passes: list[str] = []

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        self.passes.append(info.name)
        for name, func in mod.functions_items():
            assert verify_ssa(func), f"{info.name} left {name} without single definitions:\n{func.script()}"


CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"tir.LoopPartition": {"partition_const_loop": True}, "tir.UnrollLoop": {"auto_max_step": 64}},
    {"tir.disable_vectorize": True},
    {"tir.instrument_bound_checkers": True},
    {"tir.HoistIfThenElse": {"support_block_scope_hosting": True}},
)


def check(schedule: Schedule, args: list[Tensor], config: dict[str, Any]) -> None:
    seen = EveryPass()
    with PassContext(config=config, instruments=[seen]):
        mod = lower(schedule, args)
    assert verify_ssa(mod["main"])
    assert len(seen.passes) > 10


@settings(max_examples=share_of(50), deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(CONFIGS))
def test_21_random_programs(data: st.DataObject, config: dict[str, Any]) -> None:
    dag = data.draw(compute_dags(max_ops=4))
    check(data.draw(schedules(dag.outputs, max_steps=14)), list(dag.tensors), config)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("program", [chain, matmul_add, conv_relu, softmax])
def test_21_unrolled_and_vectorised_programs(program: Any, config: dict[str, Any]) -> None:
    args = program()
    s = create_schedule(args[-1].op)
    for stage in s.stages:
        if stage.op.input_tensors:
            outer, inner = stage.split(stage.op.axis[-1], factor=3)
            stage.vectorize(inner)
            stage.pragma(outer, "auto_unroll_max_step", 64)
    check(s, args, config)


def broken() -> Iterator[PrimFunc]:
    """Functions that break the rule, one way each."""
    i, x = Var("i"), Var("x")
    one = Evaluate(x + 1)
    loop = For(i, IntImm("int32", 0), IntImm("int32", 4), ForKind.SERIAL, Evaluate(i + 1))
    yield PrimFunc((), one, None, {})
    yield PrimFunc((), seq(loop, loop), None, {})
    yield PrimFunc((), seq(LetStmt(x, IntImm("int32", 3), one), one), None, {})
    yield PrimFunc((x,), LetStmt(x, IntImm("int32", 3), one), None, {})
    yield PrimFunc((), LetStmt(x, x + 1, one), None, {})


def test_21_the_check_finds_what_is_wrong() -> None:
    """A check that passes everything would make the others worthless."""
    assert [verify_ssa(func) for func in broken()] == [False] * 5
    n = te.var("n")
    assert verify_ssa(PrimFunc((n,), Evaluate(n + 1), None, {}))
