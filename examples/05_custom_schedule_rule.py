"""Lesson 5: a schedule rule of one's own, beside the default ones: it keeps rows of a product together in one core's cache.

python examples/05_custom_schedule_rule.py [--size N] [--trials T]
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir


def product(n: int) -> tvm.IRModule:
    """C = max(A @ B, 0)."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, n), lambda i, j: tir.max(c[i, j], tir.const(0, "float32")), name="D")
    return tvm.IRModule({"main": te.create_prim_func([a, b, d])})


@ms.derived_object
class RowsInCache(ms.schedule_rule.PyScheduleRule):
    """Computes some rows of C where D reads them. It gives two spaces: with the rule applied, and without."""

    def initialize_with_tune_context(self, context: ms.TuneContext) -> None:
        """Nothing about the task matters here."""

    def apply(self, sch: tir.Schedule, block: tir.schedule.BlockRV) -> list[tir.Schedule]:
        """Tile D's rows and columns and compute C in them; all blocks but D stay as they are."""
        if sch.get(block).name_hint != "D":
            return [sch]
        tiled = sch.copy()
        i, j = tiled.get_loops(block)
        i0, i1 = tiled.split(i, tiled.sample_perfect_tile(i, n=2, max_innermost_factor=16))
        j0, j1 = tiled.split(j, tiled.sample_perfect_tile(j, n=2, max_innermost_factor=64))
        tiled.reorder(i0, j0, i1, j1)
        (producer,) = tiled.get_producers(block)
        tiled.compute_at(producer, j0, preserve_unit_loops=True)
        row, column, reduction = tiled.get_loops(producer)[-3:]
        tiled.reorder(reduction, row, column)
        tiled.parallel(i0)
        tiled.vectorize(column)
        tiled.vectorize(j1)
        return [tiled, sch]

    def clone(self) -> RowsInCache:
        """Another one for another task."""
        return RowsInCache()


def main() -> None:
    """Search with the rule, check the best program, and say where it came from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--trials", type=int, default=32)
    options = parser.parse_args()
    mod = product(options.size)

    own = ms.space_generator.PostOrderApply(sch_rules=[RowsInCache()])
    space = ms.space_generator.SpaceGeneratorUnion([own, ms.space_generator.PostOrderApply()])
    database = ms.tune_tir(
        mod, target="llvm", work_dir=tempfile.mkdtemp(), max_trials_global=options.trials, num_trials_per_iter=16, space=space
    )
    best = ms.tir_integration.compile_tir(database, mod, "llvm")
    record = database.query_tuning_record(mod, tvm.target.Target("llvm"), "main")
    assert best is not None
    assert record is not None

    a, b = (np.random.default_rng(seed).standard_normal((options.size, options.size), np.float32) for seed in range(2))
    d = np.empty_like(a)
    lib = tvm.build(best.mod, target="llvm")
    lib["main"](a, b, d)
    np.testing.assert_allclose(d, np.maximum(a @ b, 0), rtol=1e-3, atol=1e-3)
    print(best.trace)
    print(f"from {record.space}: {lib.time_evaluator('main', tvm.cpu())(a, b, d).mean * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
