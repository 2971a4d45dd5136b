"""Tensor intrinsics that come with the package. Each is declared when it is first asked for, by its function or by its name.

vnni            u8 x s8 -> s32, groups of four (AVX512-VNNI)
integer_dots    bytes and words -> s32 of AVX-VNNI, of Arm's DotProd, and by `pmaddwd`; by name
avx512_bf16     bf16 x bf16 -> f32, groups of two (AVX512-BF16)
tensor_cores    tiles of a warp on NVIDIA's matrix units: ldmatrix, mma.sync, wgmma; by name
"""

from . import integer_dots as _registers  # noqa: F401  (importing declares their names)
from . import tensor_cores as _tiles  # noqa: F401
from .avx512_bf16 import dot_16x2_avx512_bf16
from .vnni import dot_16x4_vnni

__all__ = ["dot_16x2_avx512_bf16", "dot_16x4_vnni"]
