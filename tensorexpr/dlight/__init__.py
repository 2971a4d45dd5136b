"""Schedules without a search for functions of blocks, by the names of TVM's dlight.

    with tvm.target.Target("nvidia/nvidia-a100"):
        mod = dl.ApplyDefaultSchedule(dl.gpu.Matmul(), dl.gpu.GEMV(), dl.gpu.Reduction(), dl.gpu.Fallback())(mod)

rule         ScheduleRule: what a rule of your own derives from;  apply: the pass that asks rules
gpu          the rules for GPUs
base         the same names again, as programs import them
"""

from ..later import stand_for
from . import gpu, rule
from .apply import ApplyDefaultSchedule
from .rule import ScheduleRule

stand_for(__name__, "base=.rule")
base = rule

__all__ = ["ApplyDefaultSchedule", "ScheduleRule", "base", "gpu"]
