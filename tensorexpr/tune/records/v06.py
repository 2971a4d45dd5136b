"""Lines of TVM's own auto-scheduler logs, version "v0.6": checked field by field, nothing believed.

{"i": [[workload_key, target, [hardware], target_host, layout_rewrite_option, [input names]], [[], [step, ...]]],
 "r": [[costs], error_no, all_cost, timestamp], "v": "v0.6"}

Older logs lack the last fields of the task. A step is a list: a code, and the fields that `STEPS` gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dataclass import dataclass
from ...errors import RecordError
from ..measure.errors import MeasureErrorNo
from ..measure.results import FAILED_COST
from .schema import Check, Field, check_fields, is_integer, is_number, is_text, parse_json, shown

VERSION = "v0.6"
MAX_STEPS = 500
_MAX_COSTS = 1000
_MAX_TIME = 1e11
_MAX_LIST = 4096
_is_id: Check = is_integer(0, 1 << 20)


def _list_of(check: Check, limit: int = _MAX_LIST) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= limit and all(map(check, value))


def _is_length(value: Any) -> bool:
    return is_integer(1, 1 << 40)(value)


_NUMBER: Field = (_is_id, "a number of a stage, iterator or step")
_NUMBERS: Field = (_list_of(_is_id), "a list of such numbers")
_WORD: Field = (is_text(256), "a word")
_FLAG: Field = (is_integer(0, 1), "0 or 1")
_SIZE: Field = (is_integer(0, 1 << 40), "a size")
_LENGTHS: Field = (_list_of(_is_length), "a list of positive sizes, none of them left open")
STEPS: Mapping[str, Mapping[str, Field]] = {
    "AN": {"stage": _NUMBER, "iter": _NUMBER, "annotation": (is_integer(0, 11), "a number from 0 to 11")},
    "FU": {"stage": _NUMBER, "iters": _NUMBERS},
    "PR": {"stage": _NUMBER, "iter": _NUMBER, "pragma": _WORD},
    "RE": {"stage": _NUMBER, "order": _NUMBERS},
    "SP": {"stage": _NUMBER, "iter": _NUMBER, "extent": _SIZE, "lengths": _LENGTHS, "inner_to_outer": _FLAG},
    "FSP": {"stage": _NUMBER, "iter": _NUMBER, "source": _NUMBER, "n_split": (is_integer(1, 64), "a number from 1 to 64")},
    "FFSP": {"stage": _NUMBER, "iter": _NUMBER, "sources": _NUMBERS, "level": _NUMBER, "factor_or_nparts": _FLAG},
    "SA": {"stage": _NUMBER, "iter": _NUMBER, "factor": _SIZE, "offset": _SIZE},
    "CA": {"stage": _NUMBER, "target": _NUMBER, "target_iter": _NUMBER},
    "CI": {"stage": _NUMBER},
    "CR": {"stage": _NUMBER},
    "CHR": {"stage": _NUMBER, "scope": _WORD, "readers": _NUMBERS},
    "CHW": {"stage": _NUMBER, "scope": _WORD},
    "RF": {"stage": _NUMBER, "iter": _NUMBER, "factor_iter": _NUMBER},
}


@dataclass(frozen=True)
class V06Step:
    """One transform step: its code and its fields by name."""

    code: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class V06Line:
    """What a line of such a log says, as it says it.

    Args:
        workload_key: such as `["matmul_add", 1024, 1024, 1024, "float32"]`.
        target: as text of that program.
        hardware: number of cores, bytes of a vector, bytes of a cache line, and what GPUs need.
        layout_rewrite_option: how inputs whose layout is free were passed; see `auto_scheduler.LayoutRewriteOption`.
        steps: of the state.
        costs: seconds per call of each repeat.
        target_host, inputs: where the host's part runs, and the names of inputs that were given; empty where the line says nothing.
    """

    workload_key: str
    target: str
    hardware: tuple[int, ...]
    layout_rewrite_option: int
    steps: tuple[V06Step, ...]
    costs: tuple[float, ...]
    error_no: MeasureErrorNo
    all_cost: float
    timestamp: float
    target_host: str = ""
    inputs: tuple[str, ...] = ()


# Place in the task -> what stands there. Logs of older releases end after any of them but the second.
_TASK: tuple[tuple[str, Check, str], ...] = (
    ("workload key", is_text(100_000), "text"),
    ("target", is_text(4096), "text"),
    ("hardware parameters", _list_of(is_integer(-(1 << 31), 1 << 40), 16), "a list of numbers"),
    ("target host", is_text(4096), "text"),
    ("layout rewrite option", is_integer(0, 2), "0, 1 or 2"),
    ("task input names", _list_of(is_text(256), 256), "a list of names"),
)
_RESULT: tuple[tuple[str, Check, str], ...] = (
    ("costs", lambda v: _list_of(is_number(0.0, FAILED_COST), _MAX_COSTS)(v) and bool(v), f"a list of 1 to {_MAX_COSTS} seconds"),
    ("error number", is_integer(0, int(max(MeasureErrorNo))), f"a number from 0 to {int(max(MeasureErrorNo))}"),
    ("all_cost", is_number(0.0, _MAX_TIME), "a number of seconds"),
    ("timestamp", is_number(0.0, _MAX_TIME), "seconds since 1970"),
)
_LINE: Mapping[str, Field] = {
    "i": (lambda value: isinstance(value, list) and len(value) == 2, "a task and a state"),
    "r": (lambda value: isinstance(value, list), "a list of results"),
    "v": (lambda value: value == VERSION, repr(VERSION)),
}


def is_v06(data: Any) -> bool:
    """Whether a JSON value looks like a line of such a log, of whatever version."""
    return isinstance(data, dict) and {"i", "r", "v"} <= set(data)


def parse_v06(line: str | bytes) -> V06Line:
    """What a line says.

    Raises:
        RecordError: if it isn't one, saying why.
    """
    return checked_v06(parse_json(line))


def checked_v06(data: Any) -> V06Line:
    """What the JSON value of a line says.

    Raises:
        RecordError: for anything but a line of version v0.6.
    """
    fields = check_fields("a line of a v0.6 log", data, _LINE)
    task, state = fields["i"]
    key, target, *rest = _listed("the task", task, _TASK, least=2)
    costs, error_no, all_cost, timestamp = _listed("the result", fields["r"], _RESULT, least=len(_RESULT))
    # a failure's costs may be anything; those of a success are divided by
    if not error_no and not all(cost > 0 for cost in costs):
        raise RecordError("the result: a cost of 0 seconds, with no error")
    return V06Line(
        workload_key=key,
        target=target,
        hardware=tuple(rest[0]) if rest else (),
        layout_rewrite_option=rest[2] if len(rest) > 2 else 0,
        steps=_steps(state),
        costs=tuple(map(float, costs)),
        error_no=MeasureErrorNo(error_no),
        all_cost=float(all_cost),
        timestamp=float(timestamp),
        target_host=rest[1] if len(rest) > 1 else "",
        inputs=tuple(rest[3]) if len(rest) > 3 else (),
    )


def _listed(what: str, value: Any, places: tuple[tuple[str, Check, str], ...], least: int) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= len(places):
        raise RecordError(f"{what} is a list of {least} to {len(places)} fields ({', '.join(p[0] for p in places)}), not {shown(value)}")
    for item, (name, check, description) in zip(value, places, strict=False):
        if not check(item):
            raise RecordError(f"{what}: {name} is {shown(item)}; it is {description}")
    return value


def _steps(state: Any) -> tuple[V06Step, ...]:
    if not isinstance(state, list) or len(state) != 2 or state[0] != [] or not isinstance(state[1], list):
        raise RecordError("the state is an empty list and a list of transform steps")
    if len(state[1]) > MAX_STEPS:
        raise RecordError(f"the state has {len(state[1])} steps; at most {MAX_STEPS} are read")
    return tuple(_step(number, data) for number, data in enumerate(state[1]))


def _step(number: int, data: Any) -> V06Step:
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        raise RecordError(f"step {number} is a list that starts with its code, not {shown(data)}")
    code = data[0]
    if code not in STEPS:
        raise RecordError(f"step {number}: no transform step is called {shown(code)}; known: {', '.join(sorted(STEPS))}")
    fields = STEPS[code]
    if len(data) != len(fields) + 1:
        raise RecordError(f"step {number}: {code} has {len(data) - 1} fields; it takes {len(fields)}: {', '.join(fields)}")
    for (name, (check, description)), value in zip(fields.items(), data[1:], strict=True):
        if not check(value):
            raise RecordError(f"step {number}: {code}: {name} is {shown(value)}; it is {description}")
    return V06Step(code, dict(zip(fields, data[1:], strict=True)))
