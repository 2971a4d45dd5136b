"""Where the axes of a tensor stand in another layout, whole or in blocks: what rules know of transposes and layout transforms.

    NCHW in NHWC      ((0, 0), (2, 0), (3, 0), (1, 0))
    NCHW in NCHW4c    ((0, 0), (1, 0), (2, 0), (3, 0), (1, 4))

A place holds an axis and a size: 0 for a whole axis, or for the numbers of its blocks; else that of the blocks whose elements it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ...arith.index_map import IndexMap
from ...dataclass import dataclass
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.expr import Add, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Var
from ...topi.transform import parse_layout
from ..extents import simplified
from ..ops.layout import layout_transform
from ..ops.manipulate import permute_dims, reshape

LAYOUT = "relax.layout_transform"


@dataclass(frozen=True)
class AxisOrder:
    """A layout of a tensor whose axes are numbered as they are in another one; see the module."""

    places: tuple[tuple[int, int], ...]

    @staticmethod
    def of(source: str, wanted: str) -> AxisOrder:
        """The axes of "NCHW" in "NCHW4c".

        Raises:
            DeclarationError: for layouts of other axes, and blocks in the first.
        """
        names = [name for name, _ in parse_layout(wanted)]
        if not source.isalpha() or sorted(source) != sorted(name for name in names if name.isupper()):
            raise DeclarationError(f"ConvertLayout: {wanted} is no layout of the axes {source}")
        return AxisOrder(tuple((source.index(name.upper()), size) for name, size in parse_layout(wanted)))

    @staticmethod
    def before(axes: Sequence[int]) -> AxisOrder:
        """Of what becomes a tensor by `permute_dims(value, axes)`."""
        return AxisOrder(tuple((axes.index(n), 0) for n in range(len(axes))))

    @staticmethod
    def before_map(index_map: IndexMap) -> AxisOrder | None:
        """Of what becomes a tensor by a layout transform that joins blocks, as `lambda n, c, h, w, b: (n, c * 4 + b, h, w)`; else None."""
        place = {var: n for n, var in enumerate(index_map.initial_indices)}
        found: dict[int, tuple[int, int]] = {}
        for axis, index in enumerate(index_map.final_indices):
            match index:
                case Var():
                    parts = [(index, 0)]
                case Add(Mul(Var() as number, IntImm() as size), Var() as inner):
                    parts = [(number, 0), (inner, size.value)]
                case _:
                    return None
            found.update({place[var]: (axis, size) for var, size in parts if var in place})
        complete = sorted(found) == list(range(len(place))) and len(set(found.values())) == len(place)
        return AxisOrder(tuple(found[n] for n in range(len(place)))) if complete else None

    @staticmethod
    def behind_map(index_map: IndexMap) -> AxisOrder | None:
        """Of what a layout transform makes that cuts blocks, as `lambda n, c, h, w: (n, c // 4, h, w, c % 4)`; None for others."""
        axis = {var: n for n, var in enumerate(index_map.initial_indices)}
        found: list[tuple[int, int]] = []
        counted: dict[int, int] = {}
        for index in index_map.final_indices:
            match index:
                case Var() if index in axis:
                    found.append((axis[index], 0))
                case FloorDiv(Var() as var, IntImm() as size) if var in axis:
                    found.append((axis[var], 0))
                    counted[axis[var]] = size.value
                case FloorMod(Var() as var, IntImm() as size) if var in axis:
                    found.append((axis[var], size.value))
                case _:
                    return None
        made = AxisOrder(tuple(found))
        complete = sorted(n for n, size in found if not size) == list(range(len(axis))) and made.blocks == counted
        return made if complete and len(set(found)) == len(found) else None

    @cached_property
    def blocks(self) -> Mapping[int, int]:
        """The sizes of blocks by the axes that are cut."""
        return {axis: size for axis, size in self.places if size}

    @property
    def ndim(self) -> int:
        """The number of axes that are in places."""
        return len(self.places) - len(self.blocks)

    def place(self, axis: int) -> int:
        """Where an axis is, or the numbers of its blocks."""
        return self.places.index((axis, 0))

    def fits(self, extents: Sequence[Any] | None) -> bool:
        """Whether a shape is known to fill its blocks."""
        if extents is None:
            return not self.blocks
        return len(extents) == self.ndim and not any(self._left(extents[axis], size) for axis, size in self.blocks.items())

    @staticmethod
    def _left(extent: Any, size: int) -> bool:
        return as_int(simplified(extent % size)) != 0

    def into(self, value: Any) -> Any:
        """A tensor in this layout."""
        if not self.blocks:
            return permuted(value, [axis for axis, _ in self.places])
        own = [Var(f"i{n}", "int32") for n in range(self.ndim)]
        numbers = [own[axis] // self.blocks[axis] if axis in self.blocks else own[axis] for axis in range(self.ndim)]
        return layout_transform(
            value, IndexMap(tuple(own), tuple(own[axis] % size if size else numbers[axis] for axis, size in self.places))
        )

    def out_of(self, value: Any) -> Any:
        """The tensor that a value in this layout holds."""
        if not self.blocks:
            return permuted(value, [self.place(axis) for axis in range(self.ndim)])
        own = [Var(f"i{n}", "int32") for n in range(len(self.places))]
        whole: list[PrimExpr] = [own[self.place(axis)] for axis in range(self.ndim)]
        for axis, size in self.blocks.items():
            whole[axis] = whole[axis] * size + own[self.places.index((axis, size))]
        return layout_transform(value, IndexMap(tuple(own), tuple(whole)))

    def beside(self, value: Any, extents: Sequence[PrimExpr]) -> Any:
        """A tensor in this layout, for an operation with others that it is broadcast to; None where its extents don't fit.

        Args:
            value: of so many axes or fewer.
            extents: its own.
        """
        full = [IntImm("int64", 1)] * (self.ndim - len(extents)) + list(extents)
        whole = value if len(full) == len(extents) else reshape(value, full)
        if all(not self._left(full[axis], size) for axis, size in self.blocks.items()):
            return self.into(whole)
        # An axis of one element has no blocks, and is counted twice.
        if all(as_int(full[axis]) == 1 for axis in self.blocks):
            ordered = permuted(whole, [axis for axis, size in self.places if not size])
            return reshape(ordered, [IntImm("int64", 1) if size else full[axis] for axis, size in self.places])
        return None

    def renamed(self, axes: Sequence[int]) -> AxisOrder:
        """The layout of the tensor whose axis `axes[n]` is this one's axis n."""
        return AxisOrder(tuple((axes[axis], size) for axis, size in self.places))

    def without(self, axes: Sequence[int]) -> AxisOrder:
        """What is left when axes are summed over, which are counted anew."""
        left = [n for n in range(self.ndim) if n not in axes]
        return AxisOrder(tuple((left.index(axis), size) for axis, size in self.places if axis in left))

    def where(self, axes: Sequence[int]) -> list[int]:
        """All places of these axes and of their blocks."""
        return [n for n, (axis, _) in enumerate(self.places) if axis in axes]

    def text(self, layout: str) -> str:
        """The layout as it is written, where "NCHW" is that of the tensor: "NCHW4c"."""
        return "".join(f"{size}{layout[axis].lower()}" if size else layout[axis] for axis, size in self.places)


def permuted(value: Any, order: Sequence[int]) -> Any:
    """A value with its axes in another order; itself for the same one."""
    return value if list(order) == list(range(len(order))) else permute_dims(value, list(order))
