"""Windows over planes: sizes, paddings, how many windows there are, and layouts such as "NCHW16c"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.arithmetic import as_int, floordiv, minimum
from ...tir.expr import IntImm, PrimExpr
from ...topi.transform import parse_layout
from ..extents import simplified
from .row import Operand

PLANES = ("W", "HW", "DHW")  # the spatial axes by their number - 1


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


def settled(rank: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Attributes of windows in one form: a number for each axis, paddings for both ends, no layout of the result that is the data's."""

    def run(attrs: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in ("pool_size", "strides", "dilation", "output_padding") if name in attrs]
        front, back = paddings(attrs["padding"], rank)
        numbers: dict[str, Any] = {name: tuple(sizes(attrs[name], rank, name)) for name in names}
        made = {**attrs, **numbers, "padding": (*front, *back)}
        if "out_layout" in made and made["out_layout"] in ("", made.get("data_layout", made.get("layout"))):
            made["out_layout"] = None
        return made

    return run


def positions(extent: PrimExpr, size: int, stride: int, dilation: int, front: int, back: int, ceil_mode: bool = False) -> PrimExpr:
    """How many windows there are along an axis.

    With `ceil_mode` the last one may reach past the padded extent, but doesn't start behind the elements and what is in front of them.

    Raises:
        DeclarationError: if there is none.
    """
    reach = (size - 1) * dilation + 1
    room: PrimExpr = extent + (front + back - reach)
    found = floordiv(room + (stride - 1 if ceil_mode else 0), stride) + 1
    # The last start is at most extent + front + back - reach + stride - 1: else it is no later than the last element.
    if ceil_mode and reach < back + stride:
        found = minimum(found, floordiv(extent + (front - 1), stride) + 1)
    result: PrimExpr = simplified(found)
    known = as_int(result)
    if known is not None and known < 0:
        raise DeclarationError(f"a window of {reach} elements over {extent}, padded by {front} and {back}: there is none")
    return result


def whole(layout: str, extents: Sequence[PrimExpr]) -> dict[str, PrimExpr]:
    """The extents of the axes of a layout by their letters, blocks counted."""
    found: dict[str, PrimExpr] = {}
    for (name, _), extent in zip(parse_layout(layout), extents, strict=True):
        letter = name.upper()
        found[letter] = simplified(found[letter] * extent) if letter in found else extent
    return found


def laid_out(layout: str, extents: Mapping[str, PrimExpr]) -> list[PrimExpr]:
    """The shape of a tensor of a layout, whose axes have these extents, blocks counted.

    Raises:
        DeclarationError: if an extent is no multiple of its block.
    """
    blocks = {name.upper(): size for name, size in parse_layout(layout) if size}
    shape: list[PrimExpr] = []
    for name, size in parse_layout(layout):
        extent, block = extents[name.upper()], blocks.get(name.upper(), 1)
        known = as_int(extent)
        if known is not None and known % block:
            raise DeclarationError(f"layout {layout}: {known} along {name.upper()} is no multiple of {block}")
        shape.append(IntImm("int64", size) if size else simplified(floordiv(extent, block)) if block > 1 else extent)
    return shape


def check_layout(where: str, layout: str, axes: str, operand: Operand | None = None, blocks: str = "c") -> None:
    """Refuse a layout of other axes than these, or one that a tensor doesn't have.

    Raises:
        DeclarationError: naming what doesn't fit.
    """
    names = [name for name, _ in parse_layout(layout)]
    if sorted(name for name in names if name.isupper()) != sorted(axes) or any(name not in blocks for name in names if name.islower()):
        raise DeclarationError(f"relax.op.{where}: layouts are orders of {axes}, with blocks of {blocks.upper()}, not {layout}")
    if operand is not None and operand.ndim not in (-1, len(names)):
        raise DeclarationError(f"relax.op.{where}: {operand.name} has {len(names)} axes in layout {layout}, not {operand.info}")


def relaid(array: Any, source: str, target: str) -> Any:
    """An array in another layout of the same axes."""
    if source == target:
        return array
    own, wanted = parse_layout(source), parse_layout(target)
    # By way of whole axes: blocks of one size are no cut of blocks of another.
    plain = [name for name, _ in own if name.isupper()]
    names = [name for name, _ in own]
    # The numbers of blocks before what is in them, also where a layout has them the other way round.
    order = [names.index(name) for letter in plain for name in (letter, letter.lower()) if name in names]
    extents = [int(np.prod([array.shape[n] for n, (name, _) in enumerate(own) if name.upper() == letter])) for letter in plain]
    moved = np.transpose(array, order).reshape(extents)
    cut: list[int] = []
    places: list[str] = []
    blocks = {name.upper(): size for name, size in wanted if size}
    for letter, extent in zip(plain, extents, strict=True):
        block = blocks.get(letter, 0)
        cut += [extent // block, block] if block else [extent]
        places += [letter, letter.lower()] if block else [letter]
    return np.transpose(moved.reshape(cut), [places.index(name) for name, _ in wanted])
