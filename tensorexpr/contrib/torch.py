"""Modules of PyTorch that run what is compiled here, where programs look for them; see `relay.torch_modules`."""

from ..later import later

_NAMES = "GraphExecutorFactoryWrapper OperatorModuleWrapper TVMScriptIRModule=OperatorModuleWrapper as_torch optimize_torch"
__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.torch_modules": _NAMES})
