"""Operators that move elements: other shapes, orders, parts and repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError
from ...tir.arithmetic import as_int, cast, convert
from ...tir.expr import IntImm, PrimExpr
from ...topi.transform import without_axes
from ..expr import Expr as AnyExpr
from ..expr import PrimValue, Tuple
from ..extents import simplified
from ..relations import same_extents
from ..struct_info import RelaxExpr, ShapeStructInfo, StructInfo, TupleStructInfo
from .elementwise import broadcast, of_rank_0
from .row import Expr, Exprs, Pattern, Shape, indices_of, listed, operator, tensor


def extents_of(shape: Any) -> tuple[PrimExpr, ...] | None:
    """The extents of an argument that is a shape, where they are known.

    Raises:
        DeclarationError: for what is no shape.
    """
    info = shape.struct_info if isinstance(shape, RelaxExpr) else None
    if not isinstance(info, ShapeStructInfo):
        raise DeclarationError(f"expected a shape, such as (2, n), not {shape}")
    values: tuple[PrimExpr, ...] | None = info.values
    return values


def product(extents: Sequence[PrimExpr]) -> PrimExpr:
    """The elements of a shape."""
    total: PrimExpr = IntImm("int64", 1)
    for one in extents:
        total = total * one
    return simplified(total)


def _number(value: Any) -> int | None:
    """A constant extent, of an expression, a number or a PrimValue."""
    return as_int(value.value if isinstance(value, PrimValue) else value)


def resolved(given: Sequence[PrimExpr], old: Sequence[PrimExpr] | None) -> list[PrimExpr] | None:
    """A new shape with -1 and 0 replaced: what is left of the elements, and the extent at the same place.

    Raises:
        DeclarationError: if the elements can't be divided so.
    """
    new = list(given)
    for number, one in enumerate(new):
        if as_int(one) == 0 and old is not None and number < len(old):
            new[number] = old[number]
    free = [number for number, one in enumerate(new) if as_int(one) == -1]
    if len(free) > 1:
        raise DeclarationError(f"only one extent of a shape can be -1: {list(given)}")
    if any((as_int(one) or 0) < -1 for one in new):
        raise DeclarationError(f"an extent is at least 0, or -1 for what is left: {list(given)}")
    if old is None:
        return None if free else new
    if free:
        rest, total = product([one for number, one in enumerate(new) if number not in free]), product(old)
        constant = as_int(total), as_int(rest)
        if constant[0] is not None and constant[1] and constant[0] % constant[1]:
            raise DeclarationError(f"{total} elements can't be a tensor of shape {list(given)}")
        new[free[0]] = simplified(total // rest)
    elif same_extents(product(new), product(old)) is False:
        raise DeclarationError(f"a tensor of shape {list(old)} has {product(old)} elements, and one of {new} {product(new)}")
    return new


@operator("reshape", Pattern.INJECTIVE, te=lambda x, shape: topi.reshape(x, shape), numpy=np.reshape)
def _reshape(x: Expr, shape: Shape) -> StructInfo:
    """The same elements in another shape."""
    operand, extents = tensor(x, "x"), extents_of(shape)
    if extents is None:
        return operand.like(None, ndim=shape.struct_info.ndim)
    if operand.extents is not None and same_extents(product(extents), product(operand.extents)) is False:
        raise DeclarationError(
            f"relax.op.reshape: {operand.info} has {product(operand.extents)} elements, {list(extents)} {product(extents)}"
        )
    return operand.like(extents)


def reshape(x: AnyExpr, shape: Any) -> Any:
    """The same elements in another shape, in which -1 is what is left, and 0 the extent of `x` there."""
    if isinstance(shape, RelaxExpr):
        return _reshape(x, shape)
    given = [
        IntImm("int64", int(one)) if isinstance(one, (int, np.integer)) else one
        for one in (shape if isinstance(shape, (tuple, list)) else [shape])
    ]
    new = resolved(given, tensor(x, "x").extents)
    if new is None:
        raise DeclarationError("relax.op.reshape: an extent of -1 needs the shape of the operand, which isn't known: match_cast it first")
    return _reshape(x, new)


@operator("broadcast_to", Pattern.BROADCAST, te=lambda x, shape: topi.broadcast_to(x, shape), numpy=np.broadcast_to)
def broadcast_to(x: Expr, shape: Shape) -> StructInfo:
    """Elements repeated along new axes, and along those of extent 1."""
    operand, extents = tensor(x, "x"), extents_of(shape)
    if -1 < shape.struct_info.ndim < operand.ndim:
        raise DeclarationError(f"relax.op.broadcast_to: {operand.info} has more axes than {shape.struct_info}")
    if extents is not None and operand.extents is not None:
        found = broadcast(operand.extents, extents, "broadcast_to")
        if found is not None and (
            len(found) != len(extents) or any(same_extents(a, b) is False for a, b in zip(found, extents, strict=True))
        ):
            raise DeclarationError(f"relax.op.broadcast_to: {operand.info} doesn't broadcast to {list(extents)}")
    return operand.like(extents, ndim=shape.struct_info.ndim)


@operator("permute_dims", Pattern.INJECTIVE, te=topi.transpose, numpy=np.transpose, kernel="transpose")
def permute_dims(x: Expr, axes: Sequence[int] | None = None) -> StructInfo:
    """Axes in another order; the opposite one without `axes`."""
    operand = tensor(x, "x")
    order = operand.axes(axes)
    if order is None or operand.ndim == -1:
        return operand.like(None, ndim=-1 if axes is None else len(axes))
    if len(order) != operand.ndim:
        raise DeclarationError(f"relax.op.permute_dims: {axes} names {len(order)} of the {operand.ndim} axes of x")
    order = order[::-1] if axes is None else order
    return operand.like(None if operand.extents is None else [operand.extents[n] for n in order], ndim=operand.ndim)


def _te_expand(x: Any, axis: Any) -> Any:
    new = [axis] if isinstance(axis, int) else list(axis)
    ndim = x.ndim + len(new)
    kept, extents = [n for n in range(ndim) if n not in {one % ndim for one in new}], iter(x.shape)
    shape = [next(extents) if n in kept else 1 for n in range(ndim)]
    return te.compute(shape, lambda *index: x(*(index[n] for n in kept)), name="expand_dims", tag=topi.tag.INJECTIVE)


@operator("expand_dims", Pattern.INJECTIVE, te=_te_expand, numpy=lambda x, axis: np.expand_dims(x, tuple(axis)), settled=listed("axis"))
def expand_dims(x: Expr, axis: int | Sequence[int]) -> StructInfo:
    """With new axes of extent 1, at these places of the result."""
    operand, places = tensor(x, "x"), [axis] if isinstance(axis, int) else list(axis)
    if operand.ndim == -1:
        return operand.like(None)
    new = [operand.axis(one, len(places)) for one in places]
    if len(set(new)) != len(new):
        raise DeclarationError(f"relax.op.expand_dims: an axis is named twice: {axis}")
    if operand.extents is None:
        return operand.like(None, ndim=operand.ndim + len(new))
    rest = iter(operand.extents)
    return operand.like([IntImm("int64", 1) if n in new else next(rest) for n in range(operand.ndim + len(new))])


def _squeezed(x: Any, axis: Any) -> Any:
    """Without axes, open ones among them, which `CheckExtents` has looked at."""
    return topi.squeeze(x) if axis is None else without_axes(x, [int(n) % x.ndim for n in axis])


@operator(
    "squeeze",
    Pattern.INJECTIVE,
    te=_squeezed,
    numpy=lambda x, axis: np.squeeze(x, None if axis is None else tuple(axis)),
    settled=listed("axis"),
)
def squeeze(x: Expr, axis: int | Sequence[int] | None = None) -> StructInfo:
    """Without axes of extent 1: these, or all."""
    operand = tensor(x, "x")
    if operand.extents is None:
        return operand.like(None, ndim=-1 if axis is None or operand.ndim == -1 else operand.ndim - len(operand.axes(axis) or ()))
    # A symbol at a named axis is taken for 1: the caller says so.
    gone = [n for n, e in enumerate(operand.extents) if as_int(e) == 1] if axis is None else operand.axes(axis) or []
    wrong = [n for n in gone if as_int(operand.extents[n]) not in (1, None)]
    if wrong:
        raise DeclarationError(f"relax.op.squeeze: axis {wrong[0]} of {operand.info} has an extent of {operand.extents[wrong[0]]}, not 1")
    return operand.like([e for n, e in enumerate(operand.extents) if n not in gone])


@operator("flatten", Pattern.INJECTIVE, te=lambda x: topi.reshape(x, (product(x.shape),)), numpy=np.ravel)
def flatten(x: Expr) -> StructInfo:
    """All elements along one axis."""
    operand = tensor(x, "x")
    return operand.like(None if operand.extents is None else [product(operand.extents)], ndim=1)


@operator(
    "concat",
    Pattern.INJECTIVE,
    te=lambda tensors, axis: topi.concatenate(tensors, axis or 0),
    numpy=lambda tensors, axis: np.concatenate(tensors, axis or 0),
    kernel="concatenate",
)
def concat(tensors: Exprs, axis: int | None = 0) -> StructInfo:
    """Tensors one after the other along an axis."""
    fields = tensors.fields if isinstance(tensors, Tuple) else None
    infos = tensors.struct_info
    if not isinstance(infos, TupleStructInfo) or not infos.fields:
        raise DeclarationError(f"relax.op.concat takes a tuple of at least one tensor, not {tensors}")
    found = [tensor(one, f"tensor {n}") for n, one in enumerate(fields)] if fields is not None else []
    # A variable that is a tuple has no fields to look at: its struct info says what they are.
    found = found or [tensor(_Known(info)) for info in infos.fields]
    first, place = found[0], found[0].axis(axis or 0)
    if axis is None and first.ndim > 1:
        raise DeclarationError(f"relax.op.concat: tensors such as {first.info} are joined along an axis: axis=")
    if len({one.ndim for one in found}) > 1 or len({one.dtype for one in found}) > 1:
        raise DeclarationError(
            f"relax.op.concat: tensors of one dtype and number of axes are joined, not {', '.join(str(o.info) for o in found)}"
        )
    if any(one.extents is None for one in found):
        return first.like(None, ndim=first.ndim)
    shapes = [one.extents or () for one in found]
    for n, column in enumerate(zip(*shapes, strict=True)):
        if n != place and any(same_extents(column[0], other) is False for other in column[1:]):
            raise DeclarationError(f"relax.op.concat: extents differ along axis {n}: {', '.join(map(str, column))}")
    total = shapes[0][place]
    for shape in shapes[1:]:
        total = total + shape[place]
    return first.like([simplified(total) if n == place else e for n, e in enumerate(shapes[0])])


class _Known(RelaxExpr):
    """A value of which no more than the struct info is known."""

    def __init__(self, info: StructInfo) -> None:
        self.__dict__["struct_info"] = info


def _cuts(extent: int, indices_or_sections: Any) -> Any:
    """Where parts begin: NumPy and topi divide evenly or not at all; here the last part is what is left."""
    if not isinstance(indices_or_sections, int):
        return indices_or_sections
    size = -(-extent // indices_or_sections)
    return [size * n for n in range(1, indices_or_sections)]


def _np_split(x: Any, indices_or_sections: Any, axis: int) -> Any:
    return tuple(np.split(x, _cuts(x.shape[axis], indices_or_sections), axis))


def _te_split(x: Any, indices_or_sections: Any, axis: int) -> Any:
    place = axis % x.ndim
    extent = as_int(x.shape[place])
    if extent is not None:
        return topi.split(x, _cuts(extent, indices_or_sections), axis)
    # Of n elements 3 parts begin at 0, (n + 2) // 3 and twice that.
    sizes = _parts(convert(x.shape[place], "int64"), indices_or_sections)
    begins: list[PrimExpr] = [IntImm("int64", 0)]
    for size in sizes[:-1]:
        begins.append(begins[-1] + size)

    def part(begin: PrimExpr, size: PrimExpr) -> Any:
        # No slice: that they lie within the axis depends on its size, which whoever calls the kernel checks.
        shape = [*x.shape[:place], size, *x.shape[place + 1 :]]
        return topi.transform.injective(shape, lambda *i: x(*i[:place], i[place] + begin, *i[place + 1 :]), "T_split_sections")

    return [part(begin, size) for begin, size in zip(begins, sizes, strict=True)]


def _parts(extent: PrimExpr, indices_or_sections: Any) -> list[PrimExpr]:
    """How many elements each part of an axis has."""
    if isinstance(indices_or_sections, int):
        size = simplified((extent + (indices_or_sections - 1)) // indices_or_sections)
        return [size] * (indices_or_sections - 1) + [simplified(extent - size * (indices_or_sections - 1))]
    bounds = [IntImm("int64", 0), *(IntImm("int64", int(n)) for n in indices_or_sections), extent]
    return [simplified(b - a) for a, b in pairwise(bounds)]


@operator("split", Pattern.INJECTIVE, te=_te_split, numpy=_np_split)
def split(x: Expr, indices_or_sections: int | Sequence[int], axis: int = 0) -> StructInfo:
    """A tuple of parts along an axis: so many of equal size, the last one what is left, or between indices."""
    operand = tensor(x, "x")
    place = operand.axis(axis)
    cuts = indices_or_sections
    count = cuts if isinstance(cuts, int) else len(cuts) + 1
    if count < 1:
        raise DeclarationError(f"relax.op.split: {count} parts; at least 1")
    if operand.extents is None:
        return TupleStructInfo((operand.like(None, ndim=operand.ndim),) * count)
    extent = operand.extents[place]
    sizes = _parts(extent, cuts)
    wrong = next((one for one in sizes if (as_int(one) or 0) < 0), None)
    if wrong is not None:
        raise DeclarationError(f"relax.op.split: {cuts} doesn't divide an axis of {extent}")
    return TupleStructInfo(tuple(operand.like([size if n == place else e for n, e in enumerate(operand.extents)]) for size in sizes))


def _constants(values: Any) -> list[int] | None:
    """Integers of an argument that is a tuple; None if one isn't constant."""
    items = values.fields if isinstance(values, Tuple) else values if isinstance(values, (tuple, list)) else (values,)
    found = [_number(one) for one in items]
    return None if None in found else found  # type: ignore[return-value]


