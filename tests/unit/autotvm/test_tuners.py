"""Tuners choose; the search loop measures. Times are made up where only the choice is looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorexpr import autotvm, te
from tensorexpr.autotvm.logs import load_from_file
from tensorexpr.autotvm.tuner.droplet_tuner import t_test
from tensorexpr.errors import TuningError
from tensorexpr.schedule.te_schedule import Schedule
from tests.autotvm_templates import TARGET, made_up

LOCAL = {"builder": autotvm.LocalBuilder(n_parallel=1), "runner": autotvm.LocalRunner(number=1, repeat=1, min_repeat_ms=1)}


def task_of(name: str = "tests/matmul", n: int = 16) -> Any:
    return autotvm.task.create(name, (n,), TARGET)


def slope(task: Any) -> list[float]:
    """Times with one least point, [2, 3, 1], that every knob leads to."""
    knobs = [task.config_space.point2knob(index) for index in range(task.config_space.range_length)]
    return [1.0 + sum(abs(a - b) for a, b in zip(knob, (2, 3, 1), strict=True)) for knob in knobs]


@pytest.mark.parametrize("kind", ["RandomTuner", "GridSearchTuner", "GATuner", "XGBTuner"])
def test_every_tuner_visits_each_point_once(kind: str) -> None:
    task = task_of()
    tuner = getattr(autotvm.tuner, kind)(task, **({"feature_type": "knob"} if kind == "XGBTuner" else {}))
    monitor = autotvm.tuner.callback.Monitor()
    tuner.tune(n_trial=100, measure_option=made_up(slope(task)), callbacks=[monitor])
    assert len(monitor.trial_scores()) == 50 and tuner.best_config.index == task.config_space.knob2point([2, 3, 1])
    assert not tuner.has_next() and len(tuner.visited) == 50


def test_droplet_walks_downhill() -> None:
    task = task_of()
    tuner = autotvm.tuner.DropletTuner(task)
    tuner.tune(n_trial=100, measure_option=made_up(slope(task)))
    assert str(tuner.best_config) == str(task.config_space.get(tuner.best_choice[0]))
    assert tuner.best_choice[0] == task.config_space.knob2point([2, 3, 1])
    assert len(tuner.visited) < 50
    with pytest.raises(TuningError, match="start_position"):
        autotvm.tuner.DropletTuner(task, start_position=[9, 9, 9])


def test_the_t_test_is_students() -> None:
    assert t_test([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1.0
    assert t_test([1, 2, 3, 4], [2, 3, 4, 6]) == pytest.approx(0.2888, abs=2e-3)
    assert t_test([1.0], [2.0]) == 0.0 and t_test([1.0], [1.0]) == 1.0


def test_ranges_and_filters_bound_the_search() -> None:
    task = task_of()
    tuner = autotvm.tuner.GridSearchTuner(task, range_idx=(8, 15))
    tuner.tune(n_trial=50, measure_option=made_up())
    assert sorted(tuner.visited) == list(range(8, 16))
    task.config_space.multi_filter(lambda point: point["tile_x"].size[-1] >= 8 and point["vector"].val)
    for kind in ("RandomTuner", "GATuner", "XGBTuner", "DropletTuner"):
        tuner = getattr(autotvm.tuner, kind)(task)
        tuner.tune(n_trial=8, measure_option=made_up())
        assert tuner.visited and all(task.config_space.is_index_valid(index) for index in tuner.visited)
    with pytest.raises(TuningError, match="range_idx"):
        autotvm.tuner.RandomTuner(task, range_idx=(5, 3))


def test_early_stopping_and_users_tuners() -> None:
    task = task_of()

    class Backwards(autotvm.tuner.Tuner):
        left = 49

        def has_next(self) -> bool:
            return self.left >= 0

        def next_batch(self, batch_size: int) -> Any:
            self.left -= 1
            return [self.space.get(self.left + 1)]

        def update(self, inputs: Any, results: Any) -> None:
            self.heard = getattr(self, "heard", 0) + len(inputs)

    tuner = Backwards(task)
    tuner.tune(n_trial=100, measure_option=made_up([float(50 - n) for n in range(50)]), early_stopping=10)
    assert tuner.best_config is not None and tuner.best_config.index == 49 and tuner.heard == 11


@pytest.mark.parametrize("feature_type", ["itervar", "knob", "curve"])
@pytest.mark.parametrize("loss", ["reg", "rank", "rank-binary"])
def test_the_model_learns_what_is_fast(feature_type: str, loss: str) -> None:
    task = task_of(n=64)
    times = [1.0 + sum(task.config_space.point2knob(index)) for index in range(98)]
    tuner = autotvm.tuner.XGBTuner(task, feature_type=feature_type, loss_type=loss)
    tuner.tune(n_trial=48, measure_option=made_up(times))
    assert min(times[index] for index in tuner.visited) <= 2.0
    late = [times[index] for index in tuner.xs[-12:]]
    assert np.mean(late) < np.mean(times)


def test_history_seeds_the_model() -> None:
    task = task_of(n=64)
    inputs = [autotvm.MeasureInput(task.target, task, task.config_space.get(index)) for index in range(98)]
    history = [(made, autotvm.MeasureResult((1.0 + sum(task.config_space.point2knob(made.config.index)),), 0, 0, 0)) for made in inputs]
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.load_history(history, min_seed_records=10)
    first = [sum(task.config_space.point2knob(config.index)) for config in tuner.next_batch(10)]
    assert np.mean(first) < np.mean([cost.costs[0] - 1 for _, cost in history])
    other = autotvm.tuner.XGBTuner(task_of(n=32), feature_type="knob")
    with pytest.raises(TuningError, match="itervar"):
        other.load_history(history, min_seed_records=1)


def test_optimizers_of_users_choose_by_the_model() -> None:
    task = task_of()

    class All:
        def find_maximums(self, model: Any, num: int, exclusive: Any) -> list[int]:
            points = [index for index in range(50) if index not in exclusive]
            scores = model.predict(points)
            return [points[n] for n in np.argsort(-scores)[:num]]

    tuner = autotvm.tuner.XGBTuner(task, optimizer=All(), feature_type="knob")
    tuner.tune(n_trial=50, measure_option=made_up(slope(task)))
    assert len(tuner.visited) == 50


@pytest.mark.parametrize("options", [{"loss_type": "zz"}, {"feature_type": "zz"}, {"optimizer": "hill"}, {"plan_size": 0}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TuningError, match="XGBTuner"):
        autotvm.tuner.XGBTuner(task_of(), **options)


@pytest.mark.parametrize("option", [None, {}, {"builder": LOCAL["builder"]}, "local"])
def test_what_measures_nothing_is_refused(option: Any) -> None:
    with pytest.raises(TuningError, match=r"measure_option=autotvm\.measure_option"):
        autotvm.tuner.RandomTuner(task_of()).tune(1, option)


def test_what_is_measured_is_verified_logged_and_replayed(tmp_path: Path) -> None:
    task, log = task_of(), tmp_path / "log.json"
    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(n_trial=4, measure_option=LOCAL, callbacks=[autotvm.callback.log_to_file(log), autotvm.callback.progress_bar(4)])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len([line for line in lines if "again" not in line.get("checked", {})]) == 4
    good = [line for line in lines if line["result"][1] == 0]
    assert good and all(line["checked"]["verified"] for line in good)
    assert tuner.best_config is not None and tuner.best_measure_pair is not None


def test_computations_may_depend_on_knobs(tmp_path: Path) -> None:
    task, log = task_of("tests/packed", 8), tmp_path / "log.json"
    autotvm.tuner.GridSearchTuner(task).tune(n_trial=4, measure_option=LOCAL, callbacks=[autotvm.callback.log_to_file(log)])
    results = [(inp.config["panel"].size[-1], result) for inp, result in load_from_file(log)]
    assert {width for width, _ in results} == {1, 2, 4, 8}
    assert all(result.error_no == 0 and getattr(result, "verified", False) for _, result in results)


def test_failures_are_results_and_the_rest_goes_on(tmp_path: Path) -> None:
    task, log = task_of("tests/failing", 8), tmp_path / "log.json"
    autotvm.tuner.GridSearchTuner(task).tune(n_trial=5, measure_option=LOCAL, callbacks=[autotvm.callback.log_to_file(log)])
    found = [int(result.error_no) for _, result in load_from_file(log)]
    assert found == [0, 1, 1, 1, 1]


def test_builders_and_runners_work_alone() -> None:
    task = task_of()
    inputs = [autotvm.MeasureInput(task.target, task, task.config_space.get(index)) for index in (0, 7)]
    measure_batch = autotvm.measure.create_measure_batch(task, LOCAL)
    assert [int(result.error_no) for result in measure_batch(inputs)] == [0, 0]


def test_a_batch_may_hold_several_tasks_and_its_results_stand_in_its_order() -> None:
    good, failing = task_of(), task_of("tests/failing", 8)
    tasks = [(good, 0), (failing, 0), (failing, 1), (good, 7)]
    inputs = [autotvm.MeasureInput(task.target, task, task.config_space.get(index)) for task, index in tasks]
    builder, runner = autotvm.LocalBuilder(n_parallel=1), autotvm.LocalRunner(number=1, repeat=1, min_repeat_ms=1)
    results = runner.run(inputs, builder.build(inputs))
    assert [int(result.error_no) for result in results] == [0, 0, 1, 0]


@autotvm.template("tests/gather")
def gathered(n: int) -> tuple[Schedule, list[te.Tensor]]:
    """Rows of a table by indices, which random numbers would take from outside of it."""
    table, rows = te.placeholder((4, n), "float32", name="table"), te.placeholder((n,), "int32", name="rows")
    out = te.compute((n, n), lambda i, j: table[rows[i], j] * 2.0, name="out")
    s = te.create_schedule(out.op)
    cfg = autotvm.get_config()
    cfg.define_split("tile", out.op.axis[1], num_outputs=2)
    cfg["tile"].apply(s, out, out.op.axis[1])
    return s, [table, rows, out]


def test_runners_measure_on_the_inputs_given() -> None:
    task = autotvm.task.create("tests/gather", (8,), TARGET)
    runner = autotvm.LocalRunner(timeout=100, number=1, repeat=1, min_repeat_ms=1)
    runner.ref_input = [np.ones((4, 8), np.float32), np.array([0, 3] * 4, np.int32), np.zeros((8, 8), np.float32)]
    found: list[Any] = []
    option = autotvm.measure_option(autotvm.LocalBuilder(timeout=100), runner)
    autotvm.tuner.GridSearchTuner(task).tune(2, option, callbacks=[lambda tuner, inputs, results: found.extend(results)])
    assert [(int(result.error_no), result.verified) for result in found] == [(0, True)] * 2
    runner.ref_input = runner.ref_input[:2]
    with pytest.raises(TuningError, match="2 arrays for the 3 arguments table, rows, out"):
        autotvm.tuner.GridSearchTuner(task).tune(1, option)
