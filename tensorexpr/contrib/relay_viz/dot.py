"""`relay.viz.dot` where programs look for it."""

from ...later import later

__getattr__, __dir__ = later(
    __name__, {"tensorexpr.relay.viz.dot": "DotGraph DotPlotter", "tensorexpr.relay.viz.interface": "DotVizParser=DefaultVizParser"}
)
