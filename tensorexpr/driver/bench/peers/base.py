"""What a peer is: a library that may know how to compute a case, on the same arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....target import Target
from ....workloads import Case

Array = Any
Call = Callable[[], Any]


class Unsupported(Exception):
    """A peer has no way to compute a case; the message says why. It is a note in the table, not a failure."""


class Peer:
    """A library to measure against. Subclasses set `name`; `version` is read when one is made.

    Making one raises ImportError where the library isn't installed.
    """

    name = ""

    def __init__(self, target: Target) -> None:
        self.target, self.threads = target, target.num_cores
        self.version = ""

    @abstractmethod
    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """What to call, which computes the case on `arrays` (inputs in order) and returns the result.

        Constants of the case may be packed here, once.

        Raises:
            Unsupported: if the library has no such operator.
        """

    def network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """What to call, which runs an ONNX model on arrays by the names of its inputs, and returns its first output as an array.

        Raises:
            Unsupported: without a text, if the library runs no networks; with one, if it can't run this one.
        """
        raise Unsupported

    def exact_network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """As `network`, without what the library trades for speed: what others' results are compared with."""
        return self.network(model, feeds)

    def result(self, value: Any) -> Array:
        """The result of a call as a NumPy array."""
        return value

    def close(self) -> None:
        """Give up what the peer holds."""
        return None
