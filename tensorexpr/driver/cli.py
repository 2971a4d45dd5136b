"""The subcommands of `tensorexpr`, which is also `python -m tensorexpr`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import TensorExprError
from .bench import command as bench
from .conformance import command as conformance
from .report import command as report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit code. Errors of the library and of files are one line, without a traceback."""
    parser = argparse.ArgumentParser(prog="tensorexpr", description="Compile, tune and measure tensor programs.")
    parser.add_argument("--version", action="version", version=f"tensorexpr {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    bench.add_arguments(commands.add_parser("bench", help="measure kernels against peers"))
    report.add_arguments(commands.add_parser("report", help="show a tuning log as a page"))
    conformance.add_arguments(commands.add_parser("onnx-conformance", help="run the tests of the ONNX standard"))
    options = parser.parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _COMMANDS[options.command](options)
    except (TensorExprError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


_COMMANDS = {"bench": bench.run, "onnx-conformance": conformance.run, "report": report.run}
