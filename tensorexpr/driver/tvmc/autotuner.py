"""Records for the kernels of a network: by the auto-scheduler, all tasks under one budget; AutoTVM's templates on request."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import auto_scheduler, autotvm
from ...auto_scheduler.records import load_records
from ...auto_scheduler.task_callbacks import LogEstimatedLatency
from ...autotvm import callback as autotvm_callback
from ...autotvm.task import extract_from_program
from ...dataclass import dataclass
from ...relax.tuning.network import tune_network
from ...relax.tuning.styles import STYLES, policies_by
from ...relay.build_module import bound_graph
from ...runtime.export import write_file
from ...target import Target, TargetLike
from ..report.network import network_page
from .compiler import add_model_args
from .composite_target import partitioned
from .model import TVMCException, TVMCModel, check_folder
from .runner import Inputs, read_inputs
from .target import generate_target_args, reconstruct_target_args, target_from_cli
from .tracker import check_tracker, tracker_host_port_from_cli
from .transform import TransformArgs, apply_graph_transforms, generate_transform_args, parse_graph_transform_args
from .tuning_table import TuningTable

TUNERS = (
    "ga", "gridsearch", "random", "xgb", "xgb_knob", "xgb_itervar", "xgb_curve", "xgb_rank", "xgb_rank_knob", "xgb_rank_itervar",
    "xgb_rank_curve", "xgb_rank_binary", "xgb_rank_binary_knob", "xgb_rank_binary_itervar", "xgb_rank_binary_curve",
)  # fmt: skip
_NUMBER, _REPEAT, _PARALLEL = 10, 1, 4
_TRIALS_OF_A_TASK = 4  # with fewer there is little but what rules choose, and the unscheduled program
_AS_USUAL: dict[str, Any] = {"number": None, "repeat": None}
_NOTHING = (
    "nothing to tune: no products or convolutions of known sizes; --input-shapes states sizes that a model leaves open, "
    "--include-simple-tasks takes pools and elementwise chains"
)
_HARDWARE = (
    "num_cores", "vector_unit_bytes", "cache_line_bytes", "max_shared_memory_per_block", "max_local_memory_per_block",
    "max_threads_per_block", "max_vthread_extent", "warp_size",
)  # fmt: skip


def _target(target: TargetLike, host: TargetLike | None) -> Target:
    return Target(target, host) if host is not None else Target.target_or_current(target)


def autoscheduler_get_tuning_tasks(
    mod: Any, params: Mapping[str, Any] | None, target: TargetLike, target_host: TargetLike | None = None,
    transform_args: TransformArgs = None, hardware_params: Any = None, include_simple_tasks: bool = False,
) -> tuple[list[Any], list[int]]:  # fmt: skip
    """The tasks of a network for the auto-scheduler and how often each runs; see `auto_scheduler.extract_tasks`."""
    changed = apply_graph_transforms(mod, transform_args)
    found: tuple[list[Any], list[int]] = auto_scheduler.extract_tasks(
        changed, params, target, target_host, hardware_params, include_simple_tasks
    )
    return found


def autotvm_get_tuning_tasks(
    mod: Any, params: Mapping[str, Any] | None, target: TargetLike, target_host: TargetLike | None = None,
    transform_args: TransformArgs = None,
) -> list[Any]:  # fmt: skip
    """The tasks of a network for AutoTVM's templates; see `autotvm.task.extract_from_program`."""
    changed = bound_graph(apply_graph_transforms(mod, transform_args), params)
    return extract_from_program(changed, params or {}, _target(target, target_host))


def filter_tasks(tasks: Sequence[Any], expr: str) -> tuple[list[Any], bool]:
    """Some of the tasks, and whether they are to be listed only.

    Args:
        tasks: all of them.
        expr: "all", "list", or numbers and ranges with commas between: "0,3-5,8-"; "list,0-2" lists these.

    Raises:
        TVMCException: for another text, a number that there isn't, or no tasks at all.
    """
    if not tasks:
        raise TVMCException(_NOTHING)
    words = [word.strip() for word in expr.split(",") if word.strip()]
    is_list = "list" in words or "help" in words
    chosen: set[int] = set()
    picked = [word for word in words if word not in ("list", "help")]
    for word in picked:
        found = re.fullmatch(r"(\d*)(-?)(\d*)", word)
        if word == "all":
            chosen.update(range(len(tasks)))
        elif found is None or word == "-":
            raise _unread(expr)
        else:
            first = int(found[1] or 0)
            last = int(found[3]) if found[3] else len(tasks) - 1 if found[2] else first
            if first >= len(tasks):
                raise TVMCException(f"--tasks {expr}: there are {len(tasks)} tasks, numbered from 0; --tasks list shows them")
            if last < first:
                raise _unread(expr)
            chosen.update(range(first, min(last, len(tasks) - 1) + 1))
    if not words:
        raise _unread(expr)
    return (list(tasks) if not picked else [task for n, task in enumerate(tasks) if n in chosen]), is_list