def _bounds(values: Any) -> list[Any]:
    """Bounds of an argument that is a tuple, as integers or expressions."""
    items = values.fields if isinstance(values, Tuple) else values if isinstance(values, (tuple, list)) else (values,)
    return [one.value if isinstance(one, PrimValue) else one for one in items]


def _te_slice(x: Any, axes: Any, begin: Any, end: Any, strides: Any = None, assume_inbound: bool = False) -> Any:
    return topi.strided_slice(x, begin, end, strides or [1] * len(axes), axes, assume_inbound=assume_inbound)


def _np_slice(x: Any, axes: Any, begin: Any, end: Any, strides: Any = None, assume_inbound: bool = False) -> Any:
    index = [slice(None)] * x.ndim
    for axis, low, high, step in zip(axes, begin, end, strides or [1] * len(axes), strict=True):
        stop = None if step < 0 and high < -x.shape[axis] else high
        index[axis] = slice(low, stop, step)
    return x[tuple(index)]


@operator("strided_slice", Pattern.INJECTIVE, te=_te_slice, numpy=_np_slice)
def strided_slice(x: Expr, axes: Exprs, begin: Exprs, end: Exprs, strides: Exprs | None = None, assume_inbound: bool = False) -> StructInfo:
    """The elements from `begin` to before `end` along axes, each so many apart; indices count from the end if negative."""
    operand = tensor(x, "x")
    places, low, high = _constants(axes), _bounds(begin), _bounds(end)
    steps = [1] * len(places or ()) if strides is None else _constants(strides)
    if places is None or not len(places) == len(axes) == len(begin) == len(end) == len(places if steps is None else steps):
        raise DeclarationError("relax.op.strided_slice: as many constant axes as there are begins, ends and strides")
    operand.axes(places)  # each once
    if operand.extents is None:
        return operand.like(None, ndim=operand.ndim)
    new = list(operand.extents)
    for n, axis in enumerate(places):
        place = operand.axis(axis)
        if steps is None:
            return operand.like(None, ndim=operand.ndim)
        if steps[n] == 0:
            raise DeclarationError("relax.op.strided_slice: a stride of 0")
        found = topi.utils.taken(new[place], low[n], high[n], steps[n])
        if found is None:
            return operand.like(None, ndim=operand.ndim)
        new[place] = convert(found[1], "int64")
    return operand.like(new)


