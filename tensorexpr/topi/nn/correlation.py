"""The correlation of patches of two feature maps (FlowNet, Fischer et al. 2015, section 3)."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import const, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from ..utils import get_const_int, need_equal, need_rank, pad_pairs
from .padding import pad


def correlation_nchw(
    data1: Tensor, data2: Tensor, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any, is_multiply: bool
) -> Tensor:
    """How well each patch of `data1` matches the patches of `data2` around it.

    Args:
        data1, data2: [N, C, H, W].
        kernel_size: of a patch, odd.
        max_displacement: how far away patches of `data2` may lie.
        stride1: from patch to patch of `data1`; stride2: of the displacements.
        padding: zeros around both, see `topi.utils.pad_pairs`.
        is_multiply: sum products, or the absolute differences.

    Returns:
        [N, D * D, H', W'] with D = 2 * (max_displacement // stride2) + 1: means over patch and channels.

    Raises:
        DeclarationError: for shapes, an even kernel_size or strides below 1.
    """
    where = "correlation_nchw"
    for name, tensor in (("data1", data1), ("data2", data2)):
        need_rank(where, name, tensor, 4)
    if kernel_size % 2 == 0:
        raise DeclarationError(f"correlation_nchw: kernel_size is {kernel_size}; patches have a middle: it takes an odd one")
    if stride1 < 1 or stride2 < 1 or max_displacement < 0:
        raise DeclarationError(
            f"correlation_nchw: stride1 is {stride1}, stride2 {stride2} and max_displacement {max_displacement}; "
            "strides are 1 or more, a displacement 0 or more"
        )
    for dim in range(4):
        need_equal(where, f"extent {dim} of data1 and data2", data1.shape[dim], data2.shape[dim])
    (top, bottom), (left, right) = pad_pairs(where, padding, (kernel_size, kernel_size))
    first, second = (pad(data, (0, 0, top, left), (0, 0, bottom, right)) for data in (data1, data2))
    channels = get_const_int(data1.shape[1])
    # So far from the edges a patch and all that it is compared with lie inside.
    border = max_displacement + (kernel_size - 1) // 2
    height, width = (-(-(get_const_int(extent) - 2 * border) // stride1) for extent in first.shape[2:])
    if height < 1 or width < 1:
        raise DeclarationError(f"correlation_nchw: the padded maps {first.shape[2:]} are no larger than twice the border of {border}")
    radius = max_displacement // stride2
    side = 2 * radius + 1
    rc, ry, rx = (te.reduce_axis((0, e), name=name) for name, e in (("rc", channels), ("ry", kernel_size), ("rx", kernel_size)))

    def body(n: Var, q: Var, i: Var, j: Var) -> PrimExpr:
        y, x = i * stride1 + max_displacement + ry.var, j * stride1 + max_displacement + rx.var
        a = first(n, rc.var, y, x)
        b = second(n, rc.var, y + (floordiv(q, side) - radius) * stride2, x + (floormod(q, side) - radius) * stride2)
        return te.sum(a * b if is_multiply else intrin.abs(a - b), axis=[rc, ry, rx])

    shape = (data1.shape[0], side * side, height, width)
    totals = compute(shape, body, where, where)
    count = const(kernel_size * kernel_size * channels, data1.dtype)
    return compute(shape, lambda *i: totals(*i) / count, "T_divide", "elemwise", varargs_names=[f"ax{n}" for n in range(4)])
