"""The virtual machine of Relay by its names: `relay.vm.compile(mod, target)`, run by `relax.VirtualMachine`. It is that of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..relax.runtime.executable import Executable
from ..relax.runtime.machine import VirtualMachine
from .build_module import VMExecutor, build, optimize


def compile(mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> Executable:
    """The executable of a module, for `VirtualMachine(executable, device)`.

    Args:
        mod: a module with a function "main", or a function.
        target, target_host, params: as of `relay.build`.
    """
    return build(mod, target, target_host, params=params).module


__all__ = ["Executable", "VMExecutor", "VirtualMachine", "compile", "optimize"]