def _unread(tasks: str) -> TVMCException:
    return TVMCException(f'--tasks {tasks or "of nothing"}: expected "all", "list", or numbers and ranges such as 0,3-5,8-')


def gen_task_list(tasks: Sequence[Any], enable_autoscheduler: bool) -> str:
    """The tasks as text, a line each."""
    lines = ["Available Tasks for tuning:"]
    for n, task in enumerate(tasks):
        about = f"{task.desc or 'a kernel'}: {_shapes(task)}" if enable_autoscheduler else str(task)
        lines.append(f"  {n}. {about}")
    return "\n".join(lines) + "\n"


def _shapes(task: Any) -> str:
    tensors = task.compute_dag.tensors
    return ", ".join(f"{tensor.name}{[int(one) for one in tensor.shape]}" for tensor in tensors)


def schedule_tasks(
    tasks: Sequence[Any], task_weights: Sequence[float], tuning_options: Any, prior_records: str | None = None,
    log_estimated_latency: bool = False, by: str = STYLES[0],
) -> None:  # fmt: skip
    """Tune tasks of the auto-scheduler, so that the network gets fastest; one table shows all of them, see `tuning_table`.

    Args:
        tasks, task_weights: of `autoscheduler_get_tuning_tasks`.
        tuning_options: `auto_scheduler.TuningOptions`.
        prior_records: a log whose programs count as measured.
        log_estimated_latency: write the expected time of the network to total_latency.tsv after each round.
        by: what finds programs, see `relax.tune_network`; tasks that it has none of are left out, which is said.

    Raises:
        TVMCException: if it has programs of none.
    """
    policies, notes = policies_by(by, tasks, prior_records)
    for note in notes:
        print(note)
    if not policies:
        raise TVMCException(f"nothing to tune: {by} has programs of none of the {len(tasks)} tasks")
    taken, weights = [tasks[number] for number in policies], [task_weights[number] for number in policies]
    earlier = load_records(prior_records, repeats=True) if prior_records is not None else ()
    table = TuningTable(taken, weights, tuning_options.num_measure_trials, earlier)
    callbacks = [table, *([LogEstimatedLatency("total_latency.tsv")] if log_estimated_latency else [])]
    tuning_options.measure_callbacks = (*tuning_options.measure_callbacks, table.watch)
    scheduler = auto_scheduler.TaskScheduler(taken, weights, load_log_file=prior_records, callbacks=callbacks)
    if (measured := sum(table.watch.counts.values())) >= tuning_options.num_measure_trials:
        print(f"{prior_records} has {measured} programs of these kernels: --trials above that goes on")
    try:
        scheduler.tune(tuning_options, search_policy=list(policies.values()))
    finally:
        if table.watch.counts:
            table.close()
            print("\n".join(scheduler.totals.facts()))


def tune_tasks(
    tasks: Sequence[Any], log_file: str, measure_option: Any, tuner: str = "xgb", trials: int = 1000, early_stopping: int | None = None,
    tuning_records: str | None = None,
) -> None:  # fmt: skip
    """Tune tasks of AutoTVM, one after the other.

    Args:
        tasks: of `autotvm_get_tuning_tasks`.
        log_file: where records go.
        measure_option: `autotvm.measure_option(...)`.
        tuner: one of `TUNERS`.
        trials: of each task.
        early_stopping: end a task when so many trials brought nothing better.
        tuning_records: a log that the tuner learns from.

    Raises:
        TVMCException: for another tuner.
    """
    if tuner not in TUNERS:
        raise TVMCException(f"no tuner {tuner!r}; there are {', '.join(TUNERS)}")
    for n, task in enumerate(tasks):
        made = _tuner(tuner, task)
        if tuning_records and os.path.exists(tuning_records):
            made.load_history(autotvm.record.load_from_file(tuning_records))
        count = min(trials, len(task.config_space))
        prefix = f"[Task {n + 1:2d}/{len(tasks):2d}] "
        made.tune(
            n_trial=count, early_stopping=early_stopping, measure_option=measure_option,
            callbacks=[autotvm_callback.progress_bar(count, prefix=prefix), autotvm_callback.log_to_file(log_file)],
        )  # fmt: skip


