"""The names of types: T.float32(0) is a constant, T.int32() a variable, `n: T.int32` a parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import cast, const
from ...tir.dtype import parse_dtype
from ...tir.expr import PointerType, PrimExpr, PrimType, SizeVar, Var
from .values import Builder, Number, Opened, Pending, as_expr

_SCALARS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bfloat16",
)  # fmt: skip


def variable(dtype: str, annotation: PointerType | None = None, is_size_var: bool = False) -> Pending:
    """A fresh variable that gets the name it is assigned to."""
    kind = SizeVar if is_size_var else Var
    return Pending(f"T.{dtype}()", lambda name: Opened(kind(name or "v", dtype, annotation)), is_statement=False)


def is_type(name: str) -> bool:
    """True for the name of a dtype, such as one of vectors, as float32x8."""
    try:
        return bool(parse_dtype(name))
    except TypeMismatchError:
        return False


def type_builder(dtype: str) -> Callable[..., Any]:
    """What a call of the type's name makes: a constant, a conversion, or with no argument a variable."""

    def build(expr: Any = None, is_size_var: bool = False) -> PrimExpr | Pending:
        if expr is None:
            return variable(dtype, None, is_size_var)
        if isinstance(expr, str):
            return _from_text(dtype, expr)
        if isinstance(expr, Number):
            return cast(const(bool(expr)), dtype) if dtype == "bool" else const(expr, dtype)
        return cast(as_expr(expr), dtype)

    return build


def _from_text(dtype: str, text: str) -> PrimExpr:
    """``T.float32("inf")``."""
    if not parse_dtype(dtype).is_float:
        raise TypeMismatchError(f'a string is no {dtype}; only floats are written so, as T.float32("inf")')
    try:
        return const(float(text), dtype)
    except ValueError:
        raise DeclarationError(f'{text!r} is no float; write "inf", "-inf" or "nan"') from None


def handle(dtype: str | None = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Pending:
    """A pointer variable, to elements of `dtype` if that is given."""
    if dtype is None:
        return variable("handle")
    parse_dtype(dtype)
    return variable("handle", PointerType(PrimType(dtype), storage_scope))


def pointer(element: Any, storage_scope: str = "global") -> Pending:
    """``T.Ptr(T.float32)``: the type of a pointer, of earlier releases."""
    dtype = element.dtype if isinstance(element, Builder) and element.dtype else element
    if not isinstance(dtype, str):
        raise DeclarationError("T.Ptr takes the type of the elements, such as T.float32")
    return handle(dtype, storage_scope or "global")


def var(dtype: str, name: str = "") -> Pending:
    """A variable by the name of its dtype."""
    parse_dtype(dtype)
    return variable(dtype)


TYPES: Mapping[str, Callable[..., Any]] = {
    **{dtype: type_builder(dtype) for dtype in _SCALARS},
    "handle": handle,
    "Ptr": pointer,
    "buffer_var": pointer,
    "boolean": type_builder("bool"),
    "void": type_builder("handle"),
}
