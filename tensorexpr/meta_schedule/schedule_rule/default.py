"""The rules for CPUs, with the arguments that MetaSchedule's users expect."""

from __future__ import annotations

from .add_rfactor import AddRFactor
from .apply_custom_rule import ApplyCustomRule
from .auto_inline import AutoInline
from .inline_constant_scalars import InlineConstantScalars
from .multi_level_tiling import MultiLevelTiling, ReuseType
from .multi_level_tiling_with_intrin import MultiLevelTilingWithIntrin
from .parallelize_vectorize_unroll import ParallelizeVectorizeUnroll
from .random_compute_location import RandomComputeLocation
from .schedule_rule import ScheduleRule

_STRUCTURE = "SSRSRS"
_INNERMOST = 64


def _write_cache() -> ReuseType:
    return ReuseType(req="may", levels=[1, 2], scope="global")


def _rules(*intrinsics: str) -> list[ScheduleRule]:
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        AutoInline(
            into_producer=False,
            into_consumer=True,
            inline_const_tensor=True,
            disallow_if_then_else=True,
            require_injective=True,
            require_ordered=True,
            disallow_op=["tir.exp"],
        ),
        AddRFactor(max_jobs_per_core=16, max_innermost_factor=_INNERMOST),
        *(MultiLevelTilingWithIntrin(name, _STRUCTURE, max_innermost_factor=_INNERMOST, reuse_write=_write_cache()) for name in intrinsics),
        MultiLevelTiling(_STRUCTURE, max_innermost_factor=_INNERMOST, reuse_write=_write_cache()),
        ParallelizeVectorizeUnroll(16, 64, [0, 16, 64, 512], unroll_explicit=True),
        RandomComputeLocation(),
    ]


ScheduleRule.defaults.update(
    {
        "llvm": _rules,
        "vnni": lambda: _rules("dot_16x4_vnni"),
        "avx512": lambda: _rules("dot_16x4_avx512"),
    }
)
