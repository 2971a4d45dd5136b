"""Multiplication by numbers of fixed point, as quantised networks rescale their sums (gemmlowp's rounding doubling high multiply)."""

from __future__ import annotations

from typing import Any

from ..te.tensor import Tensor
from ..tir.arithmetic import const
from ..tir.builtin import q_multiply_shift, q_multiply_shift_per_axis
from ..tir.expr import PrimExpr, Var
from .math import elementwise
from .transform import injective
from .utils import get_const_int


def fixed_point_multiply(x: Tensor, multiplier: int, shift: int) -> Tensor:
    """x * multiplier * 2^(shift - 31) for int32 elements, rounded to the nearest integer, halves upwards.

    Args:
        x: int32.
        multiplier: a factor in [0.5, 1) as an integer of 31 fractional bits.
        shift: the power of two beside it; negative ones divide.

    Returns:
        int32 of the shape of `x`.
    """
    return elementwise(x, lambda e: q_multiply_shift(e, multiplier, 31, shift), "fixed_point_multiply")


def fixed_point_multiply_per_axis(
    x: Tensor, y: Tensor, lshift: Tensor, rshift: Tensor, is_lshift_required: Any, is_rshift_required: Any, axes: Any
) -> Tensor:
    """As `fixed_point_multiply`, with factors and shifts along one axis of `x`.

    Args:
        x: int32.
        y, lshift, rshift: int32 factors and shifts to the left and right, of one dimension.
        is_lshift_required, is_rshift_required: whether there are shifts of that kind.
        axes: the axes of `x` that the factors lie along.

    Returns:
        int32 of the shape of `x`.
    """
    places = [get_const_int(axis) for axis in axes]

    def body(*i: Var) -> PrimExpr:
        at = [i[place] for place in places]
        flags = [const(get_const_int(flag), "bool") for flag in (is_lshift_required, is_rshift_required)]
        return q_multiply_shift_per_axis(x(*i), y(*at), lshift(*at), rshift(*at), 31, *flags)

    return injective(x.shape, body, "fixed_point_multiply_per_axis")