def _np_dynamic_slice(x: Any, begin: Any, end: Any, strides: Any) -> Any:
    return _np_slice(x, range(x.ndim), *(one.tolist() for one in (begin, end, strides)))


@operator("dynamic_strided_slice", numpy=_np_dynamic_slice)
def dynamic_strided_slice(x: Expr, begin: Expr, end: Expr, strides: Expr) -> StructInfo:
    """As `strided_slice` along all axes, with bounds that are tensors of int64, an element for each axis."""
    operand = tensor(x, "x")
    for name, one in (("begin", begin), ("end", end), ("strides", strides)):
        bound = tensor(one, name)
        count = None if bound.extents is None else as_int(bound.extents[0]) if bound.ndim == 1 else -1
        if bound.dtype not in ("int64", "") or (count is not None and operand.ndim not in (-1, count)):
            raise DeclarationError(f"relax.op.dynamic_strided_slice: {name} is {bound.info}, for {operand.info}")
    return operand.like(None, ndim=operand.ndim)


@operator(
    "tile",
    Pattern.INJECTIVE,
    te=lambda data, repeats: topi.tile(data, np.atleast_1d(repeats).tolist()),
    numpy=lambda data, repeats: np.tile(data, repeats),
)
def tile(data: Expr, repeats: int | Sequence[int]) -> StructInfo:
    """The tensor repeated so often along each of the last axes."""
    operand, times = tensor(data, "data"), [repeats] if isinstance(repeats, int) else list(repeats)
    ndim = -1 if operand.ndim == -1 else max(operand.ndim, len(times))
    if operand.extents is None:
        return operand.like(None, ndim=ndim)
    one = IntImm("int64", 1)
    old, many = [one] * (ndim - operand.ndim) + list(operand.extents), [1] * (ndim - len(times)) + times
    return operand.like([simplified(e * n) for e, n in zip(old, many, strict=True)])


