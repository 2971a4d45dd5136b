"""Pooling: the largest element or the mean of windows, of the whole plane, or of as many cells as are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.reducer import Reducer
from ...te.tensor import Tensor
from ...tir import arithmetic
from ...tir.arithmetic import cast, ceildiv, const, floordiv, maximum, minimum, truncdiv
from ...tir.expr import PrimExpr, Var
from .. import tag
from ..math import axis_names
from ..reduction import _reduce
from ..utils import extent_value, get_const_int, pad_pairs, spread
from .padding import needs_padding, pad

POOL_TYPES = ("max", "avg")


def pool(
    where: str,
    data: Tensor,
    spatial: str,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool,
    layout: str,
    count_include_pad: bool,
    largest: Reducer = te.max,
    clipped: bool = True,
) -> Tensor:
    """The maximum, the mean or the sum of each window. Of a window that lies in the padding alone they are the least number, 0 and 0.

    Args:
        spatial: the letters of `layout` that the windows run over.
        kernel, stride, dilation: one number, or one for each of these axes.
        padding: one number, one for each axis, or the befores and then the afters.
        pool_type: "max", "avg" or "sum".
        ceil_mode: a last window that reaches past the padded data counts too.
        count_include_pad: a mean divides by the window's size, padding included; else by the elements of data in it.
        largest: what a maximum is by: `te.max`, or a reducer that says more of NaN.
        clipped: with ceil_mode, no window starts behind the data's end, as ONNX and PyTorch count them.

    Raises:
        DeclarationError: for arguments that don't fit.
    """
    if pool_type != "sum":
        _check_type(where, pool_type)
    places = _places(where, data, layout, spatial)
    dims = len(places)
    kernels, strides, dilations = (spread(where, n, v, dims) for n, v in (("kernel", kernel), ("stride", stride), ("dilation", dilation)))
    windows = [extent_value((size - 1) * apart + 1) for size, apart in zip(kernels, dilations, strict=True)]
    pairs = pad_pairs(where, padding, windows)
    counts, before, after = [], [0] * data.ndim, [0] * data.ndim
    for place, window, step, (low, high) in zip(places, windows, strides, pairs, strict=True):
        room = data.shape[place] + low + high - window
        count = extent_value((ceildiv(room, step) if ceil_mode else floordiv(room, step)) + 1)
        if ceil_mode and clipped and not _is_less(window, high + step):  # a window would lie in the padding alone
            count = extent_value(minimum(count, floordiv(data.shape[place] + (low - 1), step) + 1))
        counts.append(count)
        before[place] = low
        # As far as the last window reaches, which with ceil_mode may be past the padding.
        after[place] = extent_value(maximum(const(0), (count - 1) * step + window - data.shape[place] - low)) if ceil_mode else high
    shape = [*data.shape]
    for place, count in zip(places, counts, strict=True):
        shape[place] = arithmetic.convert(count)
    if pool_type == "max":
        over_one = te.reduce_axis((0, 1), name="rv")
        worst = largest(const(0, data.dtype), axis=over_one).combiner.identity_element[0]
        return _windows(_padded(data, before, after, worst), shape, places, kernels, strides, dilations, largest, "pool_max")
    total = _windows(_padded(data, before, after, const(0, data.dtype)), shape, places, kernels, strides, dilations, te.sum, "pool_sum")
    if pool_type == "sum":
        return total
    lows = [low for low, _ in pairs]
    limits = [extent_value(data.shape[place] + low + high) for place, (low, high) in zip(places, pairs, strict=True)]

    def mean(*i: Var) -> PrimExpr:
        divisor: Any = const(1)
        for place, size, step, apart, low, limit in zip(places, kernels, strides, dilations, lows, limits, strict=True):
            start = i[place] * step
            # Places count in the padded data: the elements of the data begin at `low`.
            first, end = (const(0), limit) if count_include_pad else (const(low), data.shape[place] + low)
            # Where all windows lie inside the divisor is a constant, and no extents are compared for each result.
            clipped = ceil_mode if count_include_pad else (ceil_mode or needs_padding(before, after))
            divisor = divisor * (_taps_inside(start, size, apart, first, end) if clipped else size)
        return _quotient(total(*i), maximum(const(1), divisor), data.dtype)

    return compute(shape, mean, "pool_avg", tag.ELEMWISE, varargs_names=axis_names(data.ndim))


def _named(name: str, spatial: str, default_layout: str) -> Callable[..., Tensor]:
    def pooling(
        data: Tensor,
        kernel: Any,
        stride: Any,
        dilation: Any,
        padding: Any,
        pool_type: str,
        ceil_mode: bool = False,
        layout: str = default_layout,
        count_include_pad: bool = True,
    ) -> Tensor:
        # clipped=False: TE programs, and `pool_grad`, take the rounded number of windows, those in the padding alone included
        return pool(name, data, spatial, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, clipped=False)

    pooling.__name__ = pooling.__qualname__ = name
    pooling.__doc__ = f"Windows over {', '.join(spatial)}. See `pool`."
    return pooling


pool1d = _named("pool1d", "W", "NCW")
pool2d = _named("pool2d", "HW", "NCHW")
pool3d = _named("pool3d", "DHW", "NCDHW")


def _is_less(limit: Any, value: Any) -> bool:
    """Whether a value is known to be no more than a limit."""
    known = extent_value(limit - value)
    return isinstance(known, int) and known >= 0


def _taps_inside(start: PrimExpr, size: Any, apart: Any, first: Any, end: Any) -> PrimExpr:
    """How many of the positions start, start + apart, ... (`size` of them) are in [first, end)."""
    begin = maximum(const(0), ceildiv(first - start, apart))
    stop = minimum(arithmetic.convert(size), ceildiv(end - start, apart))
    return maximum(const(0), stop - begin)


def _padded(data: Tensor, before: Sequence[Any], after: Sequence[Any], value: PrimExpr) -> Tensor:
    return pad(data, before, after, value, "pad_temp") if needs_padding(before, after) else data


def _windows(
    data: Tensor,
    shape: Sequence[Any],
    places: Sequence[int],
    kernels: Sequence[Any],
    strides: Sequence[Any],
    dilations: Sequence[Any],
    reducer: Reducer,
    name: str,
) -> Tensor:
    over = [te.reduce_axis((0, size), name=f"rv{n}") for n, size in enumerate(kernels)]

    def body(*i: Var) -> PrimExpr:
        indices: list[PrimExpr] = [*i]
        for place, tap, step, apart in zip(places, over, strides, dilations, strict=True):
            indices[place] = i[place] * step + tap.var * apart
        return reducer(data(*indices), axis=over)

    return compute(shape, body, name, name, varargs_names=axis_names(data.ndim))


def _check_type(where: str, pool_type: str) -> None:
    if pool_type not in POOL_TYPES:
        raise DeclarationError(f'{where}: pool_type is {pool_type!r}; it takes "max" or "avg"')


def _places(where: str, data: Tensor, layout: str, spatial: str) -> list[int]:
    letters = [letter for letter in layout if letter.isalpha()]
    if len(letters) != data.ndim or any(letters.count(letter) != 1 for letter in spatial):
        raise DeclarationError(
            f"Unsupported layout {layout}: {where} can't find the {data.ndim} axes of {data.name} in it, {spatial} among them, each once"
        )
    return [letters.index(letter) for letter in spatial]


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The maximum or the mean of the whole plane, which becomes extents of 1."""
    return adaptive_pool(data, (1, 1), pool_type, layout)


