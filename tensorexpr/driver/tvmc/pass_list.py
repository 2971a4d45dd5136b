"""Names of passes as a text of the command line."""

from __future__ import annotations

import argparse
import difflib
from functools import cache

from ... import relax, relay, tir
from ...lower import pipeline as of_functions
from ...relax.transform import pipeline as of_graphs
from .model import TVMCException


class UnknownPassError(TVMCException, argparse.ArgumentTypeError):
    """A name that no pass has."""


@cache
def _known() -> frozenset[str]:
    """Passes on graphs by their names, and those on tensor functions as `tir.Name`; of the pipelines, and those that a program runs."""
    public = {name for home in (relay.transform, relax.transform) for name in home.__all__ if name[:1].isupper()}
    public |= {f"tir.{name}" for name in tir.transform.__all__ if name[:1].isupper()}
    graphs = {one.name for phase in of_graphs.PHASES.values() for one in phase.passes}
    return frozenset(public | graphs | {one.name for passes in of_functions.PHASES.values() for one in passes})


def parse_pass_list_str(input_string: str) -> list[str]:
    """Names of passes with commas between.

    Raises:
        UnknownPassError: for a name that no pass has, with the nearest one that there is.
    """
    names = [name.strip() for name in input_string.split(",") if name.strip()]
    if unknown := [name for name in names if name not in _known()]:
        near = [one for name in unknown for one in difflib.get_close_matches(name, _known(), n=1)]
        hint = f"; did you mean {', '.join(near)}?" if near else "; --print-pass-times names those of a build"
        raise UnknownPassError(f"no pass is called {', '.join(unknown)}{hint}")
    return names
