"""What databases hold: workloads, and how programs of them did."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ...errors import RecordError, TensorExprError
from ...lower.tensor_schedules import Schedule
from ...schedule.blocks import Trace
from ...target import Target
from ...tir.function import IRModule
from ...tir.serialize.module_graph import module_from_graph, module_to_graph
from ...tir.structural_digest import structural_hash
from ...tune.measure.results import Seconds
from ..arg_info import ArgInfo
from ..origin import space_of
from ..tune_context import MeasureCandidate

FAILED_SECONDS = 1e10  # what stands for the time of a program that failed
_MAX_RUNS = 100_000
_LENGTH_BYTES = 8  # a module's text has its length in front, little end first
_MAX_ARGUMENTS = 1_000
_MAX_TARGET_OPTIONS = 100


class Workload:
    """A program to schedule.

    Args:
        mod: the module.
        shash: its hash; computed if None.
    """

    __slots__ = ("mod", "shash")

    def __init__(self, mod: IRModule, shash: int | None = None) -> None:
        self.mod = mod
        self.shash = structural_hash(mod) if shash is None else shash

    def as_json(self) -> Any:
        """The workload as TVM's databases have it: [hash, module in base 64]."""
        data = module_to_graph(self.mod).encode()
        return [str(self.shash), base64.b64encode(len(data).to_bytes(_LENGTH_BYTES, "little") + data).decode()]

    @staticmethod
    def from_json(json_obj: Any) -> Workload:
        """The workload that `as_json` or TVM wrote. Its hash is computed anew, as other programs hash in other ways.

        Raises:
            RecordError: for anything else.
        """
        if not isinstance(json_obj, (list, tuple)) or len(json_obj) != 2 or not all(isinstance(item, str) for item in json_obj):
            raise RecordError("a workload is [hash, module in base 64]")
        try:
            data = base64.b64decode(json_obj[1], validate=True)
            text = data[_LENGTH_BYTES:].decode()
        except (binascii.Error, ValueError) as error:
            raise RecordError(f"a workload's module is no text in base 64: {str(error)[:80]}") from None
        if int.from_bytes(data[:_LENGTH_BYTES], "little") != len(data) - _LENGTH_BYTES:
            raise RecordError(f"a workload's module of {len(data)} bytes doesn't begin with its length: it was cut off")
        return Workload(module_from_graph(text))


class TuningRecord:
    """How a program of a workload did.

    Args:
        trace: what made it of the workload.
        workload: the workload.
        run_secs: seconds per call of each repeat; None if it was not measured.
        target: what it was built for.
        args_info: the arguments that it was measured with.
    """

    __slots__ = ("args_info", "run_secs", "target", "trace", "workload")

    def __init__(
        self,
        trace: Trace,
        workload: Workload,
        run_secs: Sequence[float] | None = None,
        target: Target | None = None,
        args_info: Sequence[ArgInfo] | None = None,
    ) -> None:
        self.trace = trace
        self.workload = workload
        self.run_secs = None if run_secs is None else [Seconds(float(getattr(seconds, "value", seconds))) for seconds in run_secs]
        self.target = target
        self.args_info = None if args_info is None else list(args_info)

    @property
    def mean(self) -> float:
        """Seconds per call, the mean of the repeats; infinite if it failed or was not measured."""
        return fmean(self.run_secs) if self.is_valid and self.run_secs else math.inf

    @property
    def space(self) -> str:
        """The design space that the program is of; "" if only one generator's were searched."""
        return space_of(self.trace)

    @property
    def is_valid(self) -> bool:
        """Whether it ran."""
        return bool(self.run_secs) and fmean(self.run_secs or ()) < FAILED_SECONDS

    def as_measure_candidate(self) -> MeasureCandidate:
        """The program, to be measured again.

        Raises:
            ScheduleError: if the trace is illegal for the workload.
        """
        sch = Schedule(self.workload.mod)
        self.trace.apply_to_schedule(sch, remove_postproc=False)
        return MeasureCandidate(sch, self.args_info or ArgInfo.from_entry_func(self.workload.mod))

    def as_json(self) -> Any:
        """The record as TVM's databases have it: [trace, seconds, target, arguments]."""
        target = None if self.target is None else self.target.export()
        infos = None if self.args_info is None else [info.as_json() for info in self.args_info]
        return [self.trace.as_json(remove_postproc=False), self.run_secs, target, infos]

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> TuningRecord:
        """The record that `as_json` or TVM wrote.

        Raises:
            RecordError: for anything else, primitives that aren't known and targets that aren't built for among it.
        """
        if not isinstance(json_obj, (list, tuple)) or len(json_obj) != 4:
            raise RecordError("a tuning record is [trace, seconds, target, arguments]")
        trace, seconds, target, infos = json_obj
        return TuningRecord(Trace.from_json(trace), workload, _seconds(seconds), _target(target), _arguments(infos))


def _seconds(data: Any) -> list[float] | None:
    if data is None:
        return None
    if (
        not isinstance(data, list)
        or len(data) > _MAX_RUNS
        or not all(isinstance(s, (int, float)) and not isinstance(s, bool) for s in data)
    ):
        raise RecordError(f"the seconds of a record are a list of numbers, not {str(data)[:80]}")
    # compared before it is converted: an integer of JSON may be too long for a float; a NaN fails the comparison
    found = [float(s) for s in data if abs(s) < 1e300]
    if len(found) != len(data) or not all(s >= 0 for s in found):
        raise RecordError(f"the seconds of a record are finite and not negative, unlike {str(data)[:80]}")
    return found


def _target(data: Any) -> Target | None:
    if data is None:
        return None
    if not isinstance(data, dict) or len(data) > _MAX_TARGET_OPTIONS:
        raise RecordError(f"the target of a record is an object of options, not {str(data)[:80]}")
    try:
        return Target(_untagged(data))
    except TensorExprError as error:
        raise RecordError(f"the record's target: {str(error)[:200]}") from None


def _untagged(data: Any) -> Any:
    """A target without the names that TVM has for some whole targets, which say nothing besides."""
    if not isinstance(data, dict):
        return data
    return {name: _untagged(value) for name, value in data.items() if name != "tag"}


def _arguments(data: Any) -> list[ArgInfo] | None:
    if data is None:
        return None
    if not isinstance(data, list) or len(data) > _MAX_ARGUMENTS:
        raise RecordError(f"the arguments of a record are a list, not {str(data)[:80]}")
    try:
        return [ArgInfo.from_json(item) for item in data]
    except RecordError:
        raise
    except TensorExprError as error:
        raise RecordError(f"an argument of the record: {str(error)[:200]}") from None
