"""Programs as users of MetaSchedule write them: tuned with few trials, kept in databases, found again and run.

Python evaluates their annotations here, as in most programs: there is no `from __future__ import annotations`.
"""

# mypy: disable-error-code="valid-type, name-defined, attr-defined, arg-type, index, misc, override, union-attr"

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.ir.module import IRModule
from tensorexpr.script import ir as I
from tensorexpr.script import tir as T
from tensorexpr.target import Target
from tests.meta_schedule_programs import tuned

TARGET = "llvm --num-cores=1"


@I.ir_module
class Gemm:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def space(sch: tir.Schedule) -> tir.Schedule:
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    i0, i1 = sch.split(loop=i, factors=sch.sample_perfect_tile(loop=i, n=2))
    j0, j1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2))
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k)
    return sch


def quick() -> ms.runner.LocalRunner:
    """A runner that measures no longer than it must."""
    return ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=1, min_repeat_ms=0))


def assert_product(mod: IRModule) -> None:
    a, b = (np.random.default_rng(seed).standard_normal((32, 32), np.float32) for seed in range(2))
    c = np.empty((32, 32), np.float32)
    tvm.build(mod, target="llvm")["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_a_search_is_kept_on_disk_and_found_again(tmp_path: Path) -> None:
    with ms.Profiler() as profiler:
        found = ms.tune_tir(
            mod=Gemm, target=TARGET, max_trials_global=4, num_trials_per_iter=2, work_dir=str(tmp_path), task_name="main",
            space=ms.space_generator.ScheduleFn(space), runner=quick(),
        )  # fmt: skip
    assert {"GenerateDesignSpace", "SendToBuilder", "SendToRunner", "MeasureCallback/AddToDatabase", "Total"} <= set(profiler.get())
    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert len(database) == len(found) == 4 and database.has_workload(Gemm)
    record = database.query_tuning_record(Gemm, Target(TARGET), "main")
    assert record.run_secs[0] == min(r.run_secs[0] for r in database.get_all_tuning_records())
    sch = ms.tir_integration.compile_tir(database, Gemm, TARGET)
    tvm.ir.assert_structural_equal(sch.mod, database.query_ir_module(Gemm, Target(TARGET), "main"))
    assert sch.trace.as_json() == record.trace.as_json()
    assert_product(sch.mod)
    with database:
        assert ms.database.Database.current() is database
    assert ms.database.Database.current() is None


def test_the_form_of_2022_gives_a_schedule(tmp_path: Path) -> None:
    config = ms.TuneConfig(strategy="replay_trace", num_trials_per_iter=2, max_trials_per_task=2, max_trials_global=2)
    sch = ms.tune_tir(mod=Gemm, target=TARGET, config=config, work_dir=str(tmp_path), runner=quick())
    assert isinstance(sch, tir.Schedule) and "sch.enter_postproc()" in str(sch.trace)
    assert_product(sch.mod)


@pytest.mark.slow
def test_a_layer_of_tensor_expressions_is_tuned_by_the_rules(tmp_path: Path) -> None:
    x, w, k = te.placeholder((16, 32), name="x"), te.placeholder((24, 32), name="w"), te.reduce_axis((0, 32), "k")
    dense = te.compute((16, 24), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="dense")
    relu = te.compute((16, 24), lambda i, j: tir.max(dense[i, j], tir.const(0, "float32")), "relu")
    func = te.create_prim_func([x, w, relu])
    database = ms.tune_tir(func, TARGET, str(tmp_path), 4, num_trials_per_iter=2, runner=quick(), seed=1)
    sch = ms.tir_integration.compile_tir(database, func, TARGET)
    a, b = (np.random.default_rng(n).standard_normal((n, 32), np.float32) for n in (16, 24))
    c = np.empty((16, 24), np.float32)
    tvm.build(sch.mod, target="llvm")["main"](a, b, c)
    np.testing.assert_allclose(c, np.maximum(a @ b.T, 0), rtol=1e-4, atol=1e-4)


def test_records_are_made_and_asked_by_hand() -> None:
    sch = space(tir.Schedule(Gemm, seed=1))
    database = ms.database.MemoryDatabase()
    workload = database.commit_workload(Gemm)
    args = ms.arg_info.ArgInfo.from_prim_func(Gemm["main"])
    for seconds in (2e-3, 1e-3):
        database.commit_tuning_record(ms.database.TuningRecord(sch.trace, workload, [seconds], Target(TARGET), args))
    assert [record.run_secs for record in database.get_top_k(workload, 1)] == [[1e-3]]
    empty = ms.database.MemoryDatabase()
    assert empty.query_schedule(Gemm, Target(TARGET), "main") is None
    both = ms.database.UnionDatabase(empty, database)
    assert both.query(Gemm, Target(TARGET), workload_name="main", kind="record").run_secs == [1e-3]
    written = ms.database.ScheduleFnDatabase(lambda made: bool(space(made)))
    assert "vectorize" in str(written.query(Gemm, Target(TARGET)).trace)


def test_a_program_is_built_and_measured_by_hand() -> None:
    (built,) = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(Gemm, Target("llvm"))])  # whose files outlive it
    assert built.error_msg is None
    (future,) = quick().run([ms.runner.RunnerInput(built.artifact_path, "cpu", ms.arg_info.ArgInfo.from_prim_func(Gemm["main"]))])
    result = future.result()
    assert result.error_msg is None and result.run_secs[0] > 0


