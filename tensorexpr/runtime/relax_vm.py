"""The virtual machine of graphs, where TVM's programs look for it beside `relax.VirtualMachine`."""

from ..later import later

__getattr__, __dir__ = later(__name__, {"..relax.runtime.machine": "VMInstrumentReturnKind VirtualMachine"})