def _tuner(name: str, task: Any) -> Any:
    if name in ("ga", "gridsearch", "random"):
        return {"ga": autotvm.tuner.GATuner, "gridsearch": autotvm.tuner.GridSearchTuner, "random": autotvm.tuner.RandomTuner}[name](task)
    words = name.split("_")
    kind = next((word for word in ("itervar", "curve", "knob") if word in words), "itervar")
    loss = "rank-binary" if "binary" in words else "rank" if "rank" in words else "reg"
    return autotvm.tuner.XGBTuner(task, feature_type=kind, loss_type=loss)


def tune_model(
    tvmc_model: TVMCModel, target: TargetLike, tuning_records: str | os.PathLike[str] | None = None,
    prior_records: str | os.PathLike[str] | None = None, enable_autoscheduler: bool | None = None, rpc_key: str | None = None,
    hostname: str | None = None, port: int | str = 9090, trials: int | None = None, target_host: TargetLike | None = None,
    tuner: str | None = None, min_repeat_ms: int | None = None, early_stopping: int | None = None, timeout: int = 10, repeat: int = _REPEAT,
    number: int = _NUMBER, parallel: int = _PARALLEL, hardware_params: Any = None, include_simple_tasks: bool = False,
    log_estimated_latency: bool = False, additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    tasks_filter: str = "all", desired_layout: str | None = None, desired_layout_ops: Sequence[str] | None = None,
    mixed_precision: bool = False, mixed_precision_ops: Sequence[str] | None = None, mixed_precision_calculation_type: str | None = None,
    mixed_precision_acc_type: str | None = None, budget_s: float | None = None, by: str | None = None, inputs: Inputs = None,
) -> str:  # fmt: skip
    """Tune a network; what was measured stays in the log, whenever it is interrupted.

    Args:
        tvmc_model: of `load`.
        target: what for.
        tuning_records: the log; one that is there is continued. By default in a folder for temporary files.
        prior_records: another log, whose records are taken over first.
        enable_autoscheduler: by the auto-scheduler, each kernel with what is fused in it; False for AutoTVM's templates of operators. By
            default as `tuner` has it.
        rpc_key, hostname, port: of the devices to measure on, and of their tracker; none measures here.
        trials: programs that are measured in all, by AutoTVM for each task; as many as there is time for under a budget, else 10,000.
        target_host: the target's host.
        tuner: of AutoTVM, one of `TUNERS`, "xgb" if only `enable_autoscheduler` asks for it.
        min_repeat_ms: the least milliseconds of a measurement.
        early_stopping: end when so many trials brought nothing better.
        timeout, repeat, number, parallel: of measuring: seconds, measurements and runs of a program; compilers at a time. Under a budget
            the defaults mean as many as `relax.tune_network` takes.
        hardware_params: `auto_scheduler.HardwareParams`.
        include_simple_tasks: tune pools and elementwise chains, too.
        log_estimated_latency: write the expected time of the network to total_latency.tsv.
        additional_target_options: options of the target by its kind.
        tasks_filter: see `filter_tasks`; "list" prints the tasks and tunes none.
        desired_layout, desired_layout_ops, mixed_precision, mixed_precision_ops, mixed_precision_calculation_type,
            mixed_precision_acc_type: see `transform.apply_graph_transforms`.
        budget_s: seconds in all, of the auto-scheduler.
        by: what finds programs of kernels: "auto_scheduler" (the default), "autotvm", a template with knobs, or "meta_schedule". Builds
            follow the records of all of them.
        inputs: arrays by name, or an `.npz` file, that the network is run on under a budget; the others are made up.

    Returns:
        The log's path; with a budget that of the programs that were chosen, which lies beside it.

    Raises:
        TVMCException: for options that don't fit, or a network without tasks.
        TuningError, RecordError: of the search.
    """
    transforms = parse_graph_transform_args(locals())
    check_tracker(hostname, rpc_key)
    there = (rpc_key, hostname, int(port)) if hostname and rpc_key else None
    by = _style(tuner is None if enable_autoscheduler is None else enable_autoscheduler, by, budget_s, trials)
    chosen, generators = target_from_cli(target, additional_target_options)
    log = os.fspath(tuning_records or tvmc_model.default_tuning_records_path())
    params = tvmc_model.params
    mod = partitioned(apply_graph_transforms(tvmc_model.mod, transforms), params, generators)  # as `compile` has it
    measuring = _Measuring(number, repeat, timeout, min_repeat_ms, parallel, there)
    goal = _target(chosen, target_host)
    if by is not None and budget_s is not None and tasks_filter == "all":  # it finds the tasks itself
        return _within(mod, params, goal, budget_s, log, "all", prior_records, measuring, by, inputs)
    if by is None:
        tasks = autotvm_get_tuning_tasks(mod, params, chosen, target_host)
        counts = [1] * len(tasks)
    else:
        tasks, counts = autoscheduler_get_tuning_tasks(mod, params, chosen, target_host, None, hardware_params, include_simple_tasks)
    selected, is_list = filter_tasks(tasks, tasks_filter)
    if is_list:
        print(gen_task_list(selected, by is not None))
        return log
    if by is not None and budget_s is not None:
        return _within(mod, params, goal, budget_s, log, [task.desc for task in selected], prior_records, measuring, by, inputs)
    _take_over(prior_records, log)
    known = log if os.path.exists(log) else None
    if by is None:
        tune_tasks(selected, log, measuring.of_autotvm(), tuner or "xgb", trials or 10_000, early_stopping, known)
    else:
        weight_of = {id(task): count for task, count in zip(tasks, counts, strict=True)}
        asked = 10_000 if trials is None else trials
        if tasks_filter == "all":
            selected = _affordable(selected, weight_of, asked)
        elif asked < len(selected):
            raise TVMCException(f"--trials {asked}: --tasks {tasks_filter} are {len(selected)} tasks, each of which takes one at least")
        options = measuring.of_trials(asked, early_stopping, log)
        schedule_tasks(selected, [weight_of[id(task)] for task in selected], options, known, log_estimated_latency, by)
    return log


