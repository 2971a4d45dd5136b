"""`tune_network`: the programs of a network's kernels, searched within seconds.

the network by rules       built, timed, and profiled: which kernels take how much of a run
tasks                      those that take something, the most time first (`network_tasks`)
search                     one task scheduler: each round goes where the network is expected to gain most
the network by records     compared kernel by kernel within the network, both in turn; what isn't faster there isn't chosen
the whole                  compared in turn; never slower than by rules
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...auto_scheduler.callbacks import RecordToFile
from ...auto_scheduler.dispatcher import ApplyHistoryBest
from ...auto_scheduler.loaded import LoadedRecord
from ...auto_scheduler.options import LocalBuilder, LocalRunner, TuningOptions
from ...auto_scheduler.records import load_records
from ...auto_scheduler.task_scheduler import TaskScheduler
from ...errors import TuningError
from ...runtime.ndarray import NDArray
from ...target import Target, TargetLike
from ...tir.function import IRModule
from ...tune.records import append_records, choose_best
from ..build import build
from ..network_tasks import NetworkTask, fused_graph, tasks_of_graph
from ..runtime.executable import Executable
from .outcome import NetworkTuning, TaskOutcome
from .progress import Progress, Watch
from .timing import difference, inputs_of, kernel_times, timed_in_turn

_LEAST_SHARE = 0.005  # of a run: what a task below it could gain is less than what two runs differ by
_FOR_THE_END, _MOST_FOR_THE_END = 12.0, 0.25  # seconds, and part of the budget, for building and comparing in the end
_EACH_S = 6.0  # workers for a task, and its first programs: of so many seconds of the budget each, tasks get any
_PROFILE_PART = 0.02  # of the budget, for each of the profiles and comparisons
_NO_GAIN = 0.99  # a kernel that takes more than this of its former time hasn't gained: two runs differ by as much
_LARGEST_DIFFERENCE = 1e-2  # of the largest result: sums in another order, through all layers
_SEARCHES = ("auto_scheduler",)

_Times = Mapping[str, tuple[float, int]]


@dataclass(frozen=True)
class _Network:
    """What is tuned: the fused graph, by rules in machine code, its inputs, and what its kernels take."""

    graph: IRModule
    target: Target
    untuned: Executable
    inputs: Sequence[NDArray]
    times: _Times
    untuned_s: float

    def seconds_of(self, kernels: Collection[str]) -> float:
        """What some kernels take of a run."""
        return sum(self.times.get(name, (0.0, 0))[0] for name in kernels)

    def built(self, records: Iterable[LoadedRecord]) -> Executable:
        """The network with the programs of records."""
        with ApplyHistoryBest(list(records)):
            made: Executable = build(self.graph, self.target, relax_pipeline=None, progress=False)
        return made


def tune_network(
    mod: Any,
    params: Mapping[Any, Any] | None = None,
    target: TargetLike | None = None,
    *,
    budget_s: float = 60.0,
    records: str | Path = "network.json",
    tasks: str | Sequence[int | str] = "all",
    prior_records: Sequence[str | Path] = (),
    by: str = "auto_scheduler",
    inputs: Mapping[str, Any] | None = None,
    progress: Progress = None,
    builder: LocalBuilder | None = None,
    runner: LocalRunner | None = None,
) -> NetworkTuning:
    """Search the programs of a network's kernels for some seconds, and build it with those that make it faster.

    Every program that was found is verified against what its kernel computes, and compared within the network with the one by rules,
    both in turn; the network that comes out is never slower than it was, but for what times differ by. Ctrl-C ends the search, and what was
    found until then is built and compared; a second one ends that, too. The log keeps all trials in any case.

    Args:
        mod: a module of Relay or of graphs, such as an importer's, or one function.
        params: values of parameters of "main".
        target: what for; the current target, or this machine.
        budget_s: seconds, for all of it.
        records: the log. If it is there, tuning goes on where it ended. The chosen programs are written beside it:
            "network.json" has its best in "network.best.json".
        tasks: "all", or some by their numbers in the order of their time, or by names of kernels. Without a choice those that take less
            than a two hundredth of a run are left alone, and of the others so many get a turn as there are six seconds for each.
        prior_records: logs whose records of this network's tasks are taken over.
        by: what searches: "auto_scheduler".
        inputs: arrays by the names of inputs: those of open sizes, and integers that aren't all 0.
        progress: a function of `TuningProgress`; True for lines on stderr, False for none; by default lines if it is a terminal.
        builder, runner: how programs are built and measured.

    Raises:
        TuningError: for a budget of nothing, tasks that there aren't, an unknown search, or if no program can be measured.
        DeclarationError: for inputs of open sizes that aren't given.
        RecordError: for a prior log that can't be read.
    """
    began = time.monotonic()
    if isinstance(budget_s, bool) or not isinstance(budget_s, (int, float)) or not 0 < budget_s < float("inf"):
        raise TuningError(f"tune_network: budget_s is {budget_s!r}; it is a positive number of seconds")
    if by not in _SEARCHES:
        raise TuningError(f"tune_network: by is {by!r}; it is one of {', '.join(map(repr, _SEARCHES))}")
    log = Path(records)
    network = _measured(mod, params, Target.target_or_current(target), inputs, budget_s)
    found = tasks_of_graph(network.graph, network.target)
    found.sort(key=lambda one: -network.seconds_of(one.kernels))
    chosen = _chosen(found, tasks, network)
    _take_over(log, prior_records, chosen)
    shares = {one.task.workload_key: network.seconds_of(one.kernels) for one in chosen}
    watch = Watch(progress, budget_s, network.untuned_s, shares, began)
    watch.recall(load_records(log, repeats=True) if log.exists() else ())
    left = budget_s - (time.monotonic() - began)
    left -= min(_FOR_THE_END, _MOST_FOR_THE_END * budget_s)
    is_interrupted = False
    if chosen and left > 0:
        try:
            affordable = max(1, int(left / _EACH_S)) if isinstance(tasks, str) else len(chosen)
            _search(chosen[:affordable], left, log, watch, builder, runner)
        except KeyboardInterrupt:
            is_interrupted = True
    return _concluded(network, found, chosen, log, watch, is_interrupted)


def _measured(mod: Any, params: Mapping[Any, Any] | None, target: Target, inputs: Mapping[str, Any] | None, budget_s: float) -> _Network:
    """The network by rules, and what it takes."""
    graph = fused_graph(mod, params)
    main: Any = graph.functions.get(graph.get_global_var("main")) if "main" in graph else None
    if main is None:
        raise TuningError('tune_network: a network is a function "main", and the module has none')
    given = inputs_of(main, inputs)
    untuned: Executable = build(graph, target, relax_pipeline=None, progress=False)
    times = kernel_times([untuned], given, _PROFILE_PART * budget_s)[0]
    return _Network(graph, target, untuned, given, times, timed_in_turn([untuned], given, _PROFILE_PART * budget_s)[0])


def _chosen(found: Sequence[NetworkTask], wanted: str | Sequence[int | str], network: _Network) -> list[NetworkTask]:
    """The tasks that are tuned."""
    if isinstance(wanted, str):
        if wanted != "all":
            raise TuningError(f'tune_network: tasks is "all" or a list of numbers and names of kernels, not {wanted!r}')
        return [one for one in found if network.seconds_of(one.kernels) >= _LEAST_SHARE * network.untuned_s]
    numbers: list[int] = []
    for one in wanted:
        number = one if isinstance(one, int) else next((n for n, task in enumerate(found) if one in task.kernels), -1)
        if not 0 <= number < len(found):
            listed = ", ".join(f"{n} {task.kernels[0]}" for n, task in enumerate(found))
            raise TuningError(f"tune_network: no task {one!r}; there are {listed or 'none'}")
        numbers.append(number)
    return [found[number] for number in dict.fromkeys(numbers)]


def _take_over(log: Path, prior: Sequence[str | Path], tasks: Sequence[NetworkTask]) -> None:
    """Copy the records that other logs have of the tasks, unless this one has them."""
    keys = {(one.task.workload_key, one.task.compute_dag.hash_key()) for one in tasks}
    known = {record.dumps() for record in load_records(log, repeats=True)} if log.exists() else set()
    for other in prior:
        of_tasks = [record for record in load_records(other, repeats=True) if (record.workload_key, record.dag_hash) in keys]
        append_records(log, [record for record in of_tasks if record.dumps() not in known])
        known.update(record.dumps() for record in of_tasks)


def _search(chosen: Sequence[NetworkTask], seconds: float, log: Path, watch: Watch, builder: Any, runner: Any) -> None:
    """Rounds of the task scheduler."""
    scheduler = TaskScheduler(
        [one.task for one in chosen], [float(one.count) for one in chosen], load_log_file=str(log) if log.exists() else None, callbacks=[]
    )
    callbacks = [RecordToFile(log), watch]
    parts = {name: value for name, value in (("builder", builder), ("runner", runner)) if value is not None}
    scheduler.tune(TuningOptions(budget_s=seconds, verbose=0, measure_callbacks=callbacks, **parts))


def _winners(tasks: Sequence[NetworkTask], log: Path) -> dict[str, LoadedRecord]:
    """The best verified record of each task by its key."""
    loaded = load_records(log, repeats=True) if log.exists() else []
    found: dict[str, LoadedRecord] = {}
    for one in tasks:
        key, dag = one.task.workload_key, one.task.compute_dag.hash_key()
        best = choose_best([record for record in loaded if record.workload_key == key], key, dag, one.task.target)[0]
        if best is not None and len(best.trace):
            found[key] = best
    return found


def _concluded(
    network: _Network, found: Sequence[NetworkTask], chosen: Sequence[NetworkTask], log: Path, watch: Watch, is_interrupted: bool
) -> NetworkTuning:
    """The network with the programs that make it faster, compared and written."""
    best_log = log.with_suffix(f".best{log.suffix}")
    names = {one.task.workload_key: one.kernels for one in found}
    kept, tuned, before, after = _faster(network, _winners(found, log), names, _PROFILE_PART * watch.budget_s)
    untuned_s, tuned_s = timed_in_turn([network.untuned, tuned], network.inputs, 2 * _PROFILE_PART * watch.budget_s)
    if not kept or tuned_s > untuned_s:
        # Kernel by kernel each may be faster, and all of them aren't: threads, and what one leaves in the caches for the next.
        kept, tuned, after, tuned_s = {}, network.untuned, before, untuned_s
    _write(best_log, kept)
    outcomes = [_outcome(one.kernels, one.task.workload_key, tuned, before, after, watch.counts, kept) for one in found]
    tunable = {name for one in found for name in one.kernels}
    outcomes += [_outcome((name,), "", tuned, before, after, {}, ()) for name in before if name not in tunable]
    return NetworkTuning(
        tuple(sorted(outcomes, key=lambda one: -one.before_s)), untuned_s, tuned_s, time.monotonic() - watch.began, watch.budget_s,
        watch.trials, is_interrupted, log, best_log, tuned,
    )  # fmt: skip


def _faster(
    network: _Network, winners: Mapping[str, LoadedRecord], names: Mapping[str, Sequence[str]], seconds: float
) -> tuple[dict[str, LoadedRecord], Executable, _Times, _Times]:
    """The records whose kernels are faster within the network, the network with them, and what kernels take by rules and with them.

    Alone a kernel finds its weights in the cache where its last call left them; within a network those of other layers were there since.
    """
    if not winners:
        return {}, network.untuned, network.times, network.times
    tuned = network.built(winners.values())
    if not difference(network.untuned, tuned, network.inputs) <= _LARGEST_DIFFERENCE:
        raise TuningError("tune_network: the network with verified programs computes something else than by rules; please report it")
    before, after = kernel_times([network.untuned, tuned], network.inputs, seconds)
    kept = {
        key: record
        for key, record in winners.items()
        if sum(after[name][0] for name in names[key] if name in after)
        < _NO_GAIN * sum(before[name][0] for name in names[key] if name in before)
    }
    if not kept:
        return {}, network.untuned, before, before
    if len(kept) < len(winners):
        tuned = network.built(kept.values())
        before, after = kernel_times([network.untuned, tuned], network.inputs, seconds)
    return kept, tuned, before, after


def _write(best_log: Path, kept: Mapping[str, LoadedRecord]) -> None:
    temporary = best_log.with_name(best_log.name + ".tmp")
    temporary.write_text("".join(record.dumps() + "\n" for record in kept.values()))
    temporary.replace(best_log)  # in one step: whoever reads meanwhile meets the old file or the new one


def _outcome(
    kernels: Sequence[str], key: str, tuned: Executable, before: _Times, after: _Times, trials: Mapping[str, int], kept: Collection[str],
) -> TaskOutcome:  # fmt: skip
    spent = [sum(times.get(name, (0.0, 0))[0] for name in kernels) for times in (before, after)]
    calls = sum(before.get(name, (0.0, 0))[1] for name in kernels)
    origin = "record" if key in kept else tuned.origins.get(kernels[0], "no kernel")
    return TaskOutcome(kernels[0], key, tuple(kernels), calls, spent[0], spent[1], trials.get(key, 0), origin)
