"""Modules of PyTorch that run what is compiled here, where programs look for them; see `relay.torch_modules` and `relay.torch_compile`."""

from ..later import later

_MODULES = "GraphExecutorFactoryWrapper OperatorModuleWrapper TVMScriptIRModule=OperatorModuleWrapper as_torch optimize_torch"
_COMPILE = "PyTorchTVMModule TVM_ASSETS compile"
__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.torch_modules": _MODULES, "tensorexpr.relay.torch_compile": _COMPILE})
