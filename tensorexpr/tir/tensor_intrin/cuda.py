"""The intrinsics for NVIDIA GPUs by name: `WMMA_SYNC_16x16x16_f16f16f32_INTRIN`, `MMA_f16f16f32_INTRIN`, `DP4A_S8S8S32_INTRIN` and so on.

A GPU runs them, and so do the threads of blocks on a CPU.
"""

from __future__ import annotations

from ...later import computed
from ..function import PrimFunc
from . import TensorIntrin, mma, mma_tiles, wmma
from .dot_product_common import DP4A_S8S8S32_INTRIN, DP4A_S8U8S32_INTRIN, DP4A_U8S8S32_INTRIN, DP4A_U8U8U32_INTRIN
from .mma import (
    M_DIM,
    N_DIM,
    WARP_SIZE,
    ldmatrix_32x8_to_shared_16x16_layout,
    shared_16x16_to_ldmatrix_32x8_layout,
    shared_16x32_to_ldmatrix_32x16_layout,
    shared_32x16_to_ldmatrix_32x16_layout,
)
from .wmma import DTYPES, NAMES

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
    "M_DIM",
    "N_DIM",
    "WARP_SIZE",
    "get_ldmatrix_intrin",
    "get_mma_fill_intrin",
    "get_mma_init_intrin",
    "get_mma_intrin",
    "get_mma_intrin_group",
    "get_mma_load_intrin",
    "get_mma_store_dummy_intrin",
    "get_mma_store_intrin",
    "get_mma_sync_intrin",
    "get_mma_tiles_intrin_group",
    "get_wmma_fill_intrin",
    "get_wmma_intrin_group",
    "get_wmma_load_intrin",
    "get_wmma_store_intrin",
    "get_wmma_sync_intrin",
    "ldmatrix_32x8_to_shared_16x16_layout",
    "shared_16x16_to_ldmatrix_32x8_layout",
    "shared_16x32_to_ldmatrix_32x16_layout",
    "shared_32x16_to_ldmatrix_32x16_layout",
]

_SHORT = {dtype: name for name, dtype in DTYPES.items()}
Pair = tuple[PrimFunc, PrimFunc]


def _constant(name: str) -> str:
    """The constant that has the name of an intrinsic: WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN for wmma_load_16x16x16_f16_a_shared_dyn."""
    _, kind, shape, *rest = name.split("_")
    words = rest if kind == "sync" else [word.upper() for word in rest]
    if kind == "load":
        words.remove("SHARED")
    return "_".join(("WMMA", kind.upper(), shape, *(word.upper() if word == "trans" else word for word in words), "INTRIN"))


def _mma_constant(name: str) -> str:
    """The same for `mma`, where dtypes and what comes before them stay: LDMATRIX_f16_A_DYN_INTRIN, MMA_store_16x16_f32_global_INTRIN."""
    kind, *rest = name.removeprefix("mma_").strip("_").split("_")
    if kind == "ldmatrix":
        return "_".join(("LDMATRIX", rest[0], *(word.upper() for word in rest[1:]), "INTRIN"))
    if kind == "store" and rest[-1] == "simple":
        return "_".join(("MMA_store", *rest[:-1], "INTRIN_SIMPLE"))
    return "_".join(("MMA", kind, *(rest if kind in ("fill", "store") else [word.upper() for word in rest]), "INTRIN"))


_CONSTANTS = {**{_constant(name): name for name in NAMES}, **{_mma_constant(name): name for name in mma.NAMES}}

__getattr__, __dir__ = computed(__name__, _CONSTANTS, _CONSTANTS.__getitem__)


