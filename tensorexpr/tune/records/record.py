"""What a tuning log knows of one trial.

{"format": "tensorexpr", "version": 1,
 "workload": {"key": "[\\"matmul\\", 64]", "dag": "5b6e..."},
 "target": "llvm -keys=cpu -mcpu=znver5 ...", "num_threads": 2,
 "trace": [["split", 2, 0, [null, 8]], ...],
 "costs": [0.00051, 0.0005], "error_no": 0, "error_msg": "",
 "all_cost": 0.31, "timestamp": 1795263232.5,
 "policy": {"number": 20, "raced": false, ...}, "verified": true}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any, TypeAlias

from ...dataclass import dataclass, field
from ...errors import RecordError, ScheduleError
from ...schedule.trace import Trace
from ...target import Target
from ...target.machine import without_caches
from ..measure.errors import MeasureErrorNo
from ..measure.results import FAILED_COST, TIMED_AGAIN, MeasureResult
from .schema import Field, check_fields, is_bool, is_integer, is_number, is_text, parse_json, shown

FORMAT = "tensorexpr"
VERSION = 1
PolicyValue: TypeAlias = "bool | int | float | str | None"
_MAX_MESSAGE = 2000
_MAX_KEY = 100_000
_MAX_COSTS = 1000
_MAX_POLICY = 64
_FAR_FUTURE = 1e11


def _is_costs(value: Any) -> bool:
    is_cost = is_number(0.0, FAILED_COST)
    return isinstance(value, list) and 0 < len(value) <= _MAX_COSTS and all(is_cost(cost) and cost > 0 for cost in value)


def _is_policy(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) > _MAX_POLICY:
        return False
    is_name, is_size = is_text(_MAX_POLICY), is_number(-FAILED_COST, FAILED_COST)
    return all(is_name(name) and (item is None or is_bool(item) or is_size(item) or is_name(item)) for name, item in value.items())


def _is_task(value: Any) -> bool:
    if not isinstance(value, dict) or not set(value) <= {"host", "inputs"}:
        return False
    names, is_name = value.get("inputs", []), is_text(256)
    return is_text(4096)(value.get("host", "")) and isinstance(names, list) and len(names) <= 256 and all(map(is_name, names))


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and 8 <= len(value) <= 128 and all(digit in "0123456789abcdef" for digit in value)


_FIELDS: dict[str, Field] = {
    "format": (lambda value: value == FORMAT, repr(FORMAT)),
    "version": (lambda value: type(value) is int and value == VERSION, f"{VERSION} here"),
    "workload": (lambda value: isinstance(value, dict), "an object"),
    "target": (is_text(4096), "a target as text"),
    "num_threads": (is_integer(1, 1 << 16), "a number of threads from 1 to 65536"),
    "trace": (lambda value: isinstance(value, list), "a list of steps"),
    "costs": (_is_costs, f"a list of 1 to {_MAX_COSTS} positive seconds"),
    "error_no": (is_integer(0, int(max(MeasureErrorNo))), f"a number from 0 to {int(max(MeasureErrorNo))}"),
    "error_msg": (is_text(_MAX_MESSAGE), f"text of at most {_MAX_MESSAGE} characters"),
    "all_cost": (is_number(0.0, _FAR_FUTURE), "a number of seconds"),
    "timestamp": (is_number(0.0, _FAR_FUTURE), "seconds since 1970"),
    "policy": (_is_policy, f"an object of at most {_MAX_POLICY} numbers, words, true, false and null"),
    "code": (lambda value: isinstance(value, dict), "an object"),
    "verified": (is_bool, "true or false"),
}
_MORE: dict[str, Field] = {"task": (_is_task, "an object with a host as text and the names of inputs")}
_CODE_FIELDS: dict[str, Field] = {
    "spills": (is_integer(0, 1 << 40), "a number of instructions"),
    "ir_lines": (is_integer(0, 1 << 40), "a number of lines"),
}
_WORKLOAD_FIELDS: dict[str, Field] = {
    "key": (is_text(_MAX_KEY), f"text of at most {_MAX_KEY} characters"),
    "dag": (_is_hash, "a hash of 8 to 128 hexadecimal digits"),
}


@dataclass(frozen=True)
class Record:
    """One trial.

    Args:
        workload_key: what the user called the computation, such as `["matmul", 64]`.
        dag_hash: `te.identity.dag_key` of its tensors.
        target: `str(target.resolved())`.
        num_threads: that parallel loops used.
        trace: the program.
        costs: seconds per call of each repeat; (1e10,) if it failed.
        error_no: what went wrong; 0 if nothing did.
        error_msg: the error in one line.
        all_cost: seconds spent on the trial.
        timestamp: seconds since 1970.
        policy: how it was timed.
        spills: vector registers moved to and from the stack, counted in its machine code.
        ir_lines: lines of LLVM IR.
        verified: whether its results were compared with the definition's, and agreed.
        task: what else the task says, where it says more: "host", its target's host, and "inputs", the names of those of its
            inputs that were given.
    """

    workload_key: str
    dag_hash: str
    target: str
    num_threads: int
    trace: Trace
    costs: tuple[float, ...]
    error_no: MeasureErrorNo
    error_msg: str
    all_cost: float
    timestamp: float
    policy: Mapping[str, PolicyValue]
    spills: int
    ir_lines: int
    verified: bool
    task: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_timed_again(self) -> bool:
        """Whether the program ran before, and this is no trial but a better time of it."""
        return TIMED_AGAIN in self.policy or "rounds" in self.policy

    @property
    def is_success(self) -> bool:
        """Whether the program ran."""
        return self.error_no == MeasureErrorNo.NO_ERROR

    @property
    def mean(self) -> float:
        """Seconds per call, the mean of the repeats; infinite if it failed."""
        return fmean(self.costs) if self.is_success else math.inf

    @property
    def median(self) -> float:
        """Seconds per call, the median of the repeats; infinite if it failed."""
        return median(self.costs) if self.is_success else math.inf

    @property
    def is_trusted(self) -> bool:
        """Whether the program may be applied as it is."""
        return self.verified

    def fits_target(self, target: str) -> bool:
        """Whether the record tells of a target, given as resolved text: programs and times of another one say little.

        Models of a CPU whose caches differ in size share records: a time there is better than none.
        """
        return without_caches(self.target) == without_caches(target)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "workload": {"key": self.workload_key, "dag": self.dag_hash},
            "target": self.target,
            "num_threads": self.num_threads,
            "trace": self.trace.to_json(),
            "costs": [float(cost) for cost in self.costs],
            "error_no": int(self.error_no),
            "error_msg": self.error_msg,
            "all_cost": self.all_cost,
            "timestamp": self.timestamp,
            "policy": dict(self.policy),
            "code": {"spills": self.spills, "ir_lines": self.ir_lines},
            "verified": self.verified,
            **({"task": dict(self.task)} if self.task else {}),
        }

    def dumps(self) -> str:
        """The record as one line, without the newline.

        Raises:
            RecordError: if it breaks the schema: no line is written that can't be read.
        """
        data = self.to_json()
        _checked(data)
        return json.dumps(data, allow_nan=False)


def parse_record(line: str | bytes) -> Record:
    """The record of a line.

    Raises:
        RecordError: if it isn't one, saying why.
    """
    return _checked(parse_json(line))


def _checked(data: Any) -> Record:
    _check_origin(data)
    fields = check_fields("a record", data, {**_FIELDS, **_MORE} if "task" in data else _FIELDS)
    workload = check_fields("workload", fields["workload"], _WORKLOAD_FIELDS)
    code = check_fields("code", fields["code"], _CODE_FIELDS)
    if fields["error_no"] and fields["verified"]:
        raise RecordError(f"a record with error {fields['error_no']} can't be verified")
    try:
        trace = Trace.from_json(fields["trace"])
    except (ScheduleError, ValueError, TypeError) as error:
        raise RecordError(f"trace: {str(error)[:_MAX_MESSAGE]}") from None
    return Record(
        workload_key=workload["key"],
        dag_hash=workload["dag"],
        target=fields["target"],
        num_threads=fields["num_threads"],
        trace=trace,
        costs=tuple(float(cost) for cost in fields["costs"]),
        error_no=MeasureErrorNo(fields["error_no"]),
        error_msg=fields["error_msg"],
        all_cost=float(fields["all_cost"]),
        timestamp=float(fields["timestamp"]),
        policy=fields["policy"],
        spills=code["spills"],
        ir_lines=code["ir_lines"],
        verified=fields["verified"],
        task=fields.get("task", {}),
    )


def _check_origin(data: Any) -> None:
    """Say it plainly when a line is a record of something else, or of another version."""
    if not isinstance(data, dict):
        raise RecordError(f"a record is an object, not {shown(data)}")
    # a line of TVM's logs, which `v06` reads
    if {"i", "r", "v"} <= set(data):
        raise RecordError(f"a line of another program's log (version {shown(data['v'])}); this one reads lines with format {FORMAT!r}")
    if data.get("format") == FORMAT and data.get("version") != VERSION:
        raise RecordError(f"a record of version {shown(data.get('version'))}; this release reads version {VERSION}")


def make_record(workload_key: str, dag_hash: str, target: Target, trace: Trace, result: MeasureResult) -> Record:
    """The record of a measured program.

    Args:
        workload_key: what the user called the computation.
        dag_hash: `te.identity.dag_key` of its tensors.
        target: what it was compiled for.
        trace: the program.
        result: how it did.
    """
    return Record(
        workload_key=workload_key,
        dag_hash=dag_hash,
        target=str(target.resolved()),
        num_threads=target.num_cores,
        trace=trace,
        costs=result.costs,
        error_no=result.error_no,
        error_msg=result.error_msg[:_MAX_MESSAGE],
        all_cost=result.all_cost,
        timestamp=result.timestamp,
        policy=result.policy,
        spills=result.spills,
        ir_lines=result.ir_lines,
        verified=result.verified,
    )
