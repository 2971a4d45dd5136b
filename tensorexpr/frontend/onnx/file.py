"""The file of a model, whose large initializers stay where they are until somebody needs them.

A model is mostly weights. Read as a whole they would be in memory as bytes of the file, as bytes of the message and as arrays. So the
message is made of what is around them, and each says where its bytes are, in the words of the format: it is external data, in the
model's own file.

    ModelProto { 7: GraphProto { 5: TensorProto { 9: raw_data } } }        fields by number, of onnx.proto
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # wire types (protobuf.dev, "Encoding")
_SMALLEST = 1 << 16  # bytes of what is left in the file: a smaller tensor is read as soon as sought


class _Other(Exception):
    """Bytes that aren't written as expected; the parser of protobuf decides what they are."""


def model_bytes(path: Path) -> bytes:
    """The file of a model without the bytes of its large initializers, which become external data; all of it where that can't be."""
    # External data is looked for in the folder of the model, and a link leads out of it.
    if Path(os.path.realpath(path)) == Path(os.path.realpath(path.parent), path.name):
        try:
            with path.open("rb") as file:
                return _model(file, path)
        except _Other:
            pass
    return path.read_bytes()


def _model(file: BinaryIO, path: Path) -> bytes:
    graphs = 0
    made = bytearray()
    for number, kind, first, start, end in _fields(file, 0, path.stat().st_size):
        if number != _GRAPH or kind != _LENGTH:
            made += _bytes(file, first, end)
            continue
        graphs += 1
        made += _field(_GRAPH, _graph(file, start, end, path))
    # Messages of one field are merged, and that is more than to put one behind the other.
    if graphs != 1:
        raise _Other
    return bytes(made)


def _graph(file: BinaryIO, start: int, end: int, path: Path) -> bytes:
    made = bytearray()
    for number, kind, first, begin, behind in _fields(file, start, end):
        if number == _INITIALIZER and kind == _LENGTH and behind - begin >= _SMALLEST:
            made += _field(_INITIALIZER, _tensor(file, begin, behind, path))
        else:
            made += _bytes(file, first, behind)
    return bytes(made)


def _tensor(file: BinaryIO, start: int, end: int, path: Path) -> bytes:
    """A tensor whose bytes are external data, if it has as many that this is worth it."""
    made = bytearray()
    places: list[tuple[int, int]] = []
    for number, kind, first, begin, behind in _fields(file, start, end):
        if number in (_EXTERNAL_DATA, _DATA_LOCATION):
            raise _Other
        if number == _RAW_DATA and kind == _LENGTH:
            places.append((begin, behind - begin))
        else:
            made += _bytes(file, first, behind)
    if len(places) != 1 or places[0][1] < _SMALLEST:
        return _bytes(file, start, end)
    return bytes(made) + _external(path.name, *places[0])


def _external(name: str, offset: int, length: int) -> bytes:
    from onnx import TensorProto

    said: Any = TensorProto(data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", str(offset)), ("length", str(length))):
        said.external_data.add(key=key, value=value)
    return bytes(said.SerializeToString())


def _fields(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """The fields of a message: number, wire type, where it begins, and where its content begins and ends."""
    at = start
    while at < end:
        tag, begin = _varint(file, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            behind = _varint(file, begin, end)[1]
        elif kind == _LENGTH:
            length, begin = _varint(file, begin, end)
            behind = begin + length
        elif kind in (_FIXED32, _FIXED64):
            behind = begin + (4 if kind == _FIXED32 else 8)
        else:
            raise _Other
        if behind > end or number == 0:
            raise _Other
        yield number, kind, at, begin, behind
        at = behind


def _varint(file: BinaryIO, at: int, end: int) -> tuple[int, int]:
    """A number of seven bits a byte, the least ones first, and where it ends."""
    file.seek(at)
    found = file.read(min(10, end - at))
    value = 0
    for n, byte in enumerate(found):
        value |= (byte & 127) << (7 * n)
        if byte < 128:
            return value, at + n + 1
    raise _Other


def _bytes(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    found = file.read(end - start)
    # The file may have become shorter meanwhile.
    if len(found) != end - start:
        raise _Other
    return found


def _field(number: int, content: bytes) -> bytes:
    length, head = len(content), bytearray([number << 3 | _LENGTH])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + content
