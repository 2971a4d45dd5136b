"""The subcommands compile, tune, run, verify, profile and quantize."""

from __future__ import annotations

import argparse
from typing import Any

from .autotuner import add_tune_parser
from .compiler import add_compile_parser
from .quantizer import add_quantize_parser
from .runner import add_run_parser
from .verify import add_verify_parser

COMMANDS = ("compile", "tune", "run", "verify", "profile", "quantize")


def add_subcommands(subparsers: Any) -> None:
    """Add them."""
    add_compile_parser(subparsers)
    add_tune_parser(subparsers)
    add_run_parser(subparsers)
    add_verify_parser(subparsers)
    add_quantize_parser(subparsers)
    # What `run --profile` does, under a name of its own.
    profile = add_run_parser(_Named(subparsers, "profile", "run a package, and show what each kernel takes"))
    profile.set_defaults(profile=True)


class _Named:
    """Subparsers under which a parser gets another name."""

    def __init__(self, subparsers: Any, name: str, about: str) -> None:
        self._subparsers, self._name, self._about = subparsers, name, about

    def add_parser(self, name: str, help: str = "") -> argparse.ArgumentParser:
        """A parser by the other name."""
        made: argparse.ArgumentParser = self._subparsers.add_parser(self._name, help=self._about)
        return made


def run(options: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    code: int = options.func(options)
    return code