def get_wmma_intrin_group(load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool) -> dict[str, str]:
    """The names of the intrinsics that a product on tensor cores takes.

    Args:
        load_scope: "shared" or "shared.dyn", where operands come from.
        store_scope: "global", "shared" or "shared.dyn", where the result goes.
        in_dtype: "float16" or "int8".
        out_dtype: "float16", "float32" or "int32".
        trans_b: whether the second operand stands column by column.

    Returns:
        Names under init, load_a, load_b, compute and store.

    Raises:
        ValueError: if there are none for these.
    """
    given, made = _SHORT.get(in_dtype, in_dtype), _SHORT.get(out_dtype, out_dtype)
    source, target = (scope.replace(".", "_") for scope in (load_scope, store_scope))
    trans = "_trans" if trans_b else ""
    found = {
        "init": f"wmma_fill_16x16x16_{made}",
        "load_a": f"wmma_load_16x16x16_{given}_a_{source}",
        "load_b": f"wmma_load_16x16x16_{given}_b{trans}_{source}",
        "compute": f"wmma_sync_16x16x16_{given}{given}{made}{trans}",
        "store": f"wmma_store_16x16x16_{made}_{target}",
    }
    return _known(found, NAMES)


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    in_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """The names of the intrinsics that a product by `mma` takes, 16 x 16 with 16 or, for bytes, 32 products each.

    Args:
        load_scope: "shared" or "shared.dyn", where operands come from.
        store_scope: "global", "shared" or "shared.dyn", where the result goes.
        in_dtype: "float16" or "int8".
        out_dtype: "float16", "float32" or "int32".
        trans_a: whether the first operand stands column by column; never for int8.
        trans_b: whether the second one does.
        not_use_mma_store_intrinic: store element by element, which passes can look into.
        store_to_smem_dtype: the dtype that is stored; that of the result if None.

    Returns:
        Names under init, load_a, load_b, compute and store.

    Raises:
        ValueError: if there are none for these.
    """
    given, made = mma.SHORT.get(in_dtype, in_dtype), mma.SHORT.get(out_dtype, out_dtype)
    stored = mma.SHORT.get(store_to_smem_dtype or out_dtype, store_to_smem_dtype)
    dynamic = {"shared": "", "shared.dyn": "_dyn"}.get(load_scope, f"_{load_scope}")
    found = {
        "init": f"mma_fill_16x16_{made}",
        "load_a": f"mma_ldmatrix_{given}_a{'_trans' * trans_a}{dynamic}",
        "load_b": f"mma_ldmatrix_{given}_b{'_trans' * trans_b}{dynamic}",
        "compute": f"mma_{given}{given}{made}{'_trans_a' * trans_a}{'_trans_b' * trans_b}",
        "store": f"mma_store_16x16_{stored}_{store_scope.replace('.', '_')}_{'simple_' * not_use_mma_store_intrinic}",
    }
    return _known(found, mma.NAMES)


def _known(found: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    missing = next((name for name in found.values() if name not in names), None)
    if missing is not None:
        raise ValueError(f"tensor cores have no {missing}: operands are float16 or int8, in shared or shared.dyn memory")
    return found


def _pair(intrinsic: TensorIntrin) -> Pair:
    return intrinsic.desc, intrinsic.impl


def get_ldmatrix_intrin(k_dim: int, dtype: str, matrix_name: str, transposed: bool, shared_scope: str = "shared") -> Pair:
    """What loading an operand of `mma` does, and how.

    Args:
        k_dim: products of a tile: 16 of float16, 32 of int8.
        dtype: of the operand.
        matrix_name: "A" or "B".
        transposed: whether its transpose stands in memory.
        shared_scope: "shared" or "shared.dyn".

    Raises:
        ValueError: if no instruction loads such a tile.
    """
    if mma.DEPTHS.get(k_dim, ("", ()))[0] != dtype or matrix_name not in ("A", "B"):
        raise ValueError(f"ldmatrix loads A or B: 16 products of float16 or 32 of int8, not {matrix_name} of {k_dim} {dtype}")
    return _pair(mma.ldmatrix(k_dim, matrix_name.lower(), transposed, shared_scope))


def get_mma_intrin(k_dim: int, out_dtype: str, a_transposed: bool, b_transposed: bool) -> Pair:
    """What a product by `mma` does, and how; of `k_dim` 16 for float16, 32 for int8.

    Raises:
        ValueError: if no instruction has these types.
    """
    if out_dtype not in mma.DEPTHS.get(k_dim, ("", ()))[1]:
        raise ValueError(f"mma sums 16 products of float16 as float16 or float32, 32 of int8 as int32, not {k_dim} as {out_dtype}")
    return _pair(mma.sync(k_dim, out_dtype, a_transposed, b_transposed))


def get_mma_fill_intrin(dtype: str, local_size: int) -> Pair:
    """What zeroing an accumulator of `mma` does, and how; a thread holds `local_size` (8) of its elements."""
    _check_registers(local_size)
    return _pair(mma.fill(dtype))


def get_mma_store_intrin(dtype: str, local_size: int, scope: str = "global", use_mma_store_intrinic: bool = True) -> Pair:
    """What storing an accumulator of `mma` does, and how; a thread holds `local_size` (8) of its elements."""
    _check_registers(local_size)
    return _pair(mma.store(dtype, scope, use_mma_store_intrinic))


def get_mma_init_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """What zeroing a tile of sums of `mma` does, and how; of 16 x 8 x 8 float16 or float32."""
    _check_tile(m_dim, n_dim, k_dim, dtype)
    return _pair(mma_tiles.init(dtype))


def get_mma_load_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, shared_scope: str, is_b: bool, is_col_major: bool) -> Pair:
    """What `ldmatrix` does of 32 x 8 halves of a left operand, or 8 x 32 of a right one, and how.

    Args:
        m_dim, n_dim: rows of the left operand and columns of the right one: 32.
        k_dim: products: 8.
        dtype: "float16".
        shared_scope: "shared" or "shared.dyn".
        is_b: of the right operand.
        is_col_major: False; operands stand by rows.

    Raises:
        ValueError: for other tiles.
    """
    if (m_dim, n_dim, k_dim, dtype, is_col_major) != (mma_tiles.TOGETHER, mma_tiles.TOGETHER, 8, "float16", False):
        raise ValueError(f"ldmatrix loads 32 x 8 and 8 x 32 float16 by rows, not {m_dim} x {k_dim} and {k_dim} x {n_dim} {dtype}")
    return _pair(mma_tiles.load(dtype, "B" if is_b else "A", shared_scope))


