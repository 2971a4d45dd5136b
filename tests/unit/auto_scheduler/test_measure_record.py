"""Logs as users of the auto-scheduler read and write them; and schedules looked up in them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler import loaded
from tensorexpr.auto_scheduler.measure_record import (
    distill_record_file,
    dump_record_to_string,
    load_record_from_string,
    main,
)
from tensorexpr.auto_scheduler.utils import calc_workload_dis_factor, decode_workload_key
from tensorexpr.errors import RecordError, TensorExprError
from tensorexpr.schedule.te_schedule import create_schedule
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo

GOLDEN = Path(__file__).parents[2] / "golden" / "records" / "v06.json"
TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"


def task(*args: int, target: str = TARGET) -> auto_scheduler.SearchTask:
    return auto_scheduler.SearchTask(func="v06_matmul", args=args or (8, 8, 16), target=target)


def trace(of: auto_scheduler.SearchTask, factor: int) -> Trace:
    """The first axis split."""
    schedule = create_schedule(of.compute_dag.outputs[0])
    c = of.compute_dag.tensors[-1]
    schedule[c].split(schedule[c].op.axis[0], factor=factor)
    return schedule.trace


def result(cost: float, verified: bool = True, error: int = 0, rounds: int = 0) -> auto_scheduler.MeasureResult:
    policy = {"rounds": rounds} if rounds else {}
    number = MeasureErrorNo(error)
    costs = (FAILED_COST,) if error else (cost,)
    return auto_scheduler.MeasureResult(costs, number, "broken" if error else "", 0.1, 1.0, verified and not error, policy)


def save(log: Path, of: auto_scheduler.SearchTask, *entries: tuple[int, auto_scheduler.MeasureResult]) -> None:
    """Records of a task: a split factor and a result each."""
    inputs = [auto_scheduler.MeasureInput(of, trace(of, factor)) for factor, _ in entries]
    auto_scheduler.save_records(log, inputs, [result for _, result in entries])


def test_records_come_apart_as_they_were_saved(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    save(log, of, (2, result(0.5)), (4, result(0, error=4)))
    (first, good), (_, bad) = auto_scheduler.load_records(log)
    assert first.task.workload_key == of.workload_key
    assert first.task.target == of.target.resolved()
    assert first.trace == trace(of, 2) and str(first.state) == str(auto_scheduler.MeasureInput(of, trace(of, 2)).state)
    assert good.costs == (0.5,) and good.verified
    assert bad.error_no == MeasureErrorNo.RUNTIME_DEVICE and bad.median == float("inf")
    again = tmp_path / "again.json"
    auto_scheduler.save_records(again, [first], [good])
    assert again.read_text() == log.read_text().splitlines(keepends=True)[0]


def test_a_record_as_a_string_and_back() -> None:
    of = task()
    line = dump_record_to_string(auto_scheduler.MeasureInput(of, trace(of, 2)), result(0.5))
    inp, res = load_record_from_string(line)
    assert (inp.trace, res.costs) == (trace(of, 2), (0.5,))
    assert dump_record_to_string(inp, res) == line


def test_the_best_record_is_verified_and_of_this_target(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    save(log, of, (2, result(0.5)), (4, result(0.1, verified=False)), (8, result(0.4)))
    save(log, task(target="llvm -mcpu=x86-64-v3 -num-cores=3"), (2, result(0.2)))
    inp, res = auto_scheduler.load_best_record(log, of.workload_key, TARGET)
    assert res.costs == (0.4,)
    assert of.apply_best(log)[0].trace == inp.trace == trace(of, 8)


def test_what_was_timed_again_counts_instead_of_the_first_time(tmp_path: Path) -> None:
    """Found by reading: the best few were timed again in turn, and then the lucky first time still won."""
    log, of = tmp_path / "log.json", task()
    save(log, of, (2, result(0.1)), (4, result(0.3)), (2, result(0.5, rounds=7)), (4, result(0.4, rounds=7)))
    assert auto_scheduler.load_best_record(log, of.workload_key).trace == trace(of, 4)
    assert auto_scheduler.load_best is auto_scheduler.load_best_record, "its name in release 0.7"


def test_a_reader_reads_in_pieces(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    save(log, of, *((2, result(n / 10)) for n in range(1, 6)))
    reader = auto_scheduler.RecordReader(log)
    inputs, results = reader.read_lines(2, 1)
    assert [r.costs for r in results] == [(0.2,), (0.3,)] and len(inputs) == 2
    assert len(list(reader)) == len(reader.read_lines()[0]) == 5
    reader.check_workload_equality(of.workload_key)
    save(log, task(8, 8, 32), (2, result(0.1)))
    with pytest.raises(RecordError, match=r"record 5 is of workload .*32\], not .*16\]"):
        reader.check_workload_equality(of.workload_key)


def test_distilling_keeps_the_best_line_of_each_workload_and_target_as_it_is(tmp_path: Path) -> None:
    log, out = tmp_path / "log.json", tmp_path / "best.json"
    save(log, task(), (2, result(0.5)), (4, result(0.3)), (8, result(0.4)), (8, result(0, error=2)))
    save(log, task(8, 8, 32), (2, result(0.7)))
    log.write_text(log.read_text() + GOLDEN.read_text())
    count = distill_record_file(log, out)
    assert count == len({(r.workload_key, r.target, r.num_threads) for r in auto_scheduler.load_records(log)})
    assert out.read_text().splitlines()[:2] == [log.read_text().splitlines()[1], log.read_text().splitlines()[4]]
    assert set(out.read_text().splitlines()) <= set(log.read_text().splitlines())
    for read in auto_scheduler.load_records(out):
        assert auto_scheduler.load_best_record(log, read.workload_key, read.target).median == read.median


def test_distilling_keeps_what_a_log_gives(tmp_path: Path) -> None:
    """The lucky first time of a program that was timed again would be kept, and another program built than from the log."""
    log, out, of = tmp_path / "log.json", tmp_path / "best.json", task()
    save(log, of, (2, result(0.1)), (4, result(0.3)), (2, result(0.5, rounds=7)), (4, result(0.4, rounds=7)))
    assert distill_record_file(log, out) == 1
    assert auto_scheduler.load_best_record(out).trace == auto_scheduler.load_best_record(log).trace == trace(of, 4)


def test_a_second_time_that_failed_leaves_the_first(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    save(log, of, (2, result(0.1)), (2, result(0, error=4, rounds=7)))
    assert [record.costs for record in auto_scheduler.load_records(log)] == [(0.1,)]


def test_the_command_runs_as_a_module_without_a_warning(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    save(log, task(), (2, result(0.5)))
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tensorexpr.auto_scheduler.measure_record",
        "-i",
        str(log),
        "-o",
        str(tmp_path / "out.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert auto_scheduler.measure_record.load_best_record(tmp_path / "out.json").costs == (0.5,)


def test_distilling_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.json"
    save(log, task(), (2, result(0.5)))
    assert main(["--mode", "distill", "-i", str(log)]) == 0
    assert (tmp_path / "log.json.best.json").read_text() == log.read_text()
    assert "1 records kept" in capsys.readouterr().out
    save(tmp_path / "bad.json", task(), (2, result(0, error=1)))
    assert main(["-i", str(tmp_path / "bad.json")]) == 2
    assert "no record that ran and was verified" in capsys.readouterr().err
    assert not (tmp_path / "bad.json.best.json").exists()


WRITER = """
import sys
from tensorexpr.tune.records import append_record, parse_record
line, log, mark = open(sys.argv[1]).readline(), sys.argv[2], sys.argv[3]
record = parse_record(line.replace("1.0", mark))
for _ in range(200):
    append_record(log, record)
