"""Layouts of arrays by the names of their axes, and what converts one into another.

    layout ::= { LETTER | number letter }      "NCHW16c": axis C in tiles of 16, whose elements the axis c counts, innermost

An upper case letter is an axis, a lower case one a part of the axis of that letter. Of several parts, the first is the outermost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..dataclass import dataclass
from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import convert, floordiv, floormod
from .buffer import simplified
from .dtype import parse_dtype
from .expr import IntImm, IterVar, PrimExpr, Range, Var
from .node import Object

_AXIS = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True, eq=False, slots=True)
class Layout(Object):
    """A layout: `name` as written, `axes` in its order, each over its extent; parts have constant extents."""

    name: str
    axes: tuple[IterVar, ...]

    def __len__(self) -> int:
        return len(self.axes)

    def __contains__(self, axis: str) -> bool:
        return self.index_of(axis) >= 0

    def __getitem__(self, index: int) -> str:
        return self.axes[index].name

    def __iter__(self) -> Iterator[str]:
        return (axis.name for axis in self.axes)

    def index_of(self, axis: str) -> int:
        """The place of an axis, or -1."""
        return next((place for place, name in enumerate(self) if name == axis), -1)

    def factor_of(self, axis: str) -> int:
        """The number of elements of an axis that its parts count; -1 of an axis without any, or that there isn't."""
        # parts are named by lower case letters: a whole axis C has none of its own, c has those of C
        factors = [factor for name, factor in self._parts() if name == axis.lower()]
        return math.prod(factors) if factors else -1

    def _parts(self) -> list[tuple[str, int]]:
        return [(axis.name, axis.dom.extent.value) for axis in self.axes if axis.dom is not None and isinstance(axis.dom.extent, IntImm)]

    def factors(self) -> list[tuple[str, int, int]]:
        """For each axis in order: its letter in upper case, the extent of a part (0 of a whole axis), elements that one step of it is."""
        found: list[tuple[str, int, int]] = []
        step: dict[str, int] = {}
        for axis in reversed(self.axes):  # inner parts first: what one step of a part is follows from those inside
            letter = axis.name.upper()
            extent = axis.dom.extent if axis.dom is not None else None
            size = extent.value if isinstance(extent, IntImm) else 0
            found.append((letter, size, step.get(letter, 1)))
            if size:
                step[letter] = step.get(letter, 1) * size
        # A whole axis steps over all of its parts, also over those that stand outside of it.
        whole = [(letter, size, at if size else step.get(letter, 1)) for letter, size, at in found]
        return whole[::-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return layout, (self.name, self.axes[0].dtype if self.axes else "int32")

    def __str__(self) -> str:
        return f"Layout({self.name})"

    __repr__ = __str__


def layout(layout_str: str, dtype: str = "int32") -> Layout | None:
    """The layout of a text such as "NCHW16c"; None for "" and "__undef__".

    Args:
        dtype: of the axes, an integer type.

    Raises:
        DeclarationError: for another text, or a part of an axis that there isn't.
        TypeMismatchError: for a dtype of no integers.
    """
    if not isinstance(dtype, str) or not parse_dtype(dtype).is_int:
        raise TypeMismatchError(f"the axes of a layout are integers, not {dtype!r}")
    if layout_str in ("", "__undef__"):
        return None
    found = _AXIS.findall(layout_str)
    # `findall` skips what does not fit, so its pieces must be the whole text.
    if "".join(map("".join, found)) != layout_str:
        raise DeclarationError(f"{layout_str!r} is no layout; write letters, and numbers before lower case ones, such as 'NCHW16c'")
    whole = [letter for number, letter in found if letter.isupper()]
    for number, letter in found:
        if letter.isupper() == bool(number) or letter.upper() not in whole:
            raise DeclarationError(f"layout {layout_str}: a number stands before each part of an axis, as in 'C16c'; not {number}{letter}")
    return Layout(layout_str, tuple(_axis(letter, number, dtype) for number, letter in found))


def _axis(letter: str, number: str, dtype: str) -> IterVar:
    extent: PrimExpr = IntImm(dtype, int(number)) if number else Var(letter, dtype)
    return IterVar(Range.from_min_extent(IntImm(dtype, 0), extent), Var(letter, dtype))


@dataclass(frozen=True, eq=False, slots=True)
class BijectiveLayout(Object):
    """How indices and shapes of one layout become those of another; both have the same axes."""

    src_layout: Layout
    dst_layout: Layout

    def forward_index(self, index: Sequence[Any]) -> tuple[PrimExpr, ...]:
        """The index in `dst_layout` of an element given in `src_layout`."""
        return _indices(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> tuple[PrimExpr, ...]:
        """The index in `src_layout` of an element given in `dst_layout`."""
        return _indices(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> tuple[PrimExpr, ...]:
        """The shape in `dst_layout` of an array given in `src_layout`; a tile that isn't full counts as one."""
        return _shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> tuple[PrimExpr, ...]:
        """The shape in `src_layout` of an array given in `dst_layout`."""
        return _shape(self.dst_layout, self.src_layout, shape)

    def __str__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}->{self.dst_layout.name})"

    __repr__ = __str__


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """What converts one layout into another; None if they don't have the same axes."""
    source, target = (one if isinstance(one, Layout) else layout(one) for one in (src_layout, dst_layout))
    if source is None or target is None:
        return None
    # Both have the same axes, each once: else an index of one says too little or too much of the other.
    letters = [sorted(name for name in one if name.isupper()) for one in (source, target)]
    return BijectiveLayout(source, target) if letters[0] == letters[1] and len(set(letters[0])) == len(letters[0]) else None


def _given(source: Layout, values: Sequence[Any]) -> list[PrimExpr]:
    if len(values) != len(source):
        raise DeclarationError(f"layout {source.name} has {len(source)} axes, not {len(values)}")
    return [convert(value) for value in values]


def _indices(source: Layout, target: Layout, index: Sequence[Any]) -> tuple[PrimExpr, ...]:
    places: dict[str, PrimExpr] = {}
    for (letter, _, step), value in zip(source.factors(), _given(source, index), strict=True):
        places[letter] = value * step if letter not in places else places[letter] + value * step
    found = []
    # Index 37 of C is step 2 of C16c's C, 37 // 16, and step 5 of its c, 37 // 1 % 16.
    for letter, size, step in target.factors():
        place = floordiv(places[letter], step) if step > 1 else places[letter]
        found.append(simplified(floormod(place, size) if size else place))
    return tuple(found)


def _shape(source: Layout, target: Layout, shape: Sequence[Any]) -> tuple[PrimExpr, ...]:
    extents: dict[str, PrimExpr] = {}
    for (letter, size, step), value in zip(source.factors(), _given(source, shape), strict=True):
        if size == 0:
            extents[letter] = value * step
        elif not (isinstance(value, IntImm) and value.value == size):
            raise DeclarationError(f"layout {source.name} has {size} elements in each part of {letter}, not {value}")
    sizes = (IntImm("int32", size) if size else _tiles(extents[letter], step) for letter, size, step in target.factors())
    return tuple(simplified(size) for size in sizes)


def _tiles(extent: PrimExpr, size: int) -> PrimExpr:
    return floordiv(extent + (size - 1), size) if size > 1 else extent
