"""Every pass keeps what a random loop nest computes, its SSA form and the rules of its phase."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.passes import run_pass
from tensorexpr.lower.pipeline import FINAL, PHASES
from tensorexpr.lower.rebuild import FreeVars
from tensorexpr.lower.specs import check_module
from tensorexpr.tir.expr import IntImm
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import ForKind
from tests.effort import share_of

from .loop_nests import Level, Nest, arguments, build, nests


def _run(func: PrimFunc, args: list[Any]) -> Any:
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    interpret(func, copies)
    return copies[2]


def _check_all(nest: Nest, config: dict[str, Any]) -> None:
    func, args = build(nest), arguments(nest)
    wanted = _run(func, args)
    mod = IRModule.from_expr(func)
    free = FreeVars()
    check_module(mod, "the builder", 0, by_user=True, free=free)
    with PassContext(config=config) as ctx:
        for phase, passes in (*PHASES.items(), (3, FINAL)):
            for one in passes:
                before = mod
                mod = run_pass(one, mod, ctx)
                if mod is not before:
                    check_module(mod, one.name, None, by_user=False, free=free)
                    np.testing.assert_array_equal(_run(mod["main"], args), wanted, err_msg=f"{one.name} changed the result")
            check_module(mod, f"phase {phase}", phase, by_user=False, free=free)


CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"tir.LoopPartition": {"partition_const_loop": True}, "tir.UnrollLoop": {"auto_max_step": 32}},
    {"tir.disable_vectorize": 1},
    {"tir.instrument_bound_checkers": 1},
)
SERIAL, VECTORIZED = ForKind.SERIAL, ForKind.VECTORIZED


def _int(value: int) -> IntImm:
    return IntImm("int32", value)


# Accesses under different conditions share a register: no condition speaks for all of them.
GUARDS_DIFFER = Nest(
    {"i": _int(2), "j": _int(1), "k": _int(3)},
    (
        Level("j", _int(3), 1, VECTORIZED),
        Level("i", _int(2), 1, SERIAL),
        Level("j", _int(1), 3, SERIAL),
        Level("k", _int(3), 1, SERIAL),
    ),
    shared=0,
    value=0,
    tiled=False,
    dtype="int32",
    max_step=16,
    sizes={"i": 2, "j": 1, "k": 3},
)


@settings(deadline=None, derandomize=True, max_examples=share_of(70), suppress_health_check=list(HealthCheck))
@given(nests(), st.sampled_from(CONFIGS))
@example(GUARDS_DIFFER, {"tir.disable_vectorize": 1})
def test_passes_keep_meaning(nest: Nest, config: dict[str, Any]) -> None:
    _check_all(nest, config)