def test_a_design_space_is_looked_at() -> None:
    reuse = ms.schedule_rule.ReuseType(req="may", levels=[1, 2], scope="global")
    rules = [
        ms.schedule_rule.MultiLevelTiling(structure="SSRSRS", max_innermost_factor=64, reuse_write=reuse),
        ms.schedule_rule.ParallelizeVectorizeUnroll(max_jobs_per_core=16, max_vectorize_extent=64, unroll_max_steps=[0, 16]),
    ]
    posts = [ms.postproc.RewriteParallelVectorizeUnroll(), ms.postproc.RewriteReductionBlock()]
    generator = ms.space_generator.PostOrderApply(sch_rules=rules, postprocs=posts, mutator_probs={ms.mutator.MutateTileSize(): 1.0})
    context = ms.TuneContext(mod=Gemm, target=Target("llvm --num-cores=2"), space_generator=generator, task_name="gemm")
    spaces = context.generate_design_space()
    assert len(spaces) == 3 and sum("cache_write" in str(sch.trace) for sch in spaces) == 2
    for sch in spaces:
        sch.enter_postproc()
        assert all(post.apply(sch) for post in posts)
        assert_product(sch.mod)


@ms.derived_object
class TileColumns(ms.schedule_rule.PyScheduleRule):
    """Columns of every reduction in vectors."""

    def _initialize_with_tune_context(self, context: ms.TuneContext) -> None:
        self.target = context.target

    def apply(self, sch: tir.Schedule, block: Any) -> list[tir.Schedule]:
        if len(sch.get_loops(block)) < 3:
            return [sch]
        other = sch.copy()
        _, j, k = other.get_loops(block)
        j0, j1 = other.split(j, other.sample_perfect_tile(j, n=2, max_innermost_factor=16))
        other.reorder(j0, k, j1)
        other.vectorize(j1)
        return [other]

    def clone(self) -> "TileColumns":
        return TileColumns()


@ms.derived_object
class LongRows(ms.postproc.PyPostproc):
    """Refuses tiles of one column."""

    def _initialize_with_tune_context(self, context: ms.TuneContext) -> None:
        pass

    def apply(self, sch: tir.Schedule) -> bool:
        return not any(decision[-1] == 1 for decision in sch.trace.decisions.values())

    def clone(self) -> "LongRows":
        return LongRows()


@ms.derived_object
class WideFirst(ms.cost_model.PyCostModel):
    """Knows nothing and likes the widest vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def load(self, path: str) -> None:
        pass

    def save(self, path: str) -> None:
        pass

    def update(self, context: ms.TuneContext, candidates: Any, results: Any) -> None:
        self.seen += len(candidates)

    def predict(self, context: ms.TuneContext, candidates: Any) -> Any:
        return np.array([max(decision[-1] for decision in c.sch.trace.decisions.values()) for c in candidates], float)


@ms.derived_object
class Counting(ms.measure_callback.PyMeasureCallback):
    """Counts what was measured."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Any] = []

    def apply(self, task_scheduler: Any, task_id: int, measure_candidates: Any, builder_results: Any, runner_results: Any) -> None:
        self.errors += [result.error_msg for result in runner_results]


def test_users_rules_postprocessors_models_and_callbacks_take_part(tmp_path: Path) -> None:
    model, counting = WideFirst(), Counting()
    generator = ms.space_generator.PostOrderApply(
        sch_rules=[TileColumns()], postprocs=[LongRows()], mutator_probs={ms.mutator.MutateTileSize(): 1.0}
    )
    callbacks = [ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel(), counting]
    database = ms.tune_tir(
        Gemm, TARGET, str(tmp_path), 3, num_trials_per_iter=3, space=generator, cost_model=model, measure_callbacks=callbacks,
        database=ms.database.MemoryDatabase(), runner=quick(), seed=1,
    )  # fmt: skip
    assert model.seen == 3 and counting.errors == [None] * 3 and len(database) == 3
    assert not any([32, 1] in record.trace.decisions.values() for record in database.get_all_tuning_records())
    assert_product(ms.tir_integration.compile_tir(database, Gemm, TARGET).mod)


def test_a_module_that_says_nothing_of_aliases_is_found_again(tmp_path: Path) -> None:
    bare = IRModule({"main": Gemm["main"].without_attr("tir.noalias")})
    database = tuned(bare, space, 2, str(tmp_path), database="memory", num_trials_per_iter=2, cost_model="random")
    assert ms.tir_integration.compile_tir(database, bare, TARGET) is not None


def test_names_that_are_not_known_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tvm.errors.TuningError, match=r"no search strategy is called 'genetic'; known: .*replay-trace"):
        ms.tune_tir(Gemm, TARGET, str(tmp_path), 2, strategy="genetic")
    with pytest.raises(tvm.errors.TuningError, match="max_trials_global"):
        ms.tune_tir(Gemm, TARGET, str(tmp_path))
