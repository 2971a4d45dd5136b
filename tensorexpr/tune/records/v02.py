"""Lines of AutoTVM's logs, version 0.2: checked field by field, nothing believed.

{"input": [target, task, [arg, ...], {kwargs}],
 "config": {"index": 3, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]], ["unroll", "ot", true]]},
 "result": [[costs], error_no, all_cost, timestamp], "version": 0.2, "tvm_version": "0.19.0"}

What we write has one more field, which TVM doesn't look at: "checked", with whether the results of the program agreed with the definition's
("verified") and whether it was timed again, in turn with others ("again").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...errors import RecordError
from ..measure.errors import MeasureErrorNo
from .schema import MAX_DIGITS, Check, Field, check_fields, is_integer, is_number, is_text, parse_json, shown

VERSION = 0.2
# What TVM writes as the cost of a program that failed.
FAILED_COST = 1e9
_MAX_COSTS, _MAX_ITEMS, _MAX_DEPTH = 1000, 4096, 8
_FAR_FUTURE = 1e11
_is_name = is_text(1024)


def _is_plain(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Numbers, words, true, false, null, and lists of them."""
    if isinstance(value, list):
        return depth > 0 and len(value) <= _MAX_ITEMS and all(_is_plain(item, depth - 1) for item in value)
    return value is None or isinstance(value, (bool, int, float)) or is_text(4096)(value)


