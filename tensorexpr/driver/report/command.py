"""The subcommand `report`: a tuning log as one HTML page, also while it grows."""

from __future__ import annotations

import argparse
import importlib
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from ...auto_scheduler.records import load_records
from ...errors import RecordError, TuningError, WorkloadError
from ...fleet import Fleet
from .live import LivePage
from .page import page
from .run import runs_of

# A page that waits for a scheduler shows nothing.
_PATIENCE_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommand's options."""
    parser.add_argument("log", type=Path, help="a tuning log")
    parser.add_argument("-o", "--output", type=Path, default=None, help="the page to write; by default the log's name with .html")
    parser.add_argument(
        "--import", dest="modules", action="append", default=[], metavar="MODULE", help="import this first: it registers the workloads"
    )
    parser.add_argument("--live", action="store_true", help="serve the page on this machine, and show what is new, until Ctrl-C")
    parser.add_argument("--port", type=int, default=0, help="of the live page; any that is free")
    parser.add_argument("--refresh", type=float, default=5.0, metavar="SECONDS", help="after which the live page is asked for again")
    parser.add_argument("--trials", type=int, help="of the whole search: the live page estimates its end")
    parser.add_argument("--scheduler", help="address of a fleet whose devices the live page shows, such as tcp://10.0.0.5:8786")
    parser.add_argument("--tls-ca-file", help="certificates to trust, as of Dask")
    parser.add_argument("--tls-cert", help="own certificate")
    parser.add_argument("--tls-key", help="its key")


def run(options: argparse.Namespace) -> int:
    """Write or serve the page; returns the exit code.

    Raises:
        RecordError: if the log can't be read or holds no records.
        TuningError: if the live page can't be served, or there is no such fleet.
        WorkloadError: if a module can't be imported.
    """
    for name in options.modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise WorkloadError(f"--import {name}: {error}") from error
    if options.live:
        return _serve(options)
    runs = runs_of(load_records(options.log, repeats=True))
    if not runs:
        raise RecordError(f"{options.log} holds no records, so there is nothing to report")
    output = options.output or options.log.with_suffix(".html")
    output.write_text(page(runs, f"tuning report: {options.log.name}"), encoding="utf-8")
    trials, records = sum(len(run.trials) for run in runs), sum(len(run.records) for run in runs)
    again = f", {records - trials} timed again at the end" if records > trials else ""
    print(f"{trials} trials of {len(runs)} task{'s' * (len(runs) > 1)}{again}: {output}")
    return 0


def _serve(options: argparse.Namespace) -> int:
    if options.refresh <= 0:
        raise TuningError(f"report: --refresh is {options.refresh:g}; it takes seconds above 0")
    with ExitStack() as stack:
        files = (options.tls_ca_file, options.tls_cert, options.tls_key)
        fleet = stack.enter_context(Fleet(options.scheduler, _PATIENCE_SECONDS, *files)) if options.scheduler else None
        page = stack.enter_context(LivePage(options.log, fleet, options.trials, options.port, options.refresh))
        print(f"{page.url} shows {options.log}; Ctrl-C ends it", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0
