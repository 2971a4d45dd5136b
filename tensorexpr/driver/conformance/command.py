"""The subcommand `onnx-conformance`: choose tests, run them, and write tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ...errors import TensorExprError
from .cases import cases
from .table import by_group, by_operator, summary
from .workers import Outcome, run_cases


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommand's options."""
    parser.add_argument("--include", default="", metavar="REGEX", help="only tests whose name this regular expression finds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--list", type=Path, default=None, metavar="FILE", help="write the tests that don't pass, with the reasons")
    parser.add_argument("--table", type=Path, default=None, metavar="FILE", help="write the tables between the marks of this document")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="stop a test after this time")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="show the tests that took longest")


def run(options: argparse.Namespace) -> int:
    """Run the tests; returns the exit code: 0, as tests that don't pass are a result."""
    chosen = cases(options.include)
    if not chosen:
        raise TensorExprError(f"no test has {options.include!r} in its name")
    for path in (options.list, options.table):  # which is noticed before anything is run
        if path is not None and not path.parent.is_dir():
            raise TensorExprError(f"{path} can't be written: there is no folder {path.parent}")
    done: list[Outcome] = []

    def watch(one: Outcome) -> None:
        done.append(one)
        if len(done) % 100 == 0:  # a run takes minutes: what is known is there if it is stopped
            if options.list is not None:
                _write_list(options.list, done)
            print(f"{len(done)} of {len(chosen)}: {sum(one.passed for one in done)} pass", file=sys.stderr)

    outcomes = run_cases(chosen, options.jobs, options.limit, watch)
    if options.list is not None:
        _write_list(options.list, outcomes)
    if options.table is not None:
        write_tables(options.table, outcomes)
    print("\n".join([*by_group(outcomes), "", *by_operator(outcomes), ""]))
    for one in sorted(outcomes, key=lambda one: -one.seconds)[: options.slowest]:
        print(f"{one.seconds:8.2f} s  {one.case.name}")
    print("\n".join(summary(outcomes)))
    return 0


def _write_list(path: Path, outcomes: Sequence[Outcome]) -> None:
    path.write_text("".join(f"{line}\n" for line in failures(outcomes)))


def failures(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each test that doesn't pass: its name, and why."""
    return [f"{one.case.name}  {' '.join(one.error.split())[:300]}" for one in outcomes if not one.passed]


_BEGIN, _END = "<!-- conformance: written by `python -m tensorexpr onnx-conformance --table` -->", "<!-- end of conformance -->"


def write_tables(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the tables into a document, between its marks.

    Raises:
        TensorExprError: if it has no marks.
    """
    text = path.read_text() if path.is_file() else f"{_BEGIN}\n{_END}\n"
    if _BEGIN not in text or _END not in text:
        raise TensorExprError(f"{path} has no place for the tables: lines {_BEGIN!r} and {_END!r}")
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    tables = "\n".join([*by_group(outcomes), "", *by_operator(outcomes), "", *(f"{line}." for line in summary(outcomes))])
    path.write_text(f"{before}{_BEGIN}\n\n{tables}\n\n{_END}{after}")
