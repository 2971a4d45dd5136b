"""The types of variables and functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dataclass import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class FuncType(Type):
    """The type of a function.

    Args:
        arg_types, ret_type: of what it takes and returns.
        type_params: types that stand for any, of functions of graphs.
        type_constraints: accepted if empty.
    """

    arg_types: tuple[Type, ...]
    ret_type: Type
    type_params: tuple[Type, ...] = ()
    type_constraints: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        for name in ("arg_types", "type_params", "type_constraints"):
            object.__setattr__(self, name, tuple(getattr(self, name) or ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FuncType) or len(self.type_params) != len(other.type_params):
            return False
        # What parameters are called says nothing: theirs stand in place of ours.
        mine = substituted((*self.arg_types, self.ret_type), dict(zip(self.type_params, other.type_params, strict=True)))
        return bool(mine == (*other.arg_types, other.ret_type))

    def __hash__(self) -> int:
        return hash((len(self.arg_types), len(self.type_params)))

    def __str__(self) -> str:
        return f"I.FuncType([], [{', '.join(map(str, self.arg_types))}], {self.ret_type})"


def substituted(given: Any, values: Mapping[Any, Any]) -> Any:
    """A type, or a tuple of them, with others in place of type parameters."""
    if not values:
        return given
    match given:
        case tuple():
            return tuple(substituted(one, values) for one in given)
        case TupleType(fields):
            return TupleType(substituted(fields, values))
        case FuncType(params, ret):
            return FuncType(substituted(params, values), substituted(ret, values), given.type_params)
    if hasattr(given, "substituted"):
        return given.substituted(values)
    return values.get(given, given)
