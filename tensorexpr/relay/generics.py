"""What is known of values whose types have parameters: they are found by comparing what a function takes with what it is given.

map: fn<A, B>(fn (A) -> B, List[A]) -> List[B]    of (fn (int32) -> float32, List[int32]): A = int32, B = float32, and so List[float32]

Code is shared by all parameters: in a graph a value of such a type is an object (`erased`), and what comes out is cast to what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..relax.relations import struct_info_lca
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .ty import fresh, info_of, type_of
from .type_names import GlobalTypeVar, Named, TypeCall, TypeVar, called

Values = dict[Any, StructInfo]


def _arguments(info: StructInfo) -> tuple[Any, tuple[StructInfo, ...]]:
    """An algebraic type and what its parameters are; None for what is none."""
    given = info.type if isinstance(info, Named) else None
    if isinstance(given, TypeCall):
        return given.func, tuple(info_of(one) or ObjectStructInfo() for one in given.args)
    return (given, ()) if isinstance(given, GlobalTypeVar) else (None, ())


def _remade(header: Any, arguments: tuple[StructInfo, ...]) -> StructInfo:
    return Named(called(header, tuple(type_of(one) for one in arguments)))


def variable(info: StructInfo) -> Any:
    """The TypeVar that a value is of; None for others."""
    return info.type if isinstance(info, Named) and isinstance(info.type, TypeVar) else None


def is_open(info: StructInfo) -> bool:
    """Whether nothing is known of a value, or no more than the name of its type's parameter."""
    return isinstance(info, ObjectStructInfo) and (not isinstance(info, Named) or variable(info) is not None)


def is_generic(info: StructInfo) -> bool:
    """Whether a graph knows less of such values than Relay does."""
    match info:
        case Named():
            return True
        case TupleStructInfo(fields):
            return any(map(is_generic, fields))
        case FuncStructInfo(params, ret):
            return is_generic(ret) or any(map(is_generic, params or ()))
    return False


def joined(one: StructInfo, other: StructInfo) -> StructInfo:
    """What is known of a value of which two things are known, or which is one of two: more where one says nothing."""
    if is_open(one):
        return one if variable(one) is not None and is_open(other) else other
    if is_open(other):
        return one
    (header, mine), (second, theirs) = _arguments(one), _arguments(other)
    if header is not None and header == second and mine:
        return _remade(header, tuple(map(joined, mine, theirs)))
    if header is not None:
        return one
    if isinstance(one, TupleStructInfo) and isinstance(other, TupleStructInfo) and len(one.fields) == len(other.fields):
        return TupleStructInfo(tuple(map(joined, one.fields, other.fields)))
    return one if isinstance(one, FuncStructInfo) else struct_info_lca(one, other)


def bind(stated: StructInfo, given: StructInfo, values: Values) -> None:
    """Find what type parameters in `stated` stand for, where `given` is what is there."""
    own = variable(stated)
    if own is not None:
        if variable(given) is not own:
            values[own] = joined(values.get(own, ObjectStructInfo()), given)
        return
    header, wanted = _arguments(stated)
    match stated, given:
        case Named(), _ if _arguments(given)[0] == header:
            for one, other in zip(wanted, _arguments(given)[1], strict=False):
                bind(one, other, values)
        case TupleStructInfo(), TupleStructInfo():
            for one, other in zip(stated.fields, given.fields, strict=False):
                bind(one, other, values)
        case FuncStructInfo(), FuncStructInfo():
            for one, other in zip((*(stated.params or ()), stated.ret), (*(given.params or ()), given.ret), strict=False):
                bind(one, other, values)


def returned(func: FuncStructInfo, args: Sequence[StructInfo], name: str = "the function") -> StructInfo:
    """What a call returns, with what type parameters stand for there.

    Raises:
        DeclarationError: for another number of arguments.
    """
    values = bindings(func, args, name)
    return instance(func.ret, values)


def bindings(func: FuncStructInfo, args: Sequence[StructInfo], name: str) -> Values:
    """What the type parameters of a function stand for in a call."""
    if func.params is not None and len(func.params) != len(args):
        raise DeclarationError(f"{name} takes {len(func.params)} arguments, not {len(args)}")
    values: Values = {}
    for stated, given in zip(func.params or (), args, strict=False):
        bind(stated, given, values)
    return values


def instance(info: StructInfo, values: Mapping[Any, StructInfo]) -> StructInfo:
    """A struct info with what its type parameters stand for."""
    own = variable(info)
    if own is not None:
        return values.get(own, info)
    header, arguments = _arguments(info)
    match info:
        case Named() if arguments:
            return _remade(header, tuple(instance(one, values) for one in arguments))
        case TupleStructInfo(fields):
            return TupleStructInfo(tuple(instance(one, values) for one in fields))
        case FuncStructInfo(params, ret):
            made = None if params is None else tuple(instance(one, values) for one in params)
            return FuncStructInfo(made, instance(ret, values), info.purity)
    return info


def erased(info: StructInfo) -> StructInfo:
    """What a graph knows of such a value. Extents that aren't known are new ones: elements of a list may differ in theirs."""
    match info:
        case Named():
            return ObjectStructInfo()
        case TupleStructInfo(fields):
            return TupleStructInfo(tuple(map(erased, fields)))
        case FuncStructInfo():
            return ObjectStructInfo() if is_generic(info) else info
        case TensorStructInfo():
            return fresh(info)
    return info


__all__ = ["bind", "bindings", "erased", "instance", "is_generic", "is_open", "joined", "returned", "variable"]
