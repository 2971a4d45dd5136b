"""Logs: lines of TVM's version 0.2 in and out, hostile ones refused, the best found."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import tests.autotvm_templates  # noqa: F401  (registers the templates)
from tensorexpr import autotvm
from tensorexpr.autotvm.errors import InstantiationError
from tensorexpr.autotvm.measure.measure import Measured
from tensorexpr.autotvm.record import decode, encode, load_from_buffer, load_from_file, measure_str_key, pick_best, split_workload
from tensorexpr.errors import RecordError
from tensorexpr.target import Target
from tests.autotvm_templates import TARGET, matmul

# As TVM 0.19 writes it.
LINE = (
    '{"input": ["llvm -keys=cpu -mtriple=x86_64-unknown-linux-gnu", "tests/matmul", [16], {}], "config": {"index": 3, "code_hash": null, '
    '"entity": [["tile_y", "sp", [-1, 8]], ["tile_x", "sp", [-1, 1]], ["vector", "ot", false]]}, '
    '"result": [[0.1, 0.2], 0, 1.5, 123.0], "version": 0.2, "tvm_version": "0.19.0"}'
)


def record(index: int, seconds: float, error: int = 0) -> tuple[Any, Any]:
    task = autotvm.task.create("tests/matmul", (16,), TARGET)
    costs: Any = (seconds,) if not error else (RuntimeError("no"),)
    return autotvm.MeasureInput(task.target, task, task.config_space.get(index)), autotvm.MeasureResult(costs, error, 0.5, 1.0)


def test_a_line_of_tvm_reads_and_is_written_the_same() -> None:
    inp, result = decode(LINE)
    assert inp.task.workload == ("tests/matmul", 16) and inp.config["tile_y"].size == [-1, 8] and result.costs == (0.1, 0.2)
    ours = json.loads(encode(inp, result))
    theirs = json.loads(LINE)
    assert {**ours, "tvm_version": ""} == {**theirs, "tvm_version": ""}


def test_failures_are_written_as_tvm_writes_them() -> None:
    made = json.loads(encode(*record(0, 0.0, error=5)))
    assert made["result"][:2] == [[1e9], 5] and decode(json.dumps(made))[1].error_no == 5


BROKEN = [
    LINE[:60],
    "[]",
    LINE.replace('"version": 0.2', '"version": 0.1'),
    LINE.replace('"sp", [-1, 8]', '"sp", "exec"'),
    LINE.replace('"vector", "ot", false', '"tile_y", "sp", [4]'),
    LINE.replace('"vector", "ot"', '"vector", "zz"'),
    LINE.replace('"index": 3', '"index": true'),
    LINE.replace("[0.1, 0.2]", "[NaN]"),
    LINE.replace("[0.1, 0.2], 0", "[0.1], 99"),
    LINE.replace("llvm -keys=cpu", "nonsense -keys=cpu"),
    LINE.replace("[16], {}", '[{"a": 1}], {}'),
]


@pytest.mark.parametrize("line", BROKEN)
def test_hostile_lines_are_named_errors_and_skipped_in_files(line: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError):
        decode(line)
    log = tmp_path / "log.json"
    log.write_text(f"{LINE}\n{line}\n{LINE}\n{LINE[:50]}")
    assert len(list(load_from_file(log))) == 2
    assert len(list(load_from_buffer(io.StringIO(log.read_text())))) == 2


def test_the_pickle_protocol_is_refused_with_the_reason() -> None:
    for call in (
        lambda: encode(*record(0, 1.0), protocol="pickle"),
        lambda: decode(LINE, "pickle"),
        lambda: autotvm.callback.log_to_file("x", "pickle"),
    ):
        with pytest.raises(RecordError, match="runs whatever code"):
            call()
    with pytest.raises(RecordError, match="Invalid log protocol"):
        encode(*record(0, 1.0), protocol="xml")


def test_a_log_that_can_not_be_there_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    for place, why in ((tmp_path / "no" / "log.json", "there is no folder"), (tmp_path, "it is a folder")):
        with pytest.raises(RecordError, match=f"can't be written: {why}"):
            autotvm.callback.log_to_file(place)
    autotvm.callback.log_to_file(tmp_path / "log.json")
    assert not any(tmp_path.iterdir())


def test_the_best_of_a_log_is_applied(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    for index, seconds in ((3, 0.2), (7, 0.1), (9, 0.3)):
        autotvm.callback.log_to_file(log)(None, *([one] for one in record(index, seconds)))
    autotvm.callback.log_to_file(log)(None, *([one] for one in record(11, 0.0, error=4)))
    for records in (log, str(log), io.StringIO(log.read_text()), [log], [record(3, 0.2), record(7, 0.1)]):
        best = autotvm.apply_history_best(records)
        inp, _ = record(0, 1.0)
        assert best.query(inp.target, inp.task.workload).index == 7
    with autotvm.apply_history_best(log), inp.target:
        schedule, _ = matmul(16)
    assert schedule.trace == inp.task.instantiate(inp.task.config_space.get(7))[0].trace


@pytest.mark.parametrize(
    ("entity", "why"),
    [
        ('["tile_y", "sp", [-1, 2, 4]], ["tile_x", "sp", [-1, 1]], ["vector", "ot", false]', "'tile_y' is .* for 2 axes"),
        ('["tile_y", "ot", 4], ["tile_x", "sp", [-1, 1]], ["vector", "ot", false]', "no SplitEntity"),
        ('["tile_y", "sp", [-1, 0]], ["tile_x", "sp", [-1, 1]], ["vector", "ot", false]', "'tile_y' is"),
        ('["tile_y", "sp", [-1, 8]], ["tile_x", "sp", [-1, -1]], ["vector", "ot", false]', "'tile_x' is"),
        ('["tile_y", "sp", [-1, 8]], ["vector", "ot", false]', "no knob 'tile_x'"),
        ('["tile_y", "sp", [-1, 8]], ["tile_x", "sp", [-1, 549755813888]], ["vector", "ot", false]', "does not fit int32"),
    ],
)
def test_records_of_another_version_of_the_template_are_named(entity: str, why: str) -> None:
    made = json.loads(LINE)
    made["config"]["entity"] = json.loads(f"[{entity}]")
    log = io.StringIO(json.dumps(made))
    with (
        autotvm.apply_history_best(log),
        Target(TARGET),
        pytest.raises(InstantiationError, match=f"'tests/matmul' makes no program.*{why}"),
    ):
        matmul(16)


def test_what_was_timed_again_counts_for_what_was_timed_alone() -> None:
    inp, alone = record(3, 0.1)
    again = Measured((0.3,), 0, 0.5, 1.0)
    again.verified = again.timed_again = True
    text = encode(inp, again)
    assert json.loads(text)["checked"] == {"verified": True, "again": True} and getattr(decode(text)[1], "timed_again", False)
    other = record(5, 0.2)
    best = autotvm.apply_history_best([(inp, alone), other, (inp, again)])
    assert best.query(inp.target, inp.task.workload).index == 3


def test_logs_are_picked_and_split(tmp_path: Path) -> None:
    log, best = tmp_path / "log.json", tmp_path / "best.json"
    lines = [encode(*record(3, 0.2)), encode(*record(7, 0.1)), encode(*record(7, 0.1))]
    lines.append(lines[0].replace("[16]", "[32]"))
    log.write_text("\n".join(lines) + "\n")
    pick_best(log, best)
    pick_best(log, best)
    assert sorted(inp.config.index for inp, _ in load_from_file(best)) == [3, 7]
    split_workload(log)
    assert [len(list(load_from_file(f"{log}.{n:03d}.wkl"))) for n in range(2)] == [2, 1]


def test_databases_keep_results() -> None:
    db = autotvm.database.DummyDatabase()
    inp, first = record(3, 0.2)
    db.save(inp, first)
    db.save(inp, first._replace(timestamp=2.0), extend=True)
    assert db.load(inp).timestamp == 2.0 and len(db.load(inp, get_all=True)) == 2 and db.load(record(4, 1.0)[0]) is None
    assert autotvm.database.filter_inputs(db, [inp, record(4, 1.0)[0]])[0].config.index == 4
    assert len(db.filter(lambda made, results: results[0].costs[0] < 1)) == 1
    assert measure_str_key(inp) != measure_str_key(record(4, 1.0)[0])


def test_the_newest_log_of_the_folder_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotvm.tophub, "AUTOTVM_TOPHUB_ROOT_PATH", tmp_path)
    monkeypatch.delenv("TOPHUB_LOCATION", raising=False)
    assert not autotvm.tophub.check_backend("", "cpu") and not autotvm.tophub.context(TARGET).best_by_targetkey
    for version, index in (("v0.9", 2), ("v0.10", 3)):
        (tmp_path / f"cpu_{version}.log").write_text(encode(*record(index, 1.0)) + "\n")
    [(found, _)] = autotvm.tophub.context(TARGET).best_by_targetkey.values()
    assert found.config.index == 3
    [(same, _)] = autotvm.tophub.load_reference_log("cpu", "", "tests/matmul")
    assert same.config.index == 3 and autotvm.tophub.load_reference_log("cpu", "", "other") == []
    monkeypatch.setenv("TOPHUB_LOCATION", "NONE")
    assert not autotvm.tophub.context(TARGET).best_by_targetkey
