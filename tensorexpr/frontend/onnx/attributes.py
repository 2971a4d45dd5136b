"""The attributes of a node, with their types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import ModelError
from .tensors import array_of

_NO_DEFAULT: Any = object()
_TYPES = ("UNDEFINED", "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS", "SPARSE_TENSOR")


class Attributes:
    """Attributes by name; each accessor raises ModelError for an attribute of another type, or one that is missing without a default.

    Args:
        protos: the attributes of the node.
        where: the node, for messages.
    """

    def __init__(self, protos: Sequence[Any], where: str) -> None:
        self.protos = {one.name: one for one in protos}
        self._where = where

    def __contains__(self, name: str) -> bool:
        return name in self.protos

    def __iter__(self) -> Iterator[str]:
        return iter(self.protos)

    def _of(self, name: str, kind: str, default: Any) -> Any:
        found = self.protos.get(name)
        if found is None:
            if default is _NO_DEFAULT:
                raise ModelError(f"{self._where} lacks the attribute {name!r}")
            return None
        stated = _TYPES[found.type] if 0 <= found.type < len(_TYPES) else str(found.type)
        # The first version of the format had no types of attributes.
        if stated not in (kind, "UNDEFINED"):
            raise ModelError(f"{self._where}: the attribute {name!r} is {kind}, not {stated}")
        return found

    def int(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """An integer."""
        found = self._of(name, "INT", default)
        return default if found is None else int(found.i)

    def bool(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A condition, which is an integer in the file."""
        found = self._of(name, "INT", default)
        return default if found is None else found.i != 0

    def float(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A number."""
        found = self._of(name, "FLOAT", default)
        return default if found is None else float(found.f)

    def string(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A string."""
        found = self._of(name, "STRING", default)
        return default if found is None else _text(found.s, self._where)

    def ints(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A list of integers."""
        found = self._of(name, "INTS", default)
        return default if found is None else [int(one) for one in found.ints]

    def floats(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A list of numbers."""
        found = self._of(name, "FLOATS", default)
        return default if found is None else [float(one) for one in found.floats]

    def strings(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A list of strings."""
        found = self._of(name, "STRINGS", default)
        return default if found is None else [_text(one, self._where) for one in found.strings]

    def tensor(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """An array."""
        found = self._of(name, "TENSOR", default)
        return default if found is None else array_of(found.t, f"{self._where}: {name}")

    def graph(self, name: str, default: Any = _NO_DEFAULT) -> Any:
        """A graph, as it is in the file."""
        found = self._of(name, "GRAPH", default)
        return default if found is None else found.g


def _text(value: Any, where: str) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise ModelError(f"{where} has a string that is no UTF-8") from None
