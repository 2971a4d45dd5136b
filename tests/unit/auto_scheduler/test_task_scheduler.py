"""Which task is tuned next: the published formulas on made-up costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler import SearchTask, TaskScheduler, TuningOptions, limits
from tensorexpr.auto_scheduler.final_phase import divided
from tensorexpr.auto_scheduler.task_similarity import TAG, derive_similarity_tag
from tensorexpr.errors import TuningError
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tensorexpr.tune.measure.results import TIMED_AGAIN
from tensorexpr.tune.tuner import Trial
from tests.effort import share_of

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"


def test_the_limits_are_those_of_arithmetic_and_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cycles_per_second", lambda: 1e9)
    made, machine = task(64, 64, 64), Target(TARGET).machine
    arithmetic = 2 * 64**3 / (2 * 8 * machine.fma_per_cycle) / 2 / 1e9
    assert limits.least_seconds(made.compute_dag, Target(TARGET)) == pytest.approx(arithmetic, rel=0.01)
    moved = (512 * 512 + 2 * 512) * 4 / machine.caches[1].fill_bytes / 2 / 1e9
    assert limits.least_seconds(task(512, 1, 512).compute_dag, Target(TARGET)) == pytest.approx(moved)


def task(n: int = 8, m: int = 8, k: int = 8) -> SearchTask:
    return SearchTask(func="v06_matmul", args=(n, m, k), target=TARGET, desc=f"matmul {n}")


class MadeUp:
    """A policy whose n-th trial costs what a function says; None is a failure, and it ends where the function raises."""

    def __init__(self, cost: Callable[[int], float | None], end: int = 1 << 30, descent_share: float = 0.0) -> None:
        self.cost, self.end = cost, end
        self.trials, self.closed = 0, 0
        self.params = {"descent_share": descent_share}
        self.made: list[Trial] = []
        self.descends_from: int | None = None

    def stop_at(self, deadline: float) -> None:
        self.deadline = deadline

    def close(self) -> None:
        self.closed += 1

    def descend(self) -> None:
        self.descends_from = self.trials

    def time_again(self) -> Trial | None:
        return min((trial for trial in self.made if trial.result.is_success), key=lambda trial: trial.result.median, default=None)

    def one_round(self, count: int, options: TuningOptions) -> list[Trial]:
        made = []
        for _ in range(min(count, self.end - self.trials)):
            cost = self.cost(self.trials)
            self.trials += 1
            error = MeasureErrorNo.NO_ERROR if cost is not None else MeasureErrorNo.RUNTIME_DEVICE
            made.append(Trial(None, Trace(), MeasureResult((cost or FAILED_COST,), error, "", 0.1, 1.0, cost is not None)))
        self.made += made
        return made


def scheduler(count: int = 2, **options: Any) -> TaskScheduler:
    return TaskScheduler([task(8 * (n + 1)) for n in range(count)], callbacks=[], **options)


def tune(made: TaskScheduler, trials: int, policies: Sequence[MadeUp], per_round: int = 1, **options: Any) -> list[int]:
    """Trials of each task."""
    limit = {name: options.pop(name) for name in ("early_stopping", "budget_s") if name in options}
    made.tune(TuningOptions(trials, num_measures_per_round=per_round, verbose=0, **limit), policies, **options)  # type: ignore[arg-type]
    return [policy.trials for policy in policies]


def test_gradients_are_those_of_the_paper() -> None:
    made = scheduler(alpha=0.2, backward_window_size=3)
    made.best_costs[:] = [0.4, 0.2]
    made.task_cts = [5, 2]
    made.task_costs_history = [[1.0, 0.9, 0.7, 0.5, 0.4], [0.3, 0.2]]
    made.cur_score = 0.6
    backward, forward = (0.4 - 0.9) / 3, -0.4 / 5
    assert made.gradient(0) == pytest.approx(0.2 * backward + 0.8 * forward)
    assert made.gradient(1) == pytest.approx(0.8 * -0.2 / 2)
    # Only what is above the limits of the machine can be gained.
    made.least_costs = [0.0, 0.15]
    assert made.gradient(1) == pytest.approx(0.8 * -0.05 / 2)
    made.least_costs = [0.0, 0.2]
    assert made.gradient(1) == 0
    made.least_costs = [0.0, 0.0]
    made.dead_tasks = {0}
    assert made.gradient(0) == 0


def test_weights_and_objectives_scale_gradients() -> None:
    weighted = scheduler(task_weights=[3, 1])
    weighted.best_costs[:] = [0.4, 0.4]
    weighted.task_cts = [2, 2]
    assert weighted.gradient(0) == pytest.approx(3 * weighted.gradient(1))
    worst = scheduler(objective_func=max)
    worst.best_costs[:] = [0.4, 0.1]
    worst.task_cts = [2, 2]
    assert worst.gradient(0) < 0 == worst.gradient(1)


def tagged(n: int, tag: str = "dense") -> SearchTask:
    a, b = te.placeholder((n, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c: Tensor = te.compute((n, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C", attrs={TAG: tag} if tag else None)
    return SearchTask(compute_dag=[a, b, c], target=TARGET)


def test_groups_are_of_one_tag_and_about_one_size() -> None:
    tags = [derive_similarity_tag(tagged(*args).compute_dag) for args in ((64,), (64,), (512,), (64, "other"), (64, ""))]
    assert tags[0] == tags[1] and len(set(tags[:4])) == 3
    assert tags[4] == ""


def test_a_task_slow_for_its_kind_promises_more() -> None:
    made = TaskScheduler([tagged(64), tagged(64)], callbacks=[], beta=2)
    made.best_costs[:] = [0.8, 0.1]
    made.task_cts = [10, 10]
    assert made.gradient(0) == pytest.approx(0.8 * (2 * 0.1 - 0.8))
    alone = TaskScheduler([tagged(64), tagged(64, "other")], callbacks=[], beta=2)
    alone.best_costs[:] = [0.8, 0.1]
    alone.task_cts = [10, 10]
    assert alone.gradient(0) == pytest.approx(0.8 * -0.8 / 10)


def test_a_task_that_stays_slow_leaves_its_kind() -> None:
    made = TaskScheduler([tagged(64), tagged(64)], callbacks=[])
    tune(made, 20, [MadeUp(lambda n: 0.9), MadeUp(lambda n: 0.1)])
    assert made.task_cts[0] > 6 and made.groups.group_of(0) == [0]


def test_the_warm_up_tunes_every_task_once_and_then_the_one_that_gains() -> None:
    made = scheduler(3)
    trials = tune(made, 30, [MadeUp(lambda n: 0.001), MadeUp(lambda n: 0.9 - 0.02 * n), MadeUp(lambda n: 0.002)])
    assert sum(trials) == 30 and min(trials) >= 1
    assert trials[1] == max(trials) > 20
    assert made.ct == 30


def test_round_robin_takes_turns() -> None:
    assert tune(scheduler(3, strategy="round-robin"), 15, [MadeUp(lambda n: 0.1 / (n + 1)) for _ in range(3)]) == [5, 5, 5]


def test_the_last_round_is_no_larger_than_what_is_left() -> None:
    assert sum(tune(scheduler(2), 11, [MadeUp(lambda n: 0.1), MadeUp(lambda n: 0.1)], per_round=3)) == 11


def test_rounds_are_no_larger_than_a_fair_share() -> None:
    made = scheduler(2)
    policies = [MadeUp(lambda n: 0.1), MadeUp(lambda n: 0.1)]
    assert tune(made, 8, policies, per_round=64) == [4, 4]


def test_tasks_with_nothing_left_and_tasks_that_do_not_improve_are_left_alone() -> None:
    exhausted = scheduler(2)
    assert tune(exhausted, 100, [MadeUp(lambda n: 0.1, end=3), MadeUp(lambda n: 0.1, end=5)]) == [3, 5]
    assert exhausted.dead_tasks == {0, 1}
    stale = scheduler(2)
    trials = tune(stale, 100, [MadeUp(lambda n: 0.1), MadeUp(lambda n: 0.5)], per_task_early_stopping=4)
    assert trials == [5, 5] and stale.dead_tasks == {0, 1}


def test_early_stopping_counts_trials_of_all_tasks() -> None:
    trials = tune(scheduler(2), 100, [MadeUp(lambda n: 0.1), MadeUp(lambda n: 0.2)], early_stopping=7)
    assert sum(trials) == 9


def test_another_call_has_trials_of_its_own_and_goes_on_from_the_best() -> None:
    made = scheduler(2)
    assert sum(tune(made, 10, [MadeUp(lambda n: 0.1, end=3), MadeUp(lambda n: 0.2)])) == 10
    assert made.dead_tasks == {0}
    assert sum(tune(made, 6, [MadeUp(lambda n: 0.3), MadeUp(lambda n: 0.05)])) == 6
    assert made.ct == 6 and made.best_costs.tolist() == [0.1, 0.05] and sum(made.task_trials) == 16


def test_failures_cost_trials_and_leave_the_cost_open() -> None:
    made = scheduler(2)
    tune(made, 4, [MadeUp(lambda n: None), MadeUp(lambda n: 0.1)])
    assert made.best_costs[0] == 1e10 and made.best_costs[1] == 0.1


def test_the_last_share_of_the_trials_descends_where_the_objective_gains_most() -> None:
    made = scheduler(2)
    slow, fast = (MadeUp(lambda n, c=c: c, descent_share=0.2) for c in (0.3, 0.1))  # type: ignore[misc]
    trials = tune(made, 100, [slow, fast], per_round=8)
    assert sum(trials) == 100 == made.ct
    assert slow.descends_from is not None and fast.descends_from is not None
    assert slow.descends_from + fast.descends_from == 80
    assert [trials[0] - slow.descends_from, trials[1] - fast.descends_from] == [15, 5]


def test_too_few_trials_for_a_descent_of_each_task_leave_it_out() -> None:
    made = scheduler(3)
    policies = [MadeUp(lambda n: 0.1, descent_share=0.2) for _ in range(3)]
    assert sum(tune(made, 100, policies, per_round=8)) == 100
    assert all(policy.descends_from is None for policy in policies)


def test_a_descent_of_nearly_all_trials_leaves_each_task_a_round(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    auto_scheduler.save_records(
        log, [auto_scheduler.MeasureInput(task(8), Trace())], [MeasureResult((0.5,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True)]
    )
    made = scheduler(2, load_log_file=log)
    policies = [MadeUp(lambda n: 0.1, descent_share=0.99) for _ in range(2)]
    assert sum(tune(made, 40, policies, per_round=8)) == 39 and made.ct == 40
    assert min(made.task_cts) > 0


def test_a_task_without_a_program_gets_no_descent() -> None:
    made = scheduler(2)
    broken, works = MadeUp(lambda n: None, descent_share=0.25), MadeUp(lambda n: 0.1, descent_share=0.25)
    tune(made, 80, [broken, works], per_round=8)
    assert broken.descends_from is None and works.descends_from is not None


def test_what_the_best_take_when_timed_again_counts_in_the_end() -> None:
    class Noisy(MadeUp):
        def time_again(self) -> Trial | None:
            return Trial(None, Trace(), MeasureResult((0.5,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True))

    made = scheduler(2)
    tune(made, 4, [Noisy(lambda n: 0.4), MadeUp(lambda n: 0.25)])
    assert made.best_costs.tolist() == [0.5, 0.25] and made.cur_score == 0.75


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(st.integers(0, 500), st.lists(st.floats(0, 1e3), min_size=1, max_size=6))
def test_what_is_divided_adds_up(total: int, parts: list[float]) -> None:
    given_out = divided(total, parts)
    assert sum(given_out) == (total if sum(parts) > 0 else 0)
    assert all(abs(count - total * part / sum(parts)) <= 1 for count, part in zip(given_out, parts, strict=True) if sum(parts) > 0)


def test_workers_end_also_when_a_callback_raises() -> None:
    class Broken(auto_scheduler.TaskSchedulerCallback):
        def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
            raise KeyboardInterrupt

    made = TaskScheduler([task()], callbacks=[Broken()])
    policy = MadeUp(lambda n: 0.1)
    with pytest.raises(KeyboardInterrupt):
        tune(made, 4, [policy])
    assert policy.closed == 1


def test_a_log_is_counted_before_it_goes_on(tmp_path: Path) -> None:
    log, known = tmp_path / "log.json", task(8)
    costs = [0.5, 0.2, 0.4, 0.3]
    results = [MeasureResult((cost,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True) for cost in costs]
    auto_scheduler.save_records(log, [auto_scheduler.MeasureInput(known, Trace())] * 4, results)
    auto_scheduler.save_records(log, [auto_scheduler.MeasureInput(task(64), Trace())], results[:1])
    made = scheduler(2, load_log_file=log)
    trials = tune(made, 8, [MadeUp(lambda n: 0.2), MadeUp(lambda n: 0.1)], per_round=2)
    assert sum(trials) == 4 and made.ct == 8
    assert made.task_costs_history[0][0] == 0.2
    assert made.task_trials[0] - trials[0] == 4


@pytest.mark.parametrize("again", [{"rounds": 7}, {TIMED_AGAIN: True}])
def test_what_was_timed_again_is_no_trial_of_a_log_but_its_cost_counts(tmp_path: Path, again: dict[str, Any]) -> None:
    log, known = tmp_path / "log.json", task(8)
    results = [MeasureResult((cost,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True, policy) for cost, policy in ((0.2, {}), (0.3, again))]
    auto_scheduler.save_records(log, [auto_scheduler.MeasureInput(known, Trace())] * 2, results)
    made = scheduler(2, load_log_file=log)
    trials = tune(made, 4, [MadeUp(lambda n: 0.5), MadeUp(lambda n: 0.1)])
    assert sum(trials) == 3 and made.ct == 4 and made.best_costs[0] == 0.3


def test_the_table_has_the_known_layout() -> None:
    made = scheduler(2)
    made.best_costs[0], made.task_trials[0], made.ct = 0.00125, 12, 12
    lines = auto_scheduler.PrintTableInfo().text(made, 1).splitlines()
    assert lines[:3] == ["-" * 70, "-" * 30 + "  [ Task Scheduler ]", "-" * 70]
    assert lines[3] == "|  ID  |                       Task Description                        | Latency (ms) | Speed (GFLOPS) | Trials |"
    speed = f"{made.tasks[0].compute_dag.flop_ct / 0.00125 / 1e9:.2f}"
    assert lines[5] == f"| {'0':>4} | {'matmul 8':>61} | {'1.250':>12} | {speed:>14} | {'12':>6} |"
    assert lines[6] == f"| {'1':>4} | {'matmul 16':>61} | {'-':>12} | {'-':>14} | {'0':>6} |"
    assert lines[8].startswith("Estimated total latency: - ms\tTrials: 12\tUsed time : ") and lines[8].endswith(" s\tNext ID: 1\t")
    assert {len(line) for line in lines[3:8]} == {len(lines[3])}


def test_the_latency_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "total_latency.tsv"
    file.write_text("of a former run\n")
    made = TaskScheduler([task(8), task(16)], callbacks=[auto_scheduler.LogEstimatedLatency(file), auto_scheduler.PrintTableInfo()])
    tune(made, 2, [MadeUp(lambda n: 0.25), MadeUp(lambda n: 0.5)])
    first, second = file.read_text().splitlines()
    assert first.split("\t")[2:] == ["EstimatedLatency(ms)", "-", "Trials", "1"]
    assert second.split("\t")[2:] == ["EstimatedLatency(ms)", "750.000", "Trials", "2"]
    assert capsys.readouterr().out == ""


def test_the_summary_of_all_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    made = scheduler(2)
    policies = [MadeUp(lambda n: 0.5 / (n + 1)), MadeUp(lambda n: None if n == 1 else 0.25)]
    made.tune(TuningOptions(4, num_measures_per_round=2), policies)  # type: ignore[arg-type]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Best:     500 ms for all 2 tasks; ")
    assert lines[1] == "Failures: 1 of 4: RuntimeDeviceError 1"
    assert lines[-1].endswith(" s for 4 trials")
    lost = scheduler(1)
    lost.tune(TuningOptions(1), [MadeUp(lambda n: None)])  # type: ignore[list-item]
    assert "Best:     1 of 1 tasks have no program that ran" in capsys.readouterr().out


MESSAGES: dict[str, tuple[Callable[[], object], str]] = {
    "none": (lambda: TaskScheduler([]), "has no tasks"),
    "strategy": (lambda: scheduler(strategy="best"), "has no strategy 'best'"),
    "weights": (lambda: scheduler(task_weights=[1]), "got 1 task_weights for 2 tasks"),
    "both": (lambda: scheduler(task_weights=[1, 2], objective_func=max), "task_weights or an objective_func, not both"),
    "few": (lambda: scheduler().tune(TuningOptions(1)), "num_measure_trials is 1, fewer than the 2 tasks"),
    "no trials": (lambda: scheduler().tune(TuningOptions(0)), "num_measure_trials is 0, so there is nothing to measure"),
    "policy": (lambda: scheduler().tune(TuningOptions(4), "beam"), "no search policy is called 'beam'"),
    "policies": (lambda: scheduler().tune(TuningOptions(4), []), "got 0 search policies for 2 tasks"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    call, message = MESSAGES[name]
    with pytest.raises(TuningError) as caught:
        call()
    assert message in str(caught.value)
