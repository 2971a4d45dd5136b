"""AVX512-VNNI: 64 products of unsigned and signed bytes, added to 16 int32 by fours. Exact; sums wrap at 32 bits."""

from __future__ import annotations

from functools import cache

from ..tensor_intrin import TensorIntrin, built_in
from .dot_group import DotGroup


@built_in("dot_16x4_vnni")
@cache
def dot_16x4_vnni() -> TensorIntrin:
    """out[i] = sum over k < 4 of a[k] * b[i, k], for 16 outputs: uint8 (4,), int8 (16, 4) -> int32 (16,).

    It needs the CPU feature avx512vnni, and `b` packed so that 16 groups of 4 lie side by side: B of shape
    [n / 16][k / 4][16][4], read as `B[j // 16, k // 4, j % 16, k % 4]`.
    """
    return DotGroup("dot_16x4_vnni", "llvm.x86.avx512.vpdpbusd.512", "uint8", "int8", "int32", 4).declare()
