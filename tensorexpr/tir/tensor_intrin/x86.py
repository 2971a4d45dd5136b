"""The intrinsics for x86 that come with the package: their names, for `tir.Schedule.tensorize`, and their functions."""

from ...later import computed
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

__getattr__, __dir__ = computed(__name__, _FUNCTIONS, lambda name: getattr(TensorIntrin.get(_FUNCTIONS[name][0]), _FUNCTIONS[name][1]))
