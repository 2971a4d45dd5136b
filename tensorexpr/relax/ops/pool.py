"""Windows of one to three axes taken together: the greatest element, the mean, a norm; cells that cover the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import te, topi
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...te.reducer import greatest
from ...tir import intrin
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import any as any_of
from ...tir.arithmetic import as_int, cast, const, convert
from ...tir.dtype import parse_dtype
from ...tir.expr import IntImm, PrimExpr
from ...topi.nn.pooling import pool
from ...topi.transform import parse_layout
from ..expr import Call
from ..struct_info import StructInfo, TupleStructInfo
from . import reference
from .row import Expr, Operand, Pattern, operator, tensor
from .window import PLANES, check_layout, paddings, positions, relaid, settled, sizes


@dataclass(frozen=True)
class Pool:
    """The attributes of a pool over `rank` axes, a number for each axis of the window."""

    where: str
    rank: int
    pool_size: Any
    strides: Any
    padding: Any
    dilation: Any
    ceil_mode: bool
    count_include_pad: bool
    layout: str
    out_layout: str | None

    def __post_init__(self) -> None:
        for name in ("pool_size", "strides", "dilation"):
            object.__setattr__(self, name, sizes(getattr(self, name), self.rank, name))
        front, back = paddings(self.padding, self.rank)
        object.__setattr__(self, "padding", [*front, *back])

    @property
    def plane(self) -> str:
        """The letters of the axes of the window."""
        return PLANES[self.rank - 1]

    def counts(self, extents: Sequence[PrimExpr]) -> list[PrimExpr]:
        """How many windows there are along each axis of a plane."""
        front, back = self.padding[: self.rank], self.padding[self.rank :]
        given = zip(extents, self.pool_size, self.strides, self.dilation, front, back, strict=True)
        return [positions(extent, size, step, apart, low, high, self.ceil_mode) for extent, size, step, apart, low, high in given]

    def views(self, plane: Any, border: Any, beyond: Any) -> Any:
        """The windows of the last axes of an array, with one value in the padding and one where windows reach past it."""
        front, back = self.padding[: self.rank], self.padding[self.rank :]
        counts = [as_int(one) or 0 for one in self.counts([IntImm("int64", n) for n in plane.shape[-self.rank :]])]
        given = zip(counts, self.strides, self.pool_size, self.dilation, strict=True)
        ends = [(count - 1) * step + (size - 1) * apart + 1 for count, step, size, apart in given]
        others = [(0, 0)] * (plane.ndim - self.rank)
        padded = np.pad(plane, others + list(zip(front, back, strict=True)), constant_values=border)
        more = [(0, max(0, end - extent)) for end, extent in zip(ends, padded.shape[-self.rank :], strict=True)]
        whole = np.pad(padded, others + more, constant_values=beyond)[_ahead(ends)]
        return reference.windows(whole, self.pool_size, self.strides, self.dilation)


def _ahead(ends: Sequence[int]) -> Any:
    """The index of so many elements along each of the last axes."""
    return (..., *map(slice, ends))


def planes(where: str, data: Operand, layout: str, out_layout: str | None, rank: int) -> list[int]:
    """The places of the axes of a plane in a layout, in the order of their letters.

    Raises:
        DeclarationError: for a layout that doesn't fit, or a result of another one.
    """
    check_layout(where, layout, "NC" + PLANES[rank - 1], data)
    if out_layout not in (None, "", layout):
        raise DeclarationError(f"relax.op.{where}: the result has the layout of the data, {layout}, not {out_layout}; use permute_dims")
    names = [name for name, _ in parse_layout(layout)]
    return [names.index(letter) for letter in PLANES[rank - 1]]


def lowest(dtype: Any) -> Any:
    """What is no greater than any number of a dtype."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _te_pool(own: Pool, kind: str, data: Any, p: int = 2) -> Any:
    options = own.strides, own.dilation, own.padding
    raised = topi.power(topi.abs(data), const(p, data.dtype)) if kind == "sum" else data
    found = pool(own.where, raised, own.plane, own.pool_size, *options, kind, own.ceil_mode, own.layout, own.count_include_pad, greatest)
    return topi.power(found, const(1 / p, data.dtype)) if kind == "sum" else found


def _np_pool(own: Pool, kind: str, data: Any, p: int = 2) -> Any:
    plain, inside = "NC" + own.plane, tuple(range(-own.rank, 0))
    x = relaid(data, own.layout, plain)
    if kind == "max":
        found = own.views(x, lowest(x.dtype), lowest(x.dtype)).max(inside)
    elif kind == "sum":
        found = (own.views(np.abs(x.astype(np.float64)) ** p, 0, 0).sum(inside)) ** (1 / p)
    else:
        # What windows reach past the padding never counts.
        counted = own.views(np.ones(x.shape[2:]), float(own.count_include_pad), 0).sum(inside)
        found = own.views(x.astype(np.float64), 0, 0).sum(inside) / np.maximum(counted, 1)
    return relaid(found.astype(x.dtype), plain, own.layout)


