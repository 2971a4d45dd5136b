"""The virtual machine of Relay by the name of its first home; see `relay.vm`."""

from __future__ import annotations

from ..vm import Executable, VirtualMachine, VMCompiler, VMExecutor, compile, optimize

__all__ = ["Executable", "VMCompiler", "VMExecutor", "VirtualMachine", "compile", "optimize"]
