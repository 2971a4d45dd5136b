"""The graph executor by the name of the releases up to 0.7."""

from ..later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.graph_executor": "GraphModule create get_device"})
