"""The intrinsics for ARM CPUs by name: products of bytes by NEON and by the dot product instructions of Armv8.2."""

from __future__ import annotations

from ...later import computed
from ..function import PrimFunc
from . import TensorIntrin
from .dot_product_common import DP4A_S8S8S32_INTRIN, DP4A_S8U8S32_INTRIN, DP4A_U8S8S32_INTRIN, DP4A_U8U8U32_INTRIN

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
    "ARM_DOT_4x4_i8_NEON_INTRIN",
    "ARM_DOT_4x4_i8_SDOT_INTRIN",
    "ARM_DOT_4x4_u8_HDOT_INTRIN",
    "ARM_DOT_4x4_u8_UDOT_INTRIN",
    "get_dotprod_intrin",
]

ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"
# Made when they are asked for.
_FUNCTIONS = {"neon_4x4_i8i8i32_desc": "desc", "neon_4x4_i8i8i32_impl": "impl"}
_BY_DTYPES = {
    ("int8", "int32"): ARM_DOT_4x4_i8_SDOT_INTRIN,
    ("uint8", "uint32"): ARM_DOT_4x4_u8_UDOT_INTRIN,
    ("uint8", "int32"): ARM_DOT_4x4_u8_HDOT_INTRIN,
}


def get_dotprod_intrin(in_dtype: str, out_dtype: str) -> tuple[PrimFunc, PrimFunc]:
    """The functions of the dot product of four groups of four bytes: what it computes, and how.

    Args:
        in_dtype: of both operands, "int8" or "uint8".
        out_dtype: of the sums, "int32" or "uint32".

    Raises:
        ValueError: if no instruction has these types.
    """
    name = _BY_DTYPES.get((in_dtype, out_dtype))
    if name is None:
        known = ", ".join(f"{given} to {made}" for given, made in _BY_DTYPES)
        raise ValueError(f"no dot product of {in_dtype} is summed as {out_dtype}; there are {known}")
    found = TensorIntrin.get(name)
    return found.desc, found.impl


__getattr__, __dir__ = computed(__name__, _FUNCTIONS, lambda name: getattr(TensorIntrin.get(ARM_DOT_4x4_i8_NEON_INTRIN), _FUNCTIONS[name]))