def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCW", largest: Reducer = te.max) -> Tensor:
    """Cells over W. See `adaptive_pool`."""
    return _adaptive("adaptive_pool1d", data, output_size, pool_type, layout, "W", largest)


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW", largest: Reducer = te.max) -> Tensor:
    """The maximum or the mean of the cells that cut each axis in `output_size` parts: [floor(i*n/m), ceil((i+1)*n/m)).

    A maximum is by `largest`.
    """
    return _adaptive("adaptive_pool", data, output_size, pool_type, layout, "HW", largest)


def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW", largest: Reducer = te.max) -> Tensor:
    """Cells over D, H and W. See `adaptive_pool`."""
    return _adaptive("adaptive_pool3d", data, output_size, pool_type, layout, "DHW", largest)


def _adaptive(where: str, data: Tensor, output_size: Any, pool_type: str, layout: str, spatial: str, largest: Reducer) -> Tensor:
    _check_type(where, pool_type)
    places = _places(where, data, layout, spatial)
    sizes = [get_const_int(n) for n in spread(where, "output_size", output_size, len(places))]
    # One cell is a reduction, whose extents needn't be numbers.
    if all(size == 1 for size in sizes):
        reducer, name = (largest, "adaptive_pool_max") if pool_type == "max" else (te.sum, "adaptive_pool_sum")
        found = _reduce(data, places, True, reducer, name)
        count: Any = 1
        for place in places:
            count = count * extent_value(data.shape[place])
        return found if pool_type == "max" else _divided(found, count, data.dtype)
    extents = [get_const_int(data.shape[place]) for place in places]
    if min(*sizes, *extents) < 1:
        raise DeclarationError(f"{where}: {sizes} cells of {extents} elements; there is one or more of each")
    windows = [_even_windows(extent, size) for extent, size in zip(extents, sizes, strict=True)]
    even = [window for window in windows if window is not None]
    if len(even) == len(windows):
        kernels, strides = zip(*even, strict=True)
        return pool(where, data, spatial, kernels, strides, 1, 0, pool_type, False, layout, True, largest)
    return _uneven_cells(data, places, sizes, extents, pool_type, largest)


