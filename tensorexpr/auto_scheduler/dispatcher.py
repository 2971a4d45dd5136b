"""Which schedule a computation gets: contexts that look it up in tuning logs.

with auto_scheduler.ApplyHistoryBest("log.json"):
    schedule, args = auto_scheduler.best_schedule(tensors, target)
    func = tensorexpr.build(schedule, args, target)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from ..errors import RecordError, ScheduleError, TensorExprError, WorkloadError
from ..log import once
from ..schedule.layout_rewrite import as_declared
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..target import Target, TargetLike
from ..te.identity import dag_equal
from ..te.tensor import Tensor
from ..tune.contexts import inner_to_outer
from ..tune.records import choose_best
from ..tune.trial import fastest
from .compute_dag import ComputeDAG
from .cost_model import XGBModel
from .layout_rewrite import LayoutRewriteOption
from .loaded import LoadedRecord
from .loop_state import State
from .options import TuningOptions
from .policy import SketchPolicy
from .records import compatible_record, load_records
from .search_task import SearchTask
from .utils import decode_workload_key

logger = logging.getLogger(__name__)
Records = str | Path | Iterable[LoadedRecord]


class DispatchContext:
    """Answers which program a workload runs; contexts nest, and the inner one is asked first.

    The base knows none, so everything falls back to what is there without tuning.
    """

    current: ClassVar[DispatchContext]

    def __init__(self) -> None:
        self._around: list[DispatchContext] = []

    def query(
        self, target: TargetLike, workload_key: str | None, dag: ComputeDAG, func_name: str = "", has_complex_op: bool = True
    ) -> Trace | None:
        """The program of a workload on a target; None if neither this context nor an outer one knows it.

        Args:
            target: what it runs on.
            workload_key: of the workload; None asks for any workload that computes the same.
            dag: its computation, which must be the one that was tuned.
            func_name: for messages.
            has_complex_op: accepted; simple workloads are looked up as well.
        """
        wanted = Target(target)
        answers = (context._query_inside(wanted, workload_key, dag, func_name) for context in inner_to_outer(self, lambda one: one._around))
        return next((found for found in answers if found is not None), None)

    def update(self, target: TargetLike, workload_key: str, state: State | Trace) -> None:
        """Fix the program of a workload on a target, whatever the records say."""
        raise TensorExprError(f"{type(self).__name__} keeps no programs; use auto_scheduler.ApplyHistoryBest")

    def _query_inside(self, target: Target, workload_key: str | None, dag: ComputeDAG, func_name: str) -> Trace | None:
        return None

    def __enter__(self) -> DispatchContext:
        # A list: one context may be entered several times, also inside of itself.
        self._around.append(DispatchContext.current)
        DispatchContext.current = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        DispatchContext.current = self._around.pop()


class FallbackContext(DispatchContext):
    """The outermost context, which knows no program: what isn't found falls back to what is there without tuning."""


DispatchContext.current = FallbackContext()


