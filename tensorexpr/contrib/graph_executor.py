"""The graph executor where programs look for it; see `relay.graph_executor`."""

from ..later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.graph_executor": "GraphModule create get_device"})
