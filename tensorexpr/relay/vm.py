"""The virtual machine of Relay by its names: `relay.vm.compile(mod, target)`, run by `relay.vm.VirtualMachine`. It is that of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..relax.runtime.executable import Executable
from .build_module import VMExecutor, build, optimize
from .machine import VirtualMachine


def compile(mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> Executable:
    """The executable of a module, for `VirtualMachine(executable, device)`.

    Args:
        mod: a module with a function "main", or a function.
        target, target_host, params: as of `relay.build`.
    """
    return build(mod, target, target_host, params=params).module


class VMCompiler:
    """Compiles step by step: `lower(mod, target)`, then `codegen()` and `get_exec()`."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._made: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Values of parameters of "main"."""
        self._params = dict(params)

    def get_params(self) -> dict[str, Any]:
        """The parameters of what was compiled, as `Executable.get_params` has them; before that none."""
        return {} if self._made is None else self._made.get_params()

    def lower(self, mod: Any, target: Any = None, target_host: Any = None) -> None:
        """Compile a module."""
        self._made = compile(mod, target, target_host, self._params)

    def codegen(self) -> None:
        """Accepted: `lower` has made machine code already."""

    def optimize(self, mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        """As `relay.optimize`."""
        return optimize(mod, target, {**self._params, **dict(params or {})})

    def get_exec(self) -> Executable:
        """What was compiled.

        Raises:
            ArgumentError: before `lower`.
        """
        if self._made is None:
            raise ArgumentError("VMCompiler: nothing was compiled yet; call lower(mod, target)")
        return self._made


__all__ = ["Executable", "VMCompiler", "VMExecutor", "VirtualMachine", "compile", "optimize"]
