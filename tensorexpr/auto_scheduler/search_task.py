"""A search task: one computation on one target, tuned into a log and read back from it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RecordError, TuningError, WorkloadError
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..target import Target, TargetLike
from ..te.operation import PlaceholderOp
from ..te.tensor import Tensor
from ..tune.trial import fastest
from .compute_dag import ComputeDAG
from .cost_model import XGBModel
from .layout_rewrite import LayoutRewriteOption, checked_option
from .options import HARDWARE, HardwareParams, TuningOptions, checked_task
from .policy import SketchPolicy
from .records import load_best_record
from .task_input import TASK_INPUT_BUFFER_TABLE, get_task_input_buffer, register_task_input_buffer
from .workload import WORKLOAD_FUNC_REGISTRY, Workload, is_registered, make_workload_key, register_workload_tensors

__all__ = [
    "TASK_INPUT_BUFFER_TABLE",
    "WORKLOAD_FUNC_REGISTRY",
    "SearchTask",
    "auto_schedule",
    "create_task",
    "get_task_input_buffer",
    "register_task_input_buffer",
]


class SearchTask:
    """A computation to tune.

    Args:
        func: a registered workload, as function or name, with its arguments in `args`.
        compute_dag: instead of `func`: the computation itself, a ComputeDAG or its tensors.
        workload_key: instead of `func`: the key of a registered workload with its arguments.
        target: what to tune for; the current target, or this machine.
        hardware_params: numbers of the machine that differ from the target's.
        layout_rewrite_option: how programs take inputs that the computation lists under `layout_free_placeholders`; by default
            the target's, which on a CPU is that programs may copy them into another layout. With REWRITE_FOR_PRE_TRANSFORMED
            whoever calls packs them, and no time of packing is measured.
        task_inputs: arrays to measure with, by the names of placeholders, or the names of arrays registered before; the others
            are random.
        task_inputs_overwrite: replace arrays that are registered already.
        task_inputs_save_to_file: keep them as files in the current folder.
        desc: a name for tables.

    Raises:
        WorkloadError: if the workload isn't registered, or more or less than one of func, compute_dag and workload_key is given.
        TuningError: for a layout_rewrite_option that isn't known.
    """

    def __init__(
        self,
        func: str | Workload | None = None,
        args: Any = None,
        compute_dag: ComputeDAG | Sequence[Tensor] | None = None,
        workload_key: str | None = None,
        target: TargetLike | None = None,
        target_host: TargetLike | None = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: LayoutRewriteOption | int | None = None,
        task_inputs: Mapping[str, Any] | Sequence[str] | None = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        # a computation may come with a key that it is known by
        if sum(given is not None for given in (func, compute_dag, workload_key)) != 1 and not (compute_dag is not None and workload_key):
            named = {"func": func, "compute_dag": compute_dag, "workload_key": workload_key}
            got = ", ".join(f"{name}={value!r}" for name, value in named.items() if value is not None) or "none"
            raise WorkloadError(
                f"a SearchTask takes func= with args=, or compute_dag=, or workload_key=; give exactly one of them, not {got}"
            )
        if not isinstance(hardware_params or HardwareParams(), HardwareParams):
            raise TuningError(f"hardware_params takes auto_scheduler.HardwareParams(...), not {hardware_params!r}")
        if func is not None:
            workload_key = make_workload_key(func, () if args is None else args)
        made = (
            compute_dag
            if isinstance(compute_dag, ComputeDAG)
            else ComputeDAG(compute_dag if compute_dag is not None else str(workload_key))
        )
        self.compute_dag = made
        self.workload_key = workload_key or made.workload_key()
        chosen = Target.target_or_current(target)
        chosen = Target(chosen, target_host) if target_host is not None else chosen
        self.target = (hardware_params.apply_to(chosen) if hardware_params else chosen).resolved()
        self.hardware_params = (hardware_params or HardwareParams()).filled(self.target)
        usual = LayoutRewriteOption.get_target_default(self.target)
        self.layout_rewrite_option = usual if layout_rewrite_option is None else checked_option(layout_rewrite_option, "SearchTask")
        self.task_input_names = tuple(task_inputs or ())
        if isinstance(task_inputs, Mapping):
            for name, data in task_inputs.items():
                register_task_input_buffer(self.workload_key, name, data, task_inputs_overwrite, task_inputs_save_to_file)
        self.desc = desc
        self._predicted: Trace | None = None
        _check_inputs(self.workload_key, made)

    def serialize(self) -> list[Any]:
        """The task as JSON values: what TVM's logs hold of one, then the computation and the description."""
        hardware = [getattr(self.hardware_params, name) or 0 for name in HARDWARE]
        host = str(self.target.host or "")
        option, names = int(self.layout_rewrite_option), list(self.task_input_names)
        return [self.workload_key, str(self.target), hardware, host, option, names, self.compute_dag.dumps(), self.desc]

    @staticmethod
    def deserialize(data: Sequence[Any]) -> SearchTask:
        """The task of such values; of older ones the last are missing. The arrays of its inputs must be registered here.

        Raises:
            WorkloadError: if the computation isn't among them and its workload isn't registered here.
            RecordError: for other values.
        """
        key, target, hardware, host, option, names, dag, desc = checked_task(data)
        known = {name: value for name, value in zip(HARDWARE, hardware, strict=False) if value}
        if dag and not is_registered(key):
            # records know a computation by its key only
            register_workload_tensors(key, ComputeDAG.loads(dag).tensors)
        made = SearchTask(
            compute_dag=ComputeDAG.loads(dag) if dag else None,
            workload_key=key,
            target=Target(target, host or None),
            layout_rewrite_option=option,
            task_inputs=names,
            desc=desc,
        )
        made.hardware_params = HardwareParams(**known).filled(made.target)  # beside the target, which stays as it is written
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return SearchTask.deserialize, (self.serialize(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> SearchTask:
        return copy.copy(self)

    def __copy__(self) -> SearchTask:
        made = object.__new__(SearchTask)
        made.__dict__.update(self.__dict__)
        return made

    def tune(self, tuning_options: TuningOptions, search_policy: SketchPolicy | None = None, adaptive_training: bool = False) -> None:
        """Search for a fast program and call the options' callbacks with every result.

        With 0 trials nothing is measured or recorded: `apply_best` then gives the program that is predicted to be fastest, on a GPU the
        schedule by rules, where its log has none.

        Args:
            tuning_options: how much to measure, and where results go.
            search_policy: how to search; sketches and a learned model if None.
            adaptive_training: train that model only when there are a fifth more samples.

        Raises:
            TuningError: if nothing can be measured: no worker starts, there is no GPU of the target, or a log can't be written.
        """
        if not isinstance(tuning_options, TuningOptions):
            raise TuningError(f"tune takes auto_scheduler.TuningOptions(...), not {tuning_options!r}")
        if not (search_policy is None or hasattr(search_policy, "search")):
            raise TuningError(f"search_policy is a policy such as auto_scheduler.SketchPolicy(task), not {search_policy!r}")
        policy = search_policy or SketchPolicy(self, XGBModel(adaptive_training=True) if adaptive_training else None)
        if tuning_options.most_trials < 1:
            self._predicted = policy.best_predicted()
            return
        policy.search(tuning_options)

    def apply_best(
        self, log_file: str | Path, include_compatible: bool = False, layout_rewrite_option: LayoutRewriteOption | int | None = None
    ) -> tuple[Schedule, list[Tensor]]:
        """The schedule of the fastest verified record of this task in a log, with the arguments to build it.

        Args:
            log_file: the log.
            include_compatible: use a record of the same function for other sizes, where there is none.
            layout_rewrite_option: instead of the task's. Programs that were measured with another option are rewritten.

        Raises:
            RecordError: if the log has none for this task; the message says what it has.
            TuningError: for an option that isn't known.
        """
        wanted = self.layout_rewrite_option if layout_rewrite_option is None else checked_option(layout_rewrite_option, "apply_best")
        dag = self.compute_dag
        try:
            record = load_best_record(log_file, self.workload_key, self.target, include_compatible, dag, wanted)
        except RecordError:
            if self._predicted is None:
                raise
            return dag.apply_steps_from_state(self._predicted, wanted)
        if record.layout_rewrite_option == wanted:
            return dag.schedule(record.trace)
        return dag.apply_steps_from_state(record.trace, wanted)

    def print_best(self, log_file: str | Path, print_mode: str = "schedule") -> str:
        """The best schedule of a log as Python lines, or for a task for GPUs, with "cuda", its kernels as PTX.

        Raises:
            RecordError: if the log has no record for this task.
            TuningError: for another print mode, or "cuda" for another target.
        """
        if print_mode not in ("schedule", "cuda"):
            raise TuningError(f'print_best knows the modes "schedule" and "cuda", not {print_mode!r}')
        if print_mode == "cuda" and self.target.kind.name != "cuda":
            raise TuningError(f'print_best(print_mode="cuda") shows kernels for cuda, and this task is for {self.target}; use "schedule"')
        schedule, args = self.apply_best(log_file)
        if print_mode == "schedule":
            return schedule.as_python()
        from ..runtime.device_build import build_for_device  # not loaded for programs of CPUs

        return build_for_device(schedule, args, self.target, "default_function", None).get_source("ptx")

    def __repr__(self) -> str:
        return f"SearchTask({self.workload_key}, {str(self.target)!r})"


def _check_inputs(key: str, dag: ComputeDAG) -> None:
    """Refuse a computation whose inputs aren't among its tensors: nobody could pass them."""
    missing = [op.name for op in dag.ops if isinstance(op, PlaceholderOp) and op.output(0) not in dag.tensors]
    if missing:
        names = ", ".join([*missing, *(tensor.op.name for tensor in dag.tensors)])
        raise WorkloadError(
            f"the computation of {key[:200]} reads {', '.join(missing)}, but lists only {', '.join(t.op.name for t in dag.tensors)}; "
            f"its tensors are inputs and outputs, so return [{names}]"
        )


def create_task(
    func: str | Workload,
    args: Any,
    target: TargetLike,
    target_host: TargetLike | None = None,
    hardware_params: HardwareParams | None = None,
) -> SearchTask:
    """A task as older programs make one; see `SearchTask`."""
    return SearchTask(func, args, target=target, target_host=target_host, hardware_params=hardware_params)


def auto_schedule(
    task: SearchTask, search_policy: SketchPolicy | None = None, tuning_options: TuningOptions | None = None
) -> tuple[Schedule, list[Tensor]]:
    """Search as older programs do: the schedule of the fastest program, with the arguments to build it.

    Args:
        task: what to search.
        search_policy: how; sketches and a learned model if None.
        tuning_options: how much to measure. By default nothing: then it is the program that is predicted to be fastest.

    Raises:
        TuningError: if no program ran, or no worker starts.
    """
    options, policy = tuning_options or TuningOptions(), search_policy or SketchPolicy(task)
    if not isinstance(options, TuningOptions) or not hasattr(policy, "search"):
        raise TuningError(
            f"auto_schedule takes a task, a policy such as SketchPolicy(task) and TuningOptions(...); got {policy!r}, {options!r}"
        )
    if options.most_trials < 1:
        return task.compute_dag.schedule(policy.best_predicted())
    best = fastest(policy.search(options))
    if best is None:
        raise TuningError(f"no program of {task.workload_key[:200]} ran; see auto_scheduler.explain_failures")
    return task.compute_dag.schedule(best.trace)
