"""Sequences and mappings of nodes, by the names that programs ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self[key] if key in self else default  # noqa: SIM401  # `get` is what is defined here

    def items(self) -> list[tuple[Any, Any]]:  # type: ignore[override]
        """The pairs of keys and values as a list, which has a first."""
        return list(super().items())

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very mapping."""
        return self is other


def getitem_helper(obj: Any, elem_getter: Callable[[Any, int], Any], length: int, idx: int | slice) -> Any:
    """What `obj[idx]` is for a sequence that can tell its elements one by one.

    Args:
        obj: the sequence.
        elem_getter: the sequence and a number from 0 -> the element.
        length: how many there are.
        idx: a number, from the end if negative, or a slice, which gives a list.

    Raises:
        IndexError: for a number beyond the ends.
    """
    if isinstance(idx, slice):
        return [elem_getter(obj, number) for number in range(*idx.indices(length))]
    if not -length <= idx < length:
        raise IndexError(f"index {idx} of a sequence of {length} elements")
    return elem_getter(obj, idx % length)
