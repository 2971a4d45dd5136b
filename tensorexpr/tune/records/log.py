"""Logs of tuning records: files that several processes may append to, and that survive being cut off at any byte."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

from ...errors import RecordError
from ...schedule.trace import Trace
from ...target import Target, TargetLike
from .record import Record, parse_record
from .schema import MAX_LINE_BYTES

logger = logging.getLogger(__name__)
Parsed = TypeVar("Parsed")
AnyRecord = TypeVar("AnyRecord", bound=Record)
_SKIPPED_STARTS = (b"#", b" ")
_REPORTED = 3
_LISTED = 5


def append_record(path: str | Path, record: Record) -> None:
    """Append one record to a log, see `append_records`."""
    append_records(path, [record])


def append_records(path: str | Path, records: Iterable[Record]) -> None:
    """Append records to a log, which is made if it isn't there.

    They are handed to the system in one write under a lock, so several processes may append to one log, and what was
    appended stays when this process is killed. A torn line that somebody else left is ended first.

    Raises:
        RecordError: if a record breaks the schema; then nothing is written.
        OSError: if the file can't be written.
    """
    append_lines(path, [record.dumps() for record in records])


def append_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Append lines to a log, see `append_records`.

    Raises:
        OSError: if the file can't be written; then nothing is.
    """
    data = "".join(f"{line}\n" for line in lines).encode()
    if not data:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Not every file system has locks; appending in one write still keeps lines whole on local ones.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        view, before = memoryview(b"\n" + data if _ends_torn(descriptor) else data), os.fstat(descriptor)
        try:
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError as error:
            # a disk that filled up took some of it: who tries again would have that twice
            if stat.S_ISREG(before.st_mode):
                os.ftruncate(descriptor, before.st_size)
            raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def _ends_torn(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"


def load_records(path: str | Path, strict: bool = False) -> Iterator[Record]:
    """The records of a log, in order; see `read_log`."""
    return read_log(path, parse_record, strict)


def read_log(path: str | Path, parse: Callable[[bytes], Parsed], strict: bool = False) -> Iterator[Parsed]:
    """What `parse` makes of the lines of a log, in order. Lines that start with "#" or a space are comments.

    Lines that are no records of this version are skipped with a warning, as is a torn last line.

    Args:
        path: the log.
        parse: makes a record of a line, or raises RecordError.
        strict: raise for such lines, but not for a torn last one.

    Raises:
        RecordError: if the file can't be read; if `strict`, for the first bad line, with its number.
    """
    skipped = 0
    try:
        with open(path, "rb") as file:
            for number, line, is_torn in _lines(file):
                if not line.strip() or line.startswith(_SKIPPED_STARTS):
                    continue
                try:
                    record = parse(line)
                except RecordError as error:
                    message = f"{path}, line {number}: {'torn at the end of the file: ' if is_torn else ''}{error}"
                    if strict and not is_torn:
                        raise RecordError(message) from None
                    skipped += 1
                    if skipped <= _REPORTED:
                        logger.warning("skipped %s", message)
                    continue
                yield record
    except OSError as error:
        raise RecordError(f"the log {path} can't be read: {error.strerror or error}") from error
    if skipped > _REPORTED:
        logger.warning("%s: skipped %d lines in all", path, skipped)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """Lines with their numbers, without newlines, and whether they lack one; of a line over the limit only its start."""
    number = 0
    # room for \r\n behind a line of just the limit; what is longer stays too long for `parse_json`
    while line := file.readline(MAX_LINE_BYTES + 2):
        number += 1
        complete = line.endswith(b"\n")
        # the rest of a line that is too long is read in pieces and dropped: it may be gigabytes
        while not complete and (rest := file.readline(MAX_LINE_BYTES)):
            complete = rest.endswith(b"\n")
        yield number, line.rstrip(b"\r\n"), not complete


def best_record(path: str | Path, workload_key: str | None = None, dag_hash: str | None = None, target: TargetLike | None = None) -> Record:
    """The fastest record of a log that ran, was verified, and fits: the one with the least median.

    Args:
        path: the log.
        workload_key: of which workload; any if None.
        dag_hash: of which computation; any if None.
        target: for which target, to the last option; any if None.

    Raises:
        RecordError: if there is none; it says what the log holds instead.
    """
    best, why_not = choose_best(load_records(path), workload_key, dag_hash, target)
    if best is None:
        raise RecordError(f"{path}: {why_not}")
    return best


def choose_best(
    records: Iterable[AnyRecord], workload_key: str | None = None, dag_hash: str | None = None, target: TargetLike | None = None
) -> tuple[AnyRecord | None, str]:
    """The fastest record that fits, see `best_record`; or None, and in words what there is instead.

    The best few of a run are timed again at its end, in turn; that counts, not what the same program took before. What was timed
    alone before that lost against them, whatever it took: the machine may have been faster then.
    """
    wanted = None if target is None else str(Target(target).resolved())
    others: Counter[str] = Counter()
    again: dict[tuple[tuple[str, str, str], Trace], AnyRecord] = {}
    alone: dict[tuple[str, str, str], list[AnyRecord]] = {}
    for record in records:
        reason = misfit(record, workload_key, dag_hash, wanted)
        if reason:
            others[reason] += 1
            continue
        task = (record.workload_key, record.dag_hash, record.target)
        if record.is_timed_again:
            # the last time counts: a program may have been in several contests. Programs of other tasks may have the same trace:
            # a split by 8 is one of a product of any size
            again[task, record.trace] = record
            alone.pop(task, None)
        else:
            alone.setdefault(task, []).append(record)
    best = min(chain(again.values(), *alone.values()), key=lambda record: record.median, default=None)
    return best, "" if best is not None else f"no record {_wish(workload_key, dag_hash, wanted)}; {_holdings(others)}"


def misfit(record: Record, workload_key: str | None, dag_hash: str | None, target: str | None) -> str:
    """Why a record doesn't serve, for the message; empty if it does. `target` is resolved text."""
    if workload_key is not None and record.workload_key != workload_key:
        return f"of workload {record.workload_key[:200]}"
    if dag_hash is not None and record.dag_hash != dag_hash:
        return f"of another computation with this key (dag {record.dag_hash[:12]})"
    if target is not None and not record.fits_target(target):
        return f"for target {record.target[:200]!r}"
    if not record.is_success:
        return f"that failed with {record.error_no.error_type}"
    return "" if record.is_trusted else "that were not verified"


def _wish(workload_key: str | None, dag_hash: str | None, target: str | None) -> str:
    parts = ["that ran and was verified"]
    parts += [f"of workload {workload_key[:200]}"] if workload_key is not None else []
    parts += [f"(dag {dag_hash[:12]})"] if dag_hash is not None else []
    parts += [f"for target {target!r}"] if target is not None else []
    return " ".join(parts)


def _holdings(others: Counter[str]) -> str:
    if not others:
        return "it holds no records at all"
    listed = [f"{count} {reason}" for reason, count in others.most_common(_LISTED)]
    more = f", and {len(others) - _LISTED} other kinds" if len(others) > _LISTED else ""
    return f"it holds {sum(others.values())} others: {'; '.join(listed)}{more}"
