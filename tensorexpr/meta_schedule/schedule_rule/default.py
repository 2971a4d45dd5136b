"""The rules for CPUs and GPUs, with the arguments that MetaSchedule's users expect."""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.tensor_intrin.cuda import get_mma_tiles_intrin_group, get_wmma_intrin_group
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
from .schedule_rule import ScheduleRule

_STRUCTURE = "SSRSRS"


def _write_cache() -> ReuseType:
    return ReuseType(req="may", levels=[1, 2], scope="global")


def _rules(*intrinsics: str) -> list[ScheduleRule]:
    return _cpu_rules(intrinsics, jobs=16, innermost=64, lanes=64, steps=[0, 16, 64, 512])


def _arm_rules(*intrinsics: str) -> list[ScheduleRule]:
    return _cpu_rules(intrinsics, jobs=8, innermost=32, lanes=32, steps=[0, 8, 32, 256])


def _cpu_rules(intrinsics: Sequence[str], jobs: int, innermost: int, lanes: int, steps: Sequence[int]) -> list[ScheduleRule]:
    """The rules for a CPU: instructions that compute tiles are tried before plain tiles."""
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
        AddRFactor(max_jobs_per_core=jobs, max_innermost_factor=innermost),
        *(MultiLevelTilingWithIntrin(name, _STRUCTURE, max_innermost_factor=innermost, reuse_write=_write_cache()) for name in intrinsics),
        MultiLevelTiling(_STRUCTURE, max_innermost_factor=innermost, reuse_write=_write_cache()),
        ParallelizeVectorizeUnroll(jobs, lanes, steps, unroll_explicit=True),
        RandomComputeLocation(),
    ]


def _gpu_rules() -> list[ScheduleRule]:
    return [
        ApplyCustomRule(),
        MultiLevelTiling(
            "SSSRRSRS",
            tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"],
            max_innermost_factor=64,
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=ReuseType(req="must", levels=[4], scope="shared"),
            reuse_write=ReuseType(req="must", levels=[3], scope="local"),
        ),
        InlineConstantScalars(),
        AutoInline(
            into_producer=True,
            into_consumer=True,
            inline_const_tensor=True,
            disallow_if_then_else=False,
            require_injective=False,
            require_ordered=False,
        ),
        CrossThreadReduction([4, 8, 16, 32, 64, 128, 256, 512]),
        ParallelizeVectorizeUnroll(-1, -1, [0, 16, 64, 512, 1024], unroll_explicit=True),
        AutoBind(max_threadblocks=256),
    ]


# What fragments are made of, and what their sums are.
_FRAGMENTS = (("float16", "float16"), ("float16", "float32"), ("int8", "int32"))


def _tensor_core_rules() -> list[ScheduleRule]:
    """Tensor cores first, and what they don't compute as on any GPU."""
    groups = [
        get_wmma_intrin_group("shared.dyn", "shared.dyn", operands, sums, trans) for operands, sums in _FRAGMENTS for trans in (False, True)
    ]

    def tiles(groups: list[dict[str, str]], write: str, ahead: bool) -> ScheduleRule:
        return MultiLevelTilingTensorCore(
            groups,
            "SSSRRSRS",
            tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
            max_innermost_factor=4,  # 64 x 64 results of a warp at most, in fragments of 16 x 16
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=ReuseType(req="must", levels=[4], scope="shared.dyn"),
            reuse_write=ReuseType(req=write, levels=[2], scope="shared.dyn"),
            use_software_pipeline=ahead,
        )

    custom, *others = _gpu_rules()
    return [custom, tiles(groups, "must", False), tiles([get_mma_tiles_intrin_group(out) for out in ("f16", "f32")], "no", True), *others]


ScheduleRule.kinds.update(
    {
        "cuda": _gpu_rules,
        "cuda-tensorcore": _tensor_core_rules,
        "llvm": _rules,
        "vnni": lambda: _rules("dot_16x4_vnni"),
        "avx512": lambda: _rules("dot_16x4_avx512"),
        "neon": lambda: _arm_rules("dot_4x4_i8i8s32_neon"),
        "dotprod": lambda: _arm_rules("dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"),
    }
)
