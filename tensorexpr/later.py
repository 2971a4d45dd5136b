"""Names that a module shows and another one defines: loaded when they are first asked for.

So a package offers names of higher rows, on which it must not depend, and `import tensorexpr` doesn't load what few programs need.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

Hooks = tuple[Callable[[str], Any], Callable[[], list[str]]]
"""A module's `__getattr__` and `__dir__` (PEP 562)."""


def later(module: str, homes: Mapping[str, str], submodules: str = "") -> Hooks:
    """The hooks of `module` for what other modules define, such as `later(__name__, {".bounds": "NEG_INF POS_INF"})`.

    Args:
        module: which module shows the names.
        homes: from other modules, absolute or relative to the package of `module`, to their names, with blanks between: `name`, or
            `shown=name`, or `shown=.` for the other module itself.
        submodules: modules in the package of `module` that are shown too.

    Returns:
        `__getattr__`, which raises AttributeError for other names, and `__dir__`.
    """
    places = {f".{name}": f"{name}=." for name in submodules.split()}
    found_in: dict[str, tuple[str, str]] = {}
    for home, names in [*places.items(), *homes.items()]:
        for shown, _, name in (item.partition("=") for item in names.split()):
            found_in[shown] = home, name or shown

    def find(shown: str) -> Any:
        place, name = found_in[shown]
        home = importlib.import_module(place, sys.modules[module].__package__)
        return home if name == "." else getattr(home, name)

    return computed(module, found_in, find)


def computed(module: str, names: Collection[str], find: Callable[[str], Any]) -> Hooks:
    """The hooks of `module` for names whose values `find` gives when they are first asked for; see `later`."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = vars(sys.modules[module])[name] = find(name)
        return found

    def shown() -> list[str]:
        own = vars(sys.modules[module])
        return sorted({*own.get("__all__", own), *names})

    return get, shown


def stand_for(package: str, names: str) -> None:
    """Modules that are imported by other names, too.

    Args:
        package: whose modules the names are, whether it is a folder or not.
        names: `shown=home`, with blanks between; `home` is a module, absolute or relative to the package that `package` stands in.
    """
    whose = sys.modules[package]
    if not hasattr(whose, "__path__"):
        whose.__path__ = []  # modules are looked for in packages alone
    for shown, _, home in (item.partition("=") for item in names.split()):
        sys.modules[f"{package}.{shown}"] = importlib.import_module(home, whose.__package__)
