"""Types of types: whether a type is made of what it can be made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import TypeMismatchError
from ..tir.function import IRModule
from ..tir.types import FuncType, TupleType
from .adt import TypeData
from .ty import IncompleteType, TensorType
from .type_names import GlobalTypeVar, RefType, TypeCall, TypeKind, TypeRelation, TypeVar


def check_kind(t: Any, mod: IRModule | None = None) -> TypeKind:
    """What a type is a type of: `Type` of values, `ShapeVar` of an extent, `Constraint` of what is asked of types, ...

    Args:
        t: the type.
        mod: what defines algebraic types; without one their parameters aren't counted.

    Raises:
        TypeMismatchError: for a type that is made of what it can't be made of, or no type.
    """
    match t:
        case TypeVar() | GlobalTypeVar():
            return t.kind
        case TensorType():
            return TypeKind.Type
        case IncompleteType(kind):
            return TypeKind.Type if kind is None else TypeKind(kind)
        case RefType():
            return _of_types(t, (t.value,), mod)
        case TupleType(fields):
            return _of_types(t, fields, mod)
        case FuncType(args, ret):
            _check(t, t.type_constraints, TypeKind.Constraint, mod)
            return _of_types(t, (*args, ret), mod)
        case TypeRelation():
            _check(t, t.args, TypeKind.Type, mod)
            return TypeKind.Constraint
        case TypeCall(func, args):
            _check(t, (func,), TypeKind.AdtHandle, mod)
            wanted = len(_defined(func, mod).type_vars) if mod is not None else len(args)
            if wanted != len(args):
                raise TypeMismatchError(f"{t}: {func} has {wanted} parameters, not {len(args)}")
            return _of_types(t, args, mod)
        case TypeData(header, type_vars, constructors):
            _check(t, (header,), TypeKind.AdtHandle, mod)
            _check(t, (*type_vars, *(one for maker in constructors for one in maker.inputs)), TypeKind.Type, mod)
            return TypeKind.TypeData
    raise TypeMismatchError(f"only types have kinds, not {type(t).__name__}")


def _of_types(whole: Any, parts: Iterable[Any], mod: IRModule | None) -> TypeKind:
    _check(whole, parts, TypeKind.Type, mod)
    return TypeKind.Type


def _check(whole: Any, parts: Iterable[Any], wanted: TypeKind, mod: IRModule | None) -> None:
    for one in parts:
        # What nobody states may be any type.
        found = TypeKind.Type if one is None else check_kind(one, mod)
        if found != wanted:
            raise TypeMismatchError(f"a {type(whole).__name__} takes a {wanted.name} where {one} is a {found.name}")


def _defined(header: GlobalTypeVar, mod: IRModule) -> TypeData:
    if header not in mod.type_definitions:
        known = ", ".join(var.name_hint for var in mod.get_global_type_vars()) or "none"
        raise TypeMismatchError(f"the module doesn't define {header}; its types are {known}")
    found: TypeData = mod.type_definitions[header]
    return found


__all__ = ["check_kind"]
