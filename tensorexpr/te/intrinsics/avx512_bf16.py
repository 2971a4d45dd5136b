"""AVX512-BF16: 32 products of bfloat16, added to 16 float32 by twos, in float32. Denormal numbers count as zero."""

from __future__ import annotations

from functools import cache

from ..tensor_intrin import TensorIntrin, built_in
from .dot_group import DotGroup


@built_in("dot_16x2_avx512_bf16")
@cache
def dot_16x2_avx512_bf16() -> TensorIntrin:
    """out[i] = sum over k < 2 of a[k] * b[i, k], for 16 outputs: bfloat16 (2,), bfloat16 (16, 2) -> float32 (16,).

    It needs the CPU feature avx512bf16, and `b` packed so that 16 groups of 2 lie side by side: B of shape
    [n / 16][k / 2][16][2], read as `B[j // 16, k // 2, j % 16, k % 2]`.
    """
    return DotGroup("dot_16x2_avx512_bf16", "llvm.x86.avx512bf16.dpbf16ps.512", "bfloat16", "bfloat16", "float32", 2).declare()
