"""Messages between a session and its server: lengths, a JSON object, and bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from ..errors import RPCError

VERSION = 1
_LENGTHS = struct.Struct("<IQ")
_MOST_HEAD = 1 << 20
_MOST_BODY = 1 << 34


def send(connection: socket.socket, head: dict[str, Any], body: bytes = b"") -> None:
    """Send one message."""
    text = json.dumps(head).encode()
    connection.sendall(_LENGTHS.pack(len(text), len(body)) + text)
    if body:
        connection.sendall(body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """The next message.

    Raises:
        EOFError: if the other side closed the connection.
        RPCError: for what is no message.
    """
    head_size, body_size = _LENGTHS.unpack(_read(connection, _LENGTHS.size))
    # before anything is read: other programs that connect send text, whose bytes are huge lengths
    if head_size > _MOST_HEAD or body_size > _MOST_BODY:
        raise RPCError(f"a message of {head_size} and {body_size} bytes is too long; is the other side a server of tensorexpr?")
    try:
        head = json.loads(_read(connection, head_size))
    except (ValueError, RecursionError) as error:
        raise RPCError(f"a message is no JSON: {error}") from None
    if not isinstance(head, dict):
        raise RPCError("a message is no JSON object")
    return head, _read(connection, body_size)


def _read(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise EOFError("the other side closed the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
