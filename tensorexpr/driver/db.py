"""`python -m tensorexpr db`: what logs and databases of tuning hold."""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from ..auto_scheduler.explain_miss import explain_miss
from ..auto_scheduler.loaded import LineReader
from ..auto_scheduler.records import distill_record_file, load_records
from ..auto_scheduler.search_task import SearchTask
from ..errors import RecordError, WorkloadError
from ..meta_schedule.database.postgres_database import PostgresDatabase
from ..meta_schedule.database.records import TuningRecord
from ..meta_schedule.database.sql_database import SQLDatabase
from ..meta_schedule.database.sqlite_database import SQLiteDatabase
from ..tune.records import choose_best, read_log
from ..tune.records.log import append_lines

_SQLITE = b"SQLite format 3\0"
_SQLITE_NAMES = (".sqlite", ".sqlite3", ".db")
_POSTGRES = ("postgresql://", "postgres://")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the subcommands."""
    commands = parser.add_subparsers(dest="what", required=True)
    place = "a log of auto_scheduler, an SQLite file of meta_schedule, or postgresql://..."
    for name, about in (("ls", "list the workloads"), ("best", "show the best record of each workload")):
        commands.add_parser(name, help=about).add_argument("place", help=place)
    merge = commands.add_parser("merge", help="add the records of several places to one, each once")
    merge.add_argument("place", nargs="+", help=place)
    prune = commands.add_parser("prune", help="write the best record of each workload")
    prune.add_argument("place", help=place)
    for command in (merge, prune):
        command.add_argument("-o", "--output", required=True, help="where to; of the same kind")
    miss = commands.add_parser("explain-miss", help="why a log has nothing for a workload")
    miss.add_argument("place", help="a log of auto_scheduler")
    miss.add_argument("--workload", required=True, help='the key, such as ["matmul", 64]')
    miss.add_argument("--target", default="llvm", help="what it is looked for for; this machine")
    miss.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE", help="import this first: it registers it")


def run(options: argparse.Namespace) -> int:
    """Do it; returns the exit code.

    Raises:
        RecordError: for places that can't be read, or are of different kinds.
        WorkloadError: for a workload that nobody registered.
    """
    given = [options.place] if isinstance(options.place, str) else options.place
    wanted = [*given, *([options.output] if options.what in ("merge", "prune") else [])]
    kinds = {is_database(place) for place in wanted}
    if len(kinds) > 1:
        # not their names: those of PostgreSQL may hold passwords
        raise RecordError("logs of auto_scheduler and databases of meta_schedule hold different things; all places must be of one kind")
    missing = [place for place in given if not place.startswith(_POSTGRES) and not Path(place).exists()]
    if missing:
        raise RecordError(f"there is no {missing[0]}")
    how = _OF_DATABASES if kinds == {True} else _OF_LOGS
    if options.what not in how:
        raise RecordError(f"{options.what} reads logs of auto_scheduler, and no databases")
    print(how[options.what](options, given))
    return 0


def is_database(place: str) -> bool:
    """Whether a place is a database, and no log."""
    if place.startswith(_POSTGRES) or place.endswith(_SQLITE_NAMES):
        return True
    try:
        with open(place, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _opened(place: str) -> SQLDatabase:
    return PostgresDatabase(place) if place.startswith(_POSTGRES) else SQLiteDatabase(place)


def _list_log(options: argparse.Namespace, given: Sequence[str]) -> str:
    tasks: dict[tuple[str, str, str], list[float]] = {}
    for record in load_records(given[0], repeats=True):
        tasks.setdefault((record.workload_key, record.dag_hash, record.target), []).append(record.median)
    return _table([(f"{key} on {target}", costs) for (key, _, target), costs in tasks.items()])


def _list_database(options: argparse.Namespace, given: Sequence[str]) -> str:
    tasks: dict[int, list[TuningRecord]] = {}
    for record in _opened(given[0]).get_all_tuning_records():
        tasks.setdefault(id(record.workload), []).append(record)
    named = [(_name(records[0]), records) for records in tasks.values()]
    return _table([(name, [record.mean if record.is_valid else float("inf") for record in records]) for name, records in named])


def _table(rows: Sequence[tuple[str, Sequence[float]]]) -> str:
    lines = [f"{'records':>8} {'failed':>7} {'best ms':>10}  workload"]
    for name, costs in rows:
        good = [cost for cost in costs if cost < float("inf")]
        best = f"{min(good) * 1e3:10.4g}" if good else f"{'-':>10}"
        lines.append(f"{len(costs):8d} {len(costs) - len(good):7d} {best}  {name}")
    return "\n".join(lines)


def _merge_logs(options: argparse.Namespace, given: Sequence[str]) -> str:
    output, reader = Path(options.output), LineReader()

    def sound(line: bytes) -> str:
        reader.parse(line)
        return line.decode()

    known = set(read_log(output, sound)) if output.exists() else set()
    there = len(known)
    for place in given:
        lines = dict.fromkeys(line for line in read_log(place, sound) if line not in known)
        append_lines(output, lines)
        known.update(lines)
    return f"{len(known) - there} records added to {output}, which had {there}"


def _merge_databases(options: argparse.Namespace, given: Sequence[str]) -> str:
    output = _opened(options.output)
    known = {_identity(record) for record in output.get_all_tuning_records()}
    there = len(known)
    for place in given:
        for record in _opened(place).get_all_tuning_records():
            if (identity := _identity(record)) not in known:
                workload = output.commit_workload(record.workload.mod)
                output.commit_tuning_record(TuningRecord(record.trace, workload, record.run_secs, record.target, record.args_info))
                known.add(identity)
    return f"{len(known) - there} records added to {output.place}, which had {there}"


def _identity(record: TuningRecord) -> str:
    return json.dumps([record.workload.as_json()[0], record.as_json()], sort_keys=True)


def _name(record: TuningRecord) -> str:
    """Its functions, and its hash, since most are called main."""
    return f"{', '.join(str(var.name_hint) for var in record.workload.mod.get_global_vars())} {record.workload.shash}"


def _prune_log(options: argparse.Namespace, given: Sequence[str]) -> str:
    return f"{distill_record_file(given[0], options.output)} records written to {options.output}"


def _prune_database(options: argparse.Namespace, given: Sequence[str]) -> str:
    output = _opened(options.output)
    before = len(output)
    _opened(given[0]).dump_pruned(output)
    return f"{len(output) - before} records written to {output.place}"


def _best_of_log(options: argparse.Namespace, given: Sequence[str]) -> str:
    records = load_records(given[0], repeats=True)
    keys = dict.fromkeys((record.workload_key, record.dag_hash, record.target) for record in records)
    lines = []
    for key in keys:
        best, why = choose_best([record for record in records if (record.workload_key, record.dag_hash, record.target) == key])
        lines.append(f"{key[0]} on {key[2]}: {f'{best.median * 1e3:.4g} ms: {json.dumps(best.trace.to_json())}' if best else why}")
    return "\n".join(lines)


def _best_of_database(options: argparse.Namespace, given: Sequence[str]) -> str:
    best: dict[int, TuningRecord] = {}
    for record in _opened(given[0]).get_all_tuning_records():
        known = best.setdefault(id(record.workload), record)
        best[id(record.workload)] = min(known, record, key=lambda one: one.mean)
    lines = (f"{one.mean * 1e3:.4g} ms:\n{one.trace}" if one.is_valid else "no record that ran" for one in best.values())
    return "\n".join(f"{_name(one)}: {line}" for one, line in zip(best.values(), lines, strict=True))


def _explain_miss(options: argparse.Namespace, given: Sequence[str]) -> str:
    for name in options.modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise WorkloadError(f"--import {name}: {error}") from error
    return explain_miss(given[0], SearchTask(workload_key=options.workload, target=options.target))


_Command = Callable[[argparse.Namespace, Sequence[str]], str]
_OF_LOGS: dict[str, _Command] = {
    "ls": _list_log,
    "merge": _merge_logs,
    "prune": _prune_log,
    "best": _best_of_log,
    "explain-miss": _explain_miss,
}
_OF_DATABASES: dict[str, _Command] = {
    "ls": _list_database,
    "merge": _merge_databases,
    "prune": _prune_database,
    "best": _best_of_database,
}
