"""Templates and schedules of blocks beside sketches in one task scheduler: what is measured is verified, recorded, recalled and built."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tensorexpr import auto_scheduler, autotvm, relax
from tensorexpr import meta_schedule as ms
from tensorexpr.auto_scheduler.policy import SketchPolicy
from tensorexpr.autotvm.policy import TemplatePolicy
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.policy import BlocksPolicy
from tensorexpr.relax import op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.network_tasks import fused_graph, tasks_of_graph
from tensorexpr.relax.tuning import progress
from tensorexpr.relax.tuning.progress import Watch
from tensorexpr.relax.tuning.searching import Chosen, search
from tensorexpr.relax.tuning.styles import STYLES, policies_by
from tensorexpr.schedule.steps import ByBlocks, Knob
from tensorexpr.te.serialize import dumps

from .test_network_tasks import TARGET, network
from .test_simplify import graph, weights


def tasks(mod: Any = None) -> list[auto_scheduler.SearchTask]:
    found = tasks_of_graph(fused_graph(network() if mod is None else mod), TARGET)
    return [one.task for one in found if not one.is_simple]


def kinds(log: Path) -> set[str]:
    """Which styles the programs of a log are of."""
    found = set()
    for record in auto_scheduler.load_records(log):
        steps = {type(step) for step in record.trace}
        found.add("meta_schedule" if ByBlocks in steps else "autotvm" if Knob in steps else "auto_scheduler")
    return found


def plain(sch: Any) -> None:
    """The first block by hand: a vector of the innermost tile."""
    block = sch.get_block("block0")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2, max_innermost_factor=8))
    sch.reorder(i, j0, k, j1)
    sch.vectorize(j1)


def by_task(task: Any) -> Any:
    """Another style for each task."""
    return "autotvm" if task.desc == "fused_matmul_relu" else ms.space_generator.ScheduleFn(plain)


def test_what_any_style_finds_is_built(tmp_path: Path) -> None:
    mod, log = network(), tmp_path / "log.json"
    found = tasks(mod)
    for turn in range(2):  # the second search goes on with the first one's log
        policies, notes = policies_by(by_task, found, log, {"evolutionary_search_num_iters": 1, "measure_unscheduled": 0})
        assert not notes and list(policies) == [0, 1]
        scheduler = auto_scheduler.TaskScheduler(found, [1.0, 1.0], load_log_file=log, callbacks=[], compares=False)
        options = auto_scheduler.TuningOptions(
            num_measure_trials=2 * (turn + 1), num_measures_per_round=1, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)]
        )
        scheduler.tune(options, search_policy=list(policies.values()))
    records = auto_scheduler.load_records(log)
    assert len(records) == len({(r.workload_key, r.trace) for r in records}) == 4  # nothing is measured twice
    assert all(record.verified for record in records), [record.error_msg for record in records]
    assert kinds(log) == {"autotvm", "meta_schedule"}
    with auto_scheduler.ApplyHistoryBest(log):
        built = relax.build(mod, TARGET)
    assert sorted(built.origins.values()) == ["record", "record", "rule"]
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
    np.testing.assert_allclose(relax.VirtualMachine(built)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-4)


def test_rules_of_blocks_make_programs_of_a_convolution() -> None:
    """No program is measured: each that a search may draw is lowered, run and compared."""
    mod: Any = graph(lambda x: op.nn.relu(op.nn.conv2d(x, weights(4, 3, 3, 3), padding=1)), (1, 3, 8, 8))
    (task,) = tasks(mod)
    policy = BlocksPolicy(task, seed=3, params={"evolutionary_search_num_iters": 1}, seconds=0.0)
    (space,) = policy.spaces()
    rows, other = space.sample(2, np.random.default_rng(0)), BlocksPolicy(task, seed=9)
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")
    for row in rows[:2]:
        trace = space.program(row)
        assert other.recalled(other.spaces(), trace) is not None
        with auto_scheduler.ApplyHistoryBest([]) as context:
            context.update(TARGET, task.workload_key, trace)
            built = relax.build(mod, TARGET)
        assert list(built.origins.values()) == ["record"]
        np.testing.assert_allclose(relax.VirtualMachine(built)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("groups", [1, 4])
def test_the_template_of_kernels_takes_convolutions_and_what_is_behind_them(layout: str, groups: int) -> None:
    shape = (1, 4, 9, 8) if layout == "NCHW" else (1, 9, 8, 4)
    kernel = weights(8 if groups == 1 else 4, 4 // groups, 3, 3) if layout == "NCHW" else weights(3, 3, 4, 8)
    if layout == "NHWC" and groups > 1:
        pytest.skip("one layout of groups is enough")

    def body(x: Any) -> Any:
        y = op.nn.conv2d(x, kernel, padding=1, groups=groups, data_layout=layout, kernel_layout="OIHW" if layout == "NCHW" else "HWIO")
        return op.nn.relu(y)

    mod: Any = graph(body, shape)
    (task,) = tasks(mod)
    template = autotvm.task.create("kernel.x86", [dumps(task.compute_dag.tensors)], TARGET)
    policy = TemplatePolicy(task, template)
    (space,) = policy.spaces()
    rows = space.drawn(3, np.random.default_rng(1), TARGET)
    assert len(rows) == 3
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    for row in rows:
        trace: Any = space.program(row)
        found = policy.recalled([space], trace)
        assert found is not None and found.row == tuple(row)
        with auto_scheduler.ApplyHistoryBest([]) as context:
            context.update(TARGET, task.workload_key, trace)
            built = relax.build(mod, TARGET)
        assert list(built.origins.values()) == ["record"]
        np.testing.assert_allclose(relax.VirtualMachine(built)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-3, atol=1e-4)


def test_tasks_without_programs_are_named() -> None:
    found = tasks_of_graph(fused_graph(network()), TARGET)
    policies, notes = policies_by("autotvm", [one.task for one in found], None)
    (softmax,) = (number for number, one in enumerate(found) if one.is_simple)
    assert softmax not in policies and len(policies) == 2
    assert len(notes) == 1 and notes[0].startswith("softmax is left as it is, as autotvm has no programs of it: ")
    strange = ms.space_generator.SpaceGeneratorUnion([ms.space_generator.TensorSketchSpace()])
    policies, notes = policies_by(strange, tasks(), None)
    assert not policies and "takes a generator that gives schedules; this one gives TensorSketches" in notes[0]


def test_each_style_has_its_policy_and_what_is_none_is_refused() -> None:
    classes = {"auto_scheduler": SketchPolicy, "autotvm": TemplatePolicy, "meta_schedule": BlocksPolicy}
    for style in STYLES:
        policies, _ = policies_by(style, tasks(), None)
        assert {type(one) for one in policies.values()} == {classes[style]}
    with pytest.raises(TuningError, match=r"the function `by` of \w+: by is 'luck'; it is one of 'auto_scheduler'"):
        policies_by(lambda task: "luck", tasks(), None)
    with pytest.raises(TuningError, match="predicted by a cost model of meta_schedule"):
        BlocksPolicy(tasks()[0], program_cost_model=auto_scheduler.RandomModel())  # type: ignore[arg-type]
    one, other = tasks()
    template = autotvm.task.create("kernel.x86", [dumps(other.compute_dag.tensors)], TARGET)
    with pytest.raises(TuningError, match="computes something else"):
        TemplatePolicy(one, template)


def test_a_run_is_expected_by_the_kernel_by_rules_where_none_is_measured() -> None:
    watch = Watch(False, 60.0, 10e-3, {"a": 4e-3})
    watch.expect("a", 2e-3)
    assert watch.expected_s == pytest.approx(10e-3)  # no program yet
    watch.best["a"] = 1e-3
    assert watch.expected_s == pytest.approx(8e-3)


def test_the_learned_model_leaves_programs_of_blocks_out() -> None:
    """Its features are of stages' loops, of which such a program has none."""
    pytest.importorskip("xgboost")
    (task, _), model = tasks(), auto_scheduler.XGBModel()
    (space,) = BlocksPolicy(task, seconds=0.0).spaces()
    trace = space.program(space.sample(1, np.random.default_rng(0))[0])
    result = auto_scheduler.MeasureResult((1e-6,), auto_scheduler.MeasureErrorNo.NO_ERROR, "", 0.1, 0.0)
    model.update([auto_scheduler.MeasureInput(task, trace)], [result])
    assert not model._tasks


