"""Tensorize: a tensor intrinsic in place of what a block does, which must be just what the intrinsic describes.

with T.block("C_o")                                    ->   with T.block("C_o")
    reads A[vi_o * 16 : vi_o * 16 + 16, ...]                    A_1 = T.match_buffer(A[vi_o * 16 : vi_o * 16 + 16, ...], (16, 16))
    for i, j, k in T.grid(16, 16, 16)                           C_1 = T.match_buffer(C[...], (16, 16))
        C[...] = C[...] + A[...] * B[...]                       the implementation on A_1, B_1, C_1

A loop is blockized first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....errors import DeclarationError, ScheduleError
from ....te.row_crossing import with_flat_views
from ....tir.attrs import FrozenMap
from ....tir.block import Block, MatchBufferRegion
from ....tir.buffer import Buffer, BufferRegion
from ....tir.expr import Range
from ....tir.stmt_functor import renew_defs
from ....tir.tensor_intrin import TensorIntrin, body_block, buffers_of
from ...intrinsic_match import Mismatch
from ..diagnostics import PrimitiveError
from ..handles import LoopRef
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram
from ..tensor_match import matched_regions
from .blockize import blockize


def tensorize(program: BlockProgram, name: str, intrin: TensorIntrin, called: str) -> BlockProgram:
    """The program with a block that does its work by an intrinsic."""
    realize = program.realize(name)
    try:
        regions = matched_regions(intrin.desc, realize.block)
    except Mismatch as reason:
        raise PrimitiveError(f"tensorize: {name} doesn't do what {called} describes: {reason}", realize) from None
    try:
        made = _implemented(realize.block, intrin, regions, called)
    except DeclarationError as error:  # vectors that run over the ends of rows which needn't follow each other
        raise PrimitiveError(f"tensorize: {error}", realize) from None
    return program.replace(realize, replace(realize, block=made))


def _implemented(block: Block, intrin: TensorIntrin, regions: Sequence[BufferRegion], called: str) -> Block:
    """The block with a copy of the implementation, on views of its regions."""
    # each use has variables and buffers of its own
    impl = renew_defs(intrin.impl)
    body = body_block(impl)
    views = dict(zip(buffers_of(impl), regions, strict=True))
    matches = tuple(MatchBufferRegion(view, source) for view, source in views.items())
    return replace(
        block,
        reads=tuple(_within(region, views) for region in body.reads),
        writes=tuple(_within(region, views) for region in body.writes),
        body=with_flat_views(body.body, buffers_of(impl), called),
        alloc_buffers=(*block.alloc_buffers, *body.alloc_buffers),
        match_buffers=(*block.match_buffers, *matches, *body.match_buffers),
        annotations=FrozenMap({**block.annotations, **body.annotations}),
    )


def _within(region: BufferRegion, views: dict[Buffer, BufferRegion]) -> BufferRegion:
    """A region of a view as one of what it is a view of."""
    source = views[region.buffer]
    leading = len(source.region) - len(region.region)
    moved = [
        Range.from_min_extent(outer.min + inner.min, inner.extent)
        for outer, inner in zip(source.region[leading:], region.region, strict=True)
    ]
    return BufferRegion(source.buffer, (*source.region[:leading], *moved))


class Tensorize(Primitive):
    """The instruction."""

    kind, method, inputs = "Tensorize", "tensorize", ("block_or_loop",)
    attrs = ("tensor_intrin", "preserve_unit_iters")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The block, made of the loop first if it is one, does what the intrinsic's implementation does.

        Raises:
            ScheduleError: if no such intrinsic is registered.
        """
        called = str(attrs[0])
        try:
            intrin = TensorIntrin.get(called)
        except DeclarationError as error:
            raise ScheduleError(f"tensorize: {error}") from None
        target = inputs[0]
        if isinstance(target, LoopRef):
            program, name = blockize(state.program_of(target), target.var, bool(attrs[1]))
        else:
            target = block_of(state, target, self.method)
            program, name = state.program_of(target), target.name
        return Applied(state.updated(target.func, tensorize(program, name, intrin, called)))
