"""The intrinsics for x86 that come with the package: their names, for `tir.Schedule.tensorize`, and their functions."""

from __future__ import annotations

from ..function import PrimFunc
from . import TensorIntrin

VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"
AVX512_BF16_DOT_16x2_INTRIN = "dot_16x2_avx512_bf16"

# Made when they are asked for.
_FUNCTIONS = {
    "dot_product_16x4_u8i8i32_desc": (VNNI_DOT_16x4_INTRIN, "desc"),
    "dot_product_16x4_u8i8i32_vnni": (VNNI_DOT_16x4_INTRIN, "impl"),
    "dot_product_16x4_u8i8i32_avx512": (AVX512_DOT_16x4_INTRIN, "impl"),
}


def __getattr__(name: str) -> PrimFunc:
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    intrin, side = _FUNCTIONS[name]
    found: PrimFunc = getattr(TensorIntrin.get(intrin), side)
    return found
