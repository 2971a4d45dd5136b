"""Types as Relay's programs write them; a struct info (`relax.struct_info`) says the same of a value.

relay.TensorType((1, 3, relay.Any()), "float32")     TensorStructInfo with a symbol for the unknown extent
relay.TupleType([...]), relay.FuncType([...], ret)   TupleStructInfo, FuncStructInfo
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any as AnyValue

from ..dataclass import dataclass
from ..errors import TypeMismatchError
from ..relax.extents import same_extents
from ..relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from ..tir.arithmetic import as_int
from ..tir.expr import Add, Cast, FloorDiv, FloorMod, FuncType, IntImm, Max, Min, Mul, PrimExpr, Sub, TupleType, Type
from ..tir.expr import Var as Symbol
from ..tir.rewriting import variables
from .type_names import GlobalTypeVar, Named, RefType, TypeCall, TypeRelation, TypeVar

_NUMBERS = count()
# What has no sign in Relay's text, where // begins a comment and % a variable.
EXTENTS = {"floordiv": FloorDiv, "floormod": FloorMod, "min": Min, "max": Max}
_WORDS = {"int": "int32", "uint": "uint32", "float": "float32"}  # dtypes by the names of C
_EXTENT_NAMES: dict[type, str] = {kind: name for name, kind in EXTENTS.items()}


def Any(*args: AnyValue) -> Symbol:
    """An extent that is known when the graph runs. Two of them are two unknown extents."""
    return Symbol(f"any{next(_NUMBERS)}", "int64")


def ShapeVar(name: str) -> Symbol:
    """An extent by name: the same wherever it is used."""
    return Symbol(name, "int64")


@dataclass(frozen=True, eq=False)
class TensorType(Type):
    """A tensor.

    Args:
        shape: extents: integers or expressions; an integer becomes an int32 constant, as in TVM.
        dtype: of its elements.
    """

    shape: tuple[AnyValue, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        given = self.shape if isinstance(self.shape, Sequence) or hasattr(self.shape, "__iter__") else (self.shape,)
        shape: list[AnyValue] = []
        for one in map(_extent, given):
            # (relay.Any(),) * 3 is how programs write three unknown extents.
            shape.append(Any() if _is_unknown(one) and any(one is other for other in shape) else one)
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", _WORDS.get(self.dtype, str(self.dtype)))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The extents as integers.

        Raises:
            TypeMismatchError: if one isn't known.
        """
        found = tuple(as_int(one) for one in self.shape)
        if None in found:
            raise TypeMismatchError(f"{self} has extents that are known when the graph runs only")
        return found  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        # Two unknown extents are as much known of as each other.
        if not isinstance(other, TensorType) or (self.dtype, len(self.shape)) != (other.dtype, len(other.shape)):
            return False
        return all(map(_same_extent, self.shape, other.shape))

    def __hash__(self) -> int:
        return hash((self.dtype, *(one.value if isinstance(one, IntImm) else "?" for one in self.shape)))

    def __str__(self) -> str:
        shape = ", ".join(map(extent_text, self.shape))
        if not self.shape:
            return self.dtype
        return f"Tensor[({shape}), {self.dtype}]"

    __repr__ = __str__


@dataclass(frozen=True)
class IncompleteType(Type):
    """A type that isn't stated: that of weights follows from what an operator asks for.

    Args:
        kind: accepted.
    """

    kind: AnyValue = None


def _same_extent(a: AnyValue, b: AnyValue) -> bool:
    """Whether two extents are known to be one number, however they are written, or both unknown."""
    if a is b or (_is_unknown(a) and _is_unknown(b)):
        return True
    if isinstance(a, IntImm) or isinstance(b, IntImm):
        return as_int(a) is not None and as_int(a) == as_int(b)
    if a.dtype == b.dtype and same_extents(a, b) is True:
        return True
    # An extent of int32 is one of int64 where a shape is computed of it.
    return extent_text(a) == extent_text(b) and set(variables(a)) == set(variables(b))


def _is_unknown(extent: AnyValue) -> bool:
    return isinstance(extent, Symbol) and re.fullmatch(r"any\d+", extent.name) is not None


