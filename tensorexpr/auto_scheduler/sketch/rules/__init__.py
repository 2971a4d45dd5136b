"""The sketch rules, one class a file, in the order in which they are tried on a CPU."""

from .add_cache_write import AddCacheWrite
from .add_rfactor import AddRfactor
from .always_inline import AlwaysInline
from .dot_product_tiling import DotProductTiling
from .multi_level_tiling import MultiLevelTiling
from .multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from .plan_program import PlanProgram
from .reduce_over_lanes import ReduceOverLanes
from .reduce_over_threads import ReduceOverThreads
from .register_tiling import RegisterTiling
from .row_program import RowProgram
from .simplify_compute_with_const_tensor import SimplifyComputeWithConstTensor
from .skip_stage import SkipStage

CPU_RULES = (
    PlanProgram(),
    RowProgram(),
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    ReduceOverThreads(),
    ReduceOverLanes(),
    AddCacheWrite(),
    DotProductTiling(),
    RegisterTiling(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)

# Those of Ansor (OSDI 2020), in its order.
ANSOR_RULES = (
    AlwaysInline(),
    SimplifyComputeWithConstTensor(),
    AddRfactor(),
    AddCacheWrite(),
    MultiLevelTilingWithFusion(),
    MultiLevelTiling(),
    SkipStage(),
)

__all__ = [
    "ANSOR_RULES",
    "CPU_RULES",
    "AddCacheWrite",
    "AddRfactor",
    "AlwaysInline",
    "DotProductTiling",
    "MultiLevelTiling",
    "MultiLevelTilingWithFusion",
    "PlanProgram",
    "ReduceOverLanes",
    "ReduceOverThreads",
    "RegisterTiling",
    "RowProgram",
    "SimplifyComputeWithConstTensor",
    "SkipStage",
]
