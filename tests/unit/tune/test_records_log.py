"""Properties 35 and 40 of logs: cut off at any byte, appended by several processes, holding lines of others."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensorexpr.errors import RecordError
from tensorexpr.target import Target
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo
from tensorexpr.tune.records import Record, append_record, append_records, best_record, choose_best, load_records

from .test_records_record import RECORD

HERE = Target("llvm")


def numbered(count: int) -> list[Record]:
    return [replace(RECORD, timestamp=float(number)) for number in range(count)]


def test_records_are_read_in_the_order_they_were_appended(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    append_record(log, numbered(1)[0])
    append_records(log, numbered(3)[1:])
    append_records(log, [])
    assert list(load_records(log)) == numbered(3)
    assert log.read_bytes().count(b"\n") == 3


def test_35_a_log_cut_at_any_byte_gives_all_whole_records(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "log.json"
    append_records(log, numbered(2))
    data = log.read_bytes()
    first = data.index(b"\n") + 1
    for cut in [*range(0, len(data), 37), first - 1, first, first + 1, len(data) - 1]:
        log.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n") + (cut in (first - 1, len(data) - 1))
        assert list(load_records(log, strict=True)) == numbered(2)[:whole]
        append_record(log, RECORD)
        assert list(load_records(log)) == [*numbered(2)[:whole], RECORD]
    assert "torn at the end of the file" in caplog.text


def test_comments_and_empty_lines_are_skipped(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(f"# a comment\n\n  indented\n{RECORD.dumps()}\r\n\n")
    assert list(load_records(log, strict=True)) == [RECORD]


def test_bad_lines_are_skipped_with_a_warning_or_raised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "log.json"
    log.write_text("\n".join(["{}", RECORD.dumps(), "nonsense", "[]", "3", "null", RECORD.dumps(), ""]))
    with caplog.at_level(logging.WARNING):
        assert list(load_records(log)) == [RECORD, RECORD]
    assert f"skipped {log}, line 3: the line is no JSON" in caplog.text
    assert "skipped 5 lines in all" in caplog.text
    assert len(caplog.records) == 4
    with pytest.raises(RecordError, match=r"line 1: a record lacks 'format'"):
        list(load_records(log, strict=True))


def test_a_line_over_the_limit_does_not_hide_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "log.json"
    log.write_bytes(b'{"format": "' + b"x" * (5 << 20) + b'"}\n' + RECORD.dumps().encode() + b"\n")
    assert list(load_records(log)) == [RECORD]
    assert "at most 1048576 bytes" in caplog.text


def test_40_two_processes_append_to_one_log(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    (tmp_path / "line.json").write_text(RECORD.dumps())
    program = (
        "import sys\nfrom dataclasses import replace\nfrom tensorexpr.tune.records import append_record, parse_record\n"
        "record = parse_record(open(sys.argv[1]).read())\n"
        "for number in range(100):\n"
        "    append_record(sys.argv[2], replace(record, num_threads=int(sys.argv[3]), timestamp=float(number)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "line.json"), str(log), str(number)], env=environment)
        for number in (1, 2)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = list(load_records(log, strict=True))
    for number in (1, 2):
        assert [record.timestamp for record in found if record.num_threads == number] == [float(n) for n in range(100)]


def test_the_best_is_the_fastest_that_fits(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    fits = replace(RECORD, target=str(HERE.resolved()))
    others = [
        replace(fits, costs=(1e-6,), verified=False),
        replace(fits, costs=(FAILED_COST,), error_no=MeasureErrorNo.WRONG_ANSWER, verified=False),
        replace(fits, costs=(1e-6,), workload_key="other"),
        replace(fits, costs=(1e-6,), dag_hash="ffffffff"),
        replace(fits, costs=(1e-6,), target="llvm -mcpu=other"),
    ]
    wanted = replace(fits, costs=(1e-4, 2e-4, 9e-4))
    append_records(log, [fits, *others, wanted, replace(fits, costs=(2.5e-4, 2.5e-4))])
    assert best_record(log, RECORD.workload_key, RECORD.dag_hash, HERE) == wanted
    assert best_record(log, RECORD.workload_key, RECORD.dag_hash).target == "llvm -mcpu=other"
    assert best_record(log).costs == (1e-6,)


def test_what_lost_against_the_finalists_stays_lost_however_fast_the_machine_was(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    lucky, finalist, later = (replace(record, costs=(cost,)) for record, cost in zip(numbered(3), (0.8, 0.9, 0.95), strict=True))
    again = replace(finalist, costs=(1.0,), policy={"rounds": 5})
    append_records(path, [lucky, finalist, again])
    assert best_record(path).costs == (1.0,)
    append_records(path, [later])  # of a search that ended before it compared
    assert best_record(path).costs == (0.95,)


def test_appending_to_what_is_no_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        append_record(tmp_path, RECORD)


AGAIN = {"rounds": 5}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.booleans()), max_size=8))
@example([(0, 1, True), (1, 9, True)])
@example([(0, 1, False), (1, 9, True)])
def test_the_best_of_several_tasks_is_the_best_of_their_bests(entries: list[tuple[int, int, bool]]) -> None:
    """Programs of three tasks, all of one trace: what one task says of its program says nothing about the others'."""
    tasks = ({"workload_key": '["other"]'}, {"target": "llvm -mcpu=other"}, {"dag_hash": "f" * 16})
    records = [replace(RECORD, **tasks[task], costs=(float(cost),), policy=AGAIN if again else {}) for task, cost, again in entries]  # type: ignore[arg-type]
    bests = [choose_best([record for record, entry in zip(records, entries, strict=True) if entry[0] == task])[0] for task in range(3)]
    best, _ = choose_best(records)
    assert (best and best.median) == min((one.median for one in bests if one is not None), default=None)