def extent_text(extent: AnyValue) -> str:
    """An extent as Relay's text has it: `?` for an unknown one, numbers without their dtypes."""
    match extent:
        case Symbol(name=name):
            return "?" if _is_unknown(extent) else name
        case IntImm(value=value):
            return str(value)
        case Cast(value=value):  # text has no dtypes of extents
            return extent_text(value)
        case Add(a=a, b=b) | Sub(a=a, b=b) | Mul(a=a, b=b):
            sign = " * " if isinstance(extent, Mul) else " + " if isinstance(extent, Add) else " - "
            # Behind a sign each sum stands in parentheses, as does the first factor: x - (y + z), (x + y) * z.
            return f"{_operand(a, isinstance(extent, Mul))}{sign}{_operand(b, True)}"
        case FloorDiv(a=a, b=b) | FloorMod(a=a, b=b) | Min(a=a, b=b) | Max(a=a, b=b):
            return f"{_EXTENT_NAMES[type(extent)]}({extent_text(a)}, {extent_text(b)})"
    return str(extent)


def _operand(extent: AnyValue, apart: bool) -> str:
    text = extent_text(extent)
    return f"({text})" if apart and isinstance(extent, (Add, Sub, Mul)) else text


def _extent(value: AnyValue) -> PrimExpr:
    known = as_int(value)
    if known is not None:
        if known < 0:
            raise TypeMismatchError(f"an extent is at least 0, not {known}; relay.Any() is one that isn't known")
        return IntImm("int32", known)
    if isinstance(value, PrimExpr):
        return value
    raise TypeMismatchError(f"an extent is an integer, an expression or relay.Any(), not {value!r}")


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)


def info_of(given: AnyValue) -> StructInfo | None:
    """What a type says of a value; None says nothing.

    Raises:
        TypeMismatchError: for what is no type.
    """
    match given:
        case None | StructInfo():
            return given
        case IncompleteType():
            return None
        case TensorType():
            return TensorStructInfo(tuple(_int64(one) for one in given.shape), given.dtype)
        case TupleType(fields):
            return TupleStructInfo(tuple(info_of(one) or ObjectStructInfo() for one in fields))
        case TypeVar() | TypeCall():
            return Named(given)
        case GlobalTypeVar():
            return Named(TypeCall(given))
        case FuncType(params, ret):
            return FuncStructInfo(tuple(info_of(one) or ObjectStructInfo() for one in params), info_of(ret) or ObjectStructInfo())
        case str():
            return TensorStructInfo((), given)
    raise TypeMismatchError(
        f"a type is a relay.TensorType, TupleType, FuncType, TypeCall or TypeVar, or the dtype of a scalar, not {given!r}"
    )


def _int64(extent: AnyValue) -> AnyValue:
    known = as_int(extent)
    return extent if known is None else known


def _stated(extent: PrimExpr) -> PrimExpr:
    """An extent as a type states it: what is computed of unknown ones is unknown."""
    is_open = not isinstance(extent, (IntImm, Symbol)) and any(map(_is_unknown, variables(extent)))
    return Any() if is_open else extent


def fresh(info: TensorStructInfo) -> TensorStructInfo:
    """A tensor as another one of the same type: extents that aren't known are others."""
    if info.extents is None or not any(map(_is_unknown, info.extents)):
        return info
    return TensorStructInfo(tuple(Any() if _is_unknown(one) else one for one in info.extents), info.dtype, info.vdevice)


def type_of(info: StructInfo) -> AnyValue:
    """The type of a value of which `info` is known; None where nothing is."""
    match info:
        case Named():
            return info.type
        case TensorStructInfo():
            # A known number of dimensions whose extents depend on values: each of them is an unknown one.
            open_extents = None if info.ndim < 0 else tuple(Any() for _ in range(info.ndim))
            extents = open_extents if info.extents is None else tuple(map(_stated, info.extents))
            return None if extents is None else TensorType(extents, info.dtype)
        case TupleStructInfo(fields):
            return TupleType(tuple(type_of(one) for one in fields))
        case FuncStructInfo(params, ret):
            return None if params is None else FuncType(tuple(type_of(one) for one in params), type_of(ret))
    return None


__all__ = [
    "Any", "FuncType", "IncompleteType", "RefType", "ShapeVar", "TensorType", "TupleType", "Type", "TypeRelation", "info_of", "scalar_type",
    "type_of",
]  # fmt: skip
