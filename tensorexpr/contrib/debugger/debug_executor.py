"""The executor that tells what each call took; see `relay.graph_executor`."""

from ...later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.graph_executor": "GraphModuleDebug create=create_debug get_device"})
