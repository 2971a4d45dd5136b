"""AutoTVM's logs: a line of JSON for each configuration, as TVM up to 0.19 writes and reads them (version 0.2)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from ..errors import RecordError, TensorExprError
from ..target import Target
from ..tune.measure import MeasureErrorNo
from ..tune.records.log import append_lines, read_log
from ..tune.records.v02 import VERSION, V02Line, parse_v02
from .measure.measure import Measured, MeasureInput, MeasureResult
from .task.args import serialize_args
from .task.dispatcher import beats
from .task.space import ConfigEntity
from .task.task import Task

AUTOTVM_LOG_VERSION = VERSION
logger = logging.getLogger(__name__)


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A text that equal inputs share.

    Args:
        include_config: tell configurations of a task apart.
    """
    config = str(inp.config) if include_config else ""
    return f"{inp.target}{inp.task.name}{inp.task.args}{inp.task.kwargs}{config}"


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """An input and its result as a line of a log, without the newline.

    Args:
        protocol: "json".

    Raises:
        RecordError: for another protocol, or what a log can't hold.
    """
    _check_protocol(protocol)
    from .. import __version__

    failed = int(result.error_no) != 0
    checked = {"verified": getattr(result, "verified", False), "again": getattr(result, "timed_again", False)}
    line = V02Line(
        target=str(inp.target),
        task=inp.task.name,
        args=serialize_args(inp.task.args),
        kwargs=dict(inp.task.kwargs),
        config=inp.config.to_json_dict(),
        costs=() if failed else tuple(map(_number, result.costs)),
        error_no=MeasureErrorNo(int(result.error_no)),
        all_cost=_number(result.all_cost),
        timestamp=_number(result.timestamp),
        writer=f"tensorexpr {__version__}",
        checked=checked,
    )
    return line.dumps()


def _number(value: Any) -> float:
    number: float = getattr(value, "value", value)
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else float(number)


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult]:
    """The input and the result of a line.

    The task has no space: whether its configuration is one of the template's is seen when it is used.

    Raises:
        RecordError: for another protocol, and for what is no line of a version 0.2 log.
    """
    _check_protocol(protocol)
    return _pair(parse_v02(row.strip()))


def _pair(line: V02Line) -> tuple[MeasureInput, MeasureResult]:
    try:
        target = Target(line.target)
    except TensorExprError as error:
        raise RecordError(f"the target {line.target[:80]!r} of a record isn't understood: {error}") from None
    task = Task(line.task, line.args)
    task.kwargs = dict(line.kwargs)
    task.target = target
    task.target_host = target.host
    costs: Any = line.costs
    result = Measured(costs, line.error_no, line.all_cost, line.timestamp)
    result.verified, result.timed_again = line.checked.get("verified", False), line.checked.get("again", False)
    return MeasureInput(target, task, ConfigEntity.from_json_dict(dict(line.config))), result


def _check_protocol(protocol: str) -> None:
    if protocol == "pickle":
        raise RecordError('the protocol "pickle" is refused: reading such a record runs whatever code is in it; write records as "json"')
    if protocol != "json":
        raise RecordError(f'Invalid log protocol: {protocol!r}; records are written as "json"')


def load_from_file(filepath: str | bytes | os.PathLike[Any]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a log, in order. Lines that are none are skipped with a warning, as is a torn last one.

    Raises:
        RecordError: if the file can't be read.
    """
    return read_log(Path(os.fsdecode(filepath)), _parsed)


def _parsed(line: bytes) -> tuple[MeasureInput, MeasureResult]:
    return _pair(parse_v02(line))


def load_from_buffer(file: IO[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of an open log, in order; lines that are none are skipped with a warning."""
    for number, row in enumerate(file, 1):
        if not row.strip() or row.startswith(("#", " ")):
            continue
        try:
            found = _parsed(row.rstrip("\r\n").encode())
        except (RecordError, UnicodeError) as error:
            logger.warning("skipped line %d: %s", number, error)
            continue
        yield found


def split_workload(in_file: str | Path, clean: bool = True) -> None:
    """Write the records of each task of a log into a file of its own beside it, `<in_file>.<number>.wkl`.

    Args:
        in_file: the log.
        clean: leave out failures and repeats of a configuration.

    Raises:
        RecordError: if the file can't be read.
    """
    tasks: dict[str, list[str]] = {}
    seen: set[str] = set()
    for inp, result in load_from_file(in_file):
        name = measure_str_key(inp, include_config=False)
        key = measure_str_key(inp)
        if clean and (result.error_no or (key in seen and not getattr(result, "timed_again", False))):
            continue
        seen.add(key)
        tasks.setdefault(name, []).append(encode(inp, result))
    for number, lines in enumerate(tasks.values()):
        place = f"{in_file}.{number:03d}.wkl"
        # `append_lines` would add to the file of an earlier run
        Path(place).unlink(missing_ok=True)
        append_lines(place, lines)
        logger.info("%s: %d records", place, len(lines))


def pick_best(in_file: str | Path | IO[str], out_file: str | Path | IO[str]) -> None:
    """Write the fastest record of each task of a log into another one.

    Args:
        in_file: the log, or an open one.
        out_file: the other, or an open one. A file that is there is added to: its records compete too.

    Raises:
        RecordError: if the log can't be read.
    """
    best: dict[str, tuple[MeasureInput, MeasureResult]] = {}
    known = out_file if isinstance(out_file, (str, Path)) and Path(out_file).exists() else None
    for source in (in_file,) if known is None else (known, in_file):
        for inp, result in _records(source):
            key = measure_str_key(inp, include_config=False)
            if not result.error_no and (key not in best or beats(result, best[key][1])):
                best[key] = (inp, result)
    lines = [encode(inp, result) for inp, result in best.values()]
    if not isinstance(out_file, (str, Path)):
        out_file.write("".join(f"{line}\n" for line in lines))
        return
    # written beside it and put in place in one step: the log that is there competes, and must not be lost in a crash
    fresh = Path(f"{out_file}.new")
    fresh.unlink(missing_ok=True)
    append_lines(fresh, lines)
    if lines:
        fresh.replace(out_file)
    logger.info("the best of %d tasks are in %s", len(lines), out_file)


def _records(source: str | Path | IO[str]) -> Iterable[tuple[MeasureInput, MeasureResult]]:
    return load_from_file(source) if isinstance(source, (str, Path)) else load_from_buffer(source)
