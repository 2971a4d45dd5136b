"""Measurements of functions with units, and reports of them as table, CSV and JSON.

    report = Report([{"Name": "f", "Duration (us)": Duration(12.5), "Count": Count(1)}], {}, {})
    print(report)

A collector says what is measured beside: `profile_function` starts it before a call and stops it after.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..dataclass import dataclass, fields
from ..errors import ArgumentError
from ..tir.node import Object
from .device import Device
from .module import Module


@dataclass(frozen=True, slots=True, init=False)
class Count(Object):
    """How often something happened."""

    value: int

    def __init__(self, count: int) -> None:
        object.__setattr__(self, "value", count)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class _Measure(Object):
    """A number with a fraction, its only field, of which a report shows two digits."""

    def __str__(self) -> str:
        return f"{getattr(self, fields(self)[0].name):.2f}"


@dataclass(frozen=True, slots=True, init=False)
class Duration(_Measure):
    """A time in microseconds."""

    microseconds: float

    def __init__(self, duration: float) -> None:
        object.__setattr__(self, "microseconds", duration)


@dataclass(frozen=True, slots=True)
class Percent(_Measure):
    """A part of a whole, in hundredths."""

    percent: float


@dataclass(frozen=True, slots=True)
class Ratio(_Measure):
    """A quotient, which doesn't add up."""

    ratio: float


Metric: TypeAlias = Count | Duration | Percent | Ratio | str
Row: TypeAlias = Mapping[str, Metric]
_CLASSES: dict[str, type[Any]] = {"count": Count, "microseconds": Duration, "percent": Percent, "ratio": Ratio}
# The columns that stand first, in this order; the others follow in alphabetical order.
_FIRST = ("Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes")


def _number(metric: Metric) -> float | int | str:
    return metric if isinstance(metric, str) else getattr(metric, fields(metric)[0].name)


def _to_json(metric: Metric) -> dict[str, Any]:
    if isinstance(metric, str):
        return {"string": str(metric)}
    return {next(key for key, cls in _CLASSES.items() if isinstance(metric, cls)): _number(metric)}


def _from_json(data: Any) -> Metric:
    if not isinstance(data, dict) or len(data) != 1:
        raise ArgumentError(f"a metric is one of string, {', '.join(_CLASSES)} with its value, not {data!r}")
    ((kind, value),) = data.items()
    if kind == "string" and isinstance(value, str):
        return value
    if kind not in _CLASSES or not isinstance(value, (int, float)):
        raise ArgumentError(f"a metric is one of string, {', '.join(_CLASSES)} with its value, not {data!r}")
    made: Metric = _CLASSES[kind](value)
    return made


