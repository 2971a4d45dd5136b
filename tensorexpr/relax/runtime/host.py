"""Calls that run as what their operators mean on NumPy's arrays: those of operators without kernels, and of unknown shapes.

Values of the machine are arrays of the runtime, NumPy's arrays of objects (strings, of which the runtime has no arrays), integers,
strings, None (an optional without a value), and tuples and lists (sequences) of these. Arrays pass in both directions without copies,
but for results that aren't compact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.device import cpu
from ...runtime.ndarray import NDArray, array
from ..expr import Call
from ..ops.narrow import NUMPY_ALONE
from ..ops.row import row_of
from ..struct_info import TensorStructInfo

VIEWED = "reshape (view)"  # the name of calls that compute nothing


def is_host(call: Any) -> bool:
    """Whether a call runs as its operator's meaning on NumPy's arrays."""
    row = row_of(call)
    return row is not None and row.numpy is not None and row.name != "shape_of"


def is_view(call: Any) -> bool:
    """Whether a call gives a tensor of known shape another one, and so computes nothing."""
    infos = [call.struct_info, call.args[0].struct_info] if isinstance(call, Call) and call.op == "relax.reshape" else []
    return bool(infos) and all(isinstance(info, TensorStructInfo) and info.extents is not None for info in infos)


def array_of(value: Any) -> Any:
    """A value of the machine as NumPy has it."""
    if isinstance(value, NDArray):
        return value.host_values()
    return type(value)(map(array_of, value)) if isinstance(value, (tuple, list)) else value


def value_of(found: Any) -> Any:
    """What a function on NumPy's arrays returns, as a value of the machine."""
    if isinstance(found, (np.ndarray, np.generic)):
        # The runtime's arrays are compact; a transposed view is copied here.
        made = np.asarray(found, order="C")
        return made if _is_kept(made.dtype) else NDArray(made, cpu())
    return type(found)(map(value_of, found)) if isinstance(found, (tuple, list)) else found


def _is_kept(dtype: Any) -> bool:
    """Whether the runtime has no arrays of a dtype: of objects and texts, and of most elements of 8 bits and less."""
    return dtype.kind in "OSU" or dtype.name in NUMPY_ALONE


def host_name(call: Call) -> str:
    """What a profile calls a call."""
    return VIEWED if is_view(call) else f"{str(call.op).removeprefix('relax.')} (NumPy)"


def converted(value: Any) -> Any:
    """An argument as functions take it: arrays of the runtime, integers, tuples of these."""
    if isinstance(value, (np.ndarray, np.floating, np.bool_)):
        if value.dtype.kind in "OSU":
            return value.astype(object)
        return value if _is_kept(value.dtype) else array(value)
    if isinstance(value, (list, tuple)):
        made = type(value)(map(converted, value))
        # The caller's own list if it can be: a transform that consumes its weights takes them out of it.
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    return int(value) if isinstance(value, np.integer) else value
