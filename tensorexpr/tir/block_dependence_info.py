"""Which blocks depend on which: in a higher row, loaded when it is first asked for."""

from ..later import later

__getattr__, __dir__ = later(__name__, {"tensorexpr.schedule.blocks.dependence_info": "BlockDependenceInfo"})
