"""Walks over types: `TypeFunctor` calls the method of a type's kind, `TypeVisitor` visits all parts, `TypeMutator` makes other types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..tir.types import FuncType, TupleType
from .adt import TypeData
from .ty import IncompleteType, TensorType
from .type_names import GlobalTypeVar, RefType, TypeCall, TypeRelation, TypeVar

_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var", IncompleteType: "visit_incomplete_type", TensorType: "visit_tensor_type", FuncType: "visit_func_type",
    TupleType: "visit_tuple_type", RefType: "visit_ref_type", GlobalTypeVar: "visit_global_type_var", TypeCall: "visit_type_call",
    TypeData: "visit_type_data", TypeRelation: "visit_type_relation",
}  # fmt: skip


def parts(typ: Any) -> tuple[Any, ...]:
    """The types that a type is made of."""
    match typ:
        case FuncType(args, ret, params, constraints):
            return (*args, ret, *params, *constraints)
        case TypeRelation():
            return typ.args
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
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = visit_type_relation = _unhandled


class TypeVisitor(TypeFunctor):
    """Visits all parts of a type; a method that is overridden decides whether to go on."""

    def _parts(self, typ: Any) -> None:
        for one in parts(typ):
            self.visit(one)

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = _parts
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = visit_type_relation = _parts


class TypeMutator(TypeFunctor):
    """Makes a type of another: a method returns what stands in place of its type. What doesn't change stays the one that it is."""

    def _itself(self, typ: Any) -> Any:
        return typ

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_global_type_var = visit_type_data = _itself

    def _each(self, types: tuple[Any, ...]) -> tuple[Any, ...]:
        made = tuple(map(self.visit, types))
        return types if all(a is b for a, b in zip(made, types, strict=True)) else made

    def visit_func_type(self, typ: FuncType) -> Any:
        """Of what it takes and returns, its type parameters, and what is asked of these."""
        names = "arg_types", "type_params", "type_constraints"
        made = {"ret_type": self.visit(typ.ret_type), **{name: self._each(getattr(typ, name)) for name in names}}
        return typ if all(one is getattr(typ, name) for name, one in made.items()) else replace(typ, **made)

    def visit_tuple_type(self, typ: TupleType) -> Any:
        """Of its fields."""
        fields = self._each(typ.fields)
        return typ if fields is typ.fields else TupleType(fields)

    def visit_type_relation(self, typ: TypeRelation) -> Any:
        """Of other types."""
        args = self._each(typ.args)
        return typ if args is typ.args else replace(typ, args=args)

    def visit_ref_type(self, typ: RefType) -> Any:
        """Of what it holds."""
        value = self.visit(typ.value)
        return typ if value is typ.value else RefType(value)

    def visit_type_call(self, typ: TypeCall) -> Any:
        """Of its name and what its parameters are."""
        made = self.visit(typ.func), self._each(typ.args)
        return typ if made[0] is typ.func and made[1] is typ.args else TypeCall(*made)


__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
