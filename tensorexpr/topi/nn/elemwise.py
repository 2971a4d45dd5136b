"""Activations and what is added to or multiplied with channels."""

from __future__ import annotations

from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import const, maximum
from ...tir.expr import PrimExpr, Var
from .. import tag
from ..math import axis_names, elementwise
from ..utils import need_equal, positive_axis


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return elementwise(x, lambda v: maximum(v, const(0, x.dtype)), "T_relu")


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where it is positive, else alpha * x."""
    return elementwise(x, lambda v: intrin.select(v > 0, v, v * const(alpha, x.dtype)), "T_leaky_relu")


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, else slope[channel] * x, with the channels along `axis`.

    Args:
        x: [any shape], of a float dtype.
        slope: a vector as long as `axis`.
        axis: of the channels.

    Returns:
        A tensor like `x` (He et al. 2015, equation 1).
    """
    place = positive_axis("prelu", axis, x.ndim)
    need_equal("prelu", "the channels of x and slope", x.shape[place], slope.shape[0])

    def body(*i: Var) -> PrimExpr:
        return intrin.select(x(*i) > 0, x(*i), x(*i) * slope(i[place]))

    return compute(x.shape, body, "T_prelu", tag.BROADCAST, varargs_names=axis_names(x.ndim))


def gelu(x: Tensor) -> Tensor:
    """x * 0.5 * (1 + erf(x / sqrt(2)))."""
    half, root = const(0.5, x.dtype), const(0.7071067811865476, x.dtype)
    return elementwise(x, lambda v: v * half * (const(1, x.dtype) + intrin.erf(v * root)), "T_gelu")


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return elementwise(x, lambda v: v * intrin.sigmoid(v), "T_silu")


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input[b, c, i, j] * Scale[c] + Shift[c]."""
    return compute(Input.shape, lambda b, c, i, j: Input(b, c, i, j) * Scale(c) + Shift(c), "ScaleShift", tag.BROADCAST)


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input[b, i, j, c] * Scale[c] + Shift[c]."""
    return compute(Input.shape, lambda b, i, j, c: Input(b, i, j, c) * Scale(c) + Shift(c), "ScaleShift", tag.BROADCAST)


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input[b, cc, i, j, cb] * Scale[cc, cb] + Shift[cc, cb]."""
    return compute(Input.shape, lambda b, cc, i, j, cb: Input(b, cc, i, j, cb) * Scale(cc, cb) + Shift(cc, cb), "ScaleShift", tag.BROADCAST)