"""


def test_40_two_processes_append_to_one_log(tmp_path: Path) -> None:
    source, log = tmp_path / "one.json", tmp_path / "log.json"
    save(source, task(), (2, replace(result(0.5), error_msg="x" * 1900)))
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(source), str(log), f"{mark}.0"]) for mark in (2, 3)]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    lines = log.read_text().splitlines()
    assert sorted({json.loads(line)["timestamp"] for line in lines}) == [2.0, 3.0]
    assert len(auto_scheduler.load_records(log)) == len(lines) == 400


def test_a_compatible_record_is_of_the_same_function_and_legal(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task(16, 8, 16)
    save(log, task(8, 8, 16), (4, result(0.5)), (2, result(0.6)))
    with pytest.raises(RecordError, match=r"it holds 2 others"):
        auto_scheduler.load_best_record(log, of.workload_key, TARGET)
    found = auto_scheduler.load_best_record(log, of.workload_key, TARGET, include_compatible=True, dag=of.compute_dag)
    assert found.trace == trace(task(8, 8, 16), 4)
    assert of.apply_best(log, include_compatible=True)[0].trace == found.trace


@pytest.mark.parametrize(
    ("wanted", "other", "factor"),
    [
        ('["f", 8, "x"]', '["f", 4, "x"]', 2.0),
        ('["f", 8, 9]', '["f", 4, 3]', 6.0),
        ('["f", 8]', '["f", 8]', 1.0),
        ('["f", 8]', '["g", 8]', math.inf),
        ('["f", 8]', '["f", 3]', math.inf),
        ('["f", 8]', '["f", 8, 8]', math.inf),
        ('["f", "x"]', '["f", "y"]', math.inf),
        ('["f", true]', '["f", 0]', math.inf),
        ("no JSON", '["f"]', math.inf),
        ('["f", [8, 6], "x"]', '["f", [2, 3], "x"]', 8.0),
        ('["f", [8, 6]]', '["f", [2, 0]]', math.inf),
    ],
)
def test_how_much_more_work_a_workload_is(wanted: str, other: str, factor: float) -> None:
    assert calc_workload_dis_factor(decode_workload_key(wanted), decode_workload_key(other)) == factor


def test_a_context_finds_the_best_of_its_log(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    save(log, of, (2, result(0.5)), (4, result(0.3)))
    assert auto_scheduler.best_schedule(of.compute_dag, TARGET, of.workload_key) is None
    with auto_scheduler.ApplyHistoryBest(log):
        found = auto_scheduler.best_schedule(of.compute_dag, TARGET, of.workload_key)
        assert found is not None and found[0].trace == trace(of, 4) and found[1] == of.compute_dag.tensors
        assert auto_scheduler.best_schedule(of.compute_dag, "llvm -mcpu=x86-64-v3 -num-cores=7", of.workload_key) is None
        assert auto_scheduler.best_schedule(task(8, 8, 32).compute_dag, TARGET, of.workload_key) is None
    assert auto_scheduler.best_schedule(of.compute_dag, TARGET, of.workload_key) is None


def test_a_computation_without_a_key_is_found_by_what_it_computes(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    save(log, of, (2, result(0.5)), (4, result(0.3)))
    x, y = te.placeholder((8, 16), name="X"), te.placeholder((16, 8), name="Y")
    r = te.reduce_axis((0, 16), name="r")
    same = [x, y, te.compute((8, 8), lambda p, q: te.sum(x[p, r] * y[r, q], axis=r), name="Z")]
    other = [x, y, te.compute((8, 8), lambda p, q: te.sum(x[p, r] + y[r, q], axis=r), name="Z")]
    with auto_scheduler.ApplyHistoryBest(log):
        found = auto_scheduler.best_schedule(same, TARGET)
        assert found is not None and found[0].trace == trace(of, 4)
        assert auto_scheduler.best_schedule(other, TARGET) is None


def test_a_hash_is_confirmed_by_comparing(tmp_path: Path) -> None:
    log, of, other = tmp_path / "log.json", task(), task(8, 8, 32)
    save(log, of, (2, result(0.5)))
    log.write_text(log.read_text().replace(of.compute_dag.hash_key(), other.compute_dag.hash_key()))
    with auto_scheduler.ApplyHistoryBest(log):
        assert auto_scheduler.best_schedule(other.compute_dag, TARGET) is None


def test_a_workload_is_declared_once_however_many_records_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, of = tmp_path / "log.json", task()
    declared: list[str] = []
    save(log, of, *((2, result(n / 10)) for n in range(1, 9)))

    def declare(key: str) -> auto_scheduler.ComputeDAG:
        declared.append(key)
        return auto_scheduler.ComputeDAG(key)

    monkeypatch.setattr(loaded, "ComputeDAG", declare)
    assert auto_scheduler.ApplyHistoryBest(log).query(TARGET, of.workload_key, of.compute_dag) == trace(of, 2)
    assert len(declared) == 1


def test_contexts_nest_and_the_inner_one_is_asked_first(tmp_path: Path) -> None:
    outer, inner, of, other = tmp_path / "outer.json", tmp_path / "inner.json", task(), task(8, 8, 32)
    save(outer, of, (2, result(0.1)))
    save(outer, other, (2, result(0.1)))
    save(inner, of, (8, result(0.9)))
    with auto_scheduler.ApplyHistoryBest(outer), auto_scheduler.ApplyHistoryBest(inner) as context:
        query = auto_scheduler.DispatchContext.current.query
        assert query(TARGET, of.workload_key, of.compute_dag) == trace(of, 8)
        assert query(TARGET, other.workload_key, other.compute_dag) == trace(other, 2)
        context.update(TARGET, of.workload_key, Trace())
        assert query(TARGET, of.workload_key, of.compute_dag) == Trace()
    assert auto_scheduler.DispatchContext.current.query(TARGET, of.workload_key, of.compute_dag) is None
    with pytest.raises(TensorExprError, match=r"use auto_scheduler\.ApplyHistoryBest"):
        auto_scheduler.DispatchContext().update(TARGET, of.workload_key, Trace())


@pytest.mark.parametrize("order", ["aa", "aba", "abab", "abcba", "bab"])
def test_a_context_may_be_entered_within_itself(tmp_path: Path, order: str) -> None:
    outer, of, other = tmp_path / "outer.json", task(), task(8, 8, 32)
    save(outer, of, (2, result(0.1)))
    contexts = {name: auto_scheduler.ApplyHistoryBest([]) for name in "abc"}
    contexts["a"].update(TARGET, of.workload_key, Trace())
    before = auto_scheduler.DispatchContext.current
    with ExitStack() as stack:
        stack.enter_context(auto_scheduler.ApplyHistoryBest(outer))
        for name in order:
            stack.enter_context(contexts[name])
        for context in contexts.values():
            assert context.query(TARGET, other.workload_key, other.compute_dag) is None
        assert auto_scheduler.DispatchContext.current.query(TARGET, of.workload_key, of.compute_dag) == Trace()
        contexts["a"]._chosen.clear()
        assert auto_scheduler.DispatchContext.current.query(TARGET, of.workload_key, of.compute_dag) == trace(of, 2)
    assert auto_scheduler.DispatchContext.current is before


def test_a_context_leaves_as_it_came_when_something_is_raised(tmp_path: Path) -> None:
    before = auto_scheduler.DispatchContext.current
    with pytest.raises(KeyError), auto_scheduler.ApplyHistoryBest([]):
        raise KeyError
    assert auto_scheduler.DispatchContext.current is before


def test_32_equal_names_of_other_computations_are_told_apart(tmp_path: Path) -> None:
    """A key is confirmed by the hash of the structure, and a hash by the key."""
    log, of = tmp_path / "log.json", task()
    a = te.placeholder((8, 16), name="A")
    other = auto_scheduler.SearchTask(
        compute_dag=[a, te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="B")], workload_key=of.workload_key, target=TARGET
    )
    save(log, other, (2, result(0.1)))
    with pytest.raises(RecordError, match="1 of another computation with this key"):
        of.apply_best(log)
    with auto_scheduler.ApplyHistoryBest(log):
        assert auto_scheduler.best_schedule(of.compute_dag, TARGET, of.workload_key) is None


MISSES = {
    "hit": ((8, 8, 16), TARGET, {}, "has a record for"),
    "argument": ((8, 8, 32), TARGET, {}, "argument 2 of v06_matmul: 16 there, 32 here"),
    "threads": ((8, 8, 16), "llvm -mcpu=x86-64-v3 -num-cores=4", {}, "target option -num-cores: 2 there, 4 here"),
    "cpu": ((8, 8, 16), "llvm -mcpu=x86-64 -num-cores=2", {}, "target option -mcpu: x86-64-v3 there, x86-64 here"),
    "failed": ((8, 8, 16), TARGET, {"error": 5}, "success: it failed with WrongAnswerError: broken"),
    "unverified": ((8, 8, 16), TARGET, {"verified": False}, "verification: its results were not compared"),
}


@pytest.mark.parametrize("name", MISSES)
def test_explain_miss_says_what_differs(tmp_path: Path, name: str) -> None:
    args, target, changes, message = MISSES[name]
    log = tmp_path / "log.json"
    save(log, task(4, 4, 4, target="llvm -mcpu=x86-64"), (2, result(0.1)))
    save(log, task(), (2, result(0.5, **changes)))  # type: ignore[arg-type]
    text = auto_scheduler.explain_miss(log, task(*args, target=target))
    assert message in text
    assert "record 1" in text
    assert text.count("\n  - ") == (0 if name == "hit" else 1)


def test_explain_miss_of_another_function_and_of_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text("")
    assert auto_scheduler.explain_miss(log, task()).endswith("holds no records.")
    save(log, task(), (2, result(0.5)))
    other = auto_scheduler.SearchTask(func="v06_row_min", args=(4, 8), target=Target(TARGET))
    assert 'the workload: ["v06_matmul", 8, 8, 16] there, ["v06_row_min", 4, 8] here' in auto_scheduler.explain_miss(log, other)