def test_what_a_log_has_is_compared_by_times_of_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first program was timed again with the best ones: that time is compared, and nothing is slower than the first."""

    def record(trace: str, seconds: float, again: bool) -> Any:
        return SimpleNamespace(workload_key="a", is_timed_again=again, is_success=True, trace=trace, median=seconds)

    for again, best, expected in (
        ([("rule", 4.0), ("other", 3.0)], 3.0, 4.0), ([("rule", 4.0)], 4.0, 4.0), ([("other", 3.5)], 3.5, 3.5), ([], 2.5, 3.0),
    ):  # fmt: skip
        records = [record("rule", 3.0, False), record("other", 2.5, False), *(record(*one, True) for one in again)]
        chosen = next(one for one in reversed(records) if one.median == best)
        monkeypatch.setattr(progress, "choose_best", lambda known, found=chosen: (found, ""))
        watch = Watch(False, 60.0, 10e-3, {"a": 4e-3})
        watch.recall(records)
        assert (watch.first["a"], watch.best["a"], watch.counts["a"]) == (expected, best, 2)


def test_the_network_scheduler_takes_a_policy_for_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def tune(scheduler: Any, options: Any, search_policy: Any) -> None:
        asked.update(tasks=scheduler.tasks, policies=search_policy, builder=options.builder.build_func)

    monkeypatch.setattr(auto_scheduler.TaskScheduler, "tune", tune)
    found = [one for one in tasks_of_graph(fused_graph(network()), TARGET)]
    watch, recorder = Watch(False, 60.0, 10e-3, {}), auto_scheduler.RecordToFile(tmp_path / "log.json")
    chosen = [Chosen(one, 1e-6, 2e-3) for one in found]
    notes = search(chosen, 30.0, recorder, watch, auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner(), "autotvm")
    assert len(notes) == 1 and [type(one) for one in asked["policies"]] == [TemplatePolicy, TemplatePolicy]
    assert [one.task for one in asked["policies"]] == asked["tasks"] and asked["builder"].endswith(
        "tune.measure.kernel_compiling:make_compiler"
    )
    assert watch.first == watch.best == {task.workload_key: 2e-3 for task in asked["tasks"]}
    asked.clear()
    simple = [one for one in chosen if one.task.is_simple]
    assert len(search(simple, 30.0, recorder, watch, auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner(), "autotvm")) == 1
    assert not asked  # nothing that the style has programs of
