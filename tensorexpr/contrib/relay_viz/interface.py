"""`relay.viz.interface` where programs look for it."""

from ...later import later

__getattr__, __dir__ = later(
    __name__, {"tensorexpr.relay.viz.interface": "UNKNOWN DefaultVizParser Plotter VizEdge VizGraph VizNode VizParser"}
)
