"""Elements of 8 bits and less that aren't integers of C: no kernel reads them, NumPy's arrays of them (ml_dtypes) pass through the machine.

OCP 8-bit Floating Point Specification 1.0 (2023) and Microscaling Formats 1.0 (2023).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DeclarationError
from ..struct_info import ObjectStructInfo, StructInfo, TensorStructInfo
from .row import Expr, Pattern, operator

NARROW = frozenset(
    [
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "int4",
        "uint4",
        "int2",
        "uint2",
    ]
)
NUMPY_ALONE = NARROW - {"float8_e4m3fn", "float8_e5m2", "int4", "uint4"}  # of the others the runtime has arrays
_ROUND = ("up", "down", "nearest")


def narrow_dtype(dtype: str) -> Any:
    """NumPy's dtype of one of these.

    Raises:
        DeclarationError: if the installed ml_dtypes doesn't have it.
    """
    import ml_dtypes

    found = getattr(ml_dtypes, dtype, None)
    if found is None:
        raise DeclarationError(f"arrays of {dtype} need a newer ml_dtypes than {ml_dtypes.__version__}")
    return np.dtype(found)


def _powers_of_two(x: Any, saturate: bool, round_mode: str) -> Any:
    """Numbers of e8m0, which are powers of two from 2**-127 to 2**127 and NaN."""
    mantissa, exponent = np.frexp(x.astype(np.float64))  # 0.5 <= mantissa < 1
    above = {"up": mantissa > 0.5, "down": np.zeros(x.shape, bool), "nearest": mantissa >= 0.75}[round_mode]
    # 0.5 * 2^e is 2^(e - 1), whose biased exponent is e - 1 + 127; there is no zero, the least number is nearest.
    code = np.where(x == 0, 0, exponent + 126 + above)
    largest = 254 if saturate else 255
    code = np.where(np.isnan(x) | (x < 0), 255, np.where(np.isinf(x), largest, np.clip(code, 0, largest)))
    return code.astype(np.uint8).view(narrow_dtype("float8_e8m0fnu"))


def _np_narrow(x: Any, dtype: str, saturate: bool, round_mode: str) -> Any:
    x = np.asarray(x)
    if dtype not in NARROW:
        from ...tir.dtype import to_numpy

        wide = x.astype(np.float32) if x.dtype.name.startswith("float") else x
        return wide.astype(to_numpy(dtype))
    target = narrow_dtype(dtype)
    if dtype == "float8_e8m0fnu":
        return _powers_of_two(x.astype(np.float32), saturate, round_mode)
    if dtype.startswith("float8") and saturate:
        import ml_dtypes

        limits = ml_dtypes.finfo(target)  # type: ignore[no-untyped-call]
        x = np.clip(x.astype(np.float32) if x.dtype != np.float64 else x, float(limits.min), float(limits.max))
    with np.errstate(all="ignore"):
        return x.astype(target)


@operator("narrow_cast", Pattern.OPAQUE, numpy=_np_narrow)
def narrow_cast(x: Expr, dtype: str, saturate: bool = True, round_mode: str = "up") -> StructInfo:
    """Elements to or from a dtype of 8 bits or less; what is too large for floats of 8 bits is the largest one, else infinite or NaN."""
    if round_mode not in _ROUND:
        raise DeclarationError(f"relax.op.narrow_cast: round_mode is one of {', '.join(_ROUND)}, not {round_mode!r}")
    if dtype in NARROW:
        return ObjectStructInfo()
    info = x.struct_info
    return TensorStructInfo(info.shape, dtype, None, info.ndim) if isinstance(info, TensorStructInfo) else TensorStructInfo(None, dtype)
