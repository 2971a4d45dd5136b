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


def add_subcommand(subparsers: Any, name: str) -> None:
    """Add one of them, whose modules are loaded then."""
    module = importlib.import_module(_MODULES[name], __package__)
    add: Callable[[Any], argparse.ArgumentParser] = getattr(module, f"add_{'run' if name == 'profile' else name}_parser")
    parser = add(_Named(subparsers, name))
    if name == "profile":
        parser.set_defaults(profile=True)


class _Named:
    """Subparsers under which a parser gets its name and line of help here: profile is `run --profile` by another name."""

    def __init__(self, subparsers: Any, name: str) -> None:
        self._subparsers, self._name = subparsers, name

    def add_parser(self, name: str, help: str = "") -> argparse.ArgumentParser:
        """A parser by the name."""
        made: argparse.ArgumentParser = self._subparsers.add_parser(self._name, help=ABOUT[self._name])
        return made
