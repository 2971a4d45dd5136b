"""How the messages of a session get to where they are answered: through a socket, or through a fleet."""

from __future__ import annotations

import socket
from typing import Any, Protocol

from ..errors import RPCError
from ..fleet.lending import Lent
from ..fleet.loans import TIMED
from ..tune.measure.protocol import Frame
from . import protocol

Message = tuple[dict[str, Any], bytes]
# The fleet's frames hold some pieces of limited size.
_PIECE_BYTES = 64 << 20


class Link(Protocol):
    """Messages and their answers, one after the other."""

    @property
    def where(self) -> str:
        """Who answers."""

    def answer(self, head: dict[str, Any], body: bytes = b"") -> Message:
        """The answer to a message.

        Raises:
            EOFError, OSError: if nobody answers any more.
            TypeError, ValueError, RPCError: if the message can't be sent; nothing was, then.
        """

    def close(self) -> None:
        """End the session. Safe to call again."""


class SocketLink:
    """A connection to a server."""

    def __init__(self, connection: socket.socket, where: str) -> None:
        self._connection, self._where = connection, where

    @property
    def where(self) -> str:
        """The server's address."""
        return self._where

    def answer(self, head: dict[str, Any], body: bytes = b"") -> Message:
        """The server's answer."""
        message = protocol.packed(head, body)
        protocol.send_packed(self._connection, message, body)
        return protocol.receive(self._connection)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class LentLink:
    """A device that a fleet lends."""

    def __init__(self, lent: Lent) -> None:
        self._lent = lent

    @property
    def where(self) -> str:
        """The worker's address."""
        return self._lent.where

    def answer(self, head: dict[str, Any], body: bytes = b"") -> Message:
        """The answer of the process that serves the loan."""
        kind = TIMED if head.get("do") == "time" or head.get("name") == "benchmark" else "do"
        answer = self._lent.answer(Frame({"type": kind, "head": head}, pieces_of(body)))
        if answer.type != "done":
            raise RPCError(f"{answer.header.get('message', answer.type)}")
        return answer.header["head"], b"".join(answer.blobs)

    def close(self) -> None:
        """Give the device back."""
        self._lent.close()


def pieces_of(body: bytes) -> tuple[bytes, ...]:
    """Bytes as blobs of a frame."""
    return tuple(body[start : start + _PIECE_BYTES] for start in range(0, len(body), _PIECE_BYTES))
