"""How networks run, by Relay's names: all of these are the one executable of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import DeclarationError
from . import executor_factory, te_compiler

_EXECUTORS = ("graph", "aot", "vm", "debug")
_RUNTIMES = ("cpp", "crt")


@dataclass(frozen=True)
class Executor:
    """What runs the graph: "graph" or "aot"; the difference is theirs who ask for one of them by name.

    Args:
        name: of it.
        options: accepted: {"link-params": True} is how it is.

    Raises:
        DeclarationError: for a name that there isn't.
    """

    name: str = "graph"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in _EXECUTORS:
            raise DeclarationError(f"no executor {self.name!r}; there are {', '.join(_EXECUTORS)}")
        object.__setattr__(self, "options", dict(self.options or {}))

    @staticmethod
    def list_registered() -> list[str]:
        """The names."""
        return list(_EXECUTORS[:2])

    def __getitem__(self, name: str) -> Any:
        return self.options[name]


@dataclass(frozen=True)
class Runtime:
    """The runtime: there is one, for the names "cpp" and "crt" alike.

    Args:
        name: of it.
        options: accepted.

    Raises:
        DeclarationError: for another name.
    """

    name: str = "cpp"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in _RUNTIMES:
            raise DeclarationError(f"no runtime {self.name!r}; there are {', '.join(_RUNTIMES)}")
        object.__setattr__(self, "options", dict(self.options or {}))

    @staticmethod
    def list_registered() -> list[str]:
        """The names."""
        return list(_RUNTIMES)

    def __getitem__(self, name: str) -> Any:
        return self.options[name]


__all__ = ["Executor", "Runtime", "executor_factory", "te_compiler"]
