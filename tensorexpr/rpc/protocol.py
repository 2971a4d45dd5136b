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


def packed(head: dict[str, Any], body: bytes = b"") -> bytes:
    """What goes before the bytes of a message.

    Raises:
        TypeError, ValueError: for what is no JSON; nothing was sent then.
    """
    text = json.dumps(head).encode()
    return _LENGTHS.pack(len(text), len(body)) + text


def send(connection: socket.socket, head: dict[str, Any], body: bytes = b"") -> None:
    """Send one message."""
    send_packed(connection, packed(head, body), body)


def send_packed(connection: socket.socket, message: bytes, body: bytes) -> None:
    """Send one message, of what `packed` made for it."""
    connection.sendall(message)
    if body:
        connection.sendall(body)


def receive(connection: socket.socket, most_head: int = _MOST_HEAD, most_body: int = _MOST_BODY) -> tuple[dict[str, Any], bytes]:
    """The next message.

    Args:
        most_head, most_body: bytes; of a longer message nothing is read.

    Raises:
        EOFError: if the other side closed the connection.
        RPCError: for what is no message.
    """
    head_size, body_size = _LENGTHS.unpack(_read(connection, _LENGTHS.size))
    # before anything is read: other programs that connect send text, whose bytes are huge lengths
    if head_size > most_head or body_size > most_body:
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
