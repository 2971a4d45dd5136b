"""`build`: every kind of input, targets, levels; what comes out runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ArgumentError, TargetError
from tensorexpr.lower.context import PassContext
from tensorexpr.runtime.module import Module
from tensorexpr.target import Target

X = np.linspace(-1, 1, 37, dtype=np.float32)


def program(parallel: bool = False) -> tuple[Any, list[Any]]:
    """Schedule and arguments of `out[i] = x[i] * 2 + 1` of symbolic length."""
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    out = te.compute((n,), lambda i: x[i] * 2.0 + 1.0, name="out")
    schedule = te.create_schedule(out.op)
    outer, inner = schedule[out].split(out.op.axis[0], factor=8)
    schedule[out].vectorize(inner)
    if parallel:
        schedule[out].parallel(outer)
    return schedule, [x, out]


def check(module: Module, name: str | None = None) -> None:
    """The module computes what the program says."""
    out = np.empty_like(X)
    (module[name] if name else module)(X, out)
    assert np.allclose(out, X * 2 + 1)


def test_a_schedule() -> None:
    module = tvm.build(*program())
    assert module.entry_name == "default_function"
    check(module)
    check(module, "main")
    named = tvm.build(*program(), name="scale")
    assert named.function_names == ["scale"]
    check(named, "scale")


def test_a_lowered_module_and_its_function() -> None:
    lowered = tvm.lower(*program(), name="main")
    check(tvm.build(lowered, target="llvm"), "main")
    check(tvm.build(lowered["main"].with_attr("global_symbol", "alone")), "alone")
    check(tvm.build({"llvm": lowered}))


def test_a_module_of_several_functions() -> None:
    lowered = tvm.lower(*program(), name="first")
    lowered.update(tvm.lower(*program(), name="main"))
    module = tvm.build(lowered)
    assert module.entry_name == "main"
    check(module, "first")
    check(module)


def test_targets() -> None:
    check(tvm.build(*program(), target="llvm -num-cores=1"))
    with Target("llvm -num-cores=1") as target:
        module = tvm.build(*program())
    assert module.target is target
    hosted = tvm.build(*program(), target="llvm", target_host="llvm")
    assert hosted.target.host == Target("llvm")
    with pytest.raises(TargetError, match="'rocm' is not built yet"):
        tvm.build(*program(), target="rocm")


def test_another_machine() -> None:
    module = tvm.build(*program(), target="llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64")
    assembly = module.get_source("asm")
    assert "xmm" in assembly and "ymm" not in assembly


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_levels_agree(level: int) -> None:
    with PassContext(opt_level=level):
        check(tvm.build(*program()))


def test_parallel_loops_use_threads_unless_there_is_one_core() -> None:
    parallel = tvm.build(*program(parallel=True), target="llvm -num-cores=2")
    assert "@GOMP_parallel" in parallel.get_source()
    check(parallel)
    serial = tvm.build(*program(parallel=True), target="llvm -num-cores=1")
    assert "@GOMP_parallel" not in serial.get_source()
    check(serial)


def test_timings_name_every_step() -> None:
    module = tvm.build(*program())
    check(module)
    assert list(module.timings) == ["lower", "emit", "parse", "optimise", "codegen", "load"]
    assert all(seconds >= 0 for seconds in module.timings.values())


def test_arguments_are_checked() -> None:
    module = tvm.build(*program())
    with pytest.raises(ArgumentError, match=r"default_function: argument out \(2 of 2\) has extent 0 5, but n is 37 \(extent 0 of x\)"):
        module(X, np.empty(5, np.float32))


def test_exported_library_of_a_schedule(tmp_path: Any) -> None:
    tvm.build(*program(parallel=True)).export_library(tmp_path / "x.tar")
    check(tvm.runtime.load_module(tmp_path / "x.tar"))
