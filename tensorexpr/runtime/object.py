"""Python values as nodes, and the classes that programs ask nodes for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any

from ..ir.container import Array, Map
from ..tir.arithmetic import const
from ..tir.arithmetic import convert as to_expr
from ..tir.dtype import parse_dtype
from ..tir.node import Object
from ..tir.object_path import ObjectPath, ObjectPathPair
from ..tir.operators import ExprOp


class PyNativeObject:
    """Base of nodes that are values of Python, too: texts, shapes."""

    __slots__ = ()


class ObjectGeneric:
    """A value that says with `asobject` which node it stands for."""

    def asobject(self) -> Any:
        """The node."""
        raise NotImplementedError(f"{type(self).__name__} does not say which node it stands for")


class String(PyNativeObject, str):
    """A text that is also a node."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """Whether `other` is this very text."""
        return self is other


class ShapeTuple(PyNativeObject, tuple[int, ...]):
    """The extents of an array."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[int] = ()) -> ShapeTuple:
        return super().__new__(cls, (int(extent) for extent in shape))


class DataTypeCode(IntEnum):
    """What the bits of a number mean, as DLPack numbers it."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


_CODES = {
    "int": DataTypeCode.INT, "uint": DataTypeCode.UINT, "bool": DataTypeCode.UINT, "float": DataTypeCode.FLOAT,
    "handle": DataTypeCode.HANDLE, "bfloat": DataTypeCode.BFLOAT, "e4m3_float": DataTypeCode.E4M3Float,
    "e5m2_float": DataTypeCode.E5M2Float,
}  # fmt: skip


class DataType(str):
    """A dtype: its text, with what it means as fields.

    Raises:
        TypeMismatchError: for a text that is no dtype.
    """

    __slots__ = ()

    def __new__(cls, type_str: str) -> DataType:
        return super().__new__(cls, str(parse_dtype(str(type_str))))

    @property
    def type_code(self) -> int:
        """The meaning, a `DataTypeCode`."""
        return int(_CODES[parse_dtype(str(self)).code])

    @property
    def bits(self) -> int:
        """Bits of a lane."""
        return parse_dtype(str(self)).bits

    @property
    def lanes(self) -> int:
        """Lanes, 1 for a scalar."""
        return parse_dtype(str(self)).lanes

    def itemsize(self) -> int:
        """Bytes of all lanes."""
        parsed = parse_dtype(str(self))
        return parsed.itemsize * parsed.lanes


def convert(value: Any, span: object = None) -> Any:
    """A Python value as a node: numbers become constants, lists `Array`, dicts `Map`, texts `String`; nodes and None stay.

    Raises:
        TypeError: for what has no node.
    """
    match value:
        case ExprOp():
            return value.asobject() if type(value).__name__ == "EqualOp" else value
        case None | Object() | Array() | Map() if not isinstance(value, (list, tuple, dict)):
            return value
        case str():
            return String(value)
        case Mapping():
            return Map({key if isinstance(key, str) else convert(key): convert(item) for key, item in value.items()})
        case list() | tuple():
            return Array(tuple(convert(item) for item in value))
        case ObjectGeneric():
            return value.asobject()
    if hasattr(value, "numpy") or isinstance(value, Callable):  # type: ignore[arg-type]
        return value
    try:
        return to_expr(value)
    except ValueError:
        raise TypeError(f"{value!r} ({type(value).__name__}) has no node") from None


convert_to_object = convert

# What nodes and texts share with what the runtime passes around: the classes of objects of any kind.
ObjectBase = Object
Scriptable = Object  # all nodes print as TVMScript
ObjectTypes = (Object, PyNativeObject)

__all__ = [
    "DataType",
    "DataTypeCode",
    "Object",
    "ObjectBase",
    "ObjectGeneric",
    "ObjectPath",
    "ObjectPathPair",
    "ObjectTypes",
    "PyNativeObject",
    "Scriptable",
    "ShapeTuple",
    "String",
    "const",
    "convert",
    "convert_to_object",
]
