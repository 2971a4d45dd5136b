"""Shapes as tensors, and tensors as shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from .row import Expr, Pattern, Shape, operator, tensor


@operator("shape_to_tensor", Pattern.OPAQUE, numpy=lambda shape: np.asarray(shape, dtype=np.int64))
def shape_to_tensor(shape: Shape) -> StructInfo:
    """The extents of a shape as a tensor of int64 with one axis."""
    info: Any = shape.struct_info
    if not isinstance(info, ShapeStructInfo):
        raise DeclarationError(f"relax.op.shape_to_tensor: expected a shape, not {info}")
    return TensorStructInfo(None if info.ndim < 0 else (info.ndim,), "int64", ndim=1)


@operator("tensor_to_shape", Pattern.OPAQUE, numpy=lambda data: tuple(int(one) for one in data))
def tensor_to_shape(data: Expr) -> StructInfo:
    """A tensor of integers with one axis as a shape; `match_cast` gives its extents names."""
    operand = tensor(data, "data")
    if operand.ndim not in (1, -1) or operand.dtype not in ("int64", ""):
        raise DeclarationError(f"relax.op.tensor_to_shape: a tensor of int64 with one axis is a shape, not {operand.info}")
    count = None if operand.extents is None else as_int(operand.extents[0])
    return ShapeStructInfo(None, -1 if count is None else count)


def new_shape(old: Sequence[Any], newshape: Sequence[Any], allowzero: bool = False) -> list[Any]:
    """The extents that Relay's `reshape` asks for.

    Args:
        old: the extents of the operand.
        newshape: extents; 0 takes that of the operand, -1 is what is left, -2 all that are left of the operand, -3 the product of two of
            the operand, -4 a split of one into the next two, of which one may be -1.
        allowzero: a 0 is an extent of none.

    Raises:
        DeclarationError: if they don't fit.
    """
    found: list[Any] = []
    place, given = 0, list(newshape)
    rest: int | None = None
    while given:
        one = given.pop(0)
        code = as_int(one)
        if code is None or code > 0 or (code == 0 and allowzero):
            found.append(one)
            place += 1
        elif code == 0 or code == -3:
            many = 1 if code == 0 else 2
            if place + many > len(old):
                raise DeclarationError(f"reshape: {list(newshape)} takes more extents than {list(old)} has")
            found.append(old[place] if many == 1 else old[place] * old[place + 1])
            place += many
        elif code == -1:
            if rest is not None:
                raise DeclarationError(f"reshape: -1 stands once in a shape, not as in {list(newshape)}")
            rest = len(found)
            found.append(-1)
            place += 1
        elif code == -2:
            found.extend(old[place:])
            place = len(old)
        elif code == -4 and len(given) >= 2 and place < len(old):
            first, second = (as_int(given.pop(0)) for _ in range(2))
            if first is None or second is None or (first == -1 and second == -1) or 0 in (first, second):
                raise DeclarationError("reshape: behind -4 stand two extents, of which one may be -1")
            found += [old[place] // second if first == -1 else first, old[place] // first if second == -1 else second]
            place += 1
        else:
            raise DeclarationError(f"reshape: {list(newshape)} doesn't fit {list(old)}; extents, 0, -1, -2, -3 and -4 are known")
    return found


def _np_reshaped(shape: Any, numbers: Any, allowzero: bool) -> Any:
    old = [int(one) for one in shape]
    found = new_shape(old, [int(one) for one in numbers], allowzero)
    if -1 in found:
        rest = math.prod(one for one in found if one != -1)
        found[found.index(-1)] = math.prod(old) // rest if rest else 0
    return np.asarray(found, np.int64)


@operator("reshaped_extents", numpy=_np_reshaped)
def reshaped_extents(shape: Shape, numbers: Expr, allowzero: bool = False) -> StructInfo:
    """The extents of a tensor of a shape behind Relay's `reshape` to `numbers` (`new_shape`), as a tensor of int64."""
    operand = tensor(numbers, "numbers")
    if operand.ndim not in (1, -1):
        raise DeclarationError(f"relax.op.reshaped_extents: the numbers of a shape have one axis, not {operand.info}")
    return operand.like(None, "int64", 1)
