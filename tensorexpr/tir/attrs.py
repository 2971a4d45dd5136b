"""An immutable mapping for annotations and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class FrozenMap(Mapping[str, Any]):
    """A mapping that can't change, so nodes may share it; identity is its hash, contents its equality."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return id(self) >> 4

    def set(self, **items: Any) -> FrozenMap:
        """This mapping with some keys set."""
        return FrozenMap({**self._items, **items})

    def __repr__(self) -> str:
        return repr(self._items)


EMPTY = FrozenMap()
