"""`relay.viz.terminal` where programs look for it."""

from ...later import later

__getattr__, __dir__ = later(
    __name__, {"tensorexpr.relay.viz.terminal": "TermGraph TermPlotter", "tensorexpr.relay.viz.interface": "TermVizParser=DefaultVizParser"}
)
