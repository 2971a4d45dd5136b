"""Sequences and mappings of nodes, by the names that programs ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class _AnySequence(type):
    """Sequences of nodes are tuples and lists here: all of them are instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (tuple, list))


class _AnyMapping(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Mapping)


class Array(tuple[Any, ...], metaclass=_AnySequence):
    """An immutable sequence. Fields of nodes are plain tuples, which count as such."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very sequence."""
        return self is other


class Map(dict[Any, Any], metaclass=_AnyMapping):
    """A mapping. Annotations and attributes are mappings of our own, which count as such."""

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very mapping."""
        return self is other


__all__ = ["Array", "Map"]
