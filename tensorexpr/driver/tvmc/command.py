"""The subcommands compile, tune, run, verify, profile and quantize; also `python -m tensorexpr.driver.tvmc`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any

ABOUT = {
    "compile": "compile a model to a package",
    "tune": "tune the kernels of a model",
    "run": "run a package",
    "verify": "compare a network with what it means",
    "quantize": "make a model of float32 one of int8, and say what that costs",
    "profile": "run a package, and show what each kernel takes",
}

_MODULES = {
    "compile": ".compiler", "tune": ".autotuner", "run": ".runner", "verify": ".verifier", "quantize": ".quantizer", "profile": ".runner",
}  # fmt: skip


_IMPORTS = "tir.add_lower_pass"
# Functions of programs that add a subcommand: f(subparsers, parser, values of a configuration).
REGISTERED_PARSER: list[Callable[..., Any]] = []


def register_parser(make_subparser: Callable[..., Any]) -> Callable[..., Any]:
    """Add a subcommand to the command, as a decorator.

    Args:
        make_subparser: f(subparsers, parser, values of --config), which calls `subparsers.add_parser` and sets the default `func`, a
            function of the options that returns the exit code.
    """
    REGISTERED_PARSER.append(make_subparser)
    return make_subparser


def add_subcommand(subparsers: Any, name: str, config: str | None = None) -> None:
    """Add one of them, whose modules are loaded then.

    Args:
        subparsers: to which it is added.
        name: of it.
        config: a file with values for its options, see `config_options`.

    Raises:
        TVMCException: for a file that doesn't fit, or has options that no subcommand has.
    """
    parser = _parser(subparsers, name)
    # Behind the subcommand, too; what isn't said there stays as it was said before it.
    parser.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="show the traceback of an error, too")
    if config is None:
        return
    values = _configured(config)
    own = _options(parser)
    if values.keys() - own:
        others = (_parser(argparse.ArgumentParser().add_subparsers(), other) for other in ABOUT if other != name)
        if unknown := sorted(values.keys() - own.union(*map(_options, others))):
            raise _misfit(f"--config {config}: no command has the option {unknown[0].replace('_', '-')}")
    parser.set_defaults(**{key: value for key, value in values.items() if key in own})


def _configured(config: str) -> dict[str, Any]:
    from .config_options import convert_config_json_to_cli, read_and_convert_json_into_dict

    converted = convert_config_json_to_cli(read_and_convert_json_into_dict(argparse.Namespace(config=config)))
    values = {key: value for one in converted for key, value in one.items()}
    if any(str(one).startswith(_IMPORTS) for one in values.get("pass_config") or ()):
        raise _misfit(f"--config {config}: {_IMPORTS} imports modules, which no file may ask for; state it by --pass-config")
    return values


def _misfit(message: str) -> Exception:
    from .model import TVMCException

    return TVMCException(message)


def _options(parser: argparse.ArgumentParser) -> set[str]:
    return {action.dest for action in parser._actions}


def _parser(subparsers: Any, name: str) -> argparse.ArgumentParser:
    module = importlib.import_module(_MODULES[name], __package__)
    add: Callable[[Any], argparse.ArgumentParser] = getattr(module, f"add_{'run' if name == 'profile' else name}_parser")
    parser = add(_Named(subparsers, name))
    if name == "profile":
        parser.set_defaults(profile=True)
    words = [str(action.dest) for action in parser._actions if not action.option_strings]
    parser.usage = " ".join(("%(prog)s", *words, "[options]"))  # all of them are listed below it
    return parser


class _Named:
    """Subparsers under which a parser gets its name and line of help here: profile is `run --profile` by another name."""

    def __init__(self, subparsers: Any, name: str) -> None:
        self._subparsers, self._name = subparsers, name

    def add_parser(self, name: str, help: str = "") -> argparse.ArgumentParser:
        """A parser by the name."""
        made: argparse.ArgumentParser = self._subparsers.add_parser(self._name, help=ABOUT[self._name])
        return made
