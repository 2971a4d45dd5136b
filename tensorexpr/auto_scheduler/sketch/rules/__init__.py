"""The sketch rules in the order in which they are tried on a CPU.

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
ANSOR_RULES = (
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    AddRfactor(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)
