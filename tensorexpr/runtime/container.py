"""Texts, shapes, sequences and tuples of the runtime, by the names that programs ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..ir.container import Array, Map, getitem_helper
from .object import Object, ObjectTypes, ShapeTuple, String, convert


class ADT(Object):
    """A tagged tuple: what functions take and give where several values travel as one.

    Args:
        tag: which kind of value it is; 0 for a plain tuple.
        fields: arrays, numbers, texts, tuples.
    """

    __slots__ = ("_fields", "tag")

    def __init__(self, tag: int, fields: Sequence[Any]) -> None:
        self.tag = tag
        self._fields = tuple(convert(field) for field in fields)

    @classmethod
    def of(cls, tag: int, fields: tuple[Any, ...]) -> ADT:
        """A value whose fields are kept as they are."""
        made = cls(tag, ())
        made._fields = fields
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """All fields."""
        return self._fields

    def __getitem__(self, idx: int | slice) -> Any:
        return getitem_helper(self._fields, tuple.__getitem__, len(self), idx)

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return ADT, (self.tag, self._fields)

    def __repr__(self) -> str:
        return f"ADT({self.tag}, {list(self._fields)})"


def tuple_object(fields: Sequence[Any] | None = None) -> ADT:
    """A plain tuple of values."""
    return ADT(0, fields or ())


__all__ = ["ADT", "Array", "Map", "ObjectTypes", "ShapeTuple", "String", "getitem_helper", "tuple_object"]