class ApplyHistoryBest(DispatchContext):
    """The fastest record of a workload on a target.

    Args:
        records: a log, several logs, or records.
        n_lines: read only so many records of each log.
        include_compatible: where there is none, use one of the same function for other sizes, if it is legal.

    Raises:
        RecordError: if a log can't be read.
    """

    def __init__(self, records: Records | Sequence[str | Path], n_lines: int | None = None, include_compatible: bool = False) -> None:
        super().__init__()
        self._records: dict[str, list[LoadedRecord]] = {}
        self._chosen: dict[tuple[str, str], Trace] = {}
        self._include_compatible = include_compatible
        self.load(records, n_lines)

    def __len__(self) -> int:
        return sum(any(one.is_success for one in records) for records in self._records.values())

    def __bool__(self) -> bool:
        return True

    def load(self, records: Records | Sequence[str | Path], n_lines: int | None = None) -> None:
        """Take up more records.

        Raises:
            RecordError: if a log can't be read.
        """
        if not isinstance(records, (Path, Iterable)):
            raise RecordError(f"records come from a log, or from a list of records and logs, not from {records!r}")
        for source in [records] if isinstance(records, (str, Path)) else records:
            found = [source] if isinstance(source, LoadedRecord) else load_records(source, repeats=True)[:n_lines]
            for record in found:
                self._records.setdefault(record.dag_hash, []).append(record)

    def update(self, target: TargetLike, workload_key: str, state: State | Trace) -> None:
        """Fix the program of a workload on a target, whatever the records say."""
        self._chosen[str(Target(target).resolved()), workload_key] = state if isinstance(state, Trace) else state.trace

    @staticmethod
    def get_workload_entry(
        best_records: Mapping[str, Mapping[str, Mapping[Any, Any]]], target_key: str, workload_key: str
    ) -> tuple[Mapping[Any, Any], str, tuple[Any, ...]]:
        """What nested mappings (target -> name -> arguments -> entry) have of a workload: the entries of its function, name and arguments.

        Args:
            best_records: the mappings; levels that are missing are empty.
            target_key: of the target.
            workload_key: of the workload.
        """
        name, arguments = decode_workload_key(workload_key)
        return best_records.get(target_key, {}).get(name, {}), name, tuple(arguments or ())

    def _query_inside(self, target: Target, workload_key: str | None, dag: ComputeDAG, func_name: str) -> Trace | None:
        chosen = self._chosen.get((str(target.resolved()), workload_key or dag.workload_key()))
        if chosen is not None:
            return chosen
        alike = self._records.get(dag.hash_key(), ())
        # once for each workload: declaring one takes milliseconds, and a log has thousands of records of it
        confirmed = {key for key, record in {record.workload_key: record for record in alike}.items() if _is_of(record, dag)}
        known = [record for record in alike if record.workload_key in confirmed]
        # times with packed inputs lack the packing
        packed = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        best, _ = choose_best([r for r in known if r.layout_rewrite_option != packed] or known, workload_key, dag.hash_key(), target)
        if best is None and self._include_compatible and workload_key is not None:
            everything = [record for records in self._records.values() for record in records]
            best = compatible_record(everything, workload_key, dag, target)
        return best.trace if best is not None else None


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """As ApplyHistoryBest; what has no record is tuned for a few trials when it is asked for.

    Args:
        records: logs or records, or None.
        sample_simple_workloads: accepted; simple workloads are tuned as well.
        cost_model_file: a saved `XGBModel` to choose by.
        num_measure: trials for what has no record; results are kept in this context only. 0 tunes nothing, and -1 takes the program
            that is predicted to be fastest.

    Raises:
        RecordError: if a log can't be read.
    """

    def __init__(
        self,
        records: Records | Sequence[str | Path] | None,
        sample_simple_workloads: bool = False,
        cost_model_file: str | Path | None = None,
        num_measure: int = 8,
        include_compatible: bool = False,
    ) -> None:
        super().__init__(() if records is None else records, None, include_compatible)
        self._num_measure = num_measure
        self._model_file = cost_model_file

    def _query_inside(self, target: Target, workload_key: str | None, dag: ComputeDAG, func_name: str) -> Trace | None:
        found = super()._query_inside(target, workload_key, dag, func_name)
        if found is not None or not self._num_measure:
            return found
        task = SearchTask(compute_dag=dag, workload_key=workload_key or dag.workload_key(), target=target)
        policy = SketchPolicy(task, None if self._model_file is None else XGBModel(model_file=self._model_file), verbose=0)
        if self._num_measure < 0:
            self.update(target, task.workload_key, policy.best_predicted())
            return self._chosen[str(target.resolved()), task.workload_key]
        trials = policy.search(TuningOptions(self._num_measure, verbose=0))
        best = fastest([trial for trial in trials if trial.result.verified])
        if best is None:
            return None
        self.update(target, task.workload_key, best.trace)
        return best.trace


def is_auto_scheduler_enabled() -> bool:
    """Whether `build` may take schedules from a context of this module: whether one other than the outermost is entered."""
    return not isinstance(DispatchContext.current, FallbackContext)


def _is_of(record: LoadedRecord, dag: ComputeDAG) -> bool:
    """Whether a record with the hash of a computation is of it: confirmed by comparing, where its workload is registered here."""
    try:
        return dag_equal(record.input.task.compute_dag.tensors, dag.tensors)
    except WorkloadError:
        return True


def best_schedule(
    computation: ComputeDAG | Sequence[Tensor], target: TargetLike | None = None, workload_key: str | None = None
) -> tuple[Schedule, list[Tensor]] | None:
    """The schedule that the current context knows for a computation, with the arguments to build it; None if it knows none.

    It takes all inputs as they were declared, also where the program was tuned with packed ones.

    A program that doesn't fit any more is left out, which is said once.

    Args:
        computation: a ComputeDAG or its tensors, inputs and outputs.
        target: the current target if None.
        workload_key: the key it was tuned under; by default any that computes the same.
    """
    # nothing to ask, so that no DAG need be made and hashed
    if type(DispatchContext.current) in (DispatchContext, FallbackContext):
        return None
    try:
        dag = computation if isinstance(computation, ComputeDAG) else ComputeDAG(computation)
    except WorkloadError:  # what can't be tuned has no records
        return None
    trace = DispatchContext.current.query(Target.target_or_current(target), workload_key, dag)
    if trace is None:
        return None
    try:
        return dag.schedule(as_declared(trace))
    except ScheduleError as error:
        once(logger, f"the recorded program of {(workload_key or dag.workload_key())[:200]} does not fit and is not used: {error}")
        return None
