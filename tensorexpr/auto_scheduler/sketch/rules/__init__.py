"""The sketch rules, one class a file, in the order in which they are tried on a CPU."""

from .add_cache_write import AddCacheWrite
from .always_inline import AlwaysInline
from .multi_level_tiling import MultiLevelTiling
from .multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from .register_tiling import RegisterTiling
from .skip_stage import SkipStage

CPU_RULES = (AlwaysInline(), AddCacheWrite(), RegisterTiling(), MultiLevelTilingWithFusion(), MultiLevelTiling(), SkipStage())

__all__ = ["CPU_RULES", "AddCacheWrite", "AlwaysInline", "MultiLevelTiling", "MultiLevelTilingWithFusion", "RegisterTiling", "SkipStage"]
