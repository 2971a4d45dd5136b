"""Functions that code generators of others made of parts of a graph; they are called by name, and come before the registered ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..runtime.module import Module

EXTERNAL = "external_mods"
"""The attribute of a module of graphs: `Module`s and mappings from names to functions."""


def external_functions(modules: Iterable[Any]) -> dict[str, Callable[..., Any]]:
    """The functions of some modules and mappings by name; of two that have one the first counts, and other values have none."""
    found: dict[str, Callable[..., Any]] = {}
    for one in modules:
        names = one.function_names if isinstance(one, Module) else one if isinstance(one, Mapping) else ()
        found = {**{name: one[name] for name in names}, **found}
    return found
