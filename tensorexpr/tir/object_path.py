"""Paths from a program to one of its parts: ``<root>.body[1].value``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dataclass import dataclass

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """A path of steps, each to an attribute, an element of a list, or a value of a mapping.

    A step is a pair of a kind ("attr", "index", "value", "missing element", "missing entry") and where it goes.
    """

    steps: tuple[tuple[str, Any], ...] = ()

    @staticmethod
    def root(root_name: str | None = None) -> ObjectPath:
        """The program itself."""
        return ObjectPath()

    def attr(self, attr_key: str) -> ObjectPath:
        """To an attribute of what this path leads to."""
        return self._and("attr", attr_key)

    def array_index(self, index: int) -> ObjectPath:
        """To an element of a list."""
        return self._and("index", int(index))

    def map_value(self, key: Any) -> ObjectPath:
        """To the value of a key."""
        return self._and("value", key)

    def missing_array_element(self, index: int) -> ObjectPath:
        """To where an element of a list would be."""
        return self._and("missing element", int(index))

    def missing_map_entry(self) -> ObjectPath:
        """To where a mapping would have another key."""
        return self._and("missing entry", None)

    def _and(self, kind: str, place: Any) -> ObjectPath:
        return ObjectPath((*self.steps, (kind, place)))

    @property
    def parent(self) -> ObjectPath | None:
        """The path without its last step; None for the root."""
        return ObjectPath(self.steps[:-1]) if self.steps else None

    def __len__(self) -> int:
        return len(self.steps) + 1

    def get_prefix(self, length: int) -> ObjectPath:
        """The first part of the path.

        Raises:
            IndexError: for a length that is no number of steps of it, counting the root as one.
        """
        if not 1 <= length <= len(self):
            raise IndexError(f"a prefix of {self} has between 1 and {len(self)} steps, not {length}")
        return ObjectPath(self.steps[: length - 1])

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether `other` goes on from where this path leads, or is the same."""
        return other.steps[: len(self.steps)] == self.steps

    def follow(self, root: Any) -> list[Any]:
        """All that the path passes in a program, the root first, as far as it leads somewhere."""
        found = [root]
        for kind, place in self.steps:
            step = _step(found[-1], kind, place)
            if step is _NOTHING:
                break
            found.append(step)
        return found

    def __str__(self) -> str:
        return "<root>" + "".join(_shown(kind, place) for kind, place in self.steps)

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class ObjectPathPair:
    """The places of a difference on both sides."""

    lhs_path: ObjectPath
    rhs_path: ObjectPath


def _step(owner: Any, kind: str, place: Any) -> Any:
    if kind == "attr":
        return getattr(owner, place, _NOTHING)
    if kind == "index":
        return owner[place] if isinstance(owner, (tuple, list)) and place < len(owner) else _NOTHING
    if kind == "value" and isinstance(owner, Mapping):
        return owner.get(place, _NOTHING)
    return _NOTHING


def _shown(kind: str, place: Any) -> str:
    if kind == "attr":
        return f".{place}"
    if kind == "value":
        return f'["{place}"]' if type(place) is str else f"[{place}]"
    return {"index": f"[{place}]", "missing element": f"[<missing element #{place}>]", "missing entry": "[<missing entry>]"}[kind]
