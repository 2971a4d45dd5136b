"""Softmax and log_softmax along an axis, shifted by the largest element so that nothing overflows."""

from __future__ import annotations

from ... import te
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import const
from ...tir.expr import PrimExpr, Var
from ..math import axis_names
from ..utils import positive_axis


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x - max) / sum(exp(x - max)), the maximum and the sum along `axis`."""
    return softmax_common(x, axis)


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """`softmax`; exponentials are polynomials of full accuracy in any case."""
    return softmax_common(x, axis)


def softmax_common(x: Tensor, axis: int, use_fast_exp: bool = False) -> Tensor:
    """The four stages of softmax: maximum, exponential, sum, quotient. One division serves a whole row. `use_fast_exp` has no effect."""
    place = positive_axis("softmax", axis, x.ndim)
    names = axis_names(x.ndim)
    largest = _along(x, place, te.max, "T_softmax_maxelem", "softmax_output")
    exponential = compute(
        x.shape, lambda *i: intrin.exp(x(*i) - largest(*_without(i, place))), "T_softmax_exp", "softmax_output", {"axis": place}, names
    )
    total = _along(exponential, place, te.sum, "T_softmax_expsum", "softmax_output")
    return compute(
        x.shape,
        lambda *i: exponential(*i) * (const(1, x.dtype) / total(*_without(i, place))),
        "T_softmax_norm",
        "softmax_output",
        {"axis": place},
        names,
    )


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - max - log(sum(exp(x - max))), the maximum and the sum along `axis`.

    Args:
        x: [any shape], of a float dtype.
        axis: counted from the end if negative.

    Returns:
        A tensor like `x`.
    """
    place = positive_axis("log_softmax", axis, x.ndim)
    names = axis_names(x.ndim)
    largest = _along(x, place, te.max, "T_softmax_maxelem", "log_softmax_output")
    k = te.reduce_axis((0, x.shape[place]), name="k")

    def sums(*i: Var) -> PrimExpr:
        return te.sum(intrin.exp(x(*i[:place], k.var, *i[place:]) - largest(*i)), axis=k)

    total = compute(largest.shape, sums, "compute", "log_softmax_output", varargs_names=names[: x.ndim - 1])

    def body(*i: Var) -> PrimExpr:
        others = _without(i, place)
        return x(*i) - largest(*others) - intrin.log(total(*others))

    return compute(x.shape, body, "log_softmax", "log_softmax_output", {"axis": place}, names)


def _along(x: Tensor, place: int, reducer: object, name: str, kind: str) -> Tensor:
    k = te.reduce_axis((0, x.shape[place]), name="k")
    shape = [extent for n, extent in enumerate(x.shape) if n != place]

    def body(*i: Var) -> PrimExpr:
        value: PrimExpr = reducer(x(*i[:place], k.var, *i[place:]), axis=k)  # type: ignore[operator]
        return value

    return compute(shape, body, name, kind, varargs_names=axis_names(x.ndim)[: x.ndim - 1])


def _without(indices: tuple[Var, ...], place: int) -> tuple[Var, ...]:
    return (*indices[:place], *indices[place + 1 :])
