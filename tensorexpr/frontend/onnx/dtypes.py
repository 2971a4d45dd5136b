"""Element types of ONNX by number, as dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import ModelError
from ...relax.ops.narrow import NARROW, narrow_dtype
from ...tir.dtype import to_numpy

# onnx.proto, TensorProto.DataType; complex numbers and the types of four bits and less have no kernels.
DTYPES: Mapping[int, str] = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn",
    18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu",
    25: "uint2", 26: "int2",
}  # fmt: skip
NUMBERS: Mapping[str, int] = {name: number for number, name in DTYPES.items()}
_COMPUTED = frozenset((*range(1, 8), *range(9, 14), 16))


def dtype_of(number: int, where: str) -> str:
    """The dtype of an element type.

    Args:
        number: as of TensorProto.DataType.
        where: for messages.

    Raises:
        ModelError: for one that there isn't.
    """
    if number not in DTYPES:
        raise ModelError(f"{where}: {number} is no element type; there are 1 to {max(DTYPES)}")
    return DTYPES[number]


def is_computed(dtype: str) -> bool:
    """Whether tensors of the dtype can be values of graphs."""
    return NUMBERS.get(dtype) in _COMPUTED


def numpy_dtype(dtype: str) -> Any:
    """The dtype of NumPy's arrays; object for strings."""
    if dtype == "string":
        return np.dtype(object)
    if dtype in NARROW:
        return narrow_dtype(dtype)
    return np.dtype(dtype) if dtype.startswith("complex") else to_numpy(dtype)


def computed_as(dtype: str) -> str:
    """The dtype in which kernels have numbers of one that they don't read: integers of eight bits, or float32."""
    if dtype not in NARROW:
        return dtype
    return "float32" if dtype.startswith("float") else "uint8" if dtype.startswith("u") else "int8"
