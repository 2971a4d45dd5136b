"""The virtual machine that measures, where programs of Relay look for it: `runtime.profiler_vm.VirtualMachineProfiler(exe, device)`."""

from ..later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.machine": "VirtualMachineProfiler"})
