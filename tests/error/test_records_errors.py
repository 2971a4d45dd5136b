"""One test for each message about records and logs. Property 39: a record is of one target."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError
from tensorexpr.schedule.te_schedule import create_schedule
from tensorexpr.target import Target
from tensorexpr.tune.records import append_records, best_record, load_records, parse_record

A = te.placeholder((8,), name="A")
C = te.compute((8,), lambda i: A[i] + 1.0, name="C")
SCHEDULE = create_schedule(C.op)
SCHEDULE[C].split(SCHEDULE[C].op.axis[0], factor=4)
GOOD: dict[str, Any] = {
    "format": "tensorexpr",
    "version": 1,
    "workload": {"key": "add", "dag": "0123456789abcdef"},
    "target": "llvm -keys=cpu",
    "num_threads": 2,
    "trace": SCHEDULE.trace.to_json(),
    "costs": [0.5],
    "error_no": 0,
    "error_msg": "",
    "all_cost": 0.3,
    "timestamp": 1.0,
    "policy": {"number": 3},
    "code": {"spills": 0, "ir_lines": 20},
    "verified": True,
}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


def test_the_good_one_is_good() -> None:
    assert parse_record(json.dumps(GOOD)).costs == (0.5,)


BROKEN: dict[str, tuple[Any, str]] = {
    "no object": ([], "a record is an object, not 'list'"),
    "missing": (without("costs"), "a record lacks 'costs'; it has the fields format, version,"),
    "unknown": ({**GOOD, "colour": 3}, "a record has no field 'colour'; it has format, version,"),
    "version": ({**GOOD, "version": 2}, "a record of version 2; this release reads version 1"),
    "old version": ({**without("target"), "version": 0}, "a record of version 0; this release reads version 1"),
    "version type": ({**GOOD, "version": True}, "a record: version is True; it is 1 here"),
    "format": ({**GOOD, "format": "other"}, "format is 'other'; it is 'tensorexpr'"),
    "foreign": ({"i": [], "r": [], "v": "v0.6"}, "a line of another program's log (version 'v0.6')"),
    "workload": ({**GOOD, "workload": "add"}, "workload is 'add'; it is an object"),
    "workload field": ({**GOOD, "workload": {"key": "add"}}, "workload lacks 'dag'; it has the fields key, dag"),
    "workload key": ({**GOOD, "workload": {"key": 3, "dag": "01234567"}}, "workload: key is 3; it is text"),
    "dag": ({**GOOD, "workload": {"key": "", "dag": "xyz"}}, "dag is 'xyz'; it is a hash of 8 to 128 hexadecimal digits"),
    "target": ({**GOOD, "target": None}, "target is None; it is a target as text"),
    "threads": ({**GOOD, "num_threads": 0}, "num_threads is 0; it is a number of threads from 1 to 65536"),
    "threads type": ({**GOOD, "num_threads": True}, "num_threads is True"),
    "trace": ({**GOOD, "trace": {}}, "trace is 'dict'; it is a list of steps"),
    "step": ({**GOOD, "trace": [["explode", 1]]}, "trace: no step is called 'explode'; known:"),
    "step fields": ({**GOOD, "trace": [[GOOD["trace"][0][0], 1]]}, "has 1 fields; it takes"),
    "too many steps": ({**GOOD, "trace": [["x"]] * 10_001}, "a trace is a list of at most 10000 steps"),
    "no costs": ({**GOOD, "costs": []}, "costs is 'list'; it is a list of 1 to 1000 positive seconds"),
    "negative cost": ({**GOOD, "costs": [-1.0]}, "costs is 'list'"),
    "cost type": ({**GOOD, "costs": ["1"]}, "costs is 'list'"),
    "error_no": ({**GOOD, "error_no": 9}, "error_no is 9; it is a number from 0 to 8"),
    "error_msg": ({**GOOD, "error_msg": "x" * 2001}, "it is text of at most 2000 characters"),
    "all_cost": ({**GOOD, "all_cost": -1}, "all_cost is -1; it is a number of seconds"),
    "timestamp": ({**GOOD, "timestamp": "now"}, "timestamp is 'now'; it is seconds since 1970"),
    "policy": ({**GOOD, "policy": {"number": []}}, "policy is 'dict'; it is an object of at most 64 numbers"),
    "code": ({**GOOD, "code": {"spills": 0}}, "code lacks 'ir_lines'; it has the fields spills, ir_lines"),
    "spills": ({**GOOD, "code": {"spills": -1, "ir_lines": 1}}, "code: spills is -1; it is a number of instructions"),
    "verified": ({**GOOD, "verified": 1}, "verified is 1; it is true or false"),
    "verified failure": ({**GOOD, "error_no": 4}, "a record with error 4 can't be verified"),
    "surrogate": ({**GOOD, "target": "\ud800"}, "target is '\\ud800'; it is a target as text"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_field_has_its_message(name: str) -> None:
    data, message = BROKEN[name]
    with pytest.raises(RecordError) as caught:
        parse_record(json.dumps(data))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


LINE = json.dumps(GOOD)
UNPARSABLE: dict[str, tuple[str | bytes, str]] = {
    "cut": (LINE[:-5], "the line is no JSON: "),
    "empty": ("", "the line is no JSON: "),
    "bytes": (b"\xff\xfe", "the line is no UTF-8 text"),
    "nan": (LINE.replace("0.5", "NaN"), "NaN is no JSON number"),
    "infinity": (LINE.replace("0.5", "-Infinity"), "-Infinity is no JSON number"),
    "overflow": (LINE.replace("0.5", "1e999"), "'1e999' is too large"),
    "digits": (LINE.replace("0.5", "9" * 100_000), "a number with 100000 digits is too long"),
    "twice": (LINE[:-1] + ', "version": 1}', "the key 'version' stands twice in one object"),
    "nested": ("[" * 500_000, "the line nests too deeply"),
    "long": (" " * (2 << 20), "a record has at most 1048576 bytes; this line has 2097152"),
}


@pytest.mark.parametrize("name", UNPARSABLE)
def test_what_is_no_json_has_its_message(name: str) -> None:
    line, message = UNPARSABLE[name]
    with pytest.raises(RecordError) as caught:
        parse_record(line)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"the log .*missing.json can't be read: No such file or directory"):
        list(load_records(tmp_path / "missing.json"))


def test_an_empty_log_has_no_best(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.touch()
    with pytest.raises(RecordError, match="no record that ran and was verified; it holds no records at all"):
        best_record(log)


def best_error(tmp_path: Path, wish: Callable[[Path], object]) -> str:
    log = tmp_path / "log.json"
    failed = {**GOOD, "costs": [1e10], "error_no": 4, "verified": False}
    lines = [GOOD, GOOD, failed, {**GOOD, "verified": False}, {**GOOD, "workload": {"key": "mul", "dag": "0123456789abcdef"}}]
    append_records(log, [parse_record(json.dumps(line)) for line in lines])
    with pytest.raises(RecordError) as caught:
        wish(log)
    return str(caught.value)


def test_no_best_for_a_workload_says_which_there_are(tmp_path: Path) -> None:
    message = best_error(tmp_path, lambda log: best_record(log, "div"))
    assert "no record that ran and was verified of workload div; it holds 5 others: 4 of workload add; 1 of workload mul" in message


def test_no_best_for_a_dag_says_so(tmp_path: Path) -> None:
    message = best_error(tmp_path, lambda log: best_record(log, "add", "fedcba9876543210"))
    assert "(dag fedcba987654); it holds 5 others: 4 of another computation with this key (dag 0123456789ab); 1 of workload mul" in message


def test_39_no_best_for_a_target_says_which_there_are(tmp_path: Path) -> None:
    message = best_error(tmp_path, lambda log: best_record(log, "add", None, Target("llvm -num-cores=77")))
    assert "-num-cores=77" in message
    assert "4 for target 'llvm -keys=cpu'" in message


def test_no_verified_best_says_what_happened_to_the_others(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    failed = {**GOOD, "costs": [1e10], "error_no": 4, "verified": False}
    append_records(log, [parse_record(json.dumps(line)) for line in (failed, {**GOOD, "verified": False})])
    with pytest.raises(RecordError, match="1 that failed with RuntimeDeviceError; 1 that were not verified"):
        best_record(log, "add")
