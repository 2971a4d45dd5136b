"""`tune_network`: the programs of a network's kernels, searched within seconds.

the network by rules       built, timed, and profiled: which kernels take how much of a run
tasks                      those that take something, first what is farthest from the machine's limits (`network_tasks`)
search (`searching`)       one task scheduler: each round goes where the network is expected to gain most. Programs are compiled as the
                           network has them, and timed as it finds its data: behind other kernels. Who finds them: `styles`
the network by records     compared kernel by kernel within the network, and as a whole (`comparing`); never slower than by rules
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...auto_scheduler.callbacks import RecordToFile
from ...auto_scheduler.options import LocalBuilder, LocalRunner
from ...auto_scheduler.records import load_records
from ...errors import TensorExprError, TuningError
from ...fleet.plugs import FleetBuilder, FleetRunner
from ...target import Target, TargetLike
from ..build import build
from ..kernel_builds import kept_workers
from ..network_tasks import NetworkTask, fused_graph, tasks_of_graph
from ..runtime.executable import Executable
from .comparing import Compared, Network, Winners, compared, seconds_of
from .known import left_out, take_over
from .outcome import NetworkTuning, TaskOutcome
from .progress import Progress, Watch
from .searching import Chosen, affordable, as_in_a_network, promising, search
from .styles import By, check_style
from .timing import inputs_of, kernel_times, timed_in_turn

_LEAST_SHARE = 0.005  # of a run: what a task below it could gain is less than what two runs differ by
_FOR_THE_END, _MOST_FOR_THE_END = 12.0, 0.25  # seconds, and part of the budget, for building and comparing in the end
# Part of the budget that is for searching, however long the build by rules took: whoever waited for it wants more than that. And seconds
# that aren't enough for a first program.
_LEAST_SEARCH, _NO_SEARCH = 1 / 3, 0.2
_APART = 1.3  # of a run: how much kernels timed one by one may add up to before it is said
_PROFILE_PART = 0.02  # of the budget, for each of the profiles and comparisons


def tune_network(
    mod: Any,
    params: Mapping[Any, Any] | None = None,
    target: TargetLike | None = None,
    *,
    budget_s: float = 60.0,
    records: str | Path = "network.json",
    tasks: str | Sequence[int | str] = "all",
    prior_records: Sequence[str | Path] = (),
    by: By = "auto_scheduler",
    inputs: Mapping[str, Any] | None = None,
    progress: Progress = None,
    builder: LocalBuilder | FleetBuilder | None = None,
    runner: LocalRunner | FleetRunner | None = None,
) -> NetworkTuning:
    """Search the programs of a network's kernels for some seconds, and build it with those that make it faster.

    Every program that was found is verified against what its kernel computes, and compared within the network with the one by rules,
    both in turn; the network that comes out is never slower than it was, but for what times differ by. Ctrl-C ends the search, and what was
    found until then is built and compared; a second one ends that, too. The log keeps all trials in any case.

    Args:
        mod: a module of Relay or of graphs, such as an importer's, or one function.
        params: values of parameters of "main".
        target: what for; the current target, or this machine.
        budget_s: seconds, for all of it. The network by rules is built and timed whatever that takes, and a third of the budget is for the
            search in any case, so that a first call, which finds no kernels made, may take longer.
        records: the log. If it is there, tuning goes on where it ended. The chosen programs are written beside it:
            "network.json" has its best in "network.best.json".
        tasks: "all", or some by their numbers in the order of their time, or by names of kernels. Without a choice those that take less
            than a two hundredth of a run are left alone, and of the others so many get a turn as there are three seconds for each.
        prior_records: logs whose records of this network's tasks are taken over.
        by: what finds programs: "auto_scheduler", sketches by rules; "autotvm", a template with knobs, for convolutions and products; or
            "meta_schedule", schedules of blocks by its rules, or those of a space generator that is given here. Or a function of a task
            that says it for each. All share the scheduler, the log and the comparison in the end.
        inputs: arrays by the names of inputs: those of open sizes, and integers that aren't all 0.
        progress: a function of `TuningProgress`; True for lines on stderr, False for none; by default lines if it is a terminal.
        builder, runner: how programs are built and measured; a fleet's too. Networks are compared on this machine.

    Raises:
        TuningError: for a budget of nothing, tasks that there aren't, an unknown search, or if no program can be measured.
        DeclarationError: for inputs of open sizes that aren't given.
        RecordError: for a prior log that can't be read.
    """
    began = time.monotonic()
    if isinstance(budget_s, bool) or not isinstance(budget_s, (int, float)) or not 0 < budget_s < float("inf"):
        raise TuningError(f"tune_network: budget_s is {budget_s!r}; it is a positive number of seconds")
    check_style(by, "tune_network")
    log = Path(records)
    recorder = RecordToFile(log)
    recorder.prepare()
    with kept_workers():
        network = _measured(mod, params, Target.target_or_current(target), inputs, budget_s, progress)
        found = sorted(tasks_of_graph(network.graph, network.target), key=lambda one: -network.seconds_of(one.kernels))
        timer = as_in_a_network(LocalRunner.of(runner or LocalRunner()), network.target)
        chosen = promising(network, _chosen(found, tasks, network))
        take_over(log, prior_records, found)
        shares = {one.task.task.workload_key: network.seconds_of(one.task.kernels) for one in chosen}
        spent, for_the_end = time.monotonic() - began, min(_FOR_THE_END, _MOST_FOR_THE_END * budget_s)
        left = max(budget_s - spent - for_the_end, _LEAST_SEARCH * budget_s)
        watch = Watch(progress, max(budget_s, spent + left + for_the_end), network.untuned_s, shares, began)
        watch.recall(load_records(log, repeats=True) if log.exists() else ())
        notes = [*left_out([log, *prior_records], found), *_what_is_searched(chosen, left, budget_s, spent)]
        for note in notes:
            watch.say(note)
        is_interrupted = False
        if chosen and left > _NO_SEARCH:
            few = affordable(chosen, left) if isinstance(tasks, str) else chosen
            more, is_interrupted = _searched(few, left, recorder, watch, LocalBuilder.of(builder or LocalBuilder()), timer, by)
            notes += more
        of_whole = compared(network, found, log, timer.swept_bytes, _PROFILE_PART * budget_s)
        return _concluded(of_whole, found, log, watch, budget_s, is_interrupted, tuple(notes))


def _what_is_searched(chosen: Sequence[Chosen], left: float, budget_s: float, spent: float) -> Iterator[str]:
    """In words, where there are no tasks or little time is left."""
    took = f"of a budget of {budget_s:g} s building and timing the network by rules took {spent:.1f} s"
    if not chosen:
        yield "nothing to tune: no kernel that has a computation of known sizes takes a two hundredth of a run"
    elif left <= _NO_SEARCH:
        yield f"nothing was searched: {took}"
    elif left <= _LEAST_SEARCH * budget_s:
        yield f"{took}, and a third of it was for the search; the next call finds the kernels made, and has more"


def _searched(
    chosen: Sequence[Chosen], seconds: float, recorder: RecordToFile, watch: Watch, builder: LocalBuilder, runner: LocalRunner, by: By
) -> tuple[list[str], bool]:
    """Search until the time is over or the user interrupts; what there is to note, and whether that was so."""
    notes, is_interrupted = list[str](), False
    try:
        notes += search(chosen, seconds, recorder, watch, builder, runner, by)
    except KeyboardInterrupt:
        is_interrupted = True
        watch.say("interrupted: what was found until now is compared within the network; Ctrl-C once more leaves it in the log")
    try:
        recorder.finish()
    except TuningError as error:  # without room for all records those are compared that the log has
        notes.append(str(error))
    return notes, is_interrupted


def _measured(
    mod: Any, params: Mapping[Any, Any] | None, target: Target, inputs: Mapping[str, Any] | None, budget_s: float, progress: Progress
) -> Network:
    """The network by rules, and what it takes."""
    graph = fused_graph(mod, params)
    main: Any = graph.functions.get(graph.get_global_var("main")) if "main" in graph else None
    if main is None:
        raise TuningError('tune_network: a network is a function "main", and the module has none')
    given = inputs_of(main, inputs)
    untuned: Executable = build(graph, target, relax_pipeline=None, progress=False if callable(progress) else progress)
    try:
        times = kernel_times([untuned], given, _PROFILE_PART * budget_s)[0]
    except TensorExprError as error:
        made_up = [one.name_hint for one in main.params if one.name_hint not in (inputs or {})]
        if not made_up:
            raise
        raise TuningError(
            f"tune_network: the network fails on the inputs that it is timed on: {error}\n  {', '.join(made_up)} are made up: normal "
            "numbers, and zeros of integers. Give others: inputs={name: array}, or tune --inputs x.npz"
        ) from error
    return Network(graph, target, untuned, given, times, timed_in_turn([untuned], given, _PROFILE_PART * budget_s)[0])


def _chosen(found: Sequence[NetworkTask], wanted: str | Sequence[int | str], network: Network) -> list[NetworkTask]:
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


def _concluded(
    made: Compared, found: Sequence[NetworkTask], log: Path, watch: Watch, budget_s: float, is_interrupted: bool, notes: tuple[str, ...]
) -> NetworkTuning:
    """What came of it; the chosen programs are written."""
    best_log = log.with_suffix(f".best{log.suffix}")
    _write(best_log, made.kept)
    outcomes = [_outcome(made, one.kernels, one.task.workload_key, watch.counts) for one in found]
    tunable = {name for one in found for name in one.kernels}
    outcomes += [_outcome(made, (name,), "", {}) for name in made.before if name not in tunable]
    alone = sum(one.before_s for one in outcomes)
    if alone > _APART * made.untuned_s:
        notes = (*notes, f"called and timed one by one kernels take {alone * 1e3:.3f} ms, more than a run, which calls them at once")
    return NetworkTuning(
        tuple(sorted(outcomes, key=lambda one: -one.before_s)), made.untuned_s, made.tuned_s, time.monotonic() - watch.began,
        budget_s, watch.trials, is_interrupted, log, best_log, made.tuned, notes,
    )  # fmt: skip


def _write(best_log: Path, kept: Winners) -> None:
    temporary = best_log.with_name(best_log.name + ".tmp")
    try:
        temporary.write_text("".join(record.dumps() + "\n" for record in kept.values()))
        temporary.replace(best_log)  # in one step: whoever reads meanwhile meets the old file or the new one
    except OSError as error:
        raise TuningError(
            f"tune_network: the chosen programs can't be written to {best_log}: {error.strerror or error}; the log has all that was "
            "measured, and the same call chooses of it again"
        ) from error


def _outcome(made: Compared, kernels: Sequence[str], key: str, trials: Mapping[str, int]) -> TaskOutcome:
    calls = sum(made.before.get(name, (0.0, 0))[1] for name in kernels)
    origin = "record" if key in made.kept else made.tuned.origins.get(kernels[0], "no kernel")
    before_s, after_s = (seconds_of(times, kernels) for times in (made.before, made.after))
    return TaskOutcome(kernels[0], key, tuple(kernels), calls, before_s, after_s, trials.get(key, 0), origin)