def _pool(kind: str, rank: int) -> Callable[..., Call]:
    where, plane = f"nn.{kind}_pool{rank}d", PLANES[rank - 1]

    def rule(
        data: Expr, pool_size: int | Sequence[int] = 1, strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1, ceil_mode: bool = False, count_include_pad: bool = False, layout: str = f"NC{plane}",
        out_layout: str | None = None,
    ) -> StructInfo:  # fmt: skip
        x = tensor(data, "data")
        places = planes(where, x, layout, out_layout, rank)
        own = Pool(where, rank, pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout)
        return _moved(x, places, None if x.extents is None else own.counts([x.extents[place] for place in places]))

    rule.__doc__ = f"The {'greatest' if kind == 'max' else 'mean'} of each window of {plane}; a mean counts elements, or all of the window."
    return operator(
        where,
        Pattern.OUT_FUSABLE,
        te=lambda data, **attrs: _te_pool(Pool(where, rank, **attrs), kind, data),
        numpy=lambda data, **attrs: _np_pool(Pool(where, rank, **attrs), kind, data),
        settled=settled(rank),
    )(rule)


def _moved(x: Operand, places: Sequence[int], extents: Sequence[PrimExpr] | None) -> StructInfo:
    """A tensor with other extents at some places."""
    if x.extents is None or extents is None:
        return x.like(None, ndim=x.ndim)
    shape = list(x.extents)
    for place, extent in zip(places, extents, strict=True):
        shape[place] = extent
    return x.like(shape)


max_pool1d, max_pool2d, max_pool3d = (_pool("max", rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool("avg", rank) for rank in (1, 2, 3))


def _lp_pool(rank: int) -> Callable[..., Call]:
    where, plane = f"nn.lp_pool{rank}d", PLANES[rank - 1]

    def rule(
        data: Expr, pool_size: int | Sequence[int] = 1, strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1, ceil_mode: bool = False, p: int = 2, layout: str = f"NC{plane}",
    ) -> StructInfo:  # fmt: skip
        x = tensor(data, "data")
        places = planes(where, x, layout, None, rank)
        own = Pool(where, rank, pool_size, strides, padding, dilation, ceil_mode, False, layout, None)
        return _moved(x, places, None if x.extents is None else own.counts([x.extents[place] for place in places]))

    def meaning(function: Any) -> Any:
        def made(data: Any, p: int, **attrs: Any) -> Any:
            return function(Pool(where, rank, **attrs, count_include_pad=False, out_layout=None), "sum", data, p)

        return made

    rule.__doc__ = f"The p-norm of each window of {plane}."
    return operator(where, Pattern.OUT_FUSABLE, te=meaning(_te_pool), numpy=meaning(_np_pool))(rule)


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(rank) for rank in (1, 2, 3))


