"""Lesson 6: a search strategy of one's own: it climbs a hill, changing one decision of the best program at a time.

python examples/06_custom_search_strategy.py [--size N] [--trials T]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError


def matmul(n: int) -> tvm.IRModule:
    """C = A @ B."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return tvm.IRModule({"main": te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])})


def tiles(sch: tir.Schedule) -> None:
    """The design space: rows in parallel, columns in vectors, tiles of any size."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2, max_innermost_factor=64))
    sch.reorder(i0, j0, k, i1, j1)
    sch.parallel(i0)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k)


@ms.derived_object
class HillClimbing(ms.search_strategy.PySearchStrategy):
    """Proposes the best program so far with one decision drawn anew; random programs until one ran."""

    def initialize_with_tune_context(self, context: ms.TuneContext) -> None:
        """Take the task."""
        assert context.mod is not None
        self.mod, self.rng = context.mod, random.Random(context.rand_state)

    def pre_tuning(self, max_trials: int, num_trials_per_iter: int, design_spaces: Sequence[Any], *_: Any) -> None:
        """Begin."""
        self.left, self.per_round, self.spaces = max_trials, num_trials_per_iter, list(design_spaces)
        self.best: tuple[float, tir.schedule.Trace] | None = None

    def post_tuning(self) -> None:
        """Nothing is to be tidied up."""

    def generate_measure_candidates(self) -> list[ms.MeasureCandidate] | None:
        """A round's programs; None at the end."""
        wanted = min(self.left, self.per_round)
        self.left -= wanted
        made = [program for program in (self.neighbour() for _ in range(wanted)) if program is not None]
        infos = ms.ArgInfo.from_entry_func(self.mod)
        return [ms.MeasureCandidate(sch, infos) for sch in made] or None

    def neighbour(self) -> tir.Schedule | None:
        """A program next to the best one; None if that isn't legal."""
        trace = self.best[1] if self.best is not None else self.rng.choice(self.spaces).trace
        drawn = [inst for inst in trace.insts if inst in trace.decisions]
        anew = {self.rng.choice(drawn)} if self.best is not None and drawn else set(drawn)
        sch = tir.Schedule(self.mod, seed=self.rng.randrange(1 << 30))
        try:
            trace.apply_to_schedule(sch, True, lambda inst, inputs, attrs, decision: None if inst in anew else decision)
        except ScheduleError:
            return None
        return sch

    def notify_runner_results(self, measure_candidates: list[ms.MeasureCandidate], results: list[Any]) -> None:
        """Climb."""
        for candidate, result in zip(measure_candidates, results, strict=True):
            if result.run_secs and (self.best is None or result.median < self.best[0]):
                self.best = (result.median, candidate.sch.trace)

    def clone(self) -> HillClimbing:
        """Another one for another task."""
        return HillClimbing()


def main() -> None:
    """Search, check and time the best."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--trials", type=int, default=32)
    options = parser.parse_args()
    n, mod = options.size, matmul(options.size)
    database = ms.tune_tir(
        mod,
        target="llvm",
        work_dir=tempfile.mkdtemp(),
        max_trials_global=options.trials,
        num_trials_per_iter=8,
        space=ms.space_generator.ScheduleFn(tiles),
        strategy=HillClimbing(),
        cost_model="random",
    )
    best = ms.tir_integration.compile_tir(database, mod, "llvm")
    assert best is not None
    a, b = (np.random.default_rng(seed).standard_normal((n, n), np.float32) for seed in range(2))
    lib, c = tvm.build(best.mod, target="llvm"), np.empty((n, n), np.float32)
    lib["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
    print(best.trace)
    print(f"hill climbing: {lib.time_evaluator('main', tvm.cpu())(a, b, c).mean * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
