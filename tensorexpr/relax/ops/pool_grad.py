"""What a gradient of a pool's result is for its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...topi.nn.pooling_grad import pool_grad
from ..expr import Call
from ..struct_info import StructInfo
from .pool import Pool, lowest, planes
from .row import Expr, Pattern, operator, tensor
from .window import relaid


def _te(own: Pool, kind: str, grad: Any, data: Any) -> Any:
    args = own.pool_size, own.strides, own.padding
    return pool_grad(grad, data, *args, kind, own.ceil_mode, own.count_include_pad, own.layout)


def _np(own: Pool, kind: str, grad: Any, data: Any) -> Any:
    """Each share of each window is added where its element is; without a loop over windows, but with one over their elements."""
    plain = "NC" + own.plane
    x, given = relaid(data, own.layout, plain), relaid(grad, own.layout, plain).astype(np.float64)
    height, width = own.pool_size
    (step_h, step_w), (top, left) = own.strides, own.padding[:2]
    if kind == "max":
        views = own.views(x, lowest(x.dtype), lowest(x.dtype))
        first = views.reshape(*views.shape[:-2], height * width).argmax(-1)
    else:
        counted = own.views(np.ones(x.shape[2:]), float(own.count_include_pad), 0).sum((-2, -1))
        given = given / (height * width if own.count_include_pad else np.maximum(counted, 1))
    rows, columns = given.shape[2:]
    whole = np.zeros((*x.shape[:2], (rows - 1) * step_h + height, (columns - 1) * step_w + width))
    for n, (i, j) in enumerate(np.ndindex(height, width)):
        share = np.where(first == n, given, 0) if kind == "max" else given
        whole[:, :, i : i + (rows - 1) * step_h + 1 : step_h, j : j + (columns - 1) * step_w + 1 : step_w] += share
    # What lies in the padding is dropped, and what no window reaches gets nothing.
    missing = [max(0, begin + extent - have) for begin, extent, have in zip((top, left), x.shape[2:], whole.shape[2:], strict=True)]
    whole = np.pad(whole, [(0, 0), (0, 0), (0, missing[0]), (0, missing[1])])
    found = whole[:, :, top : top + x.shape[2], left : left + x.shape[3]]
    return relaid(found.astype(data.dtype), plain, own.layout)


def _backward(kind: str) -> Callable[..., Call]:
    where = f"grad.{kind}_pool2d_backward"

    def rule(
        output_grad: Expr, data: Expr, pool_size: int | Sequence[int] = (1, 1), strides: int | Sequence[int] = (1, 1),
        padding: int | Sequence[int] = (0, 0, 0, 0), dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False,
        count_include_pad: bool = False, layout: str = "NCHW", out_layout: str | None = None,
    ) -> StructInfo:  # fmt: skip
        x, given = tensor(data, "data"), tensor(output_grad, "output_grad")
        planes(where, x, layout, out_layout, 2)
        own = Pool(where, 2, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout)
        if list(own.dilation) != [1, 1]:
            raise DeclarationError(
                f"relax.op.{where}: windows whose elements stand apart, dilation {tuple(own.dilation)}, have no gradient"
            )
        if given.dtype != x.dtype:
            raise DeclarationError(f"relax.op.{where}: data of {x.dtype} has no gradient of {given.dtype}")
        return x.info

    rule.__doc__ = (
        "The gradient of a max pool's data by that of its result: the first largest element of each window gets it."
        if kind == "max"
        else "The gradient of a mean pool's data by that of its result: each element of a window gets its share."
    )
    return operator(
        where,
        Pattern.OPAQUE,
        te=lambda output_grad, data, **attrs: _te(Pool(where, 2, **attrs), kind, output_grad, data),
        numpy=lambda output_grad, data, **attrs: _np(Pool(where, 2, **attrs), kind, output_grad, data),
    )(rule)


avg_pool2d_backward, max_pool2d_backward = _backward("avg"), _backward("max")