def _np_adaptive(rank: int, kind: str, data: Any, output_size: Any, layout: str, out_layout: Any) -> Any:
    plain = "NC" + PLANES[rank - 1]
    found = relaid(data, layout, plain)
    wanted = found.shape[2:] if output_size is None else sizes(output_size, rank, "output_size")
    found = found if kind == "max" else found.astype(np.float64)
    for axis, count in enumerate(wanted, 2):  # cells are products of parts of the axes: one axis after the other
        n = found.shape[axis]
        parts = [np.take(found, range(i * n // count, -(-(i + 1) * n // count)), axis) for i in range(count)]
        found = np.stack([part.max(axis) if kind == "max" else part.mean(axis) for part in parts], axis)
    return relaid(found.astype(data.dtype), plain, layout)


def _te_adaptive(rank: int, kind: str, data: Any, output_size: Any, layout: str, out_layout: Any) -> Any:
    names = [name for name, _ in parse_layout(layout)]
    plane = [data.shape[names.index(letter)] for letter in PLANES[rank - 1]]
    function = (topi.nn.adaptive_pool1d, topi.nn.adaptive_pool, topi.nn.adaptive_pool3d)[rank - 1]
    return (
        topi.identity(data)
        if output_size is None
        else function(data, sizes(output_size, len(plane), "output_size"), kind, layout, greatest)
    )


def _adaptive(kind: str, rank: int) -> Callable[..., Call]:
    where, plane = f"nn.adaptive_{kind}_pool{rank}d", PLANES[rank - 1]

    def rule(
        data: Expr, output_size: int | Sequence[int] | None = None, layout: str = f"NC{plane}", out_layout: str | None = None
    ) -> StructInfo:
        x = tensor(data, "data")
        places = planes(where, x, layout, out_layout, rank)
        if output_size is None:
            return x.info
        return _moved(x, places, [IntImm("int64", one) for one in sizes(output_size, rank, "output_size")])

    rule.__doc__ = f"The {'greatest' if kind == 'max' else 'mean'} of cells that cover {plane}, so many along each axis; of all for None."
    te, numpy = partial(_te_adaptive, rank, kind), partial(_np_adaptive, rank, kind)
    return operator(where, Pattern.OUT_FUSABLE, te=te, numpy=numpy)(rule)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive("avg", rank) for rank in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive("max", rank) for rank in (1, 2, 3))


def _te_places(data: Any, storage_order: bool, **attrs: Any) -> Any:
    rank = data.ndim - 2
    own = Pool("nn.max_pool_with_places", rank, count_include_pad=False, layout="NC" + PLANES[rank - 1], out_layout=None, **attrs)
    front, extents = own.padding[:rank], list(data.shape[2:])
    order = list(reversed(range(rank))) if storage_order else list(range(rank))
    lowest_place = const(-1, "int64")

    def greater(a: Any, b: Any) -> Any:
        # A place of -1 is padding and loses, whatever its value; of equal elements the first place wins.
        earlier = a[1] <= b[1]
        first = any_of(a[0] > b[0], all_of(convert(a[0] == b[0]), earlier), b[1] < lowest_place + 1)
        if parse_dtype(data.dtype).is_float:
            # A NaN beats numbers; of two the first one counts.
            first = any_of(first, all_of(intrin.isnan(a[0]), any_of(earlier, b[0] == b[0])))
        return tuple(intrin.select(all_of(a[1] > lowest_place, first), x, y) for x, y in zip(a, b, strict=True))

    reducer = te.comm_reducer(greater, lambda value, place: (intrin.min_value(value), const(-1, place)), name="greatest")
    taps = [te.reduce_axis((0, size), name=f"rv{n}") for n, size in enumerate(own.pool_size)]

    def body(n: Any, c: Any, *i: Any) -> Any:
        at = [x * s + tap.var * d - low for x, s, tap, d, low in zip(i, own.strides, taps, own.dilation, front, strict=True)]
        inside = all_of(*(test for x, extent in zip(at, extents, strict=True) for test in (x >= 0, x < extent)))
        place: Any = cast(n, "int64") * data.shape[1] + c
        for axis in order:
            place = place * extents[axis] + at[axis]
        value = intrin.if_then_else(inside, data(n, c, *at), intrin.min_value(data.dtype))
        return reducer((value, intrin.select(inside, cast(place, "int64"), lowest_place)), axis=taps)

    return list(te.compute((*data.shape[:2], *own.counts(extents)), body, name="max_pool_with_places"))


def _np_places(data: Any, storage_order: bool, **attrs: Any) -> Any:
    rank = data.ndim - 2
    own = Pool("nn.max_pool_with_places", rank, count_include_pad=False, layout="NC" + PLANES[rank - 1], out_layout=None, **attrs)
    plane = np.arange(int(np.prod(data.shape[2:])))
    # By columns: counted along the reversed axes, and turned back.
    numbers = plane.reshape(data.shape[:1:-1]).T if storage_order else plane.reshape(data.shape[2:])
    places = np.arange(data.shape[0] * data.shape[1]).reshape(*data.shape[:2], *[1] * rank) * len(plane) + numbers
    values, where = own.views(data, lowest(data.dtype), lowest(data.dtype)), own.views(places, -1, -1)
    shape = values.shape[: 2 + rank]
    flat, index = values.reshape(*shape, -1), where.reshape(*shape, -1)
    best = (flat == flat.max(-1, keepdims=True)) | (flat != flat)
    # Others are out of the way of the least place.
    found = np.where(best & (index >= 0), index, np.iinfo(np.int64).max).min(-1)
    return flat.max(-1), np.where(found == np.iinfo(np.int64).max, -1, found)


@operator("nn.max_pool_with_places", Pattern.OPAQUE, te=_te_places, numpy=_np_places)
def max_pool_with_places(
    data: Expr, pool_size: int | Sequence[int] = 1, strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, storage_order: bool = False,
) -> StructInfo:  # fmt: skip
    """The greatest of each window of N, C and one to three axes, and where it is in the whole tensor, counted in int64.

    With `storage_order` places inside of a plane count by columns.
    """
    x = tensor(data, "data")
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        raise DeclarationError(f"relax.op.nn.max_pool_with_places: data has N, C and one to three more axes, not {x.info}")
    own = Pool("nn.max_pool_with_places", rank, pool_size, strides, padding, dilation, ceil_mode, False, "NC" + PLANES[rank - 1], None)
    shape = None if x.extents is None else [*x.extents[:2], *own.counts(x.extents[2:])]
    return TupleStructInfo((x.like(shape, ndim=x.ndim), x.like(shape, "int64", x.ndim)))