def get_mma_sync_intrin(m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool) -> Pair:
    """What a product of tiles by `mma` does, and how; of 16 x 8 x 8 float16, summed in float16 or float32.

    Raises:
        ValueError: for other tiles, and for a right operand by columns.
    """
    _check_tile(m_dim, n_dim, k_dim, out_dtype)
    if in_dtype != "float16" or b_transposed:
        raise ValueError(f"mma of tiles multiplies float16 by float16 that stands by rows, not {in_dtype}, b_transposed={b_transposed}")
    return _pair(mma_tiles.sync(in_dtype, out_dtype))


def get_mma_store_dummy_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """What storing a tile of sums of `mma` to shared memory does, and how: each thread stores what it holds."""
    _check_tile(m_dim, n_dim, k_dim, dtype)
    return _pair(mma_tiles.store(dtype, "shared.dyn"))


def get_mma_tiles_intrin_group(out: str) -> dict[str, str]:
    """The names of the intrinsics of tiles of 16 x 8 x 8 whose sums are "f16" or "f32", under init, load_a, load_b, compute and store."""
    found = {
        "init": f"mma_init_m16n8k8_{out}",
        "load_a": "mma_load_m16n8k8_f16_A_shared_dyn",
        "load_b": "mma_load_m16n8k8_f16_B_shared_dyn",
        "compute": f"mma_sync_m16n8k8_f16f16{out}",
        "store": f"mma_store_m16n8k8_{out}_global",
    }
    return _known(found, mma_tiles.NAMES)


def _check_tile(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> None:
    if (m_dim, n_dim, k_dim) != mma_tiles.SHAPE or dtype not in mma_tiles.SHORT:
        raise ValueError(f"mma sums tiles of 16 x 8 x 8 as float16 or float32, not {m_dim} x {n_dim} x {k_dim} as {dtype}")


def _check_registers(local_size: int) -> None:
    if local_size != 8:
        raise ValueError(f"32 threads hold 8 elements each of an accumulator of 16 x 16, not {local_size}")


def get_wmma_fill_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """What zeroing a fragment does, and how."""
    return _pair(wmma.fill(wmma.Fragment(m_dim, n_dim, k_dim), _SHORT[dtype]))


def get_wmma_load_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, shared_scope: str, is_b: bool, is_col_major: bool) -> Pair:
    """What loading a fragment of an operand does, and how."""
    return _pair(wmma.load(wmma.Fragment(m_dim, n_dim, k_dim), _SHORT[dtype], "b" if is_b else "a", is_col_major, shared_scope))


def get_wmma_store_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str) -> Pair:
    """What storing a fragment does, and how."""
    return _pair(wmma.store(wmma.Fragment(m_dim, n_dim, k_dim), _SHORT[dtype], scope))


def get_wmma_sync_intrin(m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool) -> Pair:
    """What a product of fragments does, and how."""
    return _pair(wmma.sync(wmma.Fragment(m_dim, n_dim, k_dim), _SHORT[in_dtype], _SHORT[out_dtype], b_transposed))
