"""The step that makes a copy of an input an input itself: whoever calls has brought the elements into the copy's layout."""

from __future__ import annotations

from typing import ClassVar

from ...arith.analyzer import Analyzer
from ...arith.index_map import IndexMap
from ...dataclass import dataclass, replace
from ...te.operation import ComputeOp, PlaceholderOp
from ...te.tensor import Tensor
from ...tir.expr import Call, PrimExpr, ProducerLoad
from ..tree import ScheduleTree, StageNode, make_stage
from .base import StageStep, check_not_inlined, stage_of
from .caching import redirect


@dataclass(frozen=True)
class PreTransformed(StageStep):
    """The copy that cache_read made of an input, in the layout that transform_layout gave it, is what the caller passes.

    for n.o: for k: for n.i: B.global[n.o, k, n.i] = B[k, n.o*32 + n.i]    ->
    for i: for n: for k: C[i, n] += A[i, k] * B.global[n//32, k, n%32]        for i: for n: for k: C[i, n] += A[i, k] * B[n//32, k, n%32]

    Nothing else may read the input. Loops of the copy are gone, wherever it was computed. Padding of the layout is never read,
    or read and dropped.
    """

    code: ClassVar[str] = "pre_transformed"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The copy becomes an input in the shape of the layout, and its readers read that; the loops that copied are gone.

        Raises:
            ScheduleError: if the stage is no copy of an input.
        """
        stage = stage_of(tree, self.stage, "pre_transformed")
        check_not_inlined(stage, "pre_transformed")
        source = copied_input(tree, stage)
        if isinstance(source, str):
            wish = "pre_transformed takes a copy that cache_read made of an input"
            raise stage.refused(f"{wish}, but {source}")
        op = stage.compute
        given = PlaceholderOp(source.name, op.output_shape(0), op.output_dtype(0), source.op.tag, source.op.attrs)
        for reader in tree.consumers(stage):
            tree = tree.with_stage(replace(reader, op=redirect(reader.op, stage.origin, given.output(0))))
        shown = replace(make_stage(stage.id, stage.name, given), source=source, maps=stage.maps, layouts=stage.layouts)
        tree = tree.with_stage(shown)
        return replace(tree, index={**tree.index, given: stage.id})


def copied_input(tree: ScheduleTree, stage: StageNode) -> Tensor | str:
    """The input of which a stage is a copy that the caller could make instead; or why it is none, in words."""
    loads = tree.reads(stage)
    if not isinstance(stage.op, ComputeOp) or len(loads) != 1 or not isinstance(source := loads[0].producer, Tensor):
        return "it reads several elements for each of its own"
    if not tree.producer(loads[0]).is_placeholder:
        return f"it reads {source.name}, which is computed"
    if not _is_copy(stage, loads[0]):
        return "it is computed from the elements that it reads"
    others = [reader.name for reader in tree.consumers(tree.producer(loads[0])) if reader.id != stage.id]
    if others:
        return f"{', '.join(others)} reads {source.name} in the layout it was declared with; let all of them read the copy"
    return "it is an output" if stage.is_output else source


def layout_of(stage: StageNode, rank: int) -> IndexMap | None:
    """Where a stage that started as a copy of a tensor of this rank holds each element; None if it is in the tensor's layout."""
    if not stage.maps or len(stage.maps[0].initial_indices) != rank:
        return None
    first, *others = stage.maps
    indices = first.final_indices
    # each layout is over the indices of the one before
    for following in others:
        indices = following.map_indices(indices)
    analyzer = Analyzer()
    return IndexMap(first.initial_indices, tuple(analyzer.simplify(index) for index in indices))


def _is_copy(stage: StageNode, load: ProducerLoad) -> bool:
    """True if each element of the stage that isn't padding is the element that the layout puts there."""
    op = stage.compute
    body: PrimExpr = op.body[0]
    if isinstance(body, Call) and body.op == "tir.if_then_else":
        # the other value is that of padding, where no element of the input goes
        body = body.args[1]
    if body is not load or len(op.body) != 1:
        return False
    layout = layout_of(stage, len(load.indices))
    places = load.indices if layout is None else layout.map_indices(load.indices)
    analyzer = Analyzer({axis.var: axis.dom for axis in op.axis if axis.dom is not None})
    return len(places) == len(op.axis) and all(analyzer.known_equal(place, axis.var) for place, axis in zip(places, op.axis, strict=True))
