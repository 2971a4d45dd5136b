"""The virtual machine by the names of 2022: `relax.vm.build`, `relax.vm.VirtualMachine`."""

from .build import build
from .runtime.executable import Executable
from .runtime.machine import VirtualMachine, VMInstrumentReturnKind

__all__ = ["Executable", "VMInstrumentReturnKind", "VirtualMachine", "build"]
