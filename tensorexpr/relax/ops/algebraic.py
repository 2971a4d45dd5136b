"""Values of algebraic types: the number of a constructor and its fields. They are objects of the machine, and all here runs on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...runtime.container import ADT
from ...runtime.device import cpu
from ...runtime.ndarray import NDArray
from ..struct_info import ObjectStructInfo, StructInfo, TensorStructInfo
from .narrow import NUMPY_ALONE
from .row import Exprs, operator

Code = tuple[Any, ...]


def kept(value: Any) -> Any:
    """A field, or what a reference holds, as programs see it that get the value: arrays of the runtime, where it has such arrays."""
    if isinstance(value, (tuple, list)):
        return tuple(map(kept, value))
    is_array = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OSU" and value.dtype.name not in NUMPY_ALONE
    return NDArray(np.asarray(value, order="C"), cpu()) if is_array else value


def read(value: Any) -> Any:
    """A field as NumPy has it."""
    if isinstance(value, NDArray):
        return value._array
    return tuple(map(read, value)) if isinstance(value, (tuple, list)) or (isinstance(value, ADT) and value.tag == 0) else value


def _np_make(fields: Any, tag: int) -> ADT:
    return ADT.of(tag, tuple(map(kept, fields)))


@operator("adt.make", numpy=_np_make, as_is=True)
def adt_make(fields: Exprs, tag: int) -> StructInfo:
    """The value of a constructor.

    Args:
        fields: any values.
        tag: the constructor's number.
    """
    return ObjectStructInfo()


def _fits(value: Any, pattern: Code) -> bool:
    """Whether a value is as a pattern says: () is any, (tag, patterns of fields...) a constructor's, (-1, ...) a tuple."""
    if not pattern:
        return True
    tag, *parts = pattern
    if tag != -1 and (not isinstance(value, ADT) or value.tag != tag):
        return False
    return all(not part or _fits(value[place], part) for place, part in enumerate(parts))


@operator("adt.matches", numpy=lambda value, pattern: np.asarray(_fits(value, pattern)), as_is=True)
def adt_matches(value: Exprs, pattern: Any) -> StructInfo:
    """Whether a value matches a pattern: bool ().

    Args:
        value: of an algebraic type, or a tuple.
        pattern: () for any; (tag, patterns of fields...) for a constructor's; (-1, ...) for a tuple's.
    """
    return TensorStructInfo((), "bool")


def _np_field(value: Any, path: tuple[int, ...]) -> Any:
    for place in path:
        value = value[place]
    return read(value)


@operator("adt.field", numpy=_np_field, as_is=True)
def adt_field(value: Exprs, path: Any) -> StructInfo:
    """A field of a value, of its field, and so on.

    Args:
        value: of an algebraic type, or a tuple.
        path: the places of the fields.
    """
    return ObjectStructInfo()


def _np_unmatched(value: Any) -> Any:
    shown = f"constructor {value.tag}" if isinstance(value, ADT) else type(value).__name__
    raise ArgumentError(f"match: no clause matches the value, which is of {shown}; add a clause `_ => ...` for what is left")


@operator("adt.unmatched", numpy=_np_unmatched, as_is=True)
def adt_unmatched(value: Exprs) -> StructInfo:
    """An error: no clause matches a value."""
    return ObjectStructInfo()


__all__ = ["adt_field", "adt_make", "adt_matches", "adt_unmatched", "kept", "read"]
