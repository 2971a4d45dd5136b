"""Walks over types: `TypeFunctor` calls the method of a type's kind, `TypeVisitor` visits all parts, `TypeMutator` makes other types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..tir.types import FuncType, TupleType
from .adt import TypeData
from .ty import IncompleteType, TensorType
from .type_names import GlobalTypeVar, RefType, TypeCall, TypeVar

_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var", IncompleteType: "visit_incomplete_type", TensorType: "visit_tensor_type", FuncType: "visit_func_type",
    TupleType: "visit_tuple_type", RefType: "visit_ref_type", GlobalTypeVar: "visit_global_type_var", TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
}  # fmt: skip


def parts(typ: Any) -> tuple[Any, ...]:
    """The types that a type is made of."""
    match typ:
        case FuncType(args, ret, params):
            return (*args, ret, *params)
        case TupleType(fields):
            return fields
        case RefType():
            return (typ.value,)
        case TypeCall(func, args):
            return (func, *args)
        case TypeData(header, type_vars, constructors):
            return (header, *type_vars, *(one for constructor in constructors for one in constructor.inputs))
    return ()


class TypeFunctor:
    """Calls the method of a type's kind: `visit_tensor_type`, `visit_func_type`, `visit_type_call` and so on."""

    def visit(self, typ: Any) -> Any:
        """The result for a type.

        Raises:
            TypeError: for what is no type.
            NotImplementedError: for a kind whose method isn't there.
        """
        name = next((method for kind, method in _METHODS.items() if isinstance(typ, kind)), None)
        if name is None:
            raise TypeError(f"a type functor visits types, not {type(typ).__name__}")
        return getattr(self, name)(typ)

    def _unhandled(self, typ: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method for {type(typ).__name__}")

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = _unhandled
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = _unhandled


class TypeVisitor(TypeFunctor):
    """Visits all parts of a type; a method that is overridden decides whether to go on."""

    def _parts(self, typ: Any) -> None:
        for one in parts(typ):
            self.visit(one)

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = _parts
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = _parts


class TypeMutator(TypeFunctor):
    """Makes a type of another: a method returns what stands in place of its type. What doesn't change stays the one that it is."""

    def _itself(self, typ: Any) -> Any:
        return typ

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_global_type_var = visit_type_data = _itself

    def _each(self, types: tuple[Any, ...]) -> tuple[Any, ...]:
        made = tuple(map(self.visit, types))
        return types if all(a is b for a, b in zip(made, types, strict=True)) else made

    def visit_func_type(self, typ: FuncType) -> Any:
        """Of what it takes and returns, and its type parameters."""
        made = self._each(typ.arg_types), self.visit(typ.ret_type), self._each(typ.type_params)
        same = made[0] is typ.arg_types and made[1] is typ.ret_type and made[2] is typ.type_params
        return typ if same else replace(typ, arg_types=made[0], ret_type=made[1], type_params=made[2])

    def visit_tuple_type(self, typ: TupleType) -> Any:
        """Of its fields."""
        fields = self._each(typ.fields)
        return typ if fields is typ.fields else TupleType(fields)

    def visit_ref_type(self, typ: RefType) -> Any:
        """Of what it holds."""
        value = self.visit(typ.value)
        return typ if value is typ.value else RefType(value)

    def visit_type_call(self, typ: TypeCall) -> Any:
        """Of its name and what its parameters are."""
        made = self.visit(typ.func), self._each(typ.args)
        return typ if made[0] is typ.func and made[1] is typ.args else TypeCall(*made)


__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
