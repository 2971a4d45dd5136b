"""The sketch rules in the order in which they are tried, on CPUs and on GPUs.

ansor   those of the paper;  spaces   what the rules of `tensorexpr.spaces` make, their sizes open
"""

from .ansor import (
    AddCacheWrite,
    AddRfactor,
    AlwaysInline,
    MultiLevelTiling,
    MultiLevelTilingWithFusion,
    SimplifyComputeWithConstTensor,
    SkipStage,
)
from .spaces import ContractionTiling, PlanProgram, Reduction

CPU_RULES = (
    PlanProgram(),
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    Reduction(),
    ContractionTiling(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)
# What tiles, binds and fetches on a GPU is one plan; stages apart from each other are the other way.
GPU_RULES = (PlanProgram(), AlwaysInline(), SkipStage())
ANSOR_RULES = (
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    AddRfactor(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)
