"""Schedules of products and convolutions: tiles in registers, fed from shared memory that all threads of a block fetch together.

block, virtual thread, thread:
    sums of the tile, in registers
    for each part of the sum:
        the threads fetch both operands' parts into shared memory
        for each term, written out: vectors of both operands into registers, multiply, add
    what is computed of the result, to memory
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from ...errors import InternalError
from ...schedule.te_schedule import Schedule
from ...target import Target
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.expr import IterVar
from ..contractions import Operand, taken
from ..sizes import Factor, decided, decided_pragma, near
from ..stages import compute_of, tiled_result
from .split_sum import add_up, cut_sum
from .tile_plan import GROUP, MOST_OF_SIDE, TilePlan, tile_plans

# Statements that are written out for a part of a sum; beyond, the loop over its groups of terms stays a loop.
_WRITTEN_OUT = 2048
# From so many results of a thread on its registers decide how many blocks a multiprocessor has at once.
_MANY_RESULTS = 32


def schedule_contractions(s: Schedule, target: Target, written_out: bool = True, rank: int = 0) -> None:
    """Schedule all products and convolutions, each with the stage that makes the result of it element by element.

    Args:
        s: the schedule.
        target: what it is for.
        written_out: the terms in shared memory are written out one by one where they are few; else groups of them are a loop.
        rank: which of `tile_plans` products get, the last one if there are no more.
    """
    for stage, plans in taken(s, tile_plans, target):
        plan = plans[min(rank, len(plans) - 1)]
        tensor = stage.origin.output(0)
        if plan.parts == 1:
            _Tiles(s, tensor, tiled_result(s, stage), plan, written_out).build()
            continue
        partial = cut_sum(s, stage, plan.cut_axis, plan.parts)
        of_parts = tile_plans(s.tree, partial, target, plan.shape)
        if not of_parts:
            raise InternalError(f"the parts of the sum {stage.name} are no product any more")
        made = partial.origin.output(0)
        _Tiles(s, made, made, of_parts[-1], written_out).build()
        add_up(s, tensor, target)


class _Tiles:
    """The steps of a plan."""

    def __init__(self, s: Schedule, tensor: Tensor, result: Tensor, plan: TilePlan, written_out: bool) -> None:
        self.s, self.tensor, self.result, self.plan, self.written_out = s, tensor, result, plan, written_out
        self.thread = thread_axis("threadIdx.x")
        self.counts: dict[int, Factor] = {}  # threads along each axis of results that has several

    def build(self) -> None:
        """Make the schedule."""
        s, operands = self.s, self.plan.operands
        widths = [self.plan.fetched_width(operand, s.tree) for operand in operands]
        shared = [s.cache_read(operand.tensor, "shared", [self.tensor]) for operand in operands]
        for operand, copy in zip(operands, shared, strict=True):
            column = operand.index_of(self.plan.order[-1])
            if operand is self.plan.turned and column is not None:
                s[copy].transform_layout(partial(_last, column))
        own = [s.cache_read(copy, "local", [self.tensor]) for copy in shared]
        if self.result is self.tensor:
            sums = s.cache_write(self.tensor, "local")
        else:
            sums = self.tensor
            s[sums].set_scope("local")
        s[sums].compute_at(s[self.result], self._threads())
        outer, groups, term = self._terms(sums)
        for operand, copy, register, width in zip(operands, shared, own, widths, strict=True):
            s[copy].compute_at(s[sums], outer)
            self._fetch(copy, width, operand)
            s[register].compute_at(s[sums], groups if self.plan.is_grouped(operand) else term)
            self._read(register, operand)

    def _threads(self) -> IterVar:
        """Blocks, virtual threads and threads of the result; returns the loop over threads."""
        stage, plan = self.s[self.result], self.plan
        blocks: list[IterVar] = []
        virtual: list[IterVar] = []
        threads: dict[int, IterVar] = {}
        inner: list[IterVar] = []
        for number, (axis, tile) in enumerate(zip(compute_of(self.s, self.result).axis, plan.tiles, strict=True)):
            rest, neighbours = stage.split(axis, factor=tile.inner)
            # twice as many along both sides would leave no registers for tiles of the preferred size
            most = MOST_OF_SIDE if number == plan.order[-1] else tile.threads
            count = decided(stage, rest, tile.threads, near(tile.threads, most)) if tile.threads > 1 else 1
            rest, threads[number] = stage.split(rest, factor=count)
            has_groups = tile.virtual > 1 or (tile.threads > 1 and plan.most_groups(number) > 1)
            groups = decided(stage, rest, tile.virtual, near(tile.virtual, plan.most_groups(number))) if has_groups else 1
            block, group = stage.split(rest, factor=groups)
            if tile.threads > 1 or number == plan.order[-1]:
                self.counts[number] = count
            blocks.append(block)
            virtual += [group] if has_groups else []
            inner += [neighbours] if has_groups else [group, neighbours]
        own = [threads.pop(number) for number in plan.order]
        stage.reorder(*blocks, *threads.values(), *virtual, *own, *inner)
        stage.bind(stage.fuse(*blocks, *threads.values()), thread_axis("blockIdx.x"))
        for axis in virtual:
            stage.bind(axis, thread_axis("vthread"))
        place = stage.fuse(*own)
        stage.bind(place, self.thread)
        if plan.tiles[-1].inner > 1:
            stage.vectorize(inner.pop())
        for axis in inner:  # only what is at constant places stays in registers
            stage.unroll(axis)
        return place

    def _terms(self, sums: Tensor) -> tuple[IterVar, IterVar, IterVar]:
        """The loops over parts of the sum, over groups of terms, and over single terms, each the innermost of its kind."""
        stage, plan, op = self.s[sums], self.plan, compute_of(self.s, sums)
        outer: list[IterVar] = []
        inner: list[IterVar] = []
        for place in plan.sums:
            axis, size = op.reduce_axis[place], plan.chunk[place]
            part, terms = stage.split(axis, factor=decided(stage, axis, size, plan.other_chunks) if axis is op.reduce_axis[-1] else size)
            outer.append(part)
            inner.append(terms)
        if plan.has_groups:
            last, term = stage.split(inner.pop(), factor=GROUP)
            inner.append(last)
        else:
            last = term = inner.pop()
        stage.reorder(*outer, *inner, term, *op.axis)
        for axis in (term, *op.axis):
            stage.unroll(axis)
        if self.written_out and prod(plan.chunk) * plan.results <= _WRITTEN_OUT:
            for axis in inner:
                stage.unroll(axis)
        if plan.results >= _MANY_RESULTS:
            decided_pragma(stage, outer[0], "min_blocks", 2, (1, 2))
        return outer[-1], last, term

    def _fetch(self, copy: Tensor, width: int, operand: Operand) -> None:
        """All threads fetch a part of an operand, each vectors of neighbours in turn."""
        stage, axes = self.s[copy], list(compute_of(self.s, copy).axis)
        if self.plan.is_grouped(operand) and len(axes) > 1:
            # Rows an odd number of vectors apart: eight neighbouring rows lie in all banks.
            stage.storage_align(axes[-2], 2 * GROUP, GROUP)
        if operand is self.plan.turned:
            axes = self._turned(copy)
        whole = stage.fuse(*axes)
        vector: list[IterVar] = []
        if width > 1:
            whole, lane = stage.split(whole, factor=width)
            stage.vectorize(lane)
            vector = [lane]
        own: list[IterVar] = []
        for number in reversed(self.plan.order):
            if number in self.counts:
                whole, part = stage.split(whole, factor=self.counts[number])
                own.insert(0, part)
        stage.reorder(whole, *own, *vector)
        stage.unroll(whole)
        stage.bind(stage.fuse(*own), self.thread)
        if self.plan.copies > 1:
            stage.multi_buffer(self.plan.copies)

    def _turned(self, copy: Tensor) -> list[IterVar]:
        """The loops of a copy that stands by terms: of a warp eight terms, neighbours in memory, for each of four columns."""
        stage = self.s[copy]
        *before, term, column = compute_of(self.s, copy).axis
        # Terms are four banks apart, and columns one.
        stage.storage_align(term, 8 * GROUP, GROUP)
        terms, term = stage.split(term, factor=2 * GROUP)
        columns, column = stage.split(column, factor=GROUP)
        loops = [*before, columns, terms, column, term]
        stage.reorder(*loops)
        return loops

    def _read(self, register: Tensor, operand: Operand) -> None:
        """Vectors of shared memory into registers."""
        stage, axes = self.s[register], list(compute_of(self.s, register).axis)
        along = self.plan.shared_axis(operand)
        tile = self.plan.tiles[along] if along is not None and along < len(self.plan.tiles) else None
        if self.plan.is_grouped(operand) or (tile is not None and tile.inner > 1):
            stage.vectorize(axes.pop())
        for axis in axes:
            stage.unroll(axis)


def _last(number: int, *places: Any) -> list[Any]:
    """Indices with one of them as the last."""
    return [*places[:number], *places[number + 1 :], places[number]]
