"""Moving elements: shapes, axes, slices and joins. Every result is injective: one element read for each written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..later import later
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import as_int, const, convert
from ..tir.expr import PrimExpr, Var
from ..tir.operators import ExprOp
from . import tag
from .math import axis_names
from .utils import equal_const_int, extent_value, get_const_int, get_const_tuple, need_equal, one_of, positive_axis, shape_text, taken


def injective(shape: Sequence[Any], body: Callable[..., ExprOp], name: str, kind: str = tag.INJECTIVE) -> Tensor:
    """A compute with the tag of injective operators, or that of a `kind` of them, and axes ax0, ax1, ..."""
    return compute(tuple(shape), body, name, kind, varargs_names=axis_names(len(shape)))


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """`a` with `num_newaxis` extents of 1 in front of `axis`."""
    place = positive_axis("expand_dims", axis, a.ndim + 1)
    shape = (*a.shape[:place], *(1,) * num_newaxis, *a.shape[place:])
    return injective(shape, lambda *i: a(*i[:place], *i[place + num_newaxis :]), "T_expand_dims", tag.BROADCAST)


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """`a` without its extents of 1, or without those at `axis`.

    Args:
        a: [any shape], of any dtype.
        axis: the axes to leave out, one or several, counted from the end if negative; None for all of extent 1.

    Returns:
        A tensor of the dtype of `a` with fewer dimensions.

    Raises:
        DeclarationError: if an extent at `axis` isn't 1.
    """
    if axis is None:
        gone = [n for n, extent in enumerate(a.shape) if equal_const_int(extent, 1)]
    else:
        given = axis if isinstance(axis, (list, tuple)) else (axis,)
        gone = [positive_axis("squeeze", n, a.ndim) for n in given]
        for n in gone:
            if not equal_const_int(a.shape[n], 1):
                raise DeclarationError(f"squeeze: axis {n} of {a.name} has the extent {a.shape[n]}; only an extent of 1 can go")
    return without_axes(a, gone)


def without_axes(a: Tensor, gone: Sequence[int]) -> Tensor:
    """`a` without axes of extent 1, which isn't checked: of open extents only a run tells."""
    kept = [n for n in range(a.ndim) if n not in gone]

    def body(*i: Var) -> PrimExpr:
        place = dict(zip(kept, i, strict=True))
        return a(*(place.get(n, const(0)) for n in range(a.ndim)))

    return injective([a.shape[n] for n in kept], body, "T_squeeze")


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """`a` with its axes in another order; by default reversed."""
    order = [*range(a.ndim)][::-1] if axes is None else [positive_axis("transpose", n, a.ndim) for n in axes]
    if sorted(order) != [*range(a.ndim)]:
        raise DeclarationError(f"transpose: {order} is no order of the {a.ndim} axes of {a.name}")
    return injective([a.shape[n] for n in order], lambda *i: a(*(i[order.index(n)] for n in range(a.ndim))), "T_transpose")


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """`a` with one axis backwards."""
    place = positive_axis("flip", axis, a.ndim)
    return injective(a.shape, lambda *i: a(*i[:place], a.shape[place] - 1 - i[place], *i[place + 1 :]), "T_reverse_sequence")


def reshape(a: Tensor, newshape: Sequence[Any]) -> Tensor:
    """The same elements in row-major order in another shape. One extent may be -1: it follows from the others.

    Args:
        a: [any shape], of any dtype.
        newshape: extents, numbers or expressions.

    Returns:
        [newshape], of the dtype of `a`.

    Raises:
        DeclarationError: if the numbers of elements differ.
    """
    own = get_const_tuple(a.shape)
    wanted = [extent_value(extent) for extent in newshape]
    total = _product(own)
    if -1 in wanted:
        rest = _product([extent for extent in wanted if not (isinstance(extent, int) and extent == -1)])
        exact = isinstance(total, int) and isinstance(rest, int)
        if exact and (rest == 0 or total % rest):
            raise DeclarationError(f"reshape: {a.name} of shape {shape_text(a)} has {total} elements, no multiple of {rest}")
        wanted[wanted.index(-1)] = total // rest
    need_equal("reshape", f"the numbers of elements of {shape_text(a)} and {wanted}", total, _product(wanted))

    def body(*i: Var) -> PrimExpr:
        return a(*unravel(ravel(i, wanted), own))

    return injective(wanted, body, "T_reshape")


