"""Many tasks, one budget: which task to tune next (Zheng et al., Ansor, OSDI 2020, section 6).

Every round goes to the task for which the objective is expected to fall most. What a task may gain is guessed from its
history (backward), from what is still possible (forward: without further progress a task gains less with every round, and
one as slow as its kind should not be slower than the best of its kind), and from how the objective depends on it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TuningError
from ..tune.measure import Workers
from ..tune.tuner import Trial
from . import final_phase
from .known_trials import known_of_tasks
from .options import UNLIMITED, TuningOptions
from .policy import SketchPolicy
from .search_task import SearchTask
from .summary import TaskTotals
from .task_callbacks import LogEstimatedLatency, PrintTableInfo, TaskSchedulerCallback
from .task_policies import policies_of
from .task_similarity import derive_similarity_tag, similarity_groups

UNTUNED_COST = 1e10
_STEP = 1e-4  # seconds by which a cost is moved to see how the objective follows
_PATIENCE = 5  # rounds that a task may be ahead of its kind before it counts as slow
_OPEN_SESSIONS = 16  # tasks that keep their arrays, in files, while others have their turn
Objective = Callable[[Sequence[float]], float]


class TaskScheduler:
    """Tunes several tasks with one budget of trials.

    Args:
        tasks: what to tune.
        task_weights: how often each runs; the objective is then the weighted sum of latencies.
        objective_func: of the latencies in seconds, instead of that sum; less is better.
        strategy: "gradient", or "round-robin".
        load_model_file: a saved `XGBModel` to start from.
        load_log_file: records to go on with.
        alpha: weight of history against forecast.
        beta: how much slower than the best of its kind a task may be and still be of that kind.
        gamma: stored; nothing depends on it.
        backward_window_size: rounds over which history is looked at.
        least_costs: seconds that no program of a task takes less than, such as its arithmetic alone: what is above them can be gained.
        compares: time the best few programs of each task again in the end, in turn; False where the caller compares them elsewhere.
        callbacks: called before and after each round; by default a table on the console and total_latency.tsv.

    Raises:
        TuningError: for an unknown strategy, or weights that don't fit.
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        task_weights: Sequence[float] | None = None,
        objective_func: Objective | None = None,
        strategy: str = "gradient",
        load_model_file: str | Path | None = None,
        load_log_file: str | Path | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[TaskSchedulerCallback] | None = None,
        least_costs: Sequence[float] | None = None,
        compares: bool = True,
    ) -> None:
        _check_arguments(tasks, task_weights, objective_func, strategy)
        weights = list(task_weights) if task_weights is not None else [1.0] * len(tasks)
        self.tasks = list(tasks)
        self.objective_func: Objective = objective_func or (lambda costs: sum(c * w for c, w in zip(costs, weights, strict=True)))
        self.strategy = strategy
        self.load_model_file = load_model_file
        self.load_log_file = load_log_file
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.backward_window_size = backward_window_size
        self.least_costs = list(least_costs) if least_costs is not None else [0.0] * len(self.tasks)
        self.compares = compares
        self.callbacks: list[TaskSchedulerCallback] = (
            [PrintTableInfo(), LogEstimatedLatency("total_latency.tsv")] if callbacks is None else list(callbacks)
        )
        self.task_cts = [0] * len(tasks)  # rounds
        self.task_trials = [0] * len(tasks)
        self.task_best_trials = [0] * len(tasks)  # trials when the best was found
        self.task_costs_history: list[list[float]] = [[] for _ in tasks]
        self.best_costs = np.full(len(tasks), UNTUNED_COST)
        self.dead_tasks: set[int] = set()
        self.groups = similarity_groups([task.compute_dag for task in tasks])
        self.cur_score = self._score(self.best_costs)
        self.ct = 0  # trials of all tasks
        self.best_ct = 0
        self.best_score = math.inf
        self.tic = time.time()
        self.totals = TaskTotals()
        self._tuned = False
        self._restored = 0  # trials that the log held
        self._restored_costs = self.best_costs.copy()
        self.tune_option = TuningOptions()
        self.search_policies: list[SketchPolicy] = []
        self._recent: list[int] = []
        self._next_in_turn = 0
        self._random = np.random.default_rng(0)

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: str | Sequence[SketchPolicy] = "default",
        search_policy_params: Mapping[str, Any] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Tune until the trials or the time are used up, or no task has anything left to try; another call goes on from there.

        Args:
            tune_option: trials of all tasks together in this call; early_stopping counts trials without a better objective.
            search_policy: "default" and "sketch.xgb" share one learned model between the tasks, "sketch.random" learns nothing; or
                one policy for each task.
            search_policy_params: of the policies that are made here.
            adaptive_training: train the model only when there are a fifth more samples.
            per_task_early_stopping: leave a task alone when so many of its trials brought nothing better.

        Raises:
            TuningError: for fewer trials than tasks, or an unknown policy.
        """
        if not isinstance(tune_option, TuningOptions):
            raise TuningError(f"tune takes auto_scheduler.TuningOptions(...), not {tune_option!r}")
        self.tune_option = tune_option
        self.tic = time.time()
        kept_s = final_phase.seconds_for_timing_again(tune_option.budget_s, len(self.tasks)) if self.compares else 0.0
        deadline = math.inf if tune_option.budget_s is None else time.monotonic() + tune_option.budget_s - kept_s
        self._check_trials(tune_option)
        self.search_policies = policies_of(
            self.tasks,
            search_policy,
            search_policy_params,
            adaptive_training=adaptive_training,
            model_file=self.load_model_file,
            log_file=self.load_log_file,
        )
        share = final_phase.descent_share(self.search_policies)
        per_round = self._measures_per_round(tune_option, share)
        if self._tuned:
            # each call has trials of its own, and new policies, which may find what the others had no more of
            self.ct, self._restored, self._restored_costs = 0, 0, self.best_costs.copy()
            self.dead_tasks.clear()
        else:
            self._restore(per_round)
        self._tuned = True
        self.best_ct = self.ct
        workers = Workers()
        try:
            for policy in self.search_policies:
                policy.workers = workers
            for number in range(len(self.tasks)):  # warm up: nothing is known of a task that was never tuned
                if not self.task_cts[number] and time.monotonic() < deadline:
                    self._round(number, per_round, per_task_early_stopping, deadline)
            self._explore(per_round, per_task_early_stopping, deadline, share)
            if share and not self._is_stale(tune_option):
                parts = [self.share_of(number) for number in range(len(self.tasks))]
                final_phase.descend(self.descend, parts, tune_option.most_trials - self.ct, deadline, tune_option.budget_s is not None)
            for number in range(len(self.tasks) if self.compares else 0):
                # Of these tasks those that come late may have no time left; what they have stays as it was timed.
                if time.monotonic() < deadline + kept_s:
                    self.time_again(number)
        finally:
            for policy in self.search_policies:
                policy.close()
                policy.workers = None
            workers.close()
            self.totals.seconds = time.time() - self.tic
            if tune_option.verbose >= 1 and self.totals.trials:
                print(self.totals.text(list(map(float, self.best_costs)), self.objective_func, UNTUNED_COST), flush=True)

    def _explore(self, per_round: int, early_stopping: int | None, deadline: float, share: float) -> None:
        """Rounds by gradients or in turn, until what is left is for the descent."""
        options = self.tune_option
        end = options.most_trials - final_phase.descent_trials(share, options.most_trials - self._restored, len(self.tasks))
        if options.budget_s is not None:
            deadline -= share * options.budget_s
        while self.ct < end and len(self.dead_tasks) < len(self.tasks) and time.monotonic() < deadline and not self._is_stale(options):
            self._round(self._choose(), min(per_round, end - self.ct), early_stopping, deadline)

    def share_of(self, number: int) -> float:
        """What a task adds to the objective, to the first order; 0 if it has no program yet."""
        cost = float(self.best_costs[number])
        return max(0.0, self._slope(number) * cost) if cost < UNTUNED_COST else 0.0

    def descend(self, number: int, count: int, deadline: float) -> None:
        """Measure up to `count` neighbours of a task's best program."""
        self._call_back("pre_tune", number)
        policy = self._opened(number)
        policy.stop_at(deadline)
        policy.descend()
        # No trials means that all neighbours have been measured.
        while count > 0 and (trials := policy.one_round(count, self.tune_option)):
            self._learn_of(number, trials)
            count -= len(trials)
        self._call_back("post_tune", number)

    def time_again(self, number: int) -> None:
        """Time the best few programs of a task again, in turn; what they take then counts."""
        best = self._opened(number).time_again() if self.task_trials[number] else None
        if best is not None:
            # the log's best stands where this run found nothing better
            self.best_costs[number] = min(best.result.median, self._restored_costs[number])
            self.cur_score = self._score(self.best_costs)

    def _call_back(self, name: str, number: int) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(self, number)

    def _slope(self, number: int) -> float:
        """How much the objective changes with a task's cost."""
        # A difference quotient, as the objective is any Python function.
        moved = self.best_costs.copy()
        moved[number] -= _STEP
        return (self._score(self.best_costs) - self._score(moved)) / _STEP

    def gradient(self, number: int) -> float:
        """How the objective is expected to change with another round of a task; 0 for dead ones."""
        if number in self.dead_tasks:
            return 0.0
        cost, chain = float(self.best_costs[number]), self._slope(number)
        rounds, history, window = self.task_cts[number], self.task_costs_history[number], self.backward_window_size
        backward = 0.0
        # a log that was loaded counts its rounds, but its history is one entry
        if rounds - 1 < len(history) and rounds - 1 - window >= 0:
            backward = (history[rounds - 1] - history[rounds - 1 - window]) / window
        # Two forecasts, of which the more hopeful counts: gains of what is left go on as 1 / rounds, or the task catches up with its kind.
        left = max(0.0, cost - self.least_costs[number])
        next_cost = max(min(cost - left / max(1, rounds), self._cost_of_its_kind(number)), self.least_costs[number])
        value = chain * (self.alpha * backward + (1 - self.alpha) * (next_cost - cost))
        # the best of a task never gets worse, whatever the noise in its history says
        return min(value, 0.0)

    def _cost_of_its_kind(self, number: int) -> float:
        """What a task should take if it ran `beta` times slower than the best of its group."""
        group = self.groups.group_of(number)
        if len(group) < 2:
            return 1e30
        best_speed = max(self._flops(other) / self.best_costs[other] for other in group)
        return float(self.beta * self._flops(number) / best_speed) if best_speed > 0 else 1e30

    def _choose(self) -> int:
        """The task of the next round."""
        alive = [number for number in range(len(self.tasks)) if number not in self.dead_tasks]
        if self.strategy == "round-robin":
            chosen = next((number for number in alive if number >= self._next_in_turn), alive[0])
            self._next_in_turn = chosen + 1
            return chosen
        gradients = [self.gradient(number) for number in alive]
        # nothing tells them apart, as where all are 0: argmin would take the first one for ever
        if max(gradients) == min(gradients):
            return int(self._random.choice(alive))
        return alive[int(np.argmin(gradients))]

    def _round(self, number: int, count: int, early_stopping: int | None, deadline: float) -> None:
        """Tune one task for one round."""
        self._call_back("pre_tune", number)
        policy = self._opened(number)
        policy.stop_at(deadline)
        trials = policy.one_round(min(count, self.tune_option.most_trials - self.ct) or 1, self.tune_option)
        self._learn_of(number, trials)
        if not trials:
            self.dead_tasks.add(number)
        if early_stopping is not None and self.task_trials[number] - self.task_best_trials[number] >= early_stopping:
            self.dead_tasks.add(number)
        self._check_group(number)
        self._call_back("post_tune", number)

    def _learn_of(self, number: int, trials: Sequence[Trial]) -> None:
        self.totals.add(number, trials)
        for trial in trials:
            self.ct += 1
            self.task_trials[number] += 1
            if trial.result.is_success and trial.result.median < self.best_costs[number]:
                self.best_costs[number] = trial.result.median
                self.task_best_trials[number] = self.task_trials[number]
        self.task_cts[number] += 1
        self.task_costs_history[number].append(float(self.best_costs[number]))
        self.cur_score = self._score(self.best_costs)
        if self.cur_score < self.best_score:
            self.best_score, self.best_ct = self.cur_score, self.ct

    def _check_group(self, number: int) -> None:
        """A task that stays slow for long although others of its kind were tuned less is of another kind."""
        group = self.groups.group_of(number)
        if len(group) < 2:
            return
        speeds = {other: self._flops(other) / self.best_costs[other] for other in group}
        fewest = min(self.task_cts[other] for other in group if other != number)
        if speeds[number] < max(speeds.values()) / self.beta and self.task_cts[number] > _PATIENCE + fewest:
            self.groups.remove(number)

    def _is_stale(self, options: TuningOptions) -> bool:
        return options.early_stopping is not None and self.ct - self.best_ct >= options.early_stopping

    def _check_trials(self, options: TuningOptions) -> None:
        if options.most_trials < 1:
            raise TuningError("TuningOptions.num_measure_trials is 0, so there is nothing to measure; give at least one for each task")
        if options.most_trials < len(self.tasks):
            raise TuningError(
                f"TuningOptions.num_measure_trials is {options.num_measure_trials}, fewer than the {len(self.tasks)} tasks; "
                "give at least one for each task"
            )

    def _measures_per_round(self, options: TuningOptions, share: float) -> int:
        if options.most_trials == UNLIMITED:
            return options.round_size
        # every task must get a round of the warm-up
        explored = options.most_trials - final_phase.descent_trials(share, options.most_trials, len(self.tasks))
        # a policy may keep nearly all trials for its descent: of 40 by two tasks at a share of 0.99 none is left to explore
        return max(1, min(options.num_measures_per_round, explored // len(self.tasks)))

    def _restore(self, per_round: int) -> None:
        """Count what the log holds of the tasks."""
        if self.load_log_file is None or self.ct or not Path(self.load_log_file).exists():
            return
        for number, known in enumerate(known_of_tasks(self.tasks, self.load_log_file, self.tune_option.runner.swept_bytes)):
            self.ct += known.trials
            self.task_trials[number] = known.trials
            self.task_cts[number] = round(known.trials / per_round)
            if known.best_cost is not None:
                self.best_costs[number] = known.best_cost
                self.task_best_trials[number] = known.best_at
            if self.task_cts[number]:
                self.task_costs_history[number].append(float(self.best_costs[number]))
        self.cur_score = self.best_score = self._score(self.best_costs)
        self._restored, self._restored_costs = self.ct, self.best_costs.copy()

    def _opened(self, number: int) -> SketchPolicy:
        """A task's policy; only a few keep their arrays, the others make them again when it is their turn."""
        self._recent = [*(other for other in self._recent if other != number), number]
        # The one that waited longest: its turn is likely the farthest away.
        while len(self._recent) > _OPEN_SESSIONS:
            self.search_policies[self._recent.pop(0)].close()
        return self.search_policies[number]

    def _flops(self, number: int) -> float:
        return max(1.0, self.tasks[number].compute_dag.flop_ct)

    def _score(self, costs: Any) -> float:
        return float(self.objective_func([float(cost) for cost in costs]))


def make_search_policies(
    search_policy: str | Sequence[SketchPolicy],
    search_policy_params: Mapping[str, Any] | None,
    tasks: Sequence[SearchTask],
    num_measures_per_round: int,
    verbose: int,
    load_model_file: str | Path | None = None,
    load_log_file: str | Path | None = None,
    adaptive_training: bool = False,
) -> list[SketchPolicy]:
    """One policy for each task, see `task_policies.policies_of`; how much is measured in a round is left to the scheduler.

    Raises:
        TuningError: for an unknown name, or if there is not one policy for each task.
    """
    made = policies_of(
        tasks,
        search_policy,
        search_policy_params,
        adaptive_training=adaptive_training,
        model_file=load_model_file,
        log_file=load_log_file,
    )
    for policy in made:
        policy.set_verbose(verbose)
    return made


def _check_arguments(
    tasks: Sequence[SearchTask], task_weights: Sequence[float] | None, objective_func: Objective | None, strategy: str
) -> None:
    if not tasks:
        raise TuningError("TaskScheduler has no tasks; give at least one SearchTask")
    strange = [task for task in tasks if not hasattr(task, "compute_dag")]
    if strange:
        raise TuningError(f"TaskScheduler takes a list of SearchTasks; {strange[0]!r} is none")
    if strategy not in ("gradient", "round-robin"):
        raise TuningError(f'TaskScheduler has no strategy {strategy!r}; it has "gradient" and "round-robin"')
    if task_weights is not None and len(task_weights) != len(tasks):
        raise TuningError(f"TaskScheduler got {len(task_weights)} task_weights for {len(tasks)} tasks; give one for each")
    if objective_func is not None and task_weights is not None:
        raise TuningError("TaskScheduler takes task_weights or an objective_func, not both")


__all__ = ["UNTUNED_COST", "TaskScheduler", "derive_similarity_tag"]