def _even_windows(extent: int, size: int) -> tuple[int, int] | None:
    """The length of all cells and the way from one to the next, where all have the same: 13 in 6 cells are windows of 3, 2 apart."""
    cells = [(i * extent // size, -(-(i + 1) * extent // size)) for i in range(size)]
    lengths, steps = {end - begin for begin, end in cells}, {b[0] - a[0] for a, b in pairwise(cells)} or {extent}
    return (lengths.pop(), steps.pop()) if len(lengths) == len(steps) == 1 else None


def _uneven_cells(
    data: Tensor, places: Sequence[int], sizes: Sequence[int], extents: Sequence[int], pool_type: str, largest: Reducer
) -> Tensor:
    """Cells of different sizes: each reduction runs over the largest cell and skips what is past the end of a smaller one.

    One axis after the other, the outermost first: the cells of its rows are whole vectors, and few elements are left for the last one.
    """
    reducer = largest if pool_type == "max" else te.sum
    name = f"adaptive_pool_{'max' if pool_type == 'max' else 'sum'}"

    def bounds(index: PrimExpr, n: int, m: int) -> tuple[PrimExpr, PrimExpr]:
        return floordiv(index * n, m), floordiv((index + 1) * n + (m - 1), m)

    def along(source: Tensor, place: int, n: int, m: int) -> Tensor:
        # 5 elements in 3 cells: [0, 2), [1, 4) and [3, 5), of which the largest has 3.
        tap = te.reduce_axis((0, max(-(-(i + 1) * n // m) - i * n // m for i in range(m))), name="rv")

        def body(*i: Var) -> PrimExpr:
            start, end = bounds(i[place], n, m)
            element = source(*i[:place], minimum(start + tap.var, const(n - 1)), *i[place + 1 :])
            return reducer(element, axis=tap, where=start + tap.var < end)

        shape = [*source.shape[:place], m, *source.shape[place + 1 :]]
        return compute(shape, body, name, name, varargs_names=axis_names(source.ndim))

    found = data
    for place, n, m in zip(places, extents, sizes, strict=True):
        found = found if n == m else along(found, place, n, m)
    if pool_type == "max":
        return found

    def mean(*i: Var) -> PrimExpr:
        count: PrimExpr = const(1)
        for place, n, m in zip(places, extents, sizes, strict=True):
            start, end = bounds(i[place], n, m)
            count = count * (end - start)
        return _quotient(found(*i), count, data.dtype)

    return compute(found.shape, mean, "adaptive_pool_avg", tag.ELEMWISE, varargs_names=axis_names(data.ndim))


def _quotient(total: PrimExpr, count: Any, dtype: str) -> PrimExpr:
    """A mean; of integers it is rounded towards zero."""
    return truncdiv(total, cast(count, dtype)) if "int" in dtype else total / cast(count, dtype)


def _divided(found: Tensor, count: Any, dtype: str) -> Tensor:
    return compute(
        found.shape,
        lambda *i: _quotient(found(*i), count, dtype),
        "adaptive_pool_avg",
        tag.ELEMWISE,
        varargs_names=axis_names(found.ndim),
    )
