"""The intrinsics for AMD's GPUs by name. They describe and print; a machine with such a GPU runs them."""

from __future__ import annotations

from ...later import computed
from ..function import PrimFunc
from . import mfma
from .dot_product_common import AMDGPU_SDOT4_INTRIN
from .mfma import (
    M_DIM,
    N_DIM,
    WARP_SIZE,
    shared_4x16_to_local_64x1_layout_B,
    shared_16x4_to_local_64x1_layout_A,
    shared_16x16_to_local_64x4_layout_A,
    shared_16x16_to_local_64x4_layout_B,
    shared_16x16_to_local_64x4_layout_C,
    thread_id_shared_access_64x1_to_4x16_layout_B,
    thread_id_shared_access_64x1_to_16x4_layout_A,
    thread_id_shared_access_64x4_to_16x16_layout_A,
    thread_id_shared_access_64x4_to_16x16_layout_B,
    thread_id_shared_access_64x4_to_16x16_layout_C,
)

__all__ = [
    "AMDGPU_SDOT4_INTRIN",
    "M_DIM",
    "N_DIM",
    "WARP_SIZE",
    "get_mfma_intrin",
    "get_mfma_load_intrin",
    "get_mfma_store_intrin",
    "get_mma_fill_intrin",
    "shared_4x16_to_local_64x1_layout_B",
    "shared_16x4_to_local_64x1_layout_A",
    "shared_16x16_to_local_64x4_layout_A",
    "shared_16x16_to_local_64x4_layout_B",
    "shared_16x16_to_local_64x4_layout_C",
    "thread_id_shared_access_64x1_to_4x16_layout_B",
    "thread_id_shared_access_64x1_to_16x4_layout_A",
    "thread_id_shared_access_64x4_to_16x16_layout_A",
    "thread_id_shared_access_64x4_to_16x16_layout_B",
    "thread_id_shared_access_64x4_to_16x16_layout_C",
]

Pair = tuple[PrimFunc, PrimFunc]


def _constant(name: str) -> str:
    """The constant that has the name of an intrinsic: ROCM_MFMA_LOAD_16x4_B_SHARED_f32_INTRIN for rocm_mfma_load_b_16x4_shared_f32."""
    kind, *rest = name.lower().removeprefix("rocm_mfma_").split("_")
    if kind == "load":
        shape, role = sorted(rest[:2])
        return "_".join(("ROCM_MFMA_LOAD", shape, role.upper(), "SHARED", rest[-1], "INTRIN"))
    return "_".join(("ROCM_MFMA", kind.upper() if kind == "store" else kind, *rest, "INTRIN"))


_CONSTANTS = {_constant(name): name for name in mfma.NAMES}

__getattr__, __dir__ = computed(__name__, _CONSTANTS, _CONSTANTS.__getitem__)


def get_mfma_intrin(k_dim: int, in_dtype: str = "float32", out_dtype: str = "float32", b_transposed: bool = False) -> Pair:
    """What a product of the matrix cores does, and how.

    Args:
        k_dim: products of a tile: 4 of float32, 16 of float16 and int8.
        in_dtype: of both operands.
        out_dtype: "float32", "int32" for int8.
        b_transposed: whether the second operand is described by its transpose.

    Raises:
        ValueError: if no instruction has these types.
    """
    _check(k_dim, in_dtype)
    if out_dtype != mfma.result_of(in_dtype):
        raise ValueError(f"the matrix cores sum products of {in_dtype} as {mfma.result_of(in_dtype)}, not {out_dtype}")
    made = mfma.sync(k_dim, in_dtype, out_dtype, b_transposed)
    return made.desc, made.impl


def get_mfma_load_intrin(
    k_dim: int = 4, dtype: str = "float32", scope: str = "shared", is_b: bool = False, transposed: bool = False
) -> Pair:
    """What loading an operand of the matrix cores does, and how; its transpose may stand in memory.

    Raises:
        ValueError: if no instruction takes such a tile.
    """
    _check(k_dim, dtype)
    made = mfma.load(k_dim, dtype, scope, "b" if is_b else "a", transposed)
    return made.desc, made.impl


def get_mfma_store_intrin(local_size: int = 4, dtype: str = "float32", scope: str = "global") -> Pair:
    """What storing a result of the matrix cores does, and how; a thread holds `local_size` (4) of its elements."""
    _check_registers(local_size)
    made = mfma.store(dtype, scope)
    return made.desc, made.impl


def get_mma_fill_intrin(dtype: str, local_size: int) -> Pair:
    """What zeroing a result of the matrix cores does, and how; a thread holds `local_size` (4) of its elements."""
    _check_registers(local_size)
    made = mfma.fill(dtype)
    return made.desc, made.impl


def _check(k_dim: int, dtype: str) -> None:
    if (k_dim, dtype) not in mfma.LLVM:
        known = ", ".join(f"{depth} of {name}" for depth, name in mfma.LLVM)
        raise ValueError(f"the matrix cores multiply {known}, not {k_dim} of {dtype}")


def _check_registers(local_size: int) -> None:
    if local_size != 4:
        raise ValueError(f"64 threads hold 4 elements each of a result of 16 x 16, not {local_size}")
