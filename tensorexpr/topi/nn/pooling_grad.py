"""The gradient of pooling: each element of the data collects what the windows over it give back."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import cast, const, floordiv, maximum, minimum
from ...tir.expr import PrimExpr, Var
from ..math import axis_names
from ..reduction import _arg_reducer, _worst
from ..utils import get_const_int, pad_pairs, spread
from .pooling import POOL_TYPES, _padded, _places

POOL_TYPE_CODE = {"avg": 0, "max": 1}


def pool_grad(
    grads: Tensor,
    data: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
) -> Tensor:
    """The gradient of `pool2d` with respect to its data.

    Args:
        grads: the gradient of the result, of its shape.
        data: what was pooled, of `layout`.
        kernel, stride: two numbers, or one.
        padding: top, left, bottom, right, or see `topi.utils.pad_pairs`.
        pool_type: "max": the first largest element of a window gets its gradient; "avg": all get a share.
        ceil_mode: windows may reach past the padded data.
        count_include_pad: a share is one over the places of a window in the padded data; else over those in the data.
        layout: an order of axes with H and W among them, as "NCHW", "NHWC" or "NCHW16c".

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        DeclarationError: for arguments that don't fit.
    """
    where = "pool_grad"
    if pool_type not in POOL_TYPES:
        raise DeclarationError(f'{where}: pool_type is {pool_type!r}; it takes "max" or "avg"')
    places = _places(where, data, layout, "HW")
    kernels, strides = (tuple(map(get_const_int, spread(where, n, v, 2))) for n, v in (("kernel", kernel), ("stride", stride)))
    pairs = [(get_const_int(low), get_const_int(high)) for low, high in pad_pairs(where, padding, kernels)]
    extents = [get_const_int(data.shape[place]) for place in places]
    counts = []
    for extent, size, step, (low, high), place in zip(extents, kernels, strides, pairs, places, strict=True):
        room = extent + low + high - size
        counts.append((-(-room // step) if ceil_mode else room // step) + 1)
        if get_const_int(grads.shape[place]) != counts[-1]:
            raise DeclarationError(f"{where}: grads has {grads.shape[place]} windows along axis {place} of {layout}, not {counts[-1]}")
    # An element lies in at most ceil(size / step) windows along an axis: the sum runs over these and not over all.
    over = [te.reduce_axis((0, -(-size // step)), name=name) for size, step, name in zip(kernels, strides, ("wh", "ww"), strict=True)]
    chosen = _largest(data, places, kernels, strides, pairs, counts) if pool_type == "max" else None

    def body(*i: Var) -> PrimExpr:
        window: list[PrimExpr] = [*i]
        inside, tap, divisor = [], const(0), const(1)
        for number, place in enumerate(places):
            size, step, (low, high) = kernels[number], strides[number], pairs[number]
            at = i[place] + low
            first = floordiv(at, step) - over[number].var
            # The last test: of size 3 at step 2 every other element lies in one window, not in two.
            inside += [first >= 0, first < counts[number], at - first * step < size]
            window[place] = minimum(maximum(first, const(0)), const(counts[number] - 1))
            tap = tap * size + (at - first * step)
            begin = first * step - low
            # with ceil_mode a window may reach past the padding, too
            start, end = (-low, extents[number] + high) if count_include_pad else (0, extents[number])
            divisor = divisor * (minimum(begin + size, const(end)) - maximum(begin, const(start)))
        share = grads(*window)
        if chosen is not None:
            inside.append(arithmetic.convert(chosen(*window) == tap))
        else:
            whole = count_include_pad and not ceil_mode
            share = share / cast(const(kernels[0] * kernels[1]) if whole else maximum(divisor, const(1)), data.dtype)
        return te.sum(intrin.if_then_else(arithmetic.all(*inside), share, const(0, data.dtype)), axis=over)

    return compute(data.shape, body, "T_pool_grad", f"pool_grad_{pool_type}", varargs_names=axis_names(data.ndim))


def _largest(data: Tensor, places: list[int], kernels: Any, strides: Any, pairs: Any, counts: list[int]) -> Tensor:
    """Which tap of each window holds its first largest element."""
    before, after = [0] * data.ndim, [0] * data.ndim
    shape: list[Any] = [*data.shape]
    for number, place in enumerate(places):
        low = pairs[number][0]
        before[place] = low
        reach = (counts[number] - 1) * strides[number] + kernels[number]
        after[place] = max(0, reach - low - get_const_int(data.shape[place]))
        shape[place] = counts[number]
    padded = _padded(data, before, after, _worst(data.dtype, True))
    over = [te.reduce_axis((0, size), name=name) for size, name in zip(kernels, ("dh", "dw"), strict=True)]
    reducer = _arg_reducer(True, False)

    def body(*i: Var) -> tuple[PrimExpr, ...]:
        at: list[PrimExpr] = [*i]
        for number, place in enumerate(places):
            at[place] = i[place] * strides[number] + over[number].var
        pair: tuple[PrimExpr, ...] = reducer((over[0].var * kernels[1] + over[1].var, padded(*at)), axis=over)
        return pair

    chosen, _ = compute(shape, body, "maxpool_grad_argmax", "comm_reduce_idx", varargs_names=axis_names(data.ndim))
    found: Tensor = chosen
    return found
