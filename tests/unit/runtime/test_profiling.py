"""Metrics, reports, collectors, tuples of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ArgumentError
from tensorexpr.runtime.container import ADT, getitem_helper, tuple_object
from tensorexpr.runtime.packed_func import convert_to_tvm_func
from tensorexpr.runtime.profiling import Count, DeviceWrapper, Duration, Metric, MetricCollector, Percent, Ratio, Report, profile_function

REPORT = Report(
    [
        {"Name": "f", "Device": "cpu0", "Duration (us)": Duration(1000.0), "Count": Count(3), "Percent": Percent(90.0)},
        {"Name": "f", "Device": "cpu0", "Duration (us)": Duration(5.0), "Count": Count(1), "Percent": Percent(10.0)},
        {"Name": "g", "Device": "cpu0", "Duration (us)": Duration(2000.0), "Count": Count(1), "Speed": Ratio(1.5)},
    ],
    {"cpu0": {"Duration (us)": Duration(3005.0)}},
    {"threads": "1"},
)


def test_a_report_as_table() -> None:
    lines = REPORT.table().splitlines()
    assert lines[0].split() == ["Name", "Duration", "(us)", "Percent", "Device", "Count", "Speed"]
    assert [line.split()[:2] for line in lines[1:3]] == [["g", "2000.00"], ["f", "1005.00"]]
    assert lines[4].split() == ["Sum", "3005.00", "100.00", "5"] and lines[5].split() == ["Total", "3005.00"]
    assert lines[-1] == "threads: 1"
    plain = REPORT.table(sort=False, aggregate=False, col_sums=False).splitlines()
    assert [line.split()[0] for line in plain[1:5]] == ["f", "f", "g", "Total"]


def test_a_report_as_csv_and_json() -> None:
    assert REPORT.csv().splitlines()[:2] == ["Count,Device,Duration (us),Name,Percent,Speed", '3,"cpu0",1000,"f",90,']
    again = Report.from_json(REPORT.json())
    assert again.calls == REPORT.calls and again.device_metrics == REPORT.device_metrics and again.configuration == REPORT.configuration
    for text in ("", "[]", '{"calls": [{"a": {"hours": 3}}], "device_metrics": {}, "configuration": {}}'):
        with pytest.raises(ArgumentError):
            Report.from_json(text)


class _Calls(MetricCollector):
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def init(self, devs: Sequence[DeviceWrapper]) -> None:
        self.seen.append(str(devs[0].device))

    def start(self, dev: Any) -> int:
        return len(self.seen)

    def stop(self, started: int) -> Mapping[str, Metric]:
        return {"Count": Count(started)}


def test_collectors_measure_a_call() -> None:
    data = te.placeholder((4,), name="A")
    result = te.compute((4,), lambda i: data[i] + 1)
    module = tvm.build(te.create_schedule(result.op), [data, result])
    a, b = np.zeros(4, "float32"), np.zeros(4, "float32")
    assert profile_function(module, tvm.cpu(), [_Calls(), MetricCollector()], warmup_iters=1)(a, b) == {"Count": Count(1)}
    assert b[0] == 1


def test_tuples_of_values() -> None:
    made = tuple_object([tvm.nd.array(np.zeros(2)), 3])
    assert isinstance(made, ADT) and (made.tag, len(made)) == (0, 2) and made[-1].value == 3
    assert [item.value for item in ADT(1, [1, 2, 3])[1:]] == [2, 3]
    with pytest.raises(IndexError):
        made[2]
    assert getitem_helper("abc", lambda text, n: text[n], 3, slice(0, 2)) == ["a", "b"]


def test_functions_of_python_are_packed_functions() -> None:
    assert convert_to_tvm_func(len) is len
    with pytest.raises(TypeError):
        convert_to_tvm_func(3)  # type: ignore[arg-type]


def test_numbers_take_tvms_names() -> None:
    assert (Count(count=3).value, Duration(duration=1.5).microseconds, str(Duration(1.5)), str(Ratio(2.0))) == (3, 1.5, "1.50", "2.00")
