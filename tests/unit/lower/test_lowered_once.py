"""What `lower` made is not lowered again, unless it was changed or is lowered for something else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.transform import prim_func_pass
from tensorexpr.target import Target
from tensorexpr.tir import stmt
from tensorexpr.tir.function import IRModule, PrimFunc
from tensorexpr.tir.structural import structural_equal
from tests.programs import matmul


def lowered(**options: Any) -> IRModule:
    """C = A @ B, lowered."""
    args = matmul(8, 8, 8)
    return tvm.lower(te.create_schedule(args[-1].op), args, **options)


def test_a_lowered_module_comes_back_as_it_is() -> None:
    mod = lowered()
    assert tvm.lower(mod) is mod
    assert tvm.lower(mod["main"])["main"] is mod["main"]
    two = IRModule({"f": mod["main"], "g": lowered()["main"]})
    assert tvm.lower(two) is two


@pytest.mark.parametrize(
    "change",
    [
        lambda func: func.with_attr("tir.noalias", False),
        lambda func: func.with_body(stmt.seq(func.body, stmt.Evaluate(tvm.tir.StringImm("end")))),
        lambda func: replace(func, body=func.body),
        lambda func: PrimFunc(func.params, func.body, None, func.buffer_map, func.attrs),
    ],
)
def test_a_changed_function_is_lowered_again(change: Any) -> None:
    mod = lowered()
    mod.update_func("main", change(mod["main"]))
    assert tvm.lower(mod) is not mod


def test_lowered_for_something_else_it_is_lowered_again() -> None:
    mod = lowered()
    for context in (
        PassContext(opt_level=1),
        PassContext(config={"tir.noalias": False}),
        PassContext(disabled_pass=["x"]),
        Target("llvm -mcpu=haswell"),
    ):
        with context:
            assert tvm.lower(mod) is not mod
    for part in (lowered(upto=2), lowered(simple_mode=True)):
        assert tvm.lower(part) is not part
    again = lowered(upto=3)
    assert tvm.lower(again) is again


def test_an_untouched_input_is_not_marked() -> None:
    once = lowered()["main"]
    plain = replace(once)
    assert tvm.lower(plain)["main"] is not plain
    assert tvm.lower(plain)["main"] is not plain, "the first call marked its argument"


def test_marks_are_not_part_of_a_program() -> None:
    func = lowered()["main"]
    plain = replace(func)
    assert structural_equal(func, plain) and func.script() == plain.script() and repr(func) == repr(plain)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"])
def test_users_passes_run_once_and_instruments_see_every_lowering(target: str) -> None:
    """`lower` knows no target and `build` does, whose registers may be others; what a user added is not done twice for that."""
    runs: list[str] = []

    @prim_func_pass(opt_level=0)
    def note(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        runs.append("pass")
        return func

    class Instrument:
        """Sees the passes that run."""

        def run_before_pass(self, mod: IRModule, info: Any) -> None:
            runs.append("seen")

    mod = lowered()
    with PassContext(config={"tir.add_lower_pass": [(3, note)]}):
        tvm.build(tvm.lower(mod), target=target)
    assert runs == ["pass"]
    runs.clear()
    with PassContext(instruments=[Instrument()]):
        tvm.lower(mod)
    assert runs


def test_a_lowered_module_builds() -> None:
    a, b = (np.random.default_rng(seed).random((8, 8), np.float32) for seed in range(2))
    out = np.empty((8, 8), np.float32)
    tvm.build(lowered())(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)
