"""A buffer of the last elements, for convolutions over streams."""

from __future__ import annotations

from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.expr import PrimExpr, Var
from ..transform import injective
from ..utils import positive_axis


def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """`buffer` moved on along an axis so that `data` is at its end.

    Args:
        data: of the shape of `buffer`, no longer along the axis.
        buffer: what came before.
        axis: of time.

    Returns:
        A tensor of the shape of `buffer`.

    Raises:
        DeclarationError: for ranks that differ, or an axis that isn't there.
    """
    place = positive_axis("fifo_buffer", axis, buffer.ndim)
    if data.ndim != buffer.ndim:
        raise DeclarationError(f"fifo_buffer: {data.name} has {data.ndim} dimensions and {buffer.name} {buffer.ndim}; they must be equal")
    new, kept = data.shape[place], buffer.shape[place] - data.shape[place]

    def body(*i: Var) -> PrimExpr:
        before = buffer(*i[:place], i[place] + new, *i[place + 1 :])
        return intrin.if_then_else(i[place] < kept, before, data(*i[:place], i[place] - kept, *i[place + 1 :]))

    return injective(buffer.shape, body, "new_buffer", "injective,fifo_buffer")
