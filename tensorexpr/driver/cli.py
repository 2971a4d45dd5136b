"""The subcommands of `tensorexpr`, which is also `python -m tensorexpr`."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__
from ..errors import ConfigError, ModelError, TargetError, TensorExprError
from .tvmc import command as tvmc

_NONE, _FITS, _IMPORTS, _OTHER, _INTERRUPTED, _UNREAD = 1, 4, 5, 2, 130, 141


class _Parser(argparse.ArgumentParser):
    """Says what is wrong as all other errors are said: the usage of `tune` has more lines than a screen."""

    def error(self, message: str) -> NoReturn:
        """End the process with 2."""
        self.exit(_OTHER, f"error: {message}\n{self.prog} --help lists the options\n")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """End the process for words that no option takes."""
        near = difflib.get_close_matches(words[0].partition("=")[0], self._option_string_actions, 1)
        self.error(f"unrecognized arguments: {' '.join(words)}{f'; is {near[0]} meant?' if near else ''}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit code. Errors of the library and of files are one line, without a traceback.

    The code is 2 for an error, and as of tvmc 1 without a subcommand, 4 for an option or file that doesn't fit and 5 for a package of an
    importer that is missing; 130 where Ctrl-C ended it.
    """
    given, config = _without_config(sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(prog="tensorexpr", description="Compile, tune and measure tensor programs.")
    parser.add_argument("--version", action="version", version=f"tensorexpr {__version__}")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="show the traceback of an error, too")
    parser.add_argument("--config", metavar="FILE", help="options of compile, tune, run and their like, as JSON")
    commands = parser.add_subparsers(dest="command")
    verbose = any(re.fullmatch("-v+|--verbose", one) for one in given)
    try:
        _add_commands(parser, commands, given, config)
        options, strange = parser.parse_known_args(given)
        if strange:
            commands.choices.get(options.command, parser).refuse(strange)
        options.arguments = given
        if options.command is None:
            parser.print_help(sys.stderr)
            return _NONE
        code: int = options.func(options)
        sys.stdout.flush()  # what nobody reads is known by now
    except BrokenPipeError:
        # `| head` has read enough. What is left in the buffer goes nowhere, also when Python flushes it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _UNREAD
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (TensorExprError, OSError) as error:
        if verbose:
            raise
        print(f"error: {error}", file=sys.stderr)
        return _code(error)
    return code


def _without_config(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The arguments without `--config FILE`, which may stand before the subcommand and behind it; and the file."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    known, rest = early.parse_known_args(list(arguments))
    return rest, known.config


def _add_commands(parser: argparse.ArgumentParser, commands: Any, given: Sequence[str], config: str | None) -> None:
    """All subcommands by their names, and the chosen one with its options."""
    chosen = next((one for one in given if not one.startswith("-")), None)
    for name, about in _ABOUT.items():
        if name == chosen:
            _add(commands, name, config)
        else:
            commands.add_parser(name, help=about)
    for make_subparser in tvmc.REGISTERED_PARSER:
        make_subparser(commands, parser, [])


def _code(error: Exception) -> int:
    from .tvmc.model import TVMCException, TVMCImportError

    return (
        _IMPORTS if isinstance(error, TVMCImportError) else _FITS if isinstance(error, (TVMCException, ModelError, TargetError)) else _OTHER
    )


_ABOUT = {
    **tvmc.ABOUT,
    "bench": "measure kernels against peers",
    "report": "show a tuning log as a page",
    "db": "list, merge and prune logs and databases of tuning",
    "worker": "compile and measure programs for a fleet",
    "rpc_tracker": "be the tracker of a fleet: a Dask scheduler",
    "rpc_server": "serve sessions, or lend this machine's CPU to the clients of a tracker",
    "query_rpc_tracker": "the servers of a tracker, and how many devices are free",
    "onnx-conformance": "run the tests of the ONNX standard",
}
_MODULES = {
    "bench": ".bench.command", "report": ".report.command", "db": ".db", "worker": ".worker", "onnx-conformance": ".conformance.command",
    **dict.fromkeys(("rpc_tracker", "rpc_server", "query_rpc_tracker"), ".trackers"),
}  # fmt: skip


def _add(commands: Any, name: str, config: str | None) -> None:
    """A subcommand with its options. Only the chosen one's modules are loaded: those of a search take longer than most runs."""
    if name in tvmc.ABOUT:
        tvmc.add_subcommand(commands, name, config)
        return
    if config is not None:
        raise ConfigError(f"--config is of {', '.join(tvmc.ABOUT)}; {name} takes its options as words")
    module = importlib.import_module(_MODULES[name], __package__)
    parser = commands.add_parser(name, help=_ABOUT[name])
    module.add_arguments(parser)
    parser.set_defaults(func=module.run)
