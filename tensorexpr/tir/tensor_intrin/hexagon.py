"""The intrinsics for Hexagon by name: products of HVX, and copies to its vector memory.

They describe, print and are interpreted; code for Hexagon is not generated.
"""

from __future__ import annotations

from dataclasses import replace

from ..function import PrimFunc
from .group_dots import DOTS, dma_load

VRMPY_u8u8i32_INTRIN = "dot_32x4_u8u8i32_vrmpy"
VRMPY_u8i8i32_INTRIN = "dot_32x4_u8i8i32_vrmpy"
VDMPY_i16i16i32_INTRIN = "dot_product_32x2_i16i16i32_vdmpy"
VRMPY_u8u8i32_VTCM_INTRIN = "dot_32x4_u8u8i32_vtcm_vrmpy"
VRMPY_u8i8i32_VTCM_INTRIN = "dot_32x4_u8i8i32_vtcm_vrmpy"
DMA_READ_128_u8 = "dma_read_128_u8"
DMA_READ_128_i8 = "dma_read_128_i8"


def generate_dma_load_intrin(size: int, dtype: str) -> tuple[PrimFunc, PrimFunc]:
    """What a copy of `size` elements to vector memory does, and how."""
    made = dma_load(size, dtype)
    return made.desc, made.impl


def generate_dot_product_32x4_u8u8i32(mem_scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """uint8 x uint8 -> int32 in groups of four, for buffers in a scope."""
    return _in_scope(VRMPY_u8u8i32_INTRIN, mem_scope)


def generate_dot_product_32x4_u8i8i32(mem_scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """uint8 x int8 -> int32 in groups of four, for buffers in a scope."""
    return _in_scope(VRMPY_u8i8i32_INTRIN, mem_scope)


def generate_dot_product_32x2_i16i16i32(mem_scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """int16 x int16 -> int32 in pairs, for buffers in a scope."""
    return _in_scope(VDMPY_i16i16i32_INTRIN, mem_scope)


def _in_scope(name: str, scope: str) -> tuple[PrimFunc, PrimFunc]:
    made = replace(DOTS[name], scope=scope).make()
    return made.desc, made.impl
