"""Helpers of `meta_schedule.testing`: standard operators, and design spaces that hold what one expects."""

from __future__ import annotations

import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr.errors import TuningError, WorkloadError
from tensorexpr.meta_schedule.runner import EvaluatorConfig, RPCConfig, RPCRunner, RunnerResult
from tensorexpr.meta_schedule.testing.dummy_object import DummyBuilder, DummyMutator, DummyRunner
from tensorexpr.meta_schedule.testing.space_generation import check_sketches, generate_design_space, get_rules, program_of
from tensorexpr.meta_schedule.testing.te_workload import CONFIGS, create_te_workload
from tests.meta_schedule_programs import matmul


@pytest.mark.parametrize("name", CONFIGS)
def test_every_operator_is_a_function_of_blocks(name: str) -> None:
    func = create_te_workload(name, len(CONFIGS[name][1]) - 1)
    assert func.buffer_map and len(func.params) == len(func.buffer_map)


def test_an_unknown_operator_is_told_what_there_is() -> None:
    with pytest.raises(WorkloadError, match=r"GMM \(0-3\)"):
        create_te_workload("GMM", 4)


def test_a_design_space_is_found_by_a_program_of_it() -> None:
    rule = ms.schedule_rule.MultiLevelTiling("SSRSRS", max_innermost_factor=64)
    mod = matmul(32)
    (sketch,) = generate_design_space("llvm", mod, "llvm", None, [rule])
    decisions = [("SamplePerfectTile", [2, 2, 2, 4]), ("SamplePerfectTile", [1, 2, 4, 4]), ("SamplePerfectTile", [8, 4])]
    expected = program_of(mod, sketch, decisions).mod
    check_sketches(mod, [sketch], [expected], [decisions])
    with pytest.raises(AssertionError, match="no design space holds program 0"):
        check_sketches(mod, [sketch], [mod], [decisions])
    with pytest.raises(AssertionError, match="1 design spaces, but 0 programs"):
        check_sketches(mod, [sketch], [], [])


def test_rules_are_chosen_by_type() -> None:
    (found,) = get_rules("llvm", ms.schedule_rule.AddRFactor)
    assert isinstance(found, ms.schedule_rule.AddRFactor)
    with pytest.raises(ValueError, match="types of rules, or rules"):
        generate_design_space("llvm", matmul(), "llvm", object, [found])


def test_the_tracker_is_asked_with_the_first_program_only() -> None:
    config = RPCConfig("far.away", 9190, "board", session_timeout_sec=7)
    runner = RPCRunner(config, EvaluatorConfig(number=2))
    assert (runner.timeout_sec, runner.evaluator_config.number) == (7, 2)


def test_times_have_a_value_and_parts_their_names() -> None:
    made = RunnerResult([0.5, 0.25])
    assert made.run_secs is not None and [seconds.value for seconds in made.run_secs] == [0.5, 0.25]  # type: ignore[attr-defined]
    assert str(DummyMutator()).startswith("meta_schedule.DummyMutator(0x")
    assert DummyBuilder().build([None])[0].artifact_path == "test_path"  # type: ignore[list-item]
    assert DummyRunner().run([None])[0].result().is_success  # type: ignore[list-item]


def test_names_of_the_releases_of_2022() -> None:
    """They are names of what is there: databases, tasks, rules."""
    from tensorexpr.meta_schedule.apply_history_best import ApplyHistoryBest  # type: ignore[import-not-found]
    from tensorexpr.meta_schedule.extracted_task import ExtractedTask  # type: ignore[import-not-found]

    from tensorexpr.meta_schedule.integration import extract_task_from_relay
    from tensorexpr.meta_schedule.testing import relay_workload, schedule_rule
    from tensorexpr.meta_schedule.tune import Parse

    database = ms.database.MemoryDatabase()
    assert ApplyHistoryBest(database) is ms.ApplyHistoryBest(database, te_filter_func=None) is database
    with ApplyHistoryBest(database):
        assert ms.database.Database.current() is database
    assert ExtractedTask is ms.ExtractedTask and extract_task_from_relay is ms.relay_integration.extract_tasks
    assert ms.search_strategy.EvolutionarySearchConfig(8, 16) == ms.EvolutionarySearchConfig(num_trials_per_iter=8, num_trials_total=16)
    assert isinstance(schedule_rule.multi_level_tiling("llvm"), ms.schedule_rule.MultiLevelTiling)
    assert len(schedule_rule.get_rules("llvm", (ms.schedule_rule.AddRFactor, ms.schedule_rule.AutoInline))) == 2
    with pytest.raises(TuningError, match="the default rules for 'llvm' have no AutoBind"):
        schedule_rule.auto_bind("llvm")
    assert str(Parse._target("llvm -num-cores 2").attrs["num-cores"]) == "2" and Parse._database(database, "", "") is database
    with pytest.raises(WorkloadError, match="no network 'resnet'; there are resnet_18"):
        relay_workload.get_network("resnet", [1, 3, 8, 8])
    assert not ms.is_meta_schedule_enabled()
    with tvm.transform.PassContext(config={"relay.backend.use_meta_schedule": True}):
        assert ms.is_meta_schedule_enabled() and not ms.relay_integration.is_meta_schedule_dispatch_enabled()
