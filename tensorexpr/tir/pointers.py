"""Pointers into buffers as values: what an intrinsic or a C function is handed."""

from __future__ import annotations

from .expr import BufferLoad, Call, IntImm, PrimExpr, Var

READ, WRITE = 1, 2
_MASKS = {"r": READ, "w": WRITE, "rw": READ | WRITE}


def access_mask_of(access: str | int) -> int:
    """The bits of an access: 1 for reads, 2 for writes.

    Raises:
        ValueError: for anything but "r", "w", "rw" and 1 to 3.
    """
    mask = _MASKS.get("".join(sorted(access))) if isinstance(access, str) else access
    if mask not in (1, 2, 3):
        raise ValueError(f'access_mask is "r", "w" or "rw" (or 1, 2, 3), not {access!r}')
    return mask


def type_annotation(dtype: str) -> PrimExpr:
    """A dtype as an operand."""
    return Call(dtype, "tir.type_annotation", ())


def tvm_access_ptr(element: str, data: Var, offset: PrimExpr, extent: PrimExpr, mask: int) -> PrimExpr:
    """The pointer to element `offset` behind `data`; `extent` elements from there on are read or written, as `mask` says."""
    return Call("handle", "tir.tvm_access_ptr", (type_annotation(element), data, offset, extent, IntImm("int32", mask)))


def address_of(element: PrimExpr) -> PrimExpr:
    """The pointer to an element of a buffer.

    Raises:
        ValueError: if `element` is no load from a buffer.
    """
    if not isinstance(element, BufferLoad):
        raise ValueError(f"address_of takes an element of a buffer, as A[i, j], not {element}")
    return Call("handle", "tir.address_of", (element,))


def pointer_scope(var: Var) -> str:
    """The storage scope that a data variable points to."""
    return var.type_annotation.storage_scope if var.type_annotation else "global"
