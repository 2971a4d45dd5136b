"""The executor that tells what each call took, by the name of the releases up to 0.7."""

from ...later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.graph_executor": "GraphModuleDebug create=create_debug get_device"})
