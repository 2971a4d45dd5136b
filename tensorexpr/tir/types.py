"""The types of variables and functions."""

from __future__ import annotations

from dataclasses import dataclass

from .node import Object


class Type(Object):
    """Base of the types of variables and functions."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PrimType(Type):
    """The type of a scalar value that a pointer points to."""

    dtype: str

    def __str__(self) -> str:
        return f"T.{self.dtype}"


@dataclass(frozen=True, slots=True)
class PointerType(Type):
    """A pointer to elements of `element_type` that live in `storage_scope`."""

    element_type: PrimType
    storage_scope: str = "global"

    def __str__(self) -> str:
        scope = f', "{self.storage_scope}"' if self.storage_scope else ""
        return f'T.handle("{self.element_type.dtype}"{scope})'


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """The type of several values; of none, of what returns nothing."""

    fields: tuple[Type, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))

    def __str__(self) -> str:
        return f"T.Tuple({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class FuncType(Type):
    """The type of a function."""

    arg_types: tuple[Type, ...]
    ret_type: Type

    def __post_init__(self) -> None:
        object.__setattr__(self, "arg_types", tuple(self.arg_types))

    def __str__(self) -> str:
        return f"I.FuncType([], [{', '.join(map(str, self.arg_types))}], {self.ret_type})"