def _is_kwargs(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= _MAX_ITEMS and all(_is_name(name) and _is_plain(item) for name, item in value.items())


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and 0 < len(value) <= _MAX_ITEMS and all(map(check, value))


_is_anchor = is_integer(0, _MAX_ITEMS)
_ENTITIES: Mapping[str, tuple[Check, str]] = {
    "sp": (_list_of(is_integer(-1, 1 << 40)), "a list of sizes, -1 for the rest"),
    "re": (lambda value: value == [] or (_list_of(_is_anchor)(value) and sorted(value) == list(range(len(value)))), "an order of places"),
    "an": (lambda value: value == [] or _list_of(_is_name)(value) or _list_of(_is_anchor)(value), "a list of words, or of places"),
    "ot": (_is_plain, "a number, a word, true, false, null or a list of them"),
}
_INPUT: tuple[tuple[str, Check, str], ...] = (
    ("the target", is_text(4096), "text"),
    ("the task", _is_name, "a name"),
    ("the arguments", lambda value: isinstance(value, list) and _is_plain(value), "a list of plain values"),
    ("the keyword arguments", _is_kwargs, "an object of plain values"),
)
_is_cost = is_number(0.0, 1e12)
_RESULT: tuple[tuple[str, Check, str], ...] = (
    ("costs", lambda value: isinstance(value, list) and 0 < len(value) <= _MAX_COSTS and all(map(_is_cost, value)), "a list of seconds"),
    ("error_no", is_integer(0, int(max(MeasureErrorNo))), f"a number from 0 to {int(max(MeasureErrorNo))}"),
    ("all_cost", is_number(0.0, _FAR_FUTURE), "a number of seconds"),
    ("timestamp", is_number(-1.0, _FAR_FUTURE), "seconds since 1970"),
)
_CONFIG: Mapping[str, Field] = {
    "index": (is_integer(-1, 10**MAX_DIGITS - 1), "a whole number"),
    "code_hash": (lambda value: value is None or is_text(256)(value), "text, or null"),
    "entity": (lambda value: isinstance(value, list) and len(value) <= _MAX_ITEMS, "a list of knobs"),
}
_CHECKED = ("verified", "again")


@dataclass(frozen=True)
class V02Line:
    """What a line of such a log says.

    Args:
        target: as text.
        task: the name of the template or operator.
        args, kwargs: of the task; lists as tuples.
        config: the configuration, as JSON.
        costs: seconds per call of each repeat; (1e9,) if it failed.
        checked: what only our lines say: "verified" and "again".
    """

    target: str
    task: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    config: Mapping[str, Any]
    costs: tuple[float, ...]
    error_no: MeasureErrorNo
    all_cost: float
    timestamp: float
    writer: str = ""
    checked: Mapping[str, bool] = field(default_factory=dict)

    def dumps(self) -> str:
        """The line, without the newline.

        Raises:
            RecordError: if it breaks the schema: no line is written that can't be read.
        """
        data: dict[str, Any] = {
            "input": [self.target, self.task, self.args, dict(self.kwargs)],
            "config": dict(self.config),
            "result": [list(self.costs) if not self.error_no else [FAILED_COST], int(self.error_no), self.all_cost, self.timestamp],
            "version": VERSION,
            "tvm_version": self.writer,
        }
        said = {name: True for name in _CHECKED if self.checked.get(name)}
        try:
            text = json.dumps({**data, **({"checked": said} if said else {})}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise RecordError(f"a record of task {self.task} can't be written: {error}") from None
        # by way of text: tuples have become lists, as they will be when the line is read
        checked_v02(parse_json(text))
        return text


def parse_v02(line: str | bytes) -> V02Line:
    """What a line says.

    Raises:
        RecordError: if it is no line of a version 0.2 log, saying why.
    """
    return checked_v02(parse_json(line))


def checked_v02(data: Any) -> V02Line:
    """What the JSON value of a line says.

    Raises:
        RecordError: for anything but a line of version 0.2.
    """
    if not isinstance(data, dict) or not {"input", "config", "result"} <= set(data):
        raise RecordError(f"a line of an AutoTVM log is an object with input, config and result, not {shown(data)}")
    if data.get("version") != VERSION:
        raise RecordError(f"a line of version {shown(data.get('version'))} of AutoTVM's logs; version {VERSION} is read")
    target, task, args, kwargs = _listed("input", data["input"], _INPUT)
    config = check_fields("config", data["config"], dict(_CONFIG))
    # run to its end for its checks
    for _ in entities_of(config["entity"]):
        pass
    costs, error_no, all_cost, timestamp = _listed("result", data["result"], _RESULT)
    checked = data.get("checked", {})
    if not isinstance(checked, dict) or not set(checked) <= set(_CHECKED) or not all(isinstance(said, bool) for said in checked.values()):
        raise RecordError(f"checked is an object with {' and '.join(_CHECKED)}, true or false")
    return V02Line(
        target,
        task,
        _tuples(args),
        {name: _tuples(item) for name, item in kwargs.items()},
        config,
        tuple(costs),
        MeasureErrorNo(error_no),
        float(all_cost),
        timestamp,
        str(data.get("tvm_version", ""))[:64],
        checked,
    )


def entities_of(data: Any) -> Iterator[tuple[str, str, Any]]:
    """The knobs of a configuration: name, code and value of each.

    Raises:
        RecordError: for anything else, and for a knob that stands twice.
    """
    names: set[str] = set()
    for item in data if isinstance(data, list) else [data]:
        if not isinstance(item, list) or len(item) != 3 or not _is_name(item[0]) or not isinstance(item[1], str):
            raise RecordError(f"a knob of a configuration is a list of its name, its kind and its value, not {shown(item)}")
        name, kind, value = item
        if kind not in _ENTITIES:
            raise RecordError(f"the knob {shown(name)} is of kind {shown(kind)}; kinds: {', '.join(_ENTITIES)}")
        check, description = _ENTITIES[kind]
        if not check(value) or name in names:
            raise RecordError(f"the knob {shown(name)} is {shown(value)}; it is {description}, and stands once")
        names.add(name)
        yield name, kind, value


def _listed(what: str, value: Any, places: Sequence[tuple[str, Check, str]]) -> list[Any]:
    if not isinstance(value, list) or len(value) != len(places):
        raise RecordError(f"{what} is a list of {len(places)} fields ({', '.join(place[0] for place in places)}), not {shown(value)}")
    for item, (name, check, description) in zip(value, places, strict=True):
        if not check(item):
            raise RecordError(f"{what}: {name} is {shown(item)}; it is {description}")
    return value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