def _product(extents: Sequence[Any]) -> Any:
    total: Any = 1
    for extent in extents:
        total = total * extent
    return extent_value(total)


def ravel(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The row-major position of an element."""
    position: Any = const(0)
    for index, extent in zip(indices, shape, strict=True):
        position = position * extent + index
    return position


def unravel(position: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices of the element at a row-major position."""
    indices: list[Any] = []
    # Of a shape without elements nothing is read, and nothing is divided by its extents of 0.
    for number, extent in reversed([*enumerate(1 if as_int(own) == 0 else own for own in shape)]):
        # The first index needs no modulo: what is left of a position inside is less than the first extent.
        indices.append(arithmetic.convert(position) if number == 0 else arithmetic.floormod(position, extent))
        if number:
            position = arithmetic.floordiv(position, extent)
    return indices[::-1]


def unravel_index(indices: Tensor, shape: Sequence[Any]) -> Tensor:
    """The indices, one row for each dimension of `shape`, of the elements at the positions `indices`.

    Args:
        indices: positions in row-major order, integers of any shape.
        shape: the extents, numbers.

    Returns:
        [dimensions, ...], behind it the shape of `indices`, and of their dtype.
    """
    extents = get_const_tuple(shape)

    def body(*at: Var) -> PrimExpr:
        dimension, *i = at
        return arithmetic.convert(one_of(unravel(indices(*i), extents), dimension))

    return injective((len(extents), *indices.shape), body, "T_unravel_index")


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along `axis`; their other extents are equal.

    Args:
        a_tuple: tensors of one dtype and rank.
        axis: counted from the end if negative.

    Returns:
        A tensor of that dtype, whose extent at `axis` is the sum of theirs.
    """
    if not a_tuple:
        raise DeclarationError("concatenate: takes one tensor at least")
    first = a_tuple[0]
    place = positive_axis("concatenate", axis, first.ndim)
    for other in a_tuple[1:]:
        need_equal("concatenate", f"the dimensions of {first.name} and {other.name}", first.ndim, other.ndim)
        for n in range(first.ndim):
            if n != place:
                need_equal("concatenate", f"extents {n} of {first.name} and {other.name}", first.shape[n], other.shape[n])
    starts: list[Any] = [0]
    for part in a_tuple:
        starts.append(extent_value(starts[-1] + part.shape[place]))

    def body(*i: Var) -> PrimExpr:
        def read(number: int) -> PrimExpr:
            return a_tuple[number](*i[:place], i[place] - starts[number], *i[place + 1 :])

        chosen = read(len(a_tuple) - 1)
        # From the last part to the first, each around what is there: so the first one is asked first, and an upper end is enough.
        for number in reversed(range(len(a_tuple) - 1)):
            chosen = intrin.if_then_else(i[place] < starts[number + 1], read(number), chosen)
        return chosen

    return injective((*first.shape[:place], starts[-1], *first.shape[place + 1 :]), body, "T_concat")


def stack(a: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return concatenate([expand_dims(part, axis) for part in a], axis)


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """`ary` cut along `axis`: in that many equal sections, or in front of each of the given indices.

    Args:
        ary: [any shape], of any dtype.
        indices_or_sections: the number of sections, which divides the extent, or the first index of each section but the first.
        axis: counted from the end if negative.

    Returns:
        A list of tensors of the dtype of `ary`.
    """
    place = positive_axis("split", axis, ary.ndim)
    total = get_const_int(ary.shape[place])
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or total % indices_or_sections:
            raise DeclarationError(f"split: axis {place} of {ary.name} has {total} elements, no multiple of {indices_or_sections}")
        step = total // indices_or_sections
        cuts = [step * n for n in range(indices_or_sections)]
    else:
        cuts = [0, *(get_const_int(cut) for cut in indices_or_sections)]
    ends = [*cuts[1:], total]
    if sorted([*cuts, total]) != [*cuts, total]:
        raise DeclarationError(f"split: the indices {cuts[1:]} of an axis of {total} elements don't ascend")

    def part(start: int, end: int) -> Tensor:
        shape = (*ary.shape[:place], end - start, *ary.shape[place + 1 :])
        return injective(shape, lambda *i: ary(*i[:place], i[place] + start, *i[place + 1 :]), "T_split_sections")

    return [part(start, end) for start, end in zip(cuts, ends, strict=True)]


def strided_slice(
    a: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
    assume_inbound: bool = True,
) -> Tensor:
    """`a[begin:end:stride]` on each axis (or on `axes`), with Python's meaning of negative and large numbers.

    With slice_mode "size", `end` holds numbers of elements, -1 for all that are left. Bounds are held inside, whatever `assume_inbound` is.

    Args:
        a: [any shape], of any dtype.
        begin, end, strides: a number for each axis (or each of `axes`); missing strides are 1.
        axes: the axes that are cut; None for the first ones.
        slice_mode: "end", or "size".
        assume_inbound: taken for the sake of TVM's callers.

    Returns:
        A tensor of the dtype of `a`.
    """
    which = [positive_axis("strided_slice", n, a.ndim) for n in axes] if axes is not None else [*range(len(begin))]
    steps = [*(strides or ())] or [1] * len(which)
    if len(steps) == 1:
        steps = steps * len(which)
    if not len(which) == len(begin) == len(end) == len(steps):
        raise DeclarationError(f"strided_slice: {len(begin)} begins, {len(end)} ends and {len(steps)} strides for {len(which)} axes")
    starts = [const(0)] * a.ndim
    strided: list[int] = [1] * a.ndim
    shape: list[Any] = [*a.shape]
    for place, first, last, step in zip(which, begin, end, steps, strict=True):
        extent, low, stop = a.shape[place], extent_value(first), extent_value(last)
        if slice_mode == "size":
            size = get_const_int(extent)
            low, step = (get_const_int(first) % size if size else 0), 1
            stop = size if get_const_int(last) < 0 else low + get_const_int(last)
        found = taken(extent, low, stop, step)
        if found is None:
            raise DeclarationError(
                f"strided_slice: sizes decide whether [{low}:{stop}:{step}] lies within {extent}, so its extent has no formula"
            )
        starts[place], strided[place], shape[place] = convert(found[0]), step, found[1]

    def body(*i: Var) -> PrimExpr:
        return a(*(index * step + start for index, step, start in zip(i, strided, starts, strict=True)))

    return injective(shape, body, "T_strided_slice")


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    """Each element `repeats` times along `axis`."""
    place = positive_axis("repeat", axis, a.ndim)
    shape = (*a.shape[:place], a.shape[place] * repeats, *a.shape[place + 1 :])
    return injective(shape, lambda *i: a(*i[:place], arithmetic.floordiv(i[place], repeats), *i[place + 1 :]), "T_repeat", tag.BROADCAST)


def tile(a: Tensor, reps: Sequence[int]) -> Tensor:
    """`a` repeated as a whole along each axis, as NumPy's tile.

    Args:
        a: [any shape], of any dtype.
        reps: how often along each axis; the shorter of the two lists is padded with 1 in front.

    Returns:
        A tensor of the dtype of `a`.
    """
    count = max(a.ndim, len(reps))
    times = (*(1,) * (count - len(reps)), *reps)
    own: tuple[Any, ...] = (*(1,) * (count - a.ndim), *a.shape)
    shape = [extent_value(extent * n) for extent, n in zip(own, times, strict=True)]

    def body(*i: Var) -> PrimExpr:
        inner = i[count - a.ndim :]
        return a(*(arithmetic.floormod(index, extent) for index, extent in zip(inner, a.shape, strict=True)))

    return injective(shape, body, "T_tile", tag.BROADCAST)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Tensor:
    """start, start + step, ... below `stop`; of one number: 0, 1, ... below it.

    Args:
        start, stop, step: numbers.
        dtype: of the elements.

    Returns:
        A vector of `dtype`.
    """
    first, last = (0, start) if stop is None else (start, stop)
    if not all(isinstance(value, (int, float)) for value in (first, last, step)):
        raise DeclarationError("arange: start, stop and step are numbers")
    # ceil((last - first) / step), exact for integers of any size.
    count = max(0, -int((last - first) // -step))
    return compute(
        (count,),
        lambda i: arithmetic.cast(const(first, dtype) + arithmetic.cast(i, dtype) * const(step, dtype), dtype),
        "T_arange",
        tag.INJECTIVE,
    )


def layout_transform(array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Tensor:
    """Elements of layout such as "NCHW" in another one such as "NCHW16c".

    Capital letters are axes, small ones with a number in front are inner blocks of the axis of that letter. An axis that is no
    multiple of its block is filled with zeros behind its end.

    Args:
        array: a tensor of `src_layout`, of any dtype.
        src_layout, dst_layout: layouts of the same axes.
        schedule_rule: a note for meta_schedule.

    Returns:
        The tensor in `dst_layout`, of the dtype of `array`.
    """
    source, target = parse_layout(src_layout), parse_layout(dst_layout)
    if {name.upper() for name, _ in source} != {name.upper() for name, _ in target}:
        raise DeclarationError(f"layout_transform: {src_layout} and {dst_layout} have different axes")
    if len(source) != array.ndim:
        raise DeclarationError(
            f"layout_transform: {array.name} of shape {shape_text(array)} has not the {len(source)} axes of {src_layout}"
        )
    extents: dict[str, Any] = {}
    for (name, _), extent in zip(source, array.shape, strict=True):
        extents[name.upper()] = extent_value(extents.get(name.upper(), 1) * extent)
    blocks = {name.upper(): block for name, block in target if name.islower()}
    source_blocks = {name.upper(): block for name, block in source if name.islower()}
    filled = [name for name, block in blocks.items() if not equal_const_int(arithmetic.floormod(convert(extents[name]), block), 0)]
    shape = [
        block
        if name.islower()
        else extent_value(arithmetic.floordiv(extents[name] + (blocks[name] - 1 if name in filled else 0), blocks.get(name, 1)))
        for name, block in target
    ]

    def body(*i: Var) -> PrimExpr:
        # Two passes: a block may stand in front of the axis that it is of.
        whole: dict[str, PrimExpr] = {}
        for (name, _), index in zip(target, i, strict=True):
            if not name.islower():
                whole[name] = index * blocks[name] if name in blocks else index
        for (name, _), index in zip(target, i, strict=True):
            if name.islower():
                whole[name.upper()] = whole[name.upper()] + index
        value = array(*(_block_index(name, whole[name.upper()], source_blocks.get(name.upper())) for name, _ in source))
        for name in filled:
            value = intrin.if_then_else(whole[name] < extents[name], value, const(0, array.dtype))
        return value

    return injective(shape, body, "T_layout_trans")


def _block_index(name: str, index: PrimExpr, block: int | None) -> PrimExpr:
    if block is None:
        return index
    return arithmetic.floormod(index, block) if name.islower() else arithmetic.floordiv(index, block)


def parse_layout(layout: str) -> list[tuple[str, int]]:
    """The axes of a layout: ("N", 0), ("C", 0), ..., ("c", 16).

    Raises:
        DeclarationError: for a text that is no layout.
    """
    axes: list[tuple[str, int]] = []
    digits = ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
            continue
        if not letter.isalpha() or letter.islower() != bool(digits):
            raise DeclarationError(f'layout {layout!r}: expected letters such as "NCHW", inner blocks with their size in front: "NCHW16c"')
        axes.append((letter, int(digits or 0)))
        digits = ""
    if digits or len({name for name, _ in axes}) != len(axes):
        raise DeclarationError(f"layout {layout!r}: an axis is named twice, or a block has no letter")
    return axes


def expand_like(a: Tensor, shape_like: Tensor, axis: Sequence[int]) -> Tensor:
    """`a` with new axes at `axis`, repeated to the shape of `shape_like`."""
    places = sorted(positive_axis("expand_like", n, shape_like.ndim) for n in axis)
    if a.ndim + len(places) != shape_like.ndim:
        raise DeclarationError(f"expand_like: {a.ndim} dimensions and {len(places)} new axes don't make {shape_like.ndim}")
    return injective(shape_like.shape, lambda *i: a(*(index for n, index in enumerate(i) if n not in places)), "T_expand_like")


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The extents of a tensor, as a vector."""

    def body(i: Var) -> PrimExpr:
        chosen: PrimExpr = arithmetic.cast(array.shape[-1], dtype)
        for number in reversed(range(array.ndim - 1)):
            chosen = intrin.select(arithmetic.convert(i == number), arithmetic.cast(array.shape[number], dtype), chosen)
        return chosen

    return compute((array.ndim,), body, "T_shape", tag.INJECTIVE)


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements, as a scalar."""
    return compute((), lambda: arithmetic.cast(_product(get_const_tuple(array.shape)), dtype), "ndarray_size", tag.INJECTIVE)


def meshgrid(a_tuple: Sequence[Tensor], indexing: str) -> list[Tensor]:
    """The coordinate grids of vectors; indexing "ij" or "xy" as in NumPy.

    Args:
        a_tuple: vectors.
        indexing: "xy" swaps the first two axes.

    Returns:
        A list of tensors, one for each vector and of its dtype, whose shape is the extents of all.
    """
    if indexing not in ("ij", "xy"):
        raise DeclarationError(f'meshgrid: indexing is {indexing!r}; it takes "ij" or "xy"')
    order = [*range(len(a_tuple))]
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = order[1], order[0]
    extents = [a_tuple[n].shape[0] for n in order]

    def grid(number: int) -> Tensor:
        return injective(extents, lambda *i: a_tuple[number](i[order.index(number)]), "T_meshgrid")

    return [grid(number) for number in range(len(a_tuple))]


def sliding_window(data: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """All windows over the axes from `axis` on: the leading extents, the numbers of windows, the windows.

    Args:
        data: [any shape], of any dtype.
        axis: the first axis that windows move along.
        window_shape, strides: a number for each axis from there on.

    Returns:
        A tensor of the dtype of `data`.
    """
    place = positive_axis("sliding_window", axis, data.ndim)
    rolled = data.ndim - place
    if len(window_shape) != rolled or len(strides) != rolled:
        raise DeclarationError(
            f"sliding_window: from axis {place} on there are {rolled} axes; window_shape and strides have one number each"
        )
    if min(strides) < 1:
        raise DeclarationError(f"sliding_window: the strides are {tuple(strides)}; each is 1 or more")
    counts = [
        (get_const_int(extent) - window) // step + 1 for extent, window, step in zip(data.shape[place:], window_shape, strides, strict=True)
    ]

    def body(*i: Var) -> PrimExpr:
        leading, windows, inside = i[:place], i[place : place + rolled], i[place + rolled :]
        return data(*leading, *(w * step + o for w, step, o in zip(windows, strides, inside, strict=True)))

    return injective((*data.shape[:place], *counts, *window_shape), body, "T_sliding_window")


__getattr__, __dir__ = later(__name__, {".diagonal": "matrix_set_diag trilu", ".indexing": "one_hot"})
