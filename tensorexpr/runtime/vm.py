"""The virtual machine where programs of Relay look for it: `runtime.vm.VirtualMachine(relay.vm.compile(mod, target), device)`."""

from ..later import later

_HOMES = {"tensorexpr.relay.machine": "VirtualMachine", "tensorexpr.relax.runtime.executable": "Executable"}
__getattr__, __dir__ = later(__name__, _HOMES)
