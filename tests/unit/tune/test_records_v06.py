"""TVM's own logs: read, replayed to the same loops, and right. The lines and the loops were made with TVM 0.19 by us."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler.loaded import LoadedRecord
from tensorexpr.auto_scheduler.records import load_record_from_string
from tensorexpr.auto_scheduler.state_views import state_text
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.tune.records import parse_v06, replay_v06

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
LINES = [line for line in (GOLDEN / "v06.json").read_text().splitlines() if not line.startswith(("#", " "))]
STATES: list[str] = json.loads((GOLDEN / "v06_states.json").read_text())
CASES = pytest.mark.parametrize("number", range(len(LINES)))


def record(number: int) -> LoadedRecord:
    return load_record_from_string(LINES[number])


def structure(state: str) -> list[tuple[int, str, str]]:
    """Depth, kind and extent of each loop; statements by their stage."""
    found = []
    for line in state.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        loop = re.fullmatch(r"\s*(\S+) \S+ \(.*,(\d+)\)", line)
        found.append((depth, loop[1], loop[2]) if loop else (depth, line.strip().replace(".repl", ""), ""))
    return found


@CASES
def test_the_loops_are_those_that_tvm_prints(number: int) -> None:
    read = record(number)
    made = auto_scheduler.ComputeDAG(read.workload_key)
    assert structure(state_text(read.trace.apply(made.initial_tree))) == structure(STATES[number])


@pytest.mark.parametrize("number", [0, 1, 2, 12])
def test_names_and_ranges_are_those_that_tvm_prints(number: int) -> None:
    """Of programs without stages that steps add: those have names of their own here."""
    read = record(number)
    assert state_text(read.trace.apply(auto_scheduler.ComputeDAG(read.workload_key).initial_tree)) == STATES[number]


@CASES
def test_a_replayed_program_is_right(number: int) -> None:
    read = record(number)
    assert_schedule_correct(*auto_scheduler.ComputeDAG(read.workload_key).schedule(read.trace), seed=number, phases=())


def test_every_step_of_the_format_is_among_the_lines() -> None:
    codes = {step.code for line in LINES for step in parse_v06(line).steps}
    assert codes == {"AN", "FU", "PR", "RE", "SP", "FSP", "FFSP", "SA", "CA", "CI", "CR", "CHR", "CHW", "RF"}


def test_a_whole_log_is_read_and_its_best_applied() -> None:
    log = GOLDEN / "v06.json"
    records = auto_scheduler.load_records(log)
    assert len(records) == len(LINES)
    assert all(record.source == "v0.6" and not record.verified for record in records)
    task = auto_scheduler.SearchTask(func="v06_matmul_add", args=(64, 32, 48), target="llvm")
    best = auto_scheduler.load_best_record(log, task.workload_key)
    assert best.median == min(record.median for record in records if record.workload_key == task.workload_key)
    assert "s[matmul].compute_at(s[out]" in task.print_best(log)


def test_fields_that_older_logs_lack_may_be_missing() -> None:
    data = json.loads(LINES[0])
    for length in (2, 3, 4, 5):
        older = {**data, "i": [data["i"][0][:length], data["i"][1]]}
        line = parse_v06(json.dumps(older))
        assert line.workload_key == '["v06_matmul_add", 64, 32, 48]'
        assert bool(line.hardware) == (length > 2)


def test_tiles_are_cut_to_what_a_stage_computes_at_its_place() -> None:
    """Found with TVM's print: an attached stage of 16 rows had a loop over 4 tiles of 64 rows, 3 of them empty."""
    read = parse_v06(LINES[0])
    tiles = next(step for step in read.steps if step.code == "SP")
    made = auto_scheduler.ComputeDAG(read.workload_key)
    trace = replay_v06(read.steps, made.initial_tree)
    first = next(step for step in trace if step.code == "split")
    assert [None, *tiles.fields["lengths"]] != first.to_json()[3]
