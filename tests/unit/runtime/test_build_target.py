"""A program is lowered for the registers of the target that it is built for, whether or not the target is the current one."""

from __future__ import annotations

from typing import Any

import pytest

import tensorexpr
from tensorexpr import te
from tensorexpr.lower.register_file import RegisterFile
from tensorexpr.target import Target

AVX2 = "llvm -mcpu=haswell -num-cores=2"


def _sums() -> list[te.Tensor]:
    a = te.placeholder((4, 64), name="A")
    return [a, te.compute((4, 64), lambda i, j: a[i, j] + 1.0, name="B")]


def test_build_lowers_for_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE", "0")
    seen: list[RegisterFile] = []

    @tensorexpr.tir.transform.prim_func_pass(opt_level=0)
    def look(func: Any, mod: Any, ctx: Any) -> Any:
        seen.append(RegisterFile.of(func))
        return func

    args = _sums()
    with tensorexpr.transform.PassContext(config={"tir.add_lower_pass": [(2, look)]}):
        tensorexpr.build(te.create_schedule(args[1].op), args, target=AVX2)
    assert seen == [RegisterFile(16, 256, masks=False)]
    assert Target.current(allow_none=True) is None


def test_a_lowered_module_is_not_lowered_again_for_the_same_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE", "0")
    args = _sums()
    runs: list[int] = []

    @tensorexpr.tir.transform.prim_func_pass(opt_level=0)
    def look(func: Any, mod: Any, ctx: Any) -> Any:
        runs.append(1)
        return func

    with tensorexpr.transform.PassContext(config={"tir.add_lower_pass": [(2, look)]}):
        mod = tensorexpr.lower(te.create_schedule(args[1].op), args)
        count = len(runs)
        with Target("llvm -mcpu=x86-64-v4 -num-cores=2"):
            assert tensorexpr.lower(mod) is mod  # the same registers
        with Target(AVX2):
            assert tensorexpr.lower(mod) is not mod
        assert len(runs) == count  # what a user added has seen the program
