"""The kinds of targets: the device that their code runs on, the labels that schedules are chosen by, options and defaults.

Code is built for "llvm", kernels for "cuda", and C text for "c".
The other kinds are there so that programs can name them, ask for their limits, and choose by their labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..dataclass import dataclass, field

# What an option holds: a word, an integer from 0, a positive integer, a truth value, words, features with a sign, a cache, or any text.
WORD, NUMBER, POSITIVE, FLAG, WORDS, FEATURES, CACHE, TEXT = (
    *("str", "int", "positive int", "bool", "list of str", "list of +-str", "bytes/ways", "text"),
)

# Size and ways of the caches that one core sees, such as "32K/8".
CACHE_OPTIONS = ("l1d", "l2", "l3")

_LABELS = {"keys": WORDS, "device": WORD, "libs": WORDS, "model": WORD, "tag": WORD}
_GPU_LIMITS = dict.fromkeys(("max_num_threads", "max_threads_per_block", "max_shared_memory_per_block", "thread_warp_size"), NUMBER)
_FAST_MATH = {f"fast-math{part}": FLAG for part in ("", "-nnan", "-ninf", "-nsz", "-arcp", "-contract", "-reassoc")}
_VULKAN_FLAGS = (
    *("supports_float16", "supports_float32", "supports_float64", "supports_int8", "supports_int16", "supports_int32", "supports_int64"),
    *("supports_8bit_buffer", "supports_16bit_buffer", "supports_storage_buffer_storage_class", "supports_push_descriptor"),
    *("supports_dedicated_allocation", "supports_integer_dot_product", "supports_cooperative_matrix"),
)
_VULKAN_NUMBERS = (
    *("max_block_size_x", "max_block_size_y", "max_block_size_z", "max_push_constants_size", "max_uniform_buffer_range"),
    *("max_storage_buffer_range", "max_per_stage_descriptor_storage_buffer", "supported_subgroup_operations", "driver_version"),
    *("vulkan_api_version", "max_spirv_version"),
)


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    Args:
        device_type: DLPack's number of the device that the code runs on.
        keys: the labels of its targets unless others are given; that of `-device` comes before them.
        options: what each option holds, besides those that every kind has.
        defaults: the options that every target of the kind has, and what they are if they aren't given.
    """

    device_type: int
    keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def all_options(self) -> dict[str, str]:
        """What each option holds, those of every kind first."""
        return {**_LABELS, **self.options}


_CUDA = {
    **_GPU_LIMITS,
    **{"arch": WORD, "mcpu": WORD, "registers_per_block": NUMBER, "l2_cache_size_bytes": NUMBER},
    **{"max_vthread_extent": POSITIVE, "max_local_memory_per_block": POSITIVE},  # of a search, which draws programs within them
}
_OPENCL = {**_GPU_LIMITS, "max_function_args": NUMBER, "texture_spatial_limit": NUMBER}
_LLVM = {
    **{"mattr": FEATURES, "mcpu": WORD, "mtriple": WORD, "num-cores": POSITIVE, "vector-width": POSITIVE, "mabi": WORD, "mfloat-abi": WORD},
    **{"opt-level": NUMBER, "jit": WORD, "cl-opt": WORDS},
    **dict.fromkeys(CACHE_OPTIONS, CACHE),
    **_FAST_MATH,
    # Releases up to 0.9 say here how a network is packed, and their logs repeat it; programs are the same with and without.
    **dict.fromkeys(("link-params", "system-lib", "unpacked-api"), FLAG),
    **dict.fromkeys(("executor", "interface-api", "runtime"), WORD),
}
_BLOCK_256 = {"max_num_threads": 256, "max_threads_per_block": 256}

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "llvm": Kind(1, ("cpu",), _LLVM),
        "c": Kind(1, ("cpu",), {"mcpu": WORD, "march": WORD, "workspace-byte-alignment": NUMBER, "constants-byte-alignment": NUMBER}),
        "cuda": Kind(2, ("cuda", "gpu"), _CUDA, {"arch": "sm_50", "max_num_threads": 1024, "thread_warp_size": 32}),
        "nvptx": Kind(
            2,
            ("cuda", "gpu"),
            {"max_num_threads": NUMBER, "thread_warp_size": NUMBER, "mcpu": WORD, "mtriple": WORD},
            {"max_num_threads": 1024, "mcpu": "sm_50", "mtriple": "nvptx64-nvidia-cuda", "thread_warp_size": 32},
        ),
        "opencl": Kind(
            4,
            ("opencl", "gpu"),
            _OPENCL,
            {
                **_BLOCK_256,
                **{"max_function_args": 128, "max_shared_memory_per_block": 16384, "texture_spatial_limit": 16384, "thread_warp_size": 1},
            },
        ),
        "vulkan": Kind(
            7,
            ("vulkan", "gpu"),
            {
                **_GPU_LIMITS,
                **dict.fromkeys(_VULKAN_FLAGS, FLAG),
                **dict.fromkeys(_VULKAN_NUMBERS, NUMBER),
                **{"mattr": WORDS, "device_type": WORD, "device_name": WORD, "driver_name": WORD},
            },
            {**_BLOCK_256, "supports_float32": True, "supports_int32": True, "thread_warp_size": 1},
        ),
        "metal": Kind(
            8,
            ("metal", "gpu"),
            {**_GPU_LIMITS, "max_function_args": NUMBER},
            {**_BLOCK_256, "max_function_args": 31, "max_shared_memory_per_block": 32768, "thread_warp_size": 16},
        ),
        "rocm": Kind(
            10,
            ("rocm", "gpu"),
            {**_GPU_LIMITS, "mcpu": WORD, "mtriple": WORD, "mattr": WORDS},
            {
                **_BLOCK_256,
                **{"max_shared_memory_per_block": 65536, "thread_warp_size": 64},
                **{"mcpu": "gfx900", "mtriple": "amdgcn-amd-amdhsa-hcc"},
            },
        ),
        "webgpu": Kind(15, ("webgpu", "gpu"), {"max_num_threads": NUMBER}, {"max_num_threads": 256}),
        "hexagon": Kind(
            16,
            ("hexagon", "cpu"),
            {"mattr": WORDS, "mcpu": WORD, "mtriple": WORD, "llvm-options": WORDS, "num-cores": POSITIVE, "vtcm-capacity": NUMBER},
        ),
        "aocl": Kind(32, ("aocl", "hls")),
        "aocl_sw_emu": Kind(32, ("aocl", "hls")),
        "sdaccel": Kind(4, ("sdaccel", "hls")),
        "ext_dev": Kind(12),
        "stackvm": Kind(1, ("cpu",)),
        "hybrid": Kind(1),
        "composite": Kind(1),
        "ccompiler": Kind(1, (), {"header": TEXT}),
    }
)
BUILT_KINDS = ("llvm",)
# Kinds that `build` makes kernels for, with a host part; `lower` does not take their functions apart.
DEVICE_KINDS = ("cuda",)
# Kinds that `build` writes source text for, which a compiler elsewhere makes code of.
SOURCE_KINDS = ("c",)
MADE_KINDS = (*BUILT_KINDS, *DEVICE_KINDS, *SOURCE_KINDS)
# Options of "llvm" that would change the code and that code generation doesn't serve.
NOT_SERVED = ("mabi", "mfloat-abi", "cl-opt")
NOT_USED = tuple(_FAST_MATH)  # permissions, without which results are as good
