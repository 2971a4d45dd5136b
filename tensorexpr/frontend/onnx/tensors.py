"""Tensors of files become arrays; data beside the file is read only where it may be."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelError
from ...runtime.ndarray import empty
from .dtypes import dtype_of, is_computed, numpy_dtype

_LARGEST = 1 << 40  # bytes of a tensor; more is an overflow that somebody made
_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # of element types that share bytes


def elements_of(proto: Any, where: str) -> int:
    """How many elements a tensor of a file says it has.

    Raises:
        ModelError: for negative extents, and sizes that no memory holds.
    """
    dims = [int(one) for one in proto.dims]
    if any(one < 0 for one in dims):
        raise ModelError(f"{where} has shape {dims}: an extent is negative")
    count = math.prod(dims)
    if count > _LARGEST or max(dims, default=0) > _LARGEST:
        raise ModelError(f"{where} has shape {dims}: {count} elements are more than any memory holds")
    return count


def check_tensor(proto: Any, where: str, folder: Path | None) -> None:
    """Look whether a tensor of a file can be read.

    Args:
        proto: of it.
        where: for messages.
        folder: that of the file, where external data may be; None for a model that was in memory.

    Raises:
        ModelError: for another amount of data than its shape says, unknown element types, external data outside of the folder.
    """
    from onnx import helper

    dtype = dtype_of(proto.data_type, where)
    count = elements_of(proto, where)
    if proto.data_location == 1:
        if dtype == "string":
            raise ModelError(f"{where} has strings in another file, which the format hasn't")
        external_bytes(proto, where, folder, read=False)
        return
    if dtype == "string":
        if len(proto.string_data) != count:
            raise ModelError(f"{where} has {len(proto.string_data)} strings, and its shape {list(proto.dims)} is of {count}")
        return
    bits = _BITS.get(proto.data_type) or numpy_dtype(dtype).itemsize * 8
    if proto.HasField("raw_data"):
        # Three elements of four bits are two bytes, the second one half full.
        size = -(-count * bits // 8)
        if len(proto.raw_data) != size:
            raise ModelError(f"{where} has {len(proto.raw_data)} bytes, where its shape {list(proto.dims)} of {dtype} needs {size}")
        return
    given = len(getattr(proto, helper.tensor_dtype_to_field(proto.data_type)))
    needed = count * 2 if dtype.startswith("complex") else -(-count * bits // 8) if proto.data_type in _BITS else count
    if given != needed:
        raise ModelError(f"{where} has {given} values, where its shape {list(proto.dims)} of {dtype} needs {needed}")


def external_bytes(proto: Any, where: str, folder: Path | None, read: bool = True) -> Any:
    """The data of a tensor that is beside the model's file, as an array of bytes where kernels may read it; None if it isn't to be read.

    Raises:
        ModelError: if it is outside of the model's folder (also by a symbolic link), missing, or too short.
    """
    entries = {one.key: one.value for one in proto.external_data}
    name = entries.get("location", "")
    if folder is None:
        raise ModelError(f"{where} is in the file {name!r}, and the folder of the model isn't known: import the model by its path")
    root = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(root / name))
    if not name or os.path.isabs(name) or "\0" in name or root not in path.parents:
        raise ModelError(f"{where} is in {name!r}, which isn't inside of the model's folder {root}")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
    except ValueError:
        raise ModelError(f"{where}: offset and length of external data are integers, not {entries}") from None
    if not path.is_file():
        raise ModelError(f"{where} is in {name!r}, which is no file in {root}")
    bits = _BITS.get(proto.data_type) or numpy_dtype(dtype_of(proto.data_type, where)).itemsize * 8
    needed = -(-elements_of(proto, where) * bits // 8)
    size = path.stat().st_size
    if offset < 0 or (length not in (-1, needed)) or offset + needed > size:
        raise ModelError(f"{where} needs {needed} bytes at {offset} of {name!r}, which has {size}; the model says {length}")
    if not read:
        return None
    found: Any = empty((needed,), "uint8").host_values()
    with path.open("rb") as file:
        file.seek(offset)
        # The file may have become shorter meanwhile.
        if file.readinto(found) != needed:
            raise ModelError(f"{where} needs {needed} bytes at {offset} of {name!r}, which ends before")
    return found


def array_of(proto: Any, where: str, folder: Path | None = None) -> Any:
    """The array that a tensor of a file is; strings are Python's, in an array of objects.

    Raises:
        ModelError: as of `check_tensor`.
    """
    from onnx import TensorProto, numpy_helper

    check_tensor(proto, where, folder)
    dtype = dtype_of(proto.data_type, where)
    if dtype == "string":
        return np.array([one.decode() for one in proto.string_data], dtype=object).reshape(list(proto.dims))
    data = None
    if proto.data_location == 1:  # EXTERNAL
        # Read here, where the path is checked: onnx's numpy_helper would look for the file by itself.
        data = external_bytes(proto, where, folder)
    elif proto.HasField("raw_data"):
        data = proto.raw_data
    if data is not None and proto.data_type not in _BITS:
        return np.frombuffer(data, numpy_dtype(dtype)).reshape(list(proto.dims))  # on the bytes, which numpy_helper copies
    if data is not None:
        proto = TensorProto(dims=proto.dims, data_type=proto.data_type, raw_data=bytes(data))
    found = numpy_helper.to_array(proto)
    return found.astype(numpy_dtype(dtype), copy=False) if is_computed(dtype) else found
