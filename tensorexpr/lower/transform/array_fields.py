"""The fields of the runtime's structures, as `tvm_struct_get` and `tvm_struct_set` number them, and codes of types."""

from __future__ import annotations

from enum import IntEnum

from ...tir.dtype import DataType, parse_dtype
from ...tir.expr import Call, IntImm, PointerType, PrimExpr, PrimType, Var
from ...tir.stmt import Evaluate, Stmt


class Field(IntEnum):
    """A DLTensor's fields, and the content of a value of any kind."""

    ADDRESS = 0
    DATA = 1
    SHAPE = 2
    STRIDES = 3
    NDIM = 4
    TYPE_CODE = 5
    TYPE_BITS = 6
    TYPE_LANES = 7
    BYTE_OFFSET = 8
    DEVICE_ID = 9
    DEVICE_TYPE = 10
    CONTENT = 12


class ArgCode(IntEnum):
    """What an argument of a packed function is."""

    INT = 0
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    ARRAY = 7
    STRING = 11
    NDARRAY = 13
    BOOL = 15


_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 1}


def type_fields(dtype: str) -> tuple[IntImm, IntImm, IntImm]:
    """The code, bits and lanes of a dtype as DLPack states them."""
    kind: DataType = parse_dtype(dtype)
    return IntImm("uint8", _CODES.get(kind.code, 2)), IntImm("uint8", kind.bits), IntImm("uint16", kind.lanes)


def get(struct: PrimExpr, index: int, field: Field, dtype: str) -> PrimExpr:
    """A field of structure `index` behind a pointer."""
    return Call(dtype, "tir.tvm_struct_get", (struct, IntImm("int32", index), IntImm("int32", int(field))))


def put(struct: PrimExpr, index: int, field: Field, value: PrimExpr) -> Stmt:
    """Set a field of structure `index` behind a pointer."""
    return Evaluate(Call("int32", "tir.tvm_struct_set", (struct, IntImm("int32", index), IntImm("int32", int(field)), value)))


def is_null(pointer: PrimExpr) -> PrimExpr:
    """Whether a pointer is null."""
    return Call("bool", "tir.isnullptr", (pointer,))


def null() -> PrimExpr:
    """The null pointer."""
    return Call("handle", "tir.reinterpret", (IntImm("uint64", 0),))


def pointer(name: str, element: str, scope: str = "global") -> Var:
    """A variable that points to elements of a dtype."""
    return Var(name, "handle", PointerType(PrimType(element), scope))
