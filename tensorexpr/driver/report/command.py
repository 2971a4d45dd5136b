"""The subcommand `report`: a tuning log as one HTML page."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from ...auto_scheduler.records import load_records
from ...errors import RecordError, WorkloadError
from .page import page
from .run import runs_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommand's options."""
    parser.add_argument("log", type=Path, help="a tuning log")
    parser.add_argument("-o", "--output", type=Path, default=None, help="the page to write; by default the log's name with .html")
    parser.add_argument(
        "--import", dest="modules", action="append", default=[], metavar="MODULE", help="import this first: it registers the workloads"
    )


def run(options: argparse.Namespace) -> int:
    """Write the page; returns the exit code.

    Raises:
        RecordError: if the log can't be read or holds no records.
        WorkloadError: if a module can't be imported.
    """
    for name in options.modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise WorkloadError(f"--import {name}: {error}") from error
    runs = runs_of(load_records(options.log, repeats=True))
    if not runs:
        raise RecordError(f"{options.log} holds no records, so there is nothing to report")
    output = options.output or options.log.with_suffix(".html")
    output.write_text(page(runs, f"tuning report: {options.log.name}"), encoding="utf-8")
    trials, records = sum(len(run.trials) for run in runs), sum(len(run.records) for run in runs)
    again = f", {records - trials} timed again at the end" if records > trials else ""
    print(f"{trials} trials of {len(runs)} task{'s' * (len(runs) > 1)}{again}: {output}")
    return 0
