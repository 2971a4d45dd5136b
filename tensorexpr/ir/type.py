"""Types of variables and functions."""

from ..tir.expr import FuncType, PointerType, PrimType, TupleType, Type

__all__ = ["FuncType", "PointerType", "PrimType", "TupleType", "Type"]
