"""Records as they come back from a log: ours, and lines of TVM's v0.6 logs with their steps replayed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ..dataclass import dataclass, field, fields
from ..errors import RecordError, TensorExprError
from ..schedule.trace import Trace
from ..target import Target
from ..target.machine import without_caches
from ..tune.measure import MeasureResult
from ..tune.records import Record, V06Line, checked_v06, is_v06, parse_json, parse_record, replay_v06
from .compute_dag import ComputeDAG
from .layout_rewrite import LayoutRewriteOption, rewrite_layouts
from .measure_input import MeasureInput
from .options import HARDWARE, HardwareParams

# Under this name the policy of a record holds the option.
LAYOUT_KEY = "layout_rewrite_option"


@dataclass(frozen=True)
class RecordedTask:
    """What a record knows of the task it was measured for."""

    workload_key: str
    dag_hash: str
    target: Target
    desc: str = ""
    layout_rewrite_option: LayoutRewriteOption = LayoutRewriteOption.INSERT_TRANSFORM_STAGE
    task_input_names: tuple[str, ...] = ()

    @property
    def hardware_params(self) -> HardwareParams:
        """The numbers of the target's machine."""
        return HardwareParams(target=self.target)

    def serialize(self) -> list[Any]:
        """The task as JSON values, see `SearchTask.serialize`; the computation isn't among them."""
        hardware = [getattr(self.hardware_params, name) or 0 for name in HARDWARE]
        host = str(self.target.host or "")
        return [self.workload_key, str(self.target), hardware, host, int(self.layout_rewrite_option), list(self.task_input_names)]

    @cached_property
    def compute_dag(self) -> ComputeDAG:
        """The computation, made by its registered workload.

        Raises:
            WorkloadError: if the workload isn't registered.
        """
        return ComputeDAG(self.workload_key)


@dataclass(frozen=True)
class LoadedRecord(Record):
    """A record of a log. `for inp, res in load_records(log)` takes it apart into what was measured and how it did.

    Args:
        source: the format it was read from: "tensorexpr", or "v0.6" for TVM's.
    """

    source: str = "tensorexpr"

    @property
    def is_trusted(self) -> bool:
        """Whether the program may be applied.

        TVM compares no results. Its programs were replayed through our legality checks, and lowering keeps their meaning.
        """
        return self.verified or self.source == "v0.6"

    @property
    def swept_bytes(self) -> int:
        """What was read on each core before each call: see `LocalRunner`."""
        said = self.policy.get("swept_bytes", 0)
        return said if isinstance(said, int) else 0

    def fits_target(self, target: str) -> bool:
        """Whether the record tells of a target: of ours this one whatever its caches, of TVM's logs one of the same kind."""
        if self.source == "v0.6":
            return self.target.split(" ", 1)[0] == target.split(" ", 1)[0]
        return without_caches(self.target) == without_caches(target)

    @cached_property
    def input(self) -> MeasureInput:
        """The program that was measured."""
        option = self.layout_rewrite_option
        target, names = Target(self.target, self.task.get("host")), tuple(self.task.get("inputs", ()))
        made = RecordedTask(self.workload_key, self.dag_hash, target, layout_rewrite_option=option, task_input_names=names)
        return MeasureInput(made, self.trace)

    @property
    def layout_rewrite_option(self) -> LayoutRewriteOption:
        """How the program takes inputs whose layout is free. Records that don't say are of the default for CPUs."""
        said = self.policy.get(LAYOUT_KEY)
        return next((option for option in LayoutRewriteOption if option == said), LayoutRewriteOption.INSERT_TRANSFORM_STAGE)

    @cached_property
    def result(self) -> MeasureResult:
        """How it did."""
        return MeasureResult(
            costs=self.costs,
            error_no=self.error_no,
            error_msg=self.error_msg,
            all_cost=self.all_cost,
            timestamp=self.timestamp,
            verified=self.verified,
            policy=self.policy,
            spills=self.spills,
            ir_lines=self.ir_lines,
        )

    def __iter__(self) -> Iterator[Any]:
        return iter((self.input, self.result))

    def __getitem__(self, place: int) -> Any:
        return (self.input, self.result)[place]


def loaded(record: Record) -> LoadedRecord:
    """A record of our own format, as the auto-scheduler hands it out."""
    return LoadedRecord(**{item.name: getattr(record, item.name) for item in fields(Record)})


@dataclass
class LineReader:
    """Makes records of lines. Keeps the computations of workloads, so that each is declared once.

    Args:
        dags: workload key -> its computation, for keys that no registered function stands behind.
    """

    dags: Mapping[str, ComputeDAG] = field(default_factory=dict)
    _known: dict[str, ComputeDAG | str] = field(default_factory=dict)

    def __call__(self, line: bytes | str) -> LoadedRecord:
        """The record of a line.

        Raises:
            RecordError: if it is none, or tells of a program that can't be made here.
        """
        read = self.parse(line)
        return self.imported(read) if isinstance(read, V06Line) else read

    def parse(self, line: bytes | str) -> LoadedRecord | V06Line:
        """The record of a line, or what a v0.6 line says: to replay its steps takes longer than to read it.

        Raises:
            RecordError: if it is neither.
        """
        try:
            return loaded(parse_record(line))
        except RecordError:
            # nearly all lines are ours, so that another format is looked for only when one doesn't fit
            data = parse_json(line)
            if not is_v06(data):
                raise
            return checked_v06(data)

    def imported(self, line: V06Line) -> LoadedRecord:
        """The record of a v0.6 line.

        Raises:
            RecordError: if its workload isn't known here, its target isn't served, or its steps can't be replayed.
        """
        dag = self._dag(line.workload_key)
        try:
            target = Target(line.target).resolved()
        except TensorExprError as error:
            raise RecordError(f"the log's target {line.target[:200]!r}: {error}") from None
        return LoadedRecord(
            workload_key=line.workload_key,
            dag_hash=dag.hash_key(),
            target=str(target),
            num_threads=max(1, line.hardware[0]) if line.hardware else target.num_cores,
            trace=_as_measured(replay_v06(line.steps, dag.initial_tree), dag, line.layout_rewrite_option),
            costs=line.costs,
            error_no=line.error_no,
            error_msg="",
            all_cost=line.all_cost,
            timestamp=line.timestamp,
            policy={LAYOUT_KEY: line.layout_rewrite_option},
            spills=0,
            ir_lines=0,
            # no results were compared; `is_trusted` says why the program may be applied all the same
            verified=False,
            task={**({"host": line.target_host} if line.target_host else {}), **({"inputs": list(line.inputs)} if line.inputs else {})},
            source="v0.6",
        )

    def _dag(self, key: str) -> ComputeDAG:
        if key in self.dags:
            return self.dags[key]
        if key not in self._known:
            try:
                self._known[key] = ComputeDAG(key)
            except TensorExprError as error:
                # the failure is kept too: each line of a log would declare its workload again
                self._known[key] = f"the workload {key[:200]} can't be declared: {error}"
        known = self._known[key]
        if isinstance(known, str):
            raise RecordError(known)
        return known


def _as_measured(trace: Trace, dag: ComputeDAG, option: int) -> Trace:
    """The program that TVM made of the steps of a line: it rewrites layouts after them."""
    return rewrite_layouts(trace, dag.initial_tree, LayoutRewriteOption(option)) if option in tuple(LayoutRewriteOption) else trace


def workload_name_and_args(key: str) -> tuple[str, list[Any]] | None:
    """The name and the arguments of a workload key; None if it is no list that starts with a name."""
    try:
        data = json.loads(key)
    except ValueError:
        return None
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        return None
    return data[0], data[1:]