def _affordable(tasks: Sequence[Any], weight_of: Mapping[int, int], trials: int) -> list[Any]:
    """As many tasks as trials are enough for: those with the most operations in a run of the network, in their order."""
    most = max(1, trials // _TRIALS_OF_A_TASK)
    if len(tasks) <= most:
        return list(tasks)
    work = {id(task): max(1.0, task.compute_dag.flop_ct) * weight_of[id(task)] for task in tasks}
    heaviest = sorted(tasks, key=lambda task: -work[id(task)])[:most]
    share = sum(work[id(task)] for task in heaviest) / sum(work.values())
    print(
        f"{trials} programs are few for {len(tasks)} kernels: the {most} with the most operations, {share:.0%} of all, are tuned; "
        f"--trials {_TRIALS_OF_A_TASK * len(tasks)} or more takes all, --budget SECONDS goes by time"
    )
    return [task for task in tasks if task in heaviest]


def _style(enable_autoscheduler: bool, by: str | None, budget_s: float | None, trials: int | None) -> str | None:
    """What finds programs of kernels; None for AutoTVM's tasks of operators.

    Raises:
        TVMCException: for options that exclude each other.
    """
    if by is not None and by not in STYLES:
        raise TVMCException(f"no search is called {by!r}; there are {', '.join(STYLES)}")
    if not enable_autoscheduler and by is not None:
        raise TVMCException(f"by={by!r} searches kernels in the task scheduler; AutoTVM's tuners search operators: leave out one of both")
    if budget_s is not None and not enable_autoscheduler:
        raise TVMCException("a budget of seconds is for the auto-scheduler; AutoTVM takes trials of each task")
    if budget_s is not None and not budget_s > 0:
        raise TVMCException(f"--budget {budget_s:g}: it is a positive number of seconds")
    if trials is not None and trials < 1:
        raise TVMCException(f"--trials {trials}: at least one program is measured")
    if budget_s is not None and trials is not None:
        raise TVMCException("--budget takes as many trials as there is time for: leave out --trials, or the budget")
    return (by or STYLES[0]) if enable_autoscheduler else None


@dataclass(frozen=True)
class _Measuring:
    """How programs are measured, as the arguments of `tune_model` say it; `there` are key, host and port of a tracker's devices."""

    number: int
    repeat: int
    timeout: int
    min_repeat_ms: int | None
    parallel: int
    there: tuple[str, str, int] | None

    def runner(self, door: Any, **options: Any) -> Any:
        """A front door's runner of this machine, or of the devices of a tracker."""
        return door.LocalRunner(**options) if self.there is None else door.RPCRunner(*self.there, **options)

    def of_autotvm(self) -> Any:
        """As AutoTVM's tuners take it."""
        return autotvm.measure_option(
            builder=autotvm.LocalBuilder(timeout=self.timeout, n_parallel=self.parallel),
            runner=self.runner(
                autotvm, number=self.number, repeat=self.repeat, timeout=self.timeout, min_repeat_ms=self.min_repeat_ms or 0
            ),
        )  # fmt: skip

    def of_trials(self, trials: int, early_stopping: int | None, log: str) -> auto_scheduler.TuningOptions:
        """As the task scheduler takes it for a number of trials."""
        return auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            early_stopping=early_stopping,
            builder=auto_scheduler.LocalBuilder(timeout=self.timeout, n_parallel=self.parallel),
            runner=self.runner(
                auto_scheduler, timeout=self.timeout, number=self.number, repeat=self.repeat, min_repeat_ms=self.min_repeat_ms or 0
            ),
            verbose=0,  # the table says it
            measure_callbacks=[auto_scheduler.RecordToFile(log)],
        )  # fmt: skip

    def within_a_network(self) -> tuple[auto_scheduler.LocalBuilder, Any]:
        """As a search of a network takes it: what isn't said otherwise than usual is its own, as ten calls of a short kernel say little."""
        builder = auto_scheduler.LocalBuilder(timeout=self.timeout, n_parallel=None if self.parallel == _PARALLEL else self.parallel)
        is_usual = (self.number, self.repeat) == (_NUMBER, _REPEAT)
        asked = _AS_USUAL if is_usual else {"number": self.number, "repeat": self.repeat}
        return builder, self.runner(auto_scheduler, timeout=self.timeout, min_repeat_ms=self.min_repeat_ms, **asked)


