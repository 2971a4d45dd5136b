"""What functions of Relay's programs return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..runtime.container import ADT
from ..tir.function import IRModule


class ConstructorValue(ADT):
    """A value of an algebraic type.

    Args:
        tag: its constructor's number.
        fields: its values.
        constructor: the constructor.
    """

    __slots__ = ("constructor",)

    def __init__(self, tag: int, fields: Sequence[Any] = (), constructor: Any = None) -> None:
        super().__init__(tag, ())
        self._fields, self.constructor = tuple(fields), constructor


def result(value: Any, mod: IRModule) -> Any:
    """Several results as Relay's programs know them; values of algebraic types with the constructors of a module."""
    constructors = {one.tag: one for definition in mod.type_definitions.values() for one in definition.constructors}

    def made(one: Any) -> Any:
        if isinstance(one, tuple):
            return ADT(0, [made(part) for part in one])
        if isinstance(one, ADT) and one.tag:
            return ConstructorValue(one.tag, [made(part) for part in one.fields], constructors.get(one.tag))
        return one

    return made(value)


__all__ = ["ConstructorValue", "result"]
