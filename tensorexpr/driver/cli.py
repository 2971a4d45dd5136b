"""The subcommands of `tensorexpr`, which is also `python -m tensorexpr`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import TensorExprError
from . import db, trackers, worker
from .bench import command as bench
from .conformance import command as conformance
from .report import command as report
from .tvmc import command as tvmc
from .tvmc.model import TVMCException, TVMCImportError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit code. Errors of the library and of files are one line, without a traceback.

    The code is 2 for an error, and as of tvmc 4 for an option or file that doesn't fit and 5 for a package of an importer that is missing.
    """
    parser = argparse.ArgumentParser(prog="tensorexpr", description="Compile, tune and measure tensor programs.")
    parser.add_argument("--version", action="version", version=f"tensorexpr {__version__}")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="show the traceback of an error, too")
    commands = parser.add_subparsers(dest="command", required=True)
    tvmc.add_subcommands(commands)
    bench.add_arguments(commands.add_parser("bench", help="measure kernels against peers"))
    report.add_arguments(commands.add_parser("report", help="show a tuning log as a page"))
    db.add_arguments(commands.add_parser("db", help="list, merge and prune logs and databases of tuning"))
    worker.add_arguments(commands.add_parser("worker", help="compile and measure programs for a fleet"))
    trackers.add_commands(commands)
    conformance.add_arguments(commands.add_parser("onnx-conformance", help="run the tests of the ONNX standard"))
    options = parser.parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _COMMANDS[options.command](options)
    except (TensorExprError, OSError) as error:
        if options.verbose:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 5 if isinstance(error, TVMCImportError) else 4 if isinstance(error, TVMCException) else 2


_COMMANDS = {
    "bench": bench.run,
    "db": db.run,
    "onnx-conformance": conformance.run,
    "report": report.run,
    "worker": worker.run,
    **trackers.COMMANDS,
    **dict.fromkeys(tvmc.COMMANDS, tvmc.run),
}
