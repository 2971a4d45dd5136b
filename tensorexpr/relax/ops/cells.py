"""References: cells of the machine whose values change, as Relay's programs have them. All here runs on the host, in order."""

from __future__ import annotations

from typing import Any

from ..struct_info import ObjectStructInfo, StructInfo, TupleStructInfo
from .algebraic import kept, read
from .row import Exprs, operator


class RefValue:
    """A reference.

    Args:
        value: what it holds: an array, a tuple, a value of an algebraic type, or another reference.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"RefValue({self.value!r})"


def _np_write(ref: RefValue, value: Any) -> tuple[()]:
    ref.value = kept(value)
    return ()


@operator("ref.make", numpy=lambda value: RefValue(kept(value)), is_pure=False, as_is=True)
def ref_make(value: Exprs) -> StructInfo:
    """A new reference, which holds a value."""
    return ObjectStructInfo()


@operator("ref.read", numpy=lambda ref: read(ref.value), is_pure=False, as_is=True)
def ref_read(ref: Exprs) -> StructInfo:
    """What a reference holds."""
    return ObjectStructInfo()


@operator("ref.write", numpy=_np_write, is_pure=False, as_is=True)
def ref_write(ref: Exprs, value: Exprs) -> StructInfo:
    """Let a reference hold another value; an empty tuple."""
    return TupleStructInfo(())


__all__ = ["RefValue", "ref_make", "ref_read", "ref_write"]
