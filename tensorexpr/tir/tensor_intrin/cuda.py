"""The intrinsics for NVIDIA GPUs by name: `WMMA_SYNC_16x16x16_f16f16f32_INTRIN`, `DP4A_S8S8S32_INTRIN` and so on.

They describe and print; a machine with a GPU runs them.
"""

from __future__ import annotations

from .dot_product_common import DP4A_S8S8S32_INTRIN, DP4A_S8U8S32_INTRIN, DP4A_U8S8S32_INTRIN, DP4A_U8U8U32_INTRIN
from .wmma import DTYPES, NAMES

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
    "get_wmma_intrin_group",
]


def _constant(name: str) -> str:
    """The constant that has the name of an intrinsic: WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN for wmma_load_16x16x16_f16_a_shared_dyn."""
    _, kind, shape, *rest = name.split("_")
    words = rest if kind == "sync" else [word.upper() for word in rest]
    if kind == "load":
        words.remove("SHARED")
    return "_".join(("WMMA", kind.upper(), shape, *(word.upper() if word == "trans" else word for word in words), "INTRIN"))


_CONSTANTS = {_constant(name): name for name in NAMES}


def __getattr__(name: str) -> str:
    if name not in _CONSTANTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _CONSTANTS[name]


def __dir__() -> list[str]:
    return [*__all__, *_CONSTANTS]


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
    short = {dtype: name for name, dtype in DTYPES.items()}
    given, made = short.get(in_dtype, in_dtype), short.get(out_dtype, out_dtype)
    source, target = (scope.replace(".", "_") for scope in (load_scope, store_scope))
    trans = "_trans" if trans_b else ""
    found = {
        "init": f"wmma_fill_16x16x16_{made}",
        "load_a": f"wmma_load_16x16x16_{given}_a_{source}",
        "load_b": f"wmma_load_16x16x16_{given}_b{trans}_{source}",
        "compute": f"wmma_sync_16x16x16_{given}{given}{made}{trans}",
        "store": f"wmma_store_16x16x16_{made}_{target}",
    }
    missing = next((name for name in found.values() if name not in NAMES), None)
    if missing is not None:
        raise ValueError(f"tensor cores have no {missing}: operands are float16 or int8, in shared or shared.dyn memory")
    return found
