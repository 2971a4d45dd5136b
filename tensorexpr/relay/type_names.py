"""The names of types: parameters (`TypeVar`), algebraic types (`GlobalTypeVar`), and these at parameters (`TypeCall`); `TypeRelation`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from ..dataclass import dataclass, field
from ..errors import TypeMismatchError
from ..relax.struct_info import ObjectStructInfo
from ..tir.types import Type, substituted


class TypeKind(IntEnum):
    """What a type is a type of; by TVM's numbers."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


@dataclass(frozen=True, eq=False)
class TypeVar(Type):
    """A parameter of a type or a function, which stands for any type.

    Args:
        name_hint: what it is called.
        kind: accepted: it stands for types.
    """

    name_hint: str
    kind: TypeKind = TypeKind.Type

    def __str__(self) -> str:
        return self.name_hint


@dataclass(frozen=True)
class GlobalTypeVar(Type):
    """The name of an algebraic type of a module; called with types, the type of these parameters.

    Args:
        name_hint: the name.
        kind: accepted.
    """

    name_hint: str
    kind: TypeKind = field(default=TypeKind.AdtHandle, compare=False)

    def __call__(self, *args: Any) -> TypeCall:
        return TypeCall(self, args)

    def __str__(self) -> str:
        return self.name_hint


@dataclass(frozen=True)
class TypeCall(Type):
    """An algebraic type at parameters: `List[int32]`.

    Args:
        func: the GlobalTypeVar.
        args: types.
    """

    func: GlobalTypeVar
    args: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.func, GlobalTypeVar):
            raise TypeMismatchError(f"only algebraic types have parameters, not {self.func}; a relay.GlobalTypeVar names one")
        object.__setattr__(self, "args", tuple(self.args))

    def substituted(self, values: Mapping[Any, Any]) -> TypeCall:
        """The type with others in place of parameters."""
        return called(self.func, tuple(substituted(one, values) for one in self.args))

    def __str__(self) -> str:
        return f"{self.func.name_hint}[{', '.join(map(str, self.args))}]" if self.args else self.func.name_hint


@dataclass(frozen=True, eq=False)
class TypeRelation(Type):
    """What is asked of some types, stated in a `FuncType`. It is there to be read: operators' results follow from their rows.

    Args:
        func: says it, such as an `ir.EnvFunc`; nothing calls it.
        args: the types, those of inputs first.
        num_inputs: how many are inputs.
        attrs: of a call.
    """

    func: Any
    args: tuple[Any, ...]
    num_inputs: int
    attrs: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))


_REFERENCE = GlobalTypeVar("ref")


class RefType(TypeCall):
    """The type of a reference.

    Args:
        value: the type of what it holds; None if it isn't known.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(_REFERENCE, (value,))

    @property
    def value(self) -> Any:
        """The type of what it holds."""
        return self.args[0]

    def __str__(self) -> str:
        return f"ref({'_' if self.value is None else self.value})"


def called(header: GlobalTypeVar, args: tuple[Any, ...]) -> TypeCall:
    """A type at parameters; a reference, too, is a type with one."""
    return RefType(*args) if header is _REFERENCE else TypeCall(header, args)


@dataclass(frozen=True, eq=False, repr=False)
class Named(ObjectStructInfo):
    """A value of an algebraic type, or of the type that a parameter stands for; an object, as graphs know it.

    Args:
        type: a TypeCall, a TypeVar or a GlobalTypeVar without parameters.
    """

    type: Type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)
