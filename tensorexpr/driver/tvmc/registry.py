"""Options of the command line for what is chosen by name and has options itself: executors and runtimes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ...errors import DeclarationError
from .model import TVMCException

_WORDS = {"1": True, "true": True, "0": False, "false": False}


def _switch(text: str) -> bool:
    """A bool as text: 1, 0, true or false."""
    if text.lower() not in _WORDS:
        raise argparse.ArgumentTypeError(f"{text}: expected 1, 0, true or false")
    return _WORDS[text.lower()]


_READ: dict[str, Callable[[str], Any]] = {"runtime.String": str, "runtime.BoxBool": _switch, "IntImm": int}


def generate_registry_args(parser: argparse.ArgumentParser, registry: Any, default: str | None = None) -> None:
    """`--executor graph`, and an option for each one of it: `--executor-aot-interface-api packed`.

    Args:
        parser: which gets them.
        registry: `relay.backend.Executor` or `Runtime`.
        default: the name without an option.
    """
    flag, names = registry.flag_registry_name, registry.list_registered()
    parser.add_argument(f"--{flag}", default=default, help=f"the {flag}: {', '.join(names)}, of which there is one by these names")
    for name in names:
        for option, kind in registry.list_registered_options(name).items():
            parser.add_argument(f"--{flag}-{name}-{option}", type=_READ[kind], help=argparse.SUPPRESS)


def reconstruct_registry_entity(args: argparse.Namespace, registry: Any) -> Any:
    """The executor or runtime of options; None without a name.

    Raises:
        TVMCException: for a name that there isn't, or options of another one.
    """
    flag = registry.flag_registry_name
    chosen = getattr(args, flag, None)
    if chosen is None:
        return None
    given: dict[str, dict[str, Any]] = {}
    for name in registry.list_registered():
        values = {
            option: getattr(args, f"{flag}_{name}_{option.replace('-', '_')}", None) for option in registry.list_registered_options(name)
        }
        given[name] = {option: value for option, value in values.items() if value is not None}
    if chosen in given:
        for name, options in given.items():
            if options and name != chosen:
                raise TVMCException(f"Passed --{flag}-{name}-{next(iter(options))} but did not specify {name} {flag}: --{flag} {name}")
    try:
        return registry(chosen, given.get(chosen))
    except DeclarationError as error:
        raise TVMCException(f"--{flag} {chosen}: {error}") from None
