"""The command `db`: what logs and databases hold, put together and cut down."""

from __future__ import annotations

from pathlib import Path

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler, tir
from tensorexpr import meta_schedule as ms
from tensorexpr.auto_scheduler import MeasureInput, SearchTask
from tensorexpr.driver.cli import main
from tensorexpr.meta_schedule.database import SQLiteDatabase, TuningRecord
from tensorexpr.schedule.steps import Split
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tests.meta_schedule_programs import matmul, scaled, tiles

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"
V06 = Path(__file__).parents[2] / "golden" / "records" / "v06.json"
KEY = '["v06_matmul", 8, 8, 16]'


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["db", *map(str, words)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["db", *map(str, words)]) == 2
    return capsys.readouterr().err


def log(path: Path, costs: list[float | None], size: int = 16) -> Path:
    """A log of one task: the plain program, and splits by 2, 3, ..."""
    task = SearchTask(func="v06_matmul", args=(8, 8, size), target=TARGET)
    traces = [Trace(), *(Trace((Split(2, 0, (None, 2 + n)),)) for n in range(len(costs) - 1))]
    error = {True: MeasureErrorNo.RUN_TIMEOUT, False: MeasureErrorNo.NO_ERROR}
    results = [MeasureResult((cost or FAILED_COST,), error[cost is None], "", 0.1, 1.0, cost is not None) for cost in costs]
    auto_scheduler.save_records(path, [MeasureInput(task, trace) for trace in traces], results)
    return path


def database(path: Path, costs: list[list[float] | None], is_scaled: bool = False) -> Path:
    """A database of one workload, with programs of one kind."""
    made, mod = SQLiteDatabase(str(path)), scaled() if is_scaled else matmul()
    for seed, seconds in enumerate(costs):
        sch = tir.Schedule(mod, seed=seed)
        if not is_scaled:
            tiles(sch)
        assert sch.trace is not None
        info = ms.ArgInfo.from_entry_func(mod)
        made.commit_tuning_record(TuningRecord(sch.trace, made.commit_workload(mod), seconds, Target("llvm"), info))
    made.close()
    return path


def rows(text: str) -> list[list[str]]:
    """Records, failures and the best of the rows of `ls`."""
    return [line.split()[:3] for line in text.splitlines()[1:]]


def test_workloads_of_logs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(log(tmp_path / "log.json", [0.5, 0.25, None]), [None], 32)
    text = said(capsys, "ls", path)
    assert rows(text) == [["3", "1", "250"], ["1", "1", "-"]]
    assert KEY in text and "-mcpu=x86-64-v3" in text


def test_workloads_of_databases_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = database(database(tmp_path / "all.sqlite", [[0.5], None, [0.25, 0.75]]), [None], is_scaled=True)
    assert rows(said(capsys, "ls", path)) == [["3", "1", "500"], ["1", "1", "-"]]


def test_logs_are_merged_each_record_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, merged = log(tmp_path / "a.json", [0.5, 0.25]), log(tmp_path / "b.json", [0.5, 0.125]), tmp_path / "all.json"
    second.write_text(f"{second.read_text()}no record\n{V06.read_text().splitlines()[2]}")  # TVM's, without an end of line
    assert "4 records added" in said(capsys, "merge", first, second, "-o", merged)
    lines = first.read_text().splitlines() + second.read_text().splitlines()
    assert merged.read_text().splitlines() == list(dict.fromkeys(line for line in lines if line != "no record"))
    assert "0 records added" in said(capsys, "merge", second, first, merged, "-o", merged)


def test_databases_are_merged_each_record_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = database(tmp_path / "a.db", [[0.5], None]), database(tmp_path / "b.db", [[0.5], [0.25]])
    database(second, [[1.0]], is_scaled=True)
    merged = tmp_path / "all.db"
    assert "4 records added" in said(capsys, "merge", first, second, "-o", merged)
    assert "0 records added" in said(capsys, "merge", second, first, "-o", merged)
    assert rows(said(capsys, "ls", merged)) == [["3", "1", "250"], ["1", "0", "1000"]]


def test_pruning_leaves_the_best_of_each_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(log(tmp_path / "log.json", [0.5, 0.25, None]), [1.0], 32)
    assert "2 records written" in said(capsys, "prune", path, "-o", tmp_path / "best.json")
    assert rows(said(capsys, "ls", tmp_path / "best.json")) == [["1", "0", "250"], ["1", "0", "1000"]]
    known = database(tmp_path / "all.db", [[0.5], None, [0.25]])
    assert "1 records written" in said(capsys, "prune", known, "-o", tmp_path / "best.db")
    assert rows(said(capsys, "ls", tmp_path / "best.db")) == [["1", "0", "250"]]


def test_the_best_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(log(tmp_path / "log.json", [0.5, 0.25, 0.75]), [None], 32)
    best, other = said(capsys, "best", path).splitlines()
    assert best.startswith(KEY) and "250 ms" in best and str(Trace((Split(2, 0, (None, 2)),)).to_json()[0][0]) in best
    assert '["v06_matmul", 8, 8, 32]' in other and "ms" not in other
    known = database(database(tmp_path / "all.db", [[0.5], [0.25]]), [None], is_scaled=True)
    text = said(capsys, "best", known)
    assert "250 ms" in text and "500 ms" not in text and "sch.split" in text and "no record that ran" in text


def test_a_miss_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path / "log.json", [0.5])
    workloads = ("--import", "tests.v06_workloads", "--target", TARGET, "--workload")
    assert "500 ms" in said(capsys, "explain-miss", path, *workloads, KEY)
    assert "no record for" in said(capsys, "explain-miss", path, *workloads, '["v06_matmul", 8, 8, 64]')
    assert "nowhere" in refused(capsys, "explain-miss", path, "--import", "tests.nowhere", "--workload", KEY)


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, known = log(tmp_path / "log.json", [0.5]), database(tmp_path / "all.db", [[0.5]])
    assert "there is no" in refused(capsys, "ls", tmp_path / "nowhere.json")
    assert "of one kind" in refused(capsys, "merge", path, known, "-o", tmp_path / "both.json")
    secret = refused(capsys, "merge", path, "postgresql://me:secret@nowhere/all", "-o", tmp_path / "both.json")
    assert "of one kind" in secret and "secret" not in secret
    assert "no databases" in refused(capsys, "explain-miss", known, "--workload", KEY)
    assert not (tmp_path / "both.json").exists()
