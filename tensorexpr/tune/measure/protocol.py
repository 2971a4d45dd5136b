"""Frames between a tuner and its worker processes: a JSON header, then binary blobs, each behind its length.

    frame   = prefix sizes header blob...
    prefix  = b"TXM1" u32(bytes of the header) u32(number of blobs)
    sizes   = u32(bytes of a blob)...

Nothing in a frame is ever executed or unpickled. What does not fit is a `ProtocolError`: the reader then gives the
sender up, since nobody knows where its next frame would start.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ...dataclass import dataclass, field
from ...errors import TuningError

MAGIC = b"TXM1"
MAX_HEADER_BYTES = 16 << 20
MAX_BLOBS = 256
MAX_BLOB_BYTES = 256 << 20
MAX_FRAME_BYTES = 1 << 30
READ_BYTES = 1 << 20
_PREFIX = struct.Struct("<4sII")


class ProtocolError(TuningError):
    """Bytes from a worker process that are no frame: torn, too large or garbage."""


@dataclass(frozen=True)
class Frame:
    """One message: `header` holds JSON values and has a "type"; `blobs` are bytes that go with it."""

    header: dict[str, Any]
    blobs: tuple[bytes, ...] = ()

    @property
    def type(self) -> str:
        """What the message is about."""
        return str(self.header["type"])


def encode(frame: Frame) -> bytes:
    """The bytes of a frame.

    Raises:
        ProtocolError: if it is larger than the limits of this module, or holds what JSON can't.
    """
    try:
        header = json.dumps(frame.header, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"frame {frame.header.get('type')!r} can't be sent: {error}") from None
    sizes = [len(blob) for blob in frame.blobs]
    _check_sizes(len(header), len(sizes))
    _check_blobs(sizes)
    prefix = _PREFIX.pack(MAGIC, len(header), len(sizes))
    return b"".join((prefix, struct.pack(f"<{len(sizes)}I", *sizes), header, *frame.blobs))


@dataclass
class FrameDecoder:
    """Frames out of a stream of bytes that arrive in pieces of any size."""

    _buffer: bytearray = field(default_factory=bytearray)

    @property
    def is_torn(self) -> bool:
        """Whether the stream stands in the middle of a frame."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with `data`.

        Raises:
            ProtocolError: as soon as the bytes can't be the start of a frame within the limits.
        """
        self._buffer += data
        while (found := self._take()) is not None:
            yield found

    def _take(self) -> Frame | None:
        if len(self._buffer) < _PREFIX.size:
            # refused at the first wrong byte: waiting for a whole prefix would wait for ever for a sender that printed a word
            if not MAGIC.startswith(bytes(self._buffer[:4])):
                _refuse_start(self._buffer)
            return None
        magic, header_bytes, count = _PREFIX.unpack_from(self._buffer)
        if magic != MAGIC:
            _refuse_start(self._buffer)
        _check_sizes(header_bytes, count)
        start = _PREFIX.size + 4 * count
        if len(self._buffer) < start:
            return None
        sizes = struct.unpack_from(f"<{count}I", self._buffer, _PREFIX.size)
        # before the body is awaited: garbage for lengths would mean gigabytes that never come
        _check_blobs(sizes)
        end = start + header_bytes + sum(sizes)
        if len(self._buffer) < end:
            return None
        # released before the deletion below: a bytearray can't shrink while a view of it exists
        with memoryview(self._buffer) as view:
            header = _header(bytes(view[start : start + header_bytes]))
            blobs = tuple(_pieces(view, start + header_bytes, sizes))
        del self._buffer[:end]
        return Frame(header, blobs)


def _pieces(view: memoryview, start: int, sizes: Sequence[int]) -> Iterator[bytes]:
    for size in sizes:
        yield bytes(view[start : start + size])
        start += size


def _refuse_start(buffer: bytearray) -> NoReturn:
    raise ProtocolError(f"a frame starts with {MAGIC!r}, not {bytes(buffer[:16])!r}")


def _check_sizes(header_bytes: int, count: int) -> None:
    if header_bytes > MAX_HEADER_BYTES:
        raise ProtocolError(f"a frame's header of {header_bytes} bytes is over the limit of {MAX_HEADER_BYTES}")
    if count > MAX_BLOBS:
        raise ProtocolError(f"a frame with {count} blobs is over the limit of {MAX_BLOBS}")


def _check_blobs(sizes: Sequence[int]) -> None:
    if sizes and max(sizes) > MAX_BLOB_BYTES:
        raise ProtocolError(f"a blob of {max(sizes)} bytes is over the limit of {MAX_BLOB_BYTES}")
    if sum(sizes) > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame with {sum(sizes)} bytes of blobs is over the limit of {MAX_FRAME_BYTES}")


def _refuse_constant(text: str) -> NoReturn:
    raise ProtocolError(f"a frame's header holds {text}, which is no JSON")


def _header(data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame's header is no JSON: {str(error)[:120]}") from None
    if not isinstance(header, dict) or not isinstance(header.get("type"), str):
        raise ProtocolError(f"a frame's header is an object with a type, not {str(header)[:80]}")
    return header


class Channel:
    """The worker's end: two pipes that it inherited, read and written until the other side is gone."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._decoder = FrameDecoder()
        self._waiting: list[Frame] = []

    def receive(self) -> Frame | None:
        """The next frame; None when the other side has closed the pipe.

        Raises:
            ProtocolError: if the pipe ends within a frame or carries anything else.
        """
        while not self._waiting:
            data = os.read(self._read_fd, READ_BYTES)
            if not data:
                if self._decoder.is_torn:
                    raise ProtocolError("the pipe ends in the middle of a frame")
                return None
            self._waiting.extend(self._decoder.feed(data))
        return self._waiting.pop(0)

    def send(self, frame: Frame) -> None:
        """Write a frame, all of it."""
        view = memoryview(encode(frame))
        while view:
            # a pipe may take a part of it only
            view = view[os.write(self._write_fd, view) :]
