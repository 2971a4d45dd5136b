"""Databases: records come back, the best first, from every kind of storage."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import tir
from tensorexpr.errors import RecordError, TuningError
from tensorexpr.meta_schedule.database import (
    Database,
    JSONDatabase,
    MemoryDatabase,
    OrderedUnionDatabase,
    PostgresDatabase,
    ScheduleFnDatabase,
    SQLiteDatabase,
    TuningRecord,
    UnionDatabase,
)
from tensorexpr.tir.structural import structural_equal
from tests import postgres
from tests.meta_schedule_programs import matmul, scaled, tiles

GOLDEN = Path(__file__).parents[2] / "golden/meta_schedule"
KINDS: dict[str, Callable[[Path], Database]] = {
    "memory": lambda folder: MemoryDatabase(),
    "json": lambda folder: JSONDatabase(work_dir=str(folder)),
    "sqlite": lambda folder: SQLiteDatabase(work_dir=str(folder)),
}


def record(database: Database, mod: tvm.IRModule, seconds: list[float] | None, target: str = "llvm", seed: int = 1) -> TuningRecord:
    sch = tir.Schedule(mod, seed=seed)
    tiles(sch)
    sch.enter_postproc()
    assert sch.trace is not None
    made = TuningRecord(sch.trace, database.commit_workload(mod), seconds, tvm.Target(target), ms.ArgInfo.from_entry_func(mod))
    database.commit_tuning_record(made)
    return made


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    if reason := postgres.reason_against():
        pytest.skip(reason)
    with postgres.server() as url:
        yield url


def emptied(url: str) -> PostgresDatabase:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("drop table if exists tensorexpr_record, tensorexpr_workload")
    return PostgresDatabase(url)


@pytest.fixture(params=[*sorted(KINDS), "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return emptied(request.getfixturevalue("postgres_url")) if request.param == "postgres" else KINDS[request.param](tmp_path)


def test_the_fastest_records_come_first_and_failed_ones_never(database: Database) -> None:
    mod = matmul()
    for seconds in ([3.0], [1.0, 2.0], None, [1e10], [2.0]):
        record(database, mod, seconds)
    assert len(database) == len(database.get_all_tuning_records()) == 5
    top = database.get_top_k(database.commit_workload(mod), 10)
    assert [r.run_secs for r in top] == [[1.0, 2.0], [2.0], [3.0]]
    assert [r.run_secs for r in database.get_top_k(database.commit_workload(mod), 1)] == [[1.0, 2.0]]
    assert database.get_top_k(database.commit_workload(mod), 0) == []


def test_records_of_other_workloads_and_failures_stay_apart(database: Database) -> None:
    mods = [matmul(), scaled()]
    sch = tir.Schedule(mods[1])
    assert sch.trace is not None
    record(database, mods[0], [2.0])
    database.commit_tuning_record(TuningRecord(sch.trace, database.commit_workload(mods[1]), None, tvm.Target("llvm")))
    assert [r.run_secs for r in database.get_top_k(database.commit_workload(mods[0]), 5)] == [[2.0]]
    database.commit_tuning_record(TuningRecord(sch.trace, database.commit_workload(mods[1]), [1.0], tvm.Target("llvm")))
    assert [r.run_secs for r in database.get_top_k(database.commit_workload(mods[0]), 5)] == [[2.0]]
    only_failed, pruned = MemoryDatabase(), MemoryDatabase()
    record(only_failed, mods[0], None)
    only_failed.dump_pruned(pruned)
    assert len(pruned) == 0


def test_a_workload_is_known_by_what_it_computes(database: Database) -> None:
    assert not database.has_workload(matmul())
    first = database.commit_workload(matmul())
    assert database.has_workload(matmul()) and not database.has_workload(matmul(64))
    assert database.commit_workload(matmul()) is first


def test_queries_give_the_best_schedule(database: Database) -> None:
    mod = matmul()
    record(database, mod, [2.0], seed=1)
    best = record(database, mod, [1.0], seed=2)
    sch = database.query(mod, "llvm")
    assert sch.trace.as_json() == best.trace.as_json()
    assert structural_equal(database.query(mod, "llvm", kind="ir_module"), sch.mod)
    assert database.query(mod, "llvm", kind="record").run_secs == [1.0]
    assert database.query(scaled(), "llvm") is None


def test_a_record_of_the_same_target_is_preferred(database: Database) -> None:
    mod = matmul()
    record(database, mod, [1.0], target="llvm -num-cores=3")
    record(database, mod, [2.0], target="llvm -num-cores=5")
    found = [database.query_tuning_record(mod, f"llvm -num-cores={cores}") for cores in (3, 5, 7)]
    assert [r.run_secs for r in found if r is not None] == [[1.0], [2.0], [1.0]]


def test_pruning_keeps_the_best_of_each_workload(database: Database) -> None:
    for mod, seconds in ((matmul(), 2.0), (matmul(), 1.0), (matmul(64), 5.0)):
        record(database, mod, [seconds])
    pruned = MemoryDatabase()
    database.dump_pruned(pruned)
    assert sorted(r.mean for r in pruned.get_all_tuning_records()) == [1.0, 5.0]


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_files_are_read_again(kind: str, tmp_path: Path) -> None:
    first = KINDS[kind](tmp_path)
    made = record(first, matmul(), [1.0])
    again = KINDS[kind](tmp_path)
    (found,) = again.get_all_tuning_records()
    assert found.as_json() == made.as_json()
    assert str(found.as_measure_candidate().sch.trace) == str(made.trace)
    record(again, matmul(), [0.5], seed=2)
    last = KINDS[kind](tmp_path)
    assert [one.mean for one in last.get_top_k(last.commit_workload(matmul()), 5)] == [0.5, 1.0]


def test_bad_lines_are_skipped_with_a_reason_and_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = JSONDatabase(work_dir=str(tmp_path))
    record(database, matmul(), [1.0])
    workloads, records = tmp_path / "database_workload.json", tmp_path / "database_tuning_record.json"
    good = records.read_text()
    workloads.write_text('["1", "AAAA"]\n' + workloads.read_text() + '["torn", "')
    second = good.replace("[0, ", "[1, ", 1)
    bad = [good, second.replace('"Split"', '"Cut"'), good.replace("[0, ", "[7, ", 1), "[NaN]\n"]
    records.write_text("".join(bad) + second + second.rstrip("\n")[:-9])
    before = records.read_text()
    with caplog.at_level(logging.WARNING):
        again = JSONDatabase(work_dir=str(tmp_path))
    assert len(again) == 1
    text = caplog.text
    for reason in ("doesn't begin with its length", "its workload, 0, was skipped", "'Cut'", "7 lines were skipped"):
        assert reason in text
    assert records.read_text() == before
    record(again, scaled_matmul := matmul(64), [2.0])
    last = JSONDatabase(work_dir=str(tmp_path))
    assert len(last) == 2 and last.has_workload(scaled_matmul) and last.has_workload(matmul())


def test_databases_of_tvm_are_read(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "tvm019_workload.json", tmp_path / "database_workload.json")
    shutil.copy(GOLDEN / "tvm019_tuning_record.json", tmp_path / "database_tuning_record.json")
    database = JSONDatabase(work_dir=str(tmp_path))
    records = database.get_all_tuning_records()
    assert len(records) == 5
    for one in records:
        candidate = one.as_measure_candidate()
        assert candidate.sch.trace is not None and candidate.sch.trace.as_json() == one.trace.as_json()
    assert records[0].target is not None and records[0].target.mcpu == "znver4"
    assert [info.as_json() for info in records[0].args_info or ()] == [["TENSOR", "float32", [128, 128]]] * 3


def test_the_current_database_is_that_of_the_innermost_with(database: Database) -> None:
    assert Database.current() is None
    with MemoryDatabase() as outer:
        with database:
            assert Database.current() is database
        assert Database.current() is outer
    assert Database.current() is None


def test_unions_answer_with_the_best_or_the_first() -> None:
    mod, slow, fast = matmul(), MemoryDatabase(), MemoryDatabase()
    record(slow, mod, [2.0])
    record(fast, mod, [1.0])
    empty = MemoryDatabase()
    best, first = (kind(empty, slow, fast).query_tuning_record(mod, "llvm") for kind in (UnionDatabase, OrderedUnionDatabase))
    assert best is not None and best.run_secs == [1.0] and first is not None and first.run_secs == [2.0]
    assert UnionDatabase(empty).query_schedule(mod, "llvm") is None


def test_unions_find_the_records_of_a_program_in_each_of_their_databases(tmp_path: Path) -> None:
    """Each database knows a program by a workload of its own, and a union may hold unions."""
    mod, first, second, third = matmul(), MemoryDatabase(), KINDS["json"](tmp_path), KINDS["sqlite"](tmp_path)
    for database, seconds in ((first, 3.0), (second, 1.0), (third, 2.0)):
        record(database, mod, [seconds])
    empty, workload = MemoryDatabase(), first.commit_workload(mod)
    nested = UnionDatabase(empty, UnionDatabase(second, OrderedUnionDatabase(third)), first)
    assert [one.run_secs for one in nested.get_top_k(workload, 5)] == [[1.0], [2.0], [3.0]]
    assert [one.run_secs for one in nested.get_top_k(workload, 2)] == [[1.0], [2.0]]
    assert nested.get_top_k(workload, 0) == [] and not empty.has_workload(mod)


def test_two_processes_that_meet_a_program_at_once_share_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mod, path = matmul(), str(tmp_path / "database.sqlite")
    mine, others = SQLiteDatabase(path), SQLiteDatabase(path)
    look = mine._number
    times: list[int | None] = []

    def between(wanted: tvm.IRModule) -> int | None:
        found = look(wanted)
        if not times:  # the other one adds it just after it wasn't found
            record(others, wanted, [1.0])
        times.append(found)
        return found

    monkeypatch.setattr(mine, "_number", between)
    record(mine, mod, [2.0])
    assert [one.run_secs for one in mine.get_top_k(mine.commit_workload(mod), 5)] == [[1.0], [2.0]]
    assert [one.run_secs for one in others.get_top_k(others.commit_workload(mod), 5)] == [[1.0], [2.0]]


def test_a_workload_that_cannot_be_read_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = SQLiteDatabase(str(tmp_path / "database.sqlite"))
    for seconds in (1.0, 2.0, 3.0):
        record(database, matmul(), [seconds])
    database._file.execute("update workload set data = 'AAAA'")
    database._file.commit()
    with caplog.at_level(logging.WARNING):
        again = SQLiteDatabase(str(tmp_path / "database.sqlite"))
        assert again.get_all_tuning_records() == [] and not again.has_workload(matmul())
    assert caplog.text.count("skipped workload") == 1


def test_a_function_may_be_the_database() -> None:
    def known(sch: tir.Schedule) -> bool:
        if sch.mod["main"].params[0].name == "nothing":
            return False
        tiles(sch)
        return True

    sch = ScheduleFnDatabase(known).query_schedule(matmul(), "llvm")
    assert sch is not None and "vectorize" in str(sch.trace)
    assert isinstance(Database.create(known), ScheduleFnDatabase)
    assert ScheduleFnDatabase(lambda sch: False).query_schedule(matmul(), "llvm") is None


def test_anchor_blocks_tell_workloads_apart_by_what_they_reduce() -> None:
    database = MemoryDatabase(module_equality="anchor-block")
    first = database.commit_workload(matmul())
    assert database.commit_workload(matmul()) is first
    assert database.commit_workload(matmul(64)) is not first
    assert database.commit_workload(scaled()) is not first


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: JSONDatabase(), "needs a work_dir"),
        (lambda folder: JSONDatabase(work_dir=str(folder / "none"), allow_missing=False), "allow_missing=True"),
        (lambda folder: SQLiteDatabase(), "needs a path"),
        (lambda folder: Database.create("postgres"), "needs a url"),
        (lambda folder: MemoryDatabase("same"), "module_equality is one of"),
        (lambda folder: Database.create("mysql"), "no database is called 'mysql'"),
        (lambda folder: record(MemoryDatabase(), matmul(), [1.0]) and UnionDatabase().commit_workload(matmul()), "only answers questions"),
    ],
)
def test_what_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    with pytest.raises(TuningError, match=message):
        make(tmp_path)


def test_records_of_another_database_are_refused(tmp_path: Path) -> None:
    other = record(MemoryDatabase(), matmul(), [1.0])
    for database in (JSONDatabase(work_dir=str(tmp_path)), SQLiteDatabase(work_dir=str(tmp_path))):
        with pytest.raises(TuningError, match="commit_workload"):
            database.commit_tuning_record(other)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "database.sqlite").write_text("no database at all, but text that is long enough to be looked at by it")
    with pytest.raises(RecordError, match="is no database"):
        SQLiteDatabase(work_dir=str(tmp_path))


def test_many_writers_share_a_postgres_database(postgres_url: str) -> None:
    """Each with a connection of its own: a workload that all add at once is there once, and no record is lost."""
    emptied(postgres_url).close()

    def write(seconds: int) -> None:
        database = PostgresDatabase(postgres_url)
        record(database, matmul(), [float(seconds)])
        database.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 17)))
    database = PostgresDatabase(postgres_url)
    assert len(database) == 16
    assert len({id(made.workload) for made in database.get_all_tuning_records()}) == 1
    (best,) = database.get_top_k(database.commit_workload(matmul()), 1)
    assert best.run_secs == [1.0]


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(RecordError, match=r"127\.0\.0\.1/tuning can't be used") as caught:
        PostgresDatabase("postgresql://me:secret@127.0.0.1:9/tuning")
    assert "secret" not in str(caught.value)
