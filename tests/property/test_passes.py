"""Every pass keeps what a random loop nest computes, its SSA form and the rules of its phase."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import run_pass
from tensorexpr.lower.pipeline import FINAL, PHASES
from tensorexpr.lower.specs import check_module
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.interpreter import interpret

from .loop_nests import Nest, arguments, build, nests


def _run(func: PrimFunc, args: list[Any]) -> Any:
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    interpret(func, copies)
    return copies[2]


def _check_all(nest: Nest, config: dict[str, Any]) -> None:
    func, args = build(nest), arguments(nest)
    wanted = _run(func, args)
    mod = IRModule.from_expr(func)
    check_module(mod, "the builder", 0, by_user=True)
    with PassContext(config=config) as ctx:
        for phase, passes in (*PHASES.items(), (3, FINAL)):
            for one in passes:
                before = mod
                mod = run_pass(one, mod, ctx)
                check_module(mod, one.name, None, by_user=False)
                if mod is not before:
                    np.testing.assert_array_equal(_run(mod["main"], args), wanted, err_msg=f"{one.name} changed the result")
            check_module(mod, f"phase {phase}", phase, by_user=False)


_SETTINGS = settings(deadline=None, derandomize=True, max_examples=150, suppress_health_check=list(HealthCheck))


@_SETTINGS
@given(nests())
def test_passes_keep_meaning(nest: Nest) -> None:
    _check_all(nest, {})


@settings(_SETTINGS, max_examples=40)
@given(nests())
def test_passes_keep_meaning_with_options(nest: Nest) -> None:
    _check_all(
        nest,
        {
            "tir.LoopPartition": {"partition_const_loop": True},
            "tir.UnrollLoop": {"auto_max_step": 32},
            "tir.instrument_bound_checkers": 1,
        },
    )
