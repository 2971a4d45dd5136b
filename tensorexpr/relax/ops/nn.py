"""Operators of neural networks: rows that are normalised, windows, pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import topi
from ...arith.analyzer import Analyzer
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm, PrimExpr
from ..relations import same_extents
from ..struct_info import StructInfo, TupleStructInfo
from . import reference
from .row import Expr, Operand, Pattern, operator, tensor


@operator("nn.softmax", Pattern.OUT_FUSABLE, te=topi.nn.softmax, numpy=reference.softmax)
def softmax(data: Expr, axis: int = -1) -> StructInfo:
    """Exponentials by their sum along an axis."""
    operand = tensor(data, "data")
    operand.axis(axis)
    return operand.info


@operator("nn.log_softmax", Pattern.OUT_FUSABLE, te=topi.nn.log_softmax, numpy=reference.log_softmax)
def log_softmax(data: Expr, axis: int = -1) -> StructInfo:
    """The logarithm of the softmax along an axis."""
    operand = tensor(data, "data")
    operand.axis(axis)
    return operand.info


def _scaled(x: Any, gamma: Any, beta: Any, axes: Sequence[int], epsilon: float, center: bool, scale: bool) -> Any:
    ndim = x.ndim
    shape = [x.shape[n] if n in [a % ndim for a in axes] else 1 for n in range(ndim)]
    found = reference.normalized(x, axes, epsilon)
    found = found * gamma.reshape(shape) if scale else found
    return (found + beta.reshape(shape) if center else found).astype(x.dtype)


def _te_layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    along = [axes] if isinstance(axes, int) else list(axes)
    gamma = gamma if scale else topi.full(gamma.shape, gamma.dtype, 1)
    return topi.nn.layer_norm(data, gamma, beta if center else topi.full(beta.shape, beta.dtype, 0), along, epsilon)


def _np_layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    return _scaled(data, gamma, beta, [axes] if isinstance(axes, int) else list(axes), epsilon, center, scale)


@operator("nn.layer_norm", Pattern.OUT_FUSABLE, te=_te_layer_norm, numpy=_np_layer_norm)
def layer_norm(
    data: Expr, gamma: Expr, beta: Expr, axes: int | Sequence[int] = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True
) -> StructInfo:
    """Rows with a mean of 0 and a variance of 1, scaled and shifted (Ba et al. 2016)."""
    operand = tensor(data, "data")
    along = operand.axes(axes)
    for name, vector in (("gamma", gamma), ("beta", beta)):
        own = tensor(vector, name)
        if along is not None and own.ndim not in (-1, len(along)):
            raise DeclarationError(f"relax.op.nn.layer_norm: {name} has {own.ndim} axes, where {len(along)} are normalised")
    return operand.info


def _te_rms_norm(data: Any, weight: Any, axes: Any, epsilon: float) -> Any:
    return topi.nn.rms_norm(data, weight, [axes] if isinstance(axes, int) else list(axes), epsilon)


def _np_rms_norm(data: Any, weight: Any, axes: Any, epsilon: float) -> Any:
    wide = data.astype(np.float64)
    mean = np.square(wide).mean(tuple(np.atleast_1d(axes)), keepdims=True)
    return (wide / np.sqrt(mean + epsilon) * weight).astype(data.dtype)


@operator("nn.rms_norm", Pattern.OUT_FUSABLE, te=_te_rms_norm, numpy=_np_rms_norm)
def rms_norm(data: Expr, weight: Expr, axes: int | Sequence[int] = -1, epsilon: float = 1e-5) -> StructInfo:
    """Rows with a mean square of 1, scaled (Zhang and Sennrich 2019)."""
    operand = tensor(data, "data")
    operand.axes(axes)
    return operand.info


def _np_batch_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
) -> Any:
    shape = [-1 if n == axis % data.ndim else 1 for n in range(data.ndim)]
    found = (data - moving_mean.reshape(shape)) / np.sqrt(moving_var.reshape(shape) + epsilon)
    found = found * gamma.reshape(shape) if scale else found
    return (found + beta.reshape(shape) if center else found).astype(data.dtype), moving_mean, moving_var


@operator(
    "nn.batch_norm", Pattern.OUT_FUSABLE, te=lambda *tensors, momentum, **attrs: topi.nn.batch_norm(*tensors, **attrs), numpy=_np_batch_norm
)
def batch_norm(
    data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr, axis: int, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True, momentum: float = 0.1,
) -> StructInfo:  # fmt: skip
    """Channels by their moving mean and variance, scaled and shifted; with these two as they are."""
    operand = tensor(data, "data")
    place = operand.axis(axis)
    for name, vector in (("gamma", gamma), ("beta", beta), ("moving_mean", moving_mean), ("moving_var", moving_var)):
        own = tensor(vector, name)
        if (
            operand.extents is not None
            and own.extents is not None
            and (own.ndim != 1 or same_extents(own.extents[0], operand.extents[place]) is False)
        ):
            raise DeclarationError(f"relax.op.nn.batch_norm: {name} is {own.info}, where axis {axis} of {operand.info} is normalised")
    return TupleStructInfo((operand.info, moving_mean.struct_info, moving_var.struct_info))


@operator(
    "nn.dropout",
    Pattern.OPAQUE,
    te=lambda data, rate: [topi.identity(data), topi.full(data.shape, data.dtype, 1)],
    numpy=lambda data, rate: (data, np.ones_like(data)),
)
def dropout(data: Expr, rate: float = 0.5) -> StructInfo:
    """The tensor as it is, and a mask of ones: nothing is dropped when a network runs."""
    info = tensor(data, "data").info
    return TupleStructInfo((info, info))


def sizes(value: int | Sequence[int], rank: int, what: str) -> list[int]:
    """A number for each axis of a window.

    Raises:
        DeclarationError: for another number of them.
    """
    found = [int(one) for one in value] if isinstance(value, Sequence) else [int(value)]
    found = found * rank if len(found) == 1 else found
    if len(found) != rank:
        raise DeclarationError(f"{what} is a number, or one for each of {rank} axes, not {value}")
    return found


def paddings(value: int | Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """What is added in front and behind of each axis of a window.

    Raises:
        DeclarationError: for another number of them than 1, one for each axis or one for each end.
    """
    found = [int(one) for one in value] if isinstance(value, Sequence) else [int(value)]
    found = found if len(found) == 2 * rank else sizes(found, rank, "padding") * 2
    return found[:rank], found[rank:]


def pads_of(padding: Any) -> list[int]:
    """What is added around a plane: in front of both axes, then behind them."""
    front, back = paddings(padding, 2)
    return [*front, *back]


def positions(extent: PrimExpr, size: int, stride: int, dilation: int, pads: int, ceil_mode: bool = False) -> PrimExpr:
    """How many windows there are along an axis."""
    room: PrimExpr = extent + (pads - (size - 1) * dilation - 1)
    if ceil_mode:
        room = room + (stride - 1)
    return Analyzer().simplify(room // stride + 1)


def conv_extents(
    data: Operand,
    weight: Operand,
    strides: Sequence[int],
    padding: Any,
    dilation: Sequence[int],
    groups: int,
    layouts: tuple[str, str, str],
) -> list[PrimExpr] | None:
    """The shape of a convolution's result.

    Raises:
        DeclarationError: if channels or layouts don't fit.
    """
    data_layout, kernel_layout, out_layout = layouts
    if data.extents is None or weight.extents is None:
        return None
    rank = len(data_layout) - 2
    pixels = [axis for axis in data_layout if axis not in "NC"]
    front, back = paddings(padding, rank)
    d, w = dict(zip(data_layout, data.extents, strict=True)), dict(zip(kernel_layout, weight.extents, strict=True))
    channels = Analyzer().simplify(w["I"] * groups)
    if same_extents(d["C"], channels) is False:
        raise DeclarationError(
            f"a convolution of {d['C']} channels with weights for {w['I']} in each of {groups} groups: {data.info}, {weight.info}"
        )
    found: dict[str, PrimExpr] = {"N": d["N"], "C": w["O"]}
    for n, axis in enumerate(pixels):
        size = as_int(w[axis])
        if size is None:
            return None
        found[axis] = positions(d[axis], size, strides[n], dilation[n], front[n] + back[n])
    return [found[axis] for axis in out_layout]


def _te_conv2d(
    data: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str | None,
    out_dtype: str | None,
) -> Any:
    return topi.nn.conv(
        data,
        weight,
        sizes(strides, 2, "strides"),
        pads_of(padding),
        sizes(dilation, 2, "dilation"),
        groups,
        data_layout,
        kernel_layout,
        out_dtype or None,
    )


def _np_conv2d(
    data: Any,
    weight: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str | None,
    out_dtype: str | None,
) -> Any:
    x = np.transpose(data, [data_layout.index(axis) for axis in "NCHW"])
    w = np.transpose(weight, [kernel_layout.index(axis) for axis in "OIHW"])
    front, back = paddings(padding, 2)
    x = np.pad(x, [(0, 0), (0, 0), (front[0], back[0]), (front[1], back[1])])
    view = reference.windows(x, w.shape[2:], sizes(strides, 2, "strides"), sizes(dilation, 2, "dilation"))
    n, c, h, v = view.shape[:4]
    view = view.reshape(n, groups, c // groups, h, v, *w.shape[2:])
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    found = np.einsum("ngchvxy,gocxy->ngohv", view, parts).reshape(n, w.shape[0], h, v)
    result = np.transpose(found, ["NCHW".index(axis) for axis in out_layout or data_layout])
    return result.astype(out_dtype or data.dtype)


@operator("nn.conv2d", Pattern.OUT_FUSABLE, te=_te_conv2d, numpy=_np_conv2d)
def conv2d(
    data: Expr, weight: Expr, strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1,
    groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str | None = None, out_dtype: str | None = None,
) -> StructInfo:  # fmt: skip
    """Sums over windows of images and their channels."""
    x, w = tensor(data, "data"), tensor(weight, "weight")
    if sorted(data_layout) != sorted("NCHW") or sorted(kernel_layout) != sorted("OIHW"):
        raise DeclarationError(f"relax.op.nn.conv2d: layouts are orders of NCHW and OIHW, not {data_layout} and {kernel_layout}")
    if x.ndim not in (4, -1) or w.ndim not in (4, -1):
        raise DeclarationError(f"relax.op.nn.conv2d: data and weights have 4 axes, not {x.info} and {w.info}")
    layouts = data_layout, kernel_layout, out_layout or data_layout
    shape = conv_extents(x, w, sizes(strides, 2, "strides"), padding, sizes(dilation, 2, "dilation"), groups, layouts)
    return x.like(shape, x.dtype if out_dtype in (None, "", "void") else out_dtype, 4)


def pool_extents(
    data: Operand, layout: str, size: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> list[PrimExpr] | None:
    """The shape of what windows of a plane are taken together to."""
    if data.extents is None:
        return None
    pixels = [n for n, axis in enumerate(layout) if axis not in "NC"]
    rank = len(pixels)
    front, back = paddings(padding, rank)
    size, strides, dilation = (sizes(one, rank, "a window's size") for one in (size, strides, dilation))
    found = list(data.extents)
    for n, axis in enumerate(pixels):
        found[axis] = positions(found[axis], size[n], strides[n], dilation[n], front[n] + back[n], ceil_mode)
    return found


def _te_pool(kind: str) -> Any:
    def made(
        data: Any,
        pool_size: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        layout: str,
        out_layout: Any,
    ) -> Any:
        pads = pads_of(padding)
        return topi.nn.pool2d(
            data,
            sizes(pool_size, 2, "pool_size"),
            sizes(strides, 2, "strides"),
            sizes(dilation, 2, "dilation"),
            pads,
            kind,
            ceil_mode,
            layout,
            count_include_pad,
        )

    return made


def _np_pool(kind: str) -> Any:
    def evaluated(
        data: Any,
        pool_size: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        layout: str,
        out_layout: Any,
    ) -> Any:
        order = [layout.index(axis) for axis in "NCHW"]
        x = np.transpose(data, order)
        (front, back), size, step, spread = paddings(padding, 2), sizes(pool_size, 2, ""), sizes(strides, 2, ""), sizes(dilation, 2, "")
        counts = [
            as_int(positions(IntImm("int64", x.shape[2 + n]), size[n], step[n], spread[n], front[n] + back[n], ceil_mode)) or 0
            for n in range(2)
        ]
        more = [max(0, (counts[n] - 1) * step[n] + (size[n] - 1) * spread[n] + 1 - x.shape[2 + n] - front[n] - back[n]) for n in range(2)]
        pads = [(0, 0), (0, 0), *((front[n], back[n] + more[n]) for n in range(2))]
        if kind == "max":
            low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            found = reference.windows(np.pad(x, pads, constant_values=low), size, step, spread).max((-1, -2))
        else:
            total = reference.windows(np.pad(x, pads), size, step, spread).sum((-1, -2))
            inside = np.pad(np.ones(x.shape[2:]), [(front[n], back[n]) for n in range(2)], constant_values=float(count_include_pad))
            inside = np.pad(inside, [(0, more[n]) for n in range(2)])
            found = total / reference.windows(inside, size, step, spread).sum((-1, -2))
        found = found[:, :, : counts[0], : counts[1]].astype(data.dtype)
        return np.transpose(found, np.argsort(order))

    return evaluated


def _pool(kind: str) -> Any:
    def rule(
        data: Expr, pool_size: int | Sequence[int] = (1, 1), strides: int | Sequence[int] = (1, 1), padding: int | Sequence[int] = (0, 0),
        dilation: int | Sequence[int] = (1, 1), ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW",
        out_layout: str | None = None,
    ) -> StructInfo:  # fmt: skip
        x = tensor(data, "data")
        return x.like(pool_extents(x, layout, pool_size, strides, padding, dilation, ceil_mode), ndim=x.ndim)

    rule.__doc__ = f"The {'greatest' if kind == 'max' else 'mean'} of each window of a plane."
    return operator(f"nn.{kind}_pool2d", Pattern.OUT_FUSABLE, te=_te_pool(kind), numpy=_np_pool(kind))(rule)


max_pool2d, avg_pool2d = _pool("max"), _pool("avg")


def _np_adaptive(data: Any, output_size: Any, layout: str, out_layout: Any) -> Any:
    order = [layout.index(axis) for axis in "NCHW"]
    x = np.transpose(data, order)
    h, w = x.shape[2:] if output_size is None else sizes(output_size, 2, "output_size")
    edges = [
        [(n * extent // count, -(-(n + 1) * extent // count)) for n in range(count)]
        for extent, count in zip(x.shape[2:], (h, w), strict=True)
    ]
    found = np.stack([np.stack([x[:, :, a:b, c:d].mean((2, 3)) for c, d in edges[1]], -1) for a, b in edges[0]], -2)
    return np.transpose(found.astype(data.dtype), np.argsort(order))


def _te_adaptive(data: Any, output_size: Any, layout: str, out_layout: Any) -> Any:
    pixels = [extent for extent, axis in zip(data.shape, layout, strict=True) if axis not in "NC"]
    return topi.nn.adaptive_pool(data, pixels if output_size is None else sizes(output_size, 2, "output_size"), "avg", layout)


@operator("nn.adaptive_avg_pool2d", Pattern.OUT_FUSABLE, te=_te_adaptive, numpy=_np_adaptive)
def adaptive_avg_pool2d(
    data: Expr, output_size: int | Sequence[int] | None = None, layout: str = "NCHW", out_layout: str | None = None
) -> StructInfo:
    """Means of windows that cover the plane, so many along each axis."""
    x = tensor(data, "data")
    if x.extents is None or output_size is None:
        return x.info
    new = iter(sizes(output_size, 2, "output_size"))
    return x.like([IntImm("int64", next(new)) if axis not in "NC" else extent for extent, axis in zip(x.extents, layout, strict=True)])