builtins_max = max


@operator("flip", Pattern.INJECTIVE, te=topi.flip, numpy=np.flip)
def flip(data: Expr, axis: int) -> StructInfo:
    """The elements in the opposite order along an axis."""
    operand = tensor(data, "data")
    operand.axis(axis)
    return operand.info


def _te_take(x: Any, indices: Any, axis: int | None) -> Any:
    if isinstance(indices, te.Tensor):
        return topi.take(x, indices, axis, mode="clip")
    at = (axis or 0) % x.ndim
    place = te.max(te.min(cast(indices, "int64"), x.shape[at] - 1), 0)
    return te.compute((*x.shape[:at], *x.shape[at + 1 :]), lambda *index: x(*index[:at], place, *index[at:]), name="T_take")


@operator(
    "take",
    Pattern.INJECTIVE,
    te=_te_take,
    numpy=lambda x, indices, axis: np.take(x, indices, axis, mode="clip"),
)
def take(x: Expr, indices: Expr, axis: int | None = None) -> StructInfo:
    """Elements or parts of `x` by their indices along an axis; those beyond its ends are the ones there."""
    operand, places = tensor(x, "x"), indices_of(of_rank_0(indices), "indices")
    if axis is None and operand.ndim not in (1, -1):
        raise DeclarationError(f"relax.op.take: a tensor of {operand.ndim} axes needs to know along which: axis=")
    if operand.extents is None or places.extents is None:
        return operand.like(None, ndim=-1 if -1 in (operand.ndim, places.ndim) else operand.ndim + places.ndim - 1)
    at = operand.axis(axis or 0)
    return operand.like([*operand.extents[:at], *places.extents, *operand.extents[at + 1 :]])


def _te_repeat(data: Any, repeats: int, axis: int | None) -> Any:
    flat = topi.reshape(data, (product(data.shape),)) if axis is None else data
    return topi.repeat(flat, repeats, axis or 0)


@operator("repeat", Pattern.INJECTIVE, te=_te_repeat, numpy=np.repeat)
def repeat(data: Expr, repeats: int, axis: int | None = None) -> StructInfo:
    """Each element, or each part along an axis, so often in a row."""
    operand = tensor(data, "data")
    place = None if axis is None else operand.axis(axis)
    if operand.extents is None:
        return operand.like(None, ndim=1 if place is None else operand.ndim)
    if place is None:
        return operand.like([simplified(product(operand.extents) * repeats)])
    return operand.like([simplified(e * repeats) if n == place else e for n, e in enumerate(operand.extents)])
