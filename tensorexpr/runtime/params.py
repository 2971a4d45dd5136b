"""Named arrays as bytes, in the layout that TVM's `save_param_dict` writes and reads.

Little-endian: a magic number, a reserved word, the names (a count, then each with its length), the count of arrays, and each array: a
magic number, a reserved word, device type and index, dimensions, dtype (code, bits, lanes), extents, bytes, elements.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, RecordError
from ..tir.dtype import to_numpy
from . import ndarray as nd

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}
_NAMES = {code: name for name, code in _CODES.items()}
_MOST_DIMENSIONS = 64


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The bytes of named arrays.

    Raises:
        ArgumentError: for a dtype that has no place in the format.
    """
    names = list(params)
    parts = [struct.pack("<QQQ", _LIST_MAGIC, 0, len(names))]
    parts += [struct.pack("<Q", len(name.encode())) + name.encode() for name in names]
    parts.append(struct.pack("<Q", len(names)))
    for name in names:
        parts += _packed(name, nd.array(params[name]))
    return bytearray().join(parts)


def _packed(name: str, array: nd.NDArray) -> list[bytes]:
    values = array.numpy()
    kind = array.dtype.rstrip("0123456789")
    # TVM's bool is an unsigned integer of one bit, in a byte.
    if array.dtype == "bool":
        code, bits = _CODES["uint"], 1
    elif kind in _CODES:
        code, bits = _CODES[kind], values.dtype.itemsize * 8
    else:
        raise ArgumentError(
            f"parameter {name!r} has dtype {array.dtype}, which can't be saved; cast it to one of int, uint, float, bfloat, bool"
        )
    head = struct.pack("<QQiiiBBH", _ARRAY_MAGIC, 0, 1, 0, values.ndim, code, bits, 1)
    return [head, struct.pack(f"<{values.ndim}q", *values.shape), struct.pack("<q", values.nbytes), values.tobytes()]


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, nd.NDArray]:
    """The named arrays of such bytes.

    Raises:
        RecordError: for bytes that are torn or something else.
    """
    reader = _Reader(bytes(param_bytes))
    magic, _, count = reader.words("<QQQ")
    if magic != _LIST_MAGIC:
        raise RecordError("these bytes hold no parameters: they begin with another number")
    names = [reader.text() for _ in range(reader.counted(count))]
    # The format counts names and arrays apart.
    (arrays,) = reader.words("<Q")
    if arrays != len(names):
        raise RecordError(f"{len(names)} names for {arrays} parameters")
    return {name: reader.array(name) for name in names}


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._place + size > len(self._data):
            raise RecordError(f"parameters end at byte {len(self._data)}, in the middle of a field")
        self._place += size
        return self._data[self._place - size : self._place]

    def words(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def counted(self, count: int) -> int:
        """A count of things that have 8 bytes at least."""
        # Before a list of that length is made: a torn count would ask for any amount of memory.
        if count * 8 > len(self._data):
            raise RecordError(f"{count} parameters don't fit into {len(self._data)} bytes")
        return count

    def text(self) -> str:
        try:
            return self.take(*self.words("<Q")).decode()
        except UnicodeDecodeError as error:
            raise RecordError(f"the name of a parameter is no text: {error}") from None

    def array(self, name: str) -> nd.NDArray:
        """The next array; `name` is for the error."""
        magic, _, _, _, ndim, code, bits, lanes = self.words("<QQiiiBBH")
        if magic != _ARRAY_MAGIC or not 0 <= ndim <= _MOST_DIMENSIONS or code not in _NAMES or lanes != 1:
            raise RecordError(
                f"parameter {name!r} is no array that can be read: magic {magic:x}, {ndim} dimensions, dtype {code}/{bits}x{lanes}"
            )
        shape = self.words(f"<{ndim}q")
        (size,) = self.words("<q")
        spelled = "bool" if (code, bits) == (_CODES["uint"], 1) else f"{_NAMES[code]}{bits}"
        try:
            element = to_numpy(spelled)
        except ValueError as error:
            raise RecordError(f"parameter {name!r}: {error}") from None
        if any(extent < 0 for extent in shape) or math.prod(shape) * element.itemsize != size:
            raise RecordError(f"parameter {name!r} has {size} bytes, not those of {spelled}{list(shape)}")
        # A copy: frombuffer gives a read-only view, aligned to whatever stood before it.
        return nd.array(np.frombuffer(self.take(size), element).reshape(shape))


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write `save_param_dict(params)` to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, nd.NDArray]:
    """The named arrays in a file that `save_param_dict_to_file` wrote.

    Raises:
        RecordError: for a file of something else.
    """
    return load_param_dict(Path(path).read_bytes())
