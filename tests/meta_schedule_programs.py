"""Modules, design spaces, and parts of a search without processes, for the tests of `meta_schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.meta_schedule.builder import BuilderInput, BuilderResult, PyBuilder
from tensorexpr.meta_schedule.runner import LocalRunnerFuture, PyRunner, RunnerFuture, RunnerInput
from tensorexpr.tir.structural_digest import structural_hash


def matmul(n: int = 32, dtype: str = "float32") -> tvm.IRModule:
    """C = A @ B."""
    a, b = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, n), dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return tvm.IRModule({"main": te.create_prim_func([a, b, c])})


def scaled(n: int = 32) -> tvm.IRModule:
    """B = 2 A."""
    a = te.placeholder((n,), name="A")
    return tvm.IRModule({"main": te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2.0, name="B")])})


def tiles(sch: tir.Schedule) -> None:
    """Tiles of any size: the design space of `matmul`."""
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, 2))
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)


class NoBuild(PyBuilder):
    """Builds nothing, but says it did; every `failing`-th program fails."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.built = 0

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        made = []
        for given in build_inputs:
            self.built += 1
            fails = self.failing and self.built % self.failing == 0
            made.append(BuilderResult(None, "no luck") if fails else BuilderResult(f"{structural_hash(given.mod):x}"))
        return made


class Pretended(PyRunner):
    """Gives programs times that depend on the program alone."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        return [LocalRunnerFuture([1e-3 + int(given.artifact_path, 16) % 1000 * 1e-6]) for given in runner_inputs]


def tuned(mod: tvm.IRModule, space: Any, trials: int, work_dir: str, **options: Any) -> Any:
    """A search that measures nothing."""
    given = {"builder": NoBuild(), "runner": Pretended(), "seed": 1, "num_trials_per_iter": trials, **options}
    return ms.tune_tir(mod, "llvm", work_dir, trials, space=space, **given)
