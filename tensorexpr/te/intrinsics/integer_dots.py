"""Dot products of bytes and 16-bit words of other vector units than AVX512-VNNI; declared by name, and sums wrap at 32 bits.

AVX-VNNI has the instruction on 256 bits, Arm's DotProd on 128. `pmaddwd` multiplies 16-bit words and adds them by twos without
loss, so bytes that are extended to words are exact with it, unlike `pmaddubsw`, which saturates.
"""

from functools import cache

from ..tensor_intrin import built_in
from .dot_group import DotGroup

_BYTES = (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"))
_PMADDWD = ((16, "llvm.x86.avx512.pmaddw.d.512"), (8, "llvm.x86.avx2.pmadd.wd"), (4, "llvm.x86.sse2.pmadd.wd"))

GROUPS = (
    DotGroup("dot_8x4_vnni", "llvm.x86.avx512.vpdpbusd.256", "uint8", "int8", "int32", 4, 8),
    DotGroup("dot_4x4_sdot", "llvm.aarch64.neon.sdot", "int8", "int8", "int32", 4, 4),
    DotGroup("dot_4x4_udot", "llvm.aarch64.neon.udot", "uint8", "uint8", "int32", 4, 4),
    *(
        DotGroup(f"dot_{outputs}x2_{left}_{right}", llvm, left, right, "int32", 2, outputs, "int16")
        for outputs, llvm in _PMADDWD
        for left, right in _BYTES
    ),
    *(DotGroup(f"dot_{outputs}x2_int16", llvm, "int16", "int16", "int32", 2, outputs, "int16") for outputs, llvm in _PMADDWD),
    *(
        DotGroup(f"dot_{outputs}x2_int16_{right}", llvm, "int16", right, "int32", 2, outputs, "int16")
        for outputs, llvm in _PMADDWD
        for right in ("int8", "uint8")
    ),
)

for _group in GROUPS:
    built_in(_group.name)(cache(_group.declare))
