"""Types of 2022, which say less than struct infos: `relax.DynTensorType(2, "float32")`, and what `analysis.get_static_type` returns."""

from __future__ import annotations

from ..dataclass import dataclass
from ..tir.expr import FuncType, PrimType, TupleType, Type
from .struct_info import FuncStructInfo, PrimStructInfo, RelaxExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo


@dataclass(frozen=True)
class ObjectType(Type):
    """Any value."""


@dataclass(frozen=True)
class ShapeType(Type):
    """A shape of so many extents; -1 if unknown."""

    ndim: int = -1


@dataclass(frozen=True)
class DynTensorType(Type):
    """A tensor of so many dimensions, -1 if unknown, and a dtype, "" if unknown."""

    ndim: int = -1
    dtype: str = "float32"


@dataclass(frozen=True)
class PackedFuncType(Type):
    """A registered function of any arguments."""


def get_static_type(sinfo: StructInfo) -> Type:
    """The type of a value: its struct info without extents."""
    match sinfo:
        case TensorStructInfo():
            return DynTensorType(sinfo.ndim, sinfo.dtype)
        case ShapeStructInfo():
            return ShapeType(sinfo.ndim)
        case PrimStructInfo(dtype):
            return PrimType(dtype)
        case TupleStructInfo(fields):
            return TupleType(tuple(map(get_static_type, fields)))
        case FuncStructInfo(params, ret):
            return PackedFuncType() if params is None else FuncType(tuple(map(get_static_type, params)), get_static_type(ret))
    return ObjectType()


# Expressions, which types are made of the infos of, know them by this entry.
RelaxExpr._operators["static_type"] = get_static_type

__all__ = ["DynTensorType", "FuncType", "ObjectType", "PackedFuncType", "PrimType", "ShapeType", "TupleType", "get_static_type"]
