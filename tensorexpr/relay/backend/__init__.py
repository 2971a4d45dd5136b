"""How networks run, by Relay's names: all of these are the one executable of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...dataclass import dataclass, field
from ...errors import DeclarationError
from ...later import later, stand_for
from . import executor_factory

_SHARED = {"link-params": "runtime.BoxBool"}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "graph": _SHARED,
    "aot": {
        **_SHARED, "constant-byte-alignment": "IntImm", "interface-api": "runtime.String", "unpacked-api": "runtime.BoxBool",
        "workspace-byte-alignment": "IntImm",
    },
    "vm": {},
    "debug": {},
}  # fmt: skip
_KINDS = {bool: "runtime.BoxBool", int: "IntImm", str: "runtime.String"}
_RUNTIMES: Mapping[str, Mapping[str, str]] = {"cpp": {"system-lib": "runtime.BoxBool"}, "crt": {"system-lib": "runtime.BoxBool"}}


def _checked(kind: str, known: Mapping[str, Mapping[str, str]], name: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of an executor or runtime of a name; those that aren't stated are off.

    Raises:
        DeclarationError: for a name or an option that there isn't, or an option of another type.
    """
    if name not in known:
        raise DeclarationError(f'{kind} "{name}" is not defined; there are {", ".join(known)}')
    for option, value in (options or {}).items():
        wanted, found = known[name].get(option), _KINDS.get(type(value), type(value).__name__)
        if wanted is None:
            raise DeclarationError(f'Attribute "{option}" is not available on this {kind}; there are {", ".join(known[name]) or "none"}')
        if wanted != found:
            raise DeclarationError(f'Attribute "{option}" should have type "{wanted}" but instead found "{found}"')
    return dict(options or {})


@dataclass(frozen=True)
class Executor:
    """What runs the graph: "graph" or "aot"; the difference is theirs who ask for one of them by name.

    Args:
        name: of it.
        options: {"link-params": True} for parameters that are part of the library for all who look at its parts; see `relay.build`.

    Raises:
        DeclarationError: for a name or an option that there isn't.
    """

    flag_registry_name: ClassVar[str] = "executor"
    name: str = "graph"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _checked("Executor", _OPTIONS, self.name, self.options))

    @staticmethod
    def list_registered() -> list[str]:
        """The names."""
        return ["graph", "aot"]

    @staticmethod
    def list_registered_options(executor: str | Executor) -> dict[str, str]:
        """The options of an executor or its name, with their types."""
        _checked("Executor", _OPTIONS, str(executor), None)
        return dict(_OPTIONS[str(executor)])

    def __contains__(self, name: str) -> bool:
        return name in self.options

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.options.items())))

    def __getitem__(self, name: str) -> Any:
        return self.options.get(name, False if _OPTIONS[self.name].get(name) == "runtime.BoxBool" else None)


@dataclass(frozen=True)
class Runtime:
    """The runtime: there is one, for the names "cpp" and "crt" alike.

    Args:
        name: of it.
        options: accepted.

    Raises:
        DeclarationError: for another name.
    """

    flag_registry_name: ClassVar[str] = "runtime"
    name: str = "cpp"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _checked("Runtime", _RUNTIMES, self.name, self.options))

    @staticmethod
    def list_registered() -> list[str]:
        """The names."""
        return list(_RUNTIMES)

    @staticmethod
    def list_registered_options(runtime: str | Runtime) -> dict[str, str]:
        """The options of a runtime or its name, with their types."""
        _checked("Runtime", _RUNTIMES, str(runtime), None)
        return dict(_RUNTIMES[str(runtime)])

    def __contains__(self, name: str) -> bool:
        return name in self.options

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash((self.name, *sorted(self.options.items())))

    def __getitem__(self, name: str) -> Any:
        return self.options.get(name, False if _RUNTIMES[self.name].get(name) == "runtime.BoxBool" else None)


# Which build modules, and so ask for this package.
__getattr__, __dir__ = later(__name__, {}, "graph_executor_codegen interpreter te_compiler vm")
stand_for(__name__, f"executor={__name__} runtime={__name__}")

__all__ = ["Executor", "Runtime", "executor_factory"]
