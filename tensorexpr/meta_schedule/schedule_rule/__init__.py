"""What may be done with a block.

schedule_rule    the protocol, and the lists for kinds of targets;  default: those for CPUs and GPUs
analysis         what rules ask about blocks

apply_custom_rule             what a computation asks for
auto_inline                   blocks that disappear into others
add_rfactor                   partial results of long reductions
multi_level_tiling            tiles of products, with caches;  multi_level_tiling_with_intrin: around an instruction
  multi_level_tiling_tensor_core   around those of tensor cores, between fragments
  cooperative                 what tiling does for GPUs
auto_bind, cross_thread_reduction        loops become blocks and threads of a grid
parallelize_vectorize_unroll  how much at once
random_compute_location       where the rest is computed
"""

from __future__ import annotations

from . import default
from .add_rfactor import AddRFactor
from .apply_custom_rule import ApplyCustomRule
from .auto_bind import AutoBind
from .auto_inline import AutoInline, InlineConstantScalars
from .cross_thread_reduction import CrossThreadReduction
from .multi_level_tiling import MultiLevelTiling, ReuseType
from .multi_level_tiling_tensor_core import MultiLevelTilingTensorCore
from .multi_level_tiling_with_intrin import MultiLevelTilingWithIntrin
from .parallelize_vectorize_unroll import ParallelizeVectorizeUnroll
from .random_compute_location import RandomComputeLocation
from .schedule_rule import PyScheduleRule, ScheduleRule, create

__all__ = [
    "AddRFactor",
    "ApplyCustomRule",
    "AutoBind",
    "AutoInline",
    "CrossThreadReduction",
    "InlineConstantScalars",
    "MultiLevelTiling",
    "MultiLevelTilingTensorCore",
    "MultiLevelTilingWithIntrin",
    "ParallelizeVectorizeUnroll",
    "PyScheduleRule",
    "RandomComputeLocation",
    "ReuseType",
    "ScheduleRule",
    "create",
    "default",
]
