"""Annotate a buffer access: the region that a block states for a buffer becomes a given one, and stays so.

B: reads(A[vi])   -- annotate_buffer_access(B, 0, "read", lambda vi: ((vi - 1, vi + 2),)) ->   B: reads(A[vi - 1 : vi + 2])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith.analyzer import Analyzer
from ....arith.index_map import IndexMap
from ....arith.index_map_graph import index_map_from_json
from ....dataclass import dataclass, replace
from ....tir.attrs import FrozenMap
from ....tir.block import Block
from ....tir.buffer import BufferRegion
from ....tir.expr import Range
from ..buffers import READ, WRITE, buffer_at, regions_of
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram

SIDES = (READ, WRITE)


@dataclass(frozen=True)
class Bounds:
    """The bounds of regions as traces keep them: a map from a block's axes to begin and end of each dimension in turn."""

    ends: IndexMap

    def as_python(self) -> str:
        """A function from axes to pairs."""
        final = self.ends.final_indices
        pairs = ", ".join(f"({low}, {high})" for low, high in zip(final[::2], final[1::2], strict=True))
        return f"lambda {', '.join(map(str, self.ends.initial_indices))}: [{pairs}]"

    def to_json(self) -> str:
        """The map's own form."""
        return self.ends.to_json()


def annotate_buffer_access(program: BlockProgram, name: str, index: int, side: str, ends: IndexMap) -> BlockProgram:
    """The program with another region for the buffer of a number."""
    realize = program.realize(name)
    buffer = buffer_at(realize, side, index, "annotate_buffer_access")
    axes = realize.block.iter_vars
    if len(ends.initial_indices) != len(axes) or len(ends.final_indices) != 2 * buffer.ndim:
        raise PrimitiveError(
            f"annotate_buffer_access: gen_new_ranges takes the {len(axes)} axes of {name} and gives begin and end of the "
            f"{buffer.ndim} dimensions of {buffer.name}, not {len(ends.initial_indices)} and {len(ends.final_indices) / 2:g}",
            realize,
        )
    points = ends.map_indices([axis.var for axis in axes])
    analyzer = Analyzer()
    region = tuple(Range.from_min_extent(low, analyzer.simplify(high - low)) for low, high in zip(points[::2], points[1::2], strict=True))
    regions = list(regions_of(realize.block, side))
    regions[index] = BufferRegion(buffer, region)
    key = f"explicit_{side}_region"
    known = tuple(realize.block.annotations.get(key, ()))
    annotations = FrozenMap({**realize.block.annotations, key: (*known, *(() if index in known else (index,)))})

    def changed(block: Block) -> Block:
        annotated = replace(block, annotations=annotations)
        return replace(annotated, reads=tuple(regions)) if side == READ else replace(annotated, writes=tuple(regions))

    return program.map_block(name, changed)


class AnnotateBufferAccess(Primitive):
    """The instruction."""

    kind, method = "AnnotateBufferAccess", "annotate_buffer_access"
    inputs = ("block", "buffer_index", "buf_type", "gen_new_ranges")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        index, side, ends = int(inputs[1]), SIDES[int(inputs[2])], _ends(inputs[3])
        return Applied(state.updated(ref.func, annotate_buffer_access(state.program_of(ref), ref.name, index, side, ends)))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        named = super().arguments(inputs, attrs)
        shown = {"buf_type": SIDES[int(inputs[2])], "gen_new_ranges": Bounds(_ends(inputs[3]))}
        return [(name, shown.get(name, value)) for name, value in named]


def _ends(given: Bounds | IndexMap | str) -> IndexMap:
    if isinstance(given, IndexMap):  # JSON of a map is read as one
        return given
    return given.ends if isinstance(given, Bounds) else index_map_from_json(given)
