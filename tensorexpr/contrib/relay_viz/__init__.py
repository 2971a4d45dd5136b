"""Pictures of networks where programs look for them; see `relay.viz`."""

from ...later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.viz": "DotPlotter RelayVisualizer TermPlotter"}, "dot interface terminal")