def _within(
    mod: Any, params: Any, target: Target, budget_s: float, log: str, tasks: Any, prior: str | os.PathLike[str] | None,
    measuring: _Measuring, by: str, inputs: Inputs,
) -> str:  # fmt: skip
    """Tune by seconds: see `relax.tune_network`. Prints the table, writes its page, and returns the log of the chosen programs.

    Raises:
        TVMCException: if there is nothing to tune.
    """
    builder, runner = measuring.within_a_network()
    made = tune_network(
        mod, params, target, budget_s=budget_s, records=log, tasks=tasks, prior_records=() if prior is None else (os.fspath(prior),), by=by,
        inputs=read_inputs(inputs), builder=builder, runner=runner,
    )  # fmt: skip
    if not any(one.workload_key for one in made.tasks):
        raise TVMCException(_NOTHING)
    page = Path(log).with_suffix(".html")
    write_file(str(page), network_page(made).encode())
    print(f"{made}\n{page}")
    return str(Path(log).with_suffix(f".best{Path(log).suffix}"))


def _take_over(prior: str | os.PathLike[str] | None, log: str) -> None:
    """Begin a log with the records of another one.

    Raises:
        TVMCException: if that isn't there.
    """
    if prior is None or os.path.abspath(prior) == os.path.abspath(log):
        return
    if not os.path.exists(prior):
        raise TVMCException(f"{prior}: there are no such prior records")
    with open(prior, "rb") as source, open(log, "ab") as target:
        shutil.copyfileobj(source, target)


