"""Rules by the names of dlight: what they take, and what they leave."""

from __future__ import annotations

from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import dlight, te, tir
from tensorexpr.errors import LoweringError, TargetError

GPU = "nvidia/nvidia-a100"


@pytest.fixture(scope="module")
def mod() -> tvm.IRModule:
    a, b = te.placeholder((32, 64), name="a"), te.placeholder((64, 16), name="b")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((32, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return tvm.IRModule({"product": te.create_prim_func([a, b, c]).with_attr("global_symbol", "product")})


def in_parallel(func: Any, target: Any, tunable: bool) -> tir.Schedule:
    sch = tir.Schedule(func)
    sch.parallel(sch.get_loops(sch.get_block("c"))[0])
    return sch


def test_functions_for_gpus_become_kernels_and_others_stay(mod: tvm.IRModule) -> None:
    rules = dlight.ApplyDefaultSchedule(dlight.gpu.Matmul(), dlight.gpu.Fallback())
    with tvm.target.Target("llvm"):
        assert rules(mod)["product"].same_as(mod["product"])
    with tvm.target.Target(GPU):
        made = rules(mod)["product"]
        assert rules(tvm.IRModule({"product": made}))["product"].same_as(made)
    assert made.attrs["tir.is_scheduled"] and made.attrs["global_symbol"] == "product" and "threadIdx.x" in made.script()
    assert tvm.build(tvm.IRModule({"product": made}), target=GPU).function_names == ["product"]
    with pytest.raises(TargetError, match="no current target"):
        rules(mod)


def test_a_rule_for_gpus_gives_a_schedule_to_go_on_with(mod: tvm.IRModule) -> None:
    sch = dlight.gpu.Fallback().apply(mod["product"], tvm.target.Target(GPU), False)
    assert sch is not None and len(sch.get_loops(sch.get_block("c"))) >= 2 and "blockIdx.x" in sch.mod["main"].script()
    assert dlight.gpu.GEMV().apply(mod["product"], tvm.target.Target("llvm"), False) is None


def test_rules_of_programs_are_asked_in_their_order(mod: tvm.IRModule) -> None:
    class Never(dlight.base.ScheduleRule):
        def apply(self, func: Any, target: Any, tunable: bool) -> None:
            return None

    class Twice(dlight.ScheduleRule):
        def apply(self, func: Any, target: Any, tunable: bool) -> list[tir.Schedule]:
            return [in_parallel(func, target, tunable)] * 2

    mine = dlight.ScheduleRule.from_callable("mine")(in_parallel)
    with tvm.target.Target("llvm"):
        assert "T.parallel" in dlight.ApplyDefaultSchedule(Never(), mine, Twice())(mod)["product"].script()
        with pytest.raises(LoweringError, match="Twice gives 2 schedules"):
            dlight.ApplyDefaultSchedule(Twice())(mod)