@dataclass(frozen=True)
class Report(Object):
    """What was measured.

    Args:
        calls: a row of metrics by column for each call; texts are names, devices and shapes.
        device_metrics: metrics of whole devices, by their names.
        configuration: what the measurement was made with.
    """

    calls: Sequence[Row]
    device_metrics: Mapping[str, Row]
    configuration: Mapping[str, Metric]

    def csv(self) -> str:
        """A line for each call, under a line with the columns in alphabetical order; texts in quotes."""
        columns = sorted({column for row in self.calls for column in row})
        lines = [",".join(_cell(row.get(column)) for column in columns) for row in self.calls]
        return "\n".join([",".join(columns), *lines, ""])

    def json(self) -> str:
        """All of it, for `from_json`."""
        return json.dumps({
            "calls": [_row_to_json(row) for row in self.calls],
            "device_metrics": {name: _row_to_json(row) for name, row in self.device_metrics.items()},
            "configuration": _row_to_json(self.configuration),
        })  # fmt: skip

    @classmethod
    def from_json(cls, s: str) -> Report:
        """The report of a text of `json`.

        Raises:
            ArgumentError: for any other text.
        """
        try:
            data = json.loads(s)
            calls = [_row_from_json(row) for row in data["calls"]]
            devices = {str(name): _row_from_json(row) for name, row in data["device_metrics"].items()}
            return cls(calls, devices, _row_from_json(data["configuration"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArgumentError(f"this is no report: {error}") from None

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """A table of the calls for people.

        Args:
            sort: the longest first.
            aggregate: calls of one name on one device are one row, with their sums.
            col_sums: with the sums of the columns at the end.
        """
        rows = _aggregated(self.calls) if aggregate else [dict(row) for row in self.calls]
        if sort:
            rows.sort(key=lambda row: -float(_number(row["Duration (us)"])) if isinstance(row.get("Duration (us)"), Duration) else 0.0)
        present = {column for row in (*rows, *self.device_metrics.values()) for column in row}
        columns = [*(c for c in _FIRST if c in present), *sorted(present - set(_FIRST))]
        totals = [{"Name": "Total", **row} for row in self.device_metrics.values()]
        sums: list[Row] = [{"Name": "-" * 10}, {"Name": "Sum", **_added(rows)}] if col_sums else []
        text = [[str(row.get(column, "")) for column in columns] for row in (*rows, *sums, *totals)]
        widths = [max(map(len, column)) for column in zip(columns, *text, strict=True)]
        lines = [_aligned(line, widths) for line in (columns, *text)]
        if self.configuration:
            lines += ["", "Configuration", "-------------", *(f"{key}: {value}" for key, value in self.configuration.items())]
        return "\n".join([*lines, ""])

    def __str__(self) -> str:
        return self.table()


def _cell(metric: Metric | None) -> str:
    if metric is None:
        return ""
    return json.dumps(metric) if isinstance(metric, str) else f"{_number(metric):g}"


def _row_to_json(row: Row) -> dict[str, Any]:
    return {column: _to_json(metric) for column, metric in row.items()}


def _row_from_json(row: Any) -> dict[str, Metric]:
    return {str(column): _from_json(metric) for column, metric in row.items()}


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A line of the table: names to the left, the rest to the right."""
    return "  ".join(
        cell.rjust(width) if number else cell.ljust(width) for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )


def _added(rows: Sequence[Row]) -> dict[str, Metric]:
    """The sums of the columns that add up."""
    sums: dict[str, Metric] = {}
    for row in rows:
        for column, metric in row.items():
            if isinstance(metric, (Count, Duration, Percent)):
                before = sums.get(column)
                start = _number(before) if isinstance(before, type(metric)) else 0
                sums[column] = type(metric)(start + _number(metric))  # type: ignore[operator, arg-type]
    return sums


def _aggregated(calls: Sequence[Row]) -> list[dict[str, Metric]]:
    """One row for all calls that have the same texts."""
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in calls:
        texts = tuple(sorted((column, metric) for column, metric in row.items() if isinstance(metric, str)))
        groups.setdefault(texts, []).append(row)
    # Texts are the same in all rows of a group; of a ratio, which doesn't add up, the first one stays.
    return [{**rows[0], **_added(rows)} for rows in groups.values()]


class DeviceWrapper(Object):
    """A device as a node."""

    __slots__ = ("device",)

    def __init__(self, dev: Device) -> None:
        self.device = dev

    def __repr__(self) -> str:
        return f"DeviceWrapper({self.device})"


class MetricCollector(Object):
    """What is measured beside a call. Subclasses say what: this one measures nothing."""

    __slots__ = ()

    def init(self, devs: Sequence[DeviceWrapper]) -> None:
        """Called once, before anything is measured."""

    def start(self, dev: Device) -> Any:
        """Begin: whatever `stop` needs."""
        return None

    def stop(self, started: Any) -> Mapping[str, Metric]:
        """End: the metrics by name."""
        return {}


def profile_function(
    mod: Module, dev: Device, collectors: Sequence[MetricCollector], func_name: str | None = None, warmup_iters: int = 10
) -> Callable[..., dict[str, Metric]]:
    """A function that calls one of a module and gives what the collectors measured during that call.

    Args:
        mod: the module.
        dev: the device, which is the CPU.
        collectors: what to measure.
        func_name: the function; the module's entry by default.
        warmup_iters: calls before the one that counts.

    Raises:
        ArgumentError: for a function that isn't there.
        TargetError: for a device that isn't there.
    """
    dev.check_exists()
    function = mod.entry_func if func_name is None else mod.get_function(func_name)
    for collector in collectors:
        collector.init([DeviceWrapper(dev)])

    def profile(*args: Any) -> dict[str, Metric]:
        for _ in range(warmup_iters):
            function(*args)
        started = [(collector, collector.start(dev)) for collector in collectors]
        function(*args)
        # Stopped inside out, so that none measures the end of one begun before it.
        found = [collector.stop(token) for collector, token in reversed(started)]
        return {name: metric for metrics in reversed(found) for name, metric in metrics.items()}

    return profile
