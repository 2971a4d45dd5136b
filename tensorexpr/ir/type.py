"""Types of variables and functions."""

from __future__ import annotations

from ..tir.expr import FuncType, PointerType, PrimType, TupleType, Type

__all__ = ["FuncType", "PointerType", "PrimType", "TupleType", "Type"]