def add_tune_parser(subparsers: Any, _: Any = None, json_params: Any = None) -> argparse.ArgumentParser:
    """The subcommand `tune`."""
    parser: argparse.ArgumentParser = subparsers.add_parser("tune", help="tune the kernels of a model")
    add_model_args(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="the records; a log that is there is continued")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="seconds in all; without --trials as many as there is time for")
    parser.add_argument("-i", "--inputs", metavar="FILE", help="inputs by name, .npz, that the network is run on under a budget")
    parser.add_argument("--trials", type=int, help="programs that are measured in all; 1000 without a budget")
    parser.add_argument("--tuning-records", metavar="FILE", help="other records, which are taken over first")
    parser.add_argument("--prior-records", dest="tuning_records", metavar="FILE", help="the same")
    parser.add_argument("--tasks", default="all", help='"all", "list", or numbers and ranges: 0,3-5,8-')
    parser.add_argument("--early-stopping", type=int, metavar="N", help="end when so many trials brought nothing better")
    parser.add_argument("--min-repeat-ms", type=int, metavar="MS", help="the least time of a measurement")
    parser.add_argument("--number", type=int, default=_NUMBER, help="runs in a measurement; 10")
    parser.add_argument("--repeat", type=int, default=_REPEAT, help="measurements of a program; 1")
    parser.add_argument("--parallel", type=int, default=_PARALLEL, help="compilers at a time; 4")
    parser.add_argument("--timeout", type=int, default=10, metavar="SECONDS", help="of a compiler or a measurement; 10")
    parser.add_argument("--enable-autoscheduler", action="store_true", help="the default, unless there is --tuner")
    parser.add_argument("--by", choices=STYLES, help="what finds programs of kernels; auto_scheduler")
    parser.add_argument("--include-simple-tasks", action="store_true", help="pools and elementwise chains, too")
    parser.add_argument("--log-estimated-latency", action="store_true", help="the expected time, to total_latency.tsv")
    parser.add_argument("--tuner", choices=TUNERS, help="AutoTVM's templates of operators, by this tuner")
    parser.add_argument("--rpc-key", help="of the devices of a tracker to measure on")
    parser.add_argument("--rpc-tracker", metavar="HOST:PORT", help="the tracker: python -m tensorexpr rpc_tracker, or a Dask scheduler")
    parser.add_argument("--target-host", help="the target's host")
    for name in _HARDWARE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=f"{name.replace('_', ' ')} of the machine")
    generate_target_args(parser)
    generate_transform_args(parser)
    parser.set_defaults(func=drive_tune)
    return parser


def drive_tune(args: argparse.Namespace) -> int:
    """Run the subcommand `tune`; returns the exit code, 130 if it was interrupted."""
    from .frontends import load_model

    check_folder(args.output)
    model = load_model(args.FILE, args.model_format, args.input_shapes)
    host, port = tracker_host_port_from_cli(args.rpc_tracker)
    numbers = {name: getattr(args, name) for name in _HARDWARE if getattr(args, name) is not None}
    is_list = "list" in args.tasks or "help" in args.tasks
    if args.output is None and not is_list:
        raise TVMCException("tune writes records: -o FILE says where; --tasks list shows what there is to tune, and writes none")
    if args.enable_autoscheduler and args.tuner:
        raise TVMCException("--tuner is AutoTVM's; leave out --enable-autoscheduler, or the tuner")
    if args.enable_autoscheduler and args.by not in (None, STYLES[0]):
        raise TVMCException(f"--enable-autoscheduler and --by {args.by} say two things; leave out one of them")
    try:
        log = tune_model(
            model, args.target, args.output, args.tuning_records, None, args.rpc_key, host, port or 9090,
            args.trials if args.trials is not None or args.budget is not None else 1000, args.target_host, args.tuner,
            args.min_repeat_ms, args.early_stopping, args.timeout, args.repeat, args.number, args.parallel,
            auto_scheduler.HardwareParams(**numbers, target=args.target) if numbers else None, args.include_simple_tasks,
            args.log_estimated_latency, reconstruct_target_args(args), args.tasks, budget_s=args.budget, by=args.by, inputs=args.inputs,
            **parse_graph_transform_args(args),
        )  # fmt: skip
    except KeyboardInterrupt:
        count = len(Path(args.output).read_text().splitlines()) if os.path.exists(args.output or "") else 0
        print(f"\ninterrupted: {count} records in {args.output}; the same command goes on from there")
        return 130
    if not is_list:
        print(f"{log}: {_next_command(args, log)}")
    return 0


def _next_command(args: argparse.Namespace, log: str) -> str:
    """How the model is compiled with its records: records of other shapes, or of another precision, aren't those of its kernels."""
    words = ["python", "-m", "tensorexpr", "compile", str(args.FILE), "--tuning-records", log]
    if args.model_format:
        words += ["--model-format", args.model_format]
    if args.input_shapes:
        words += ["--input-shapes", " ".join(f"{name}:{list(shape)}".replace(" ", "") for name, shape in args.input_shapes.items())]
    if args.target != "llvm":
        words += ["--target", args.target]
    words += [word for name, value in reconstruct_target_args(args).get("llvm", {}).items() if value is not None
              for word in (f"--target-llvm-{name}", str(value))]  # fmt: skip
    for name, value in parse_graph_transform_args(args).items():
        if value:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else value if isinstance(value, list) else [str(value)])]
    return shlex.join(words)
