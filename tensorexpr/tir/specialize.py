"""Functions for known sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import convert
from .buffer import Buffer
from .expr import IntImm, PrimExpr, Var
from .function import PrimFunc
from .rewriting import substitute
from .stmt_functor import Renaming


def specialize(func: PrimFunc, param_map: Mapping[Var, Any]) -> PrimFunc:
    """`func` with scalar parameters set to values, which removes them, and handles set to buffers of known shapes.

    Raises:
        DeclarationError: if a key is no parameter.
        TypeMismatchError: if a buffer does not fit the one declared.
    """
    values: dict[Var, PrimExpr] = {}
    buffers: dict[Buffer, Buffer] = {}
    for param, given in param_map.items():
        if param not in func.params:
            names = ", ".join(p.name for p in func.params)
            raise DeclarationError(f"specialize: {getattr(param, 'name', param)} is no parameter of the function; its parameters: {names}")
        if param not in func.buffer_map:
            values[param] = _scalar(param, given)
        elif isinstance(given, Buffer):
            buffers[func.buffer_map[param]] = given
            _match(func.buffer_map[param], given, values)
        else:
            raise DeclarationError(
                f"specialize: parameter {param.name} is a buffer; give it a tir.Buffer, as tir.decl_buffer makes it, not {given!r}"
            )
    renaming = Renaming(values, folding=True, buffers=buffers)
    body = renaming.apply(func.body)
    params = tuple(param for param in func.params if param not in values)
    buffer_map = {param: renaming.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return replace(func, params=params, body=body, buffer_map=buffer_map)


def _scalar(param: Var, given: Any) -> PrimExpr:
    value = convert(given, param.dtype) if isinstance(given, (int, float)) else convert(given)
    if value.dtype != param.dtype:
        raise DeclarationError(f"specialize: parameter {param.name} is {param.dtype}, not {value} ({value.dtype})")
    return value


def _match(old: Buffer, new: Buffer, values: dict[Var, PrimExpr]) -> None:
    """Note what the variables in a declaration become, and refuse a buffer of another kind."""
    if old.dtype != new.dtype or old.ndim != new.ndim or len(old.strides) != len(new.strides) or old.scope() != new.scope():
        raise TypeMismatchError(f"specialize: {new!r} can't stand for {old!r}; dtype, dimensions, strides and scope must be the same")
    values[old.data] = new.data
    pairs = [*zip(old.shape, new.shape, strict=True), *zip(old.strides, new.strides, strict=True), (old.elem_offset, new.elem_offset)]
    for declared, found in pairs:
        # A size of two dimensions, or of two buffers, has one value.
        if isinstance(declared, Var) and values.setdefault(declared, found) is not found:
            raise TypeMismatchError(f"specialize: {declared.name} would be both {values[declared]} and {found}")
    # Only now: n + 1 may stand in a dimension before the one that says n.
    for declared, found in pairs:
        wanted = substitute(declared, values)
        # Of two symbolic sizes nothing is known before a call, which checks them.
        if wanted is not found and (isinstance(wanted, IntImm) or isinstance(found, IntImm)):
            raise TypeMismatchError(f"specialize: {old.name} has {wanted} where {new.name} has {found}")


PrimFunc._specialize = specialize
