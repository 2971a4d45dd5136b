"""Functions that code generators of others made of parts of a graph; they are called by name, and come before the registered ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import DeclarationError
from ..runtime.module import Module
from ..runtime.registry import get_global_func, list_global_func_names

EXTERNAL = "external_mods"
"""The attribute of a module of graphs: `Module`s and mappings from names to functions."""


def external_functions(modules: Iterable[Any]) -> dict[str, Callable[..., Any]]:
    """The functions of some modules and mappings by name; of two that have one the first counts, and other values have none."""
    found: dict[str, Callable[..., Any]] = {}
    for one in modules:
        names = one.function_names if isinstance(one, Module) else one if isinstance(one, Mapping) else ()
        found = {**{name: one[name] for name in names}, **found}
    return found


def code_generator(prefix: str, name: str) -> Callable[..., Any]:
    """The code generator that is registered under a prefix and a name.

    Args:
        prefix: of the graphs that it takes: "relax.ext." or "relay.ext.".
        name: of the generator.

    Raises:
        DeclarationError: if there is none.
    """
    found: Callable[..., Any] | None = get_global_func(prefix + name, allow_missing=True)
    if found is None:
        known = [one.removeprefix(prefix) for one in list_global_func_names() if one.startswith(prefix)]
        raise DeclarationError(
            f"no code generator {name!r} is registered; there are {', '.join(known) or 'none'}. "
            f'register_func("{prefix}{name}", f) registers one'
        )
    return found
