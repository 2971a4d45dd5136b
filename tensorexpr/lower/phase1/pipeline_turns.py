"""The prologue, the loop and the epilogue of a software pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, field
from ...tir.arithmetic import logical_and, maximum
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import IntImm, PrimExpr, Range, Var
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import NOP, For, ForKind, Stmt, seq
from ..rebuild import Copier
from .blocks import stated
from .pipeline_queues import Queues, Step
from .pipeline_versions import Access, VersionUse, versioned, versions

TRUE = IntImm("bool", 1)
_N = TypeVar("_N", bound=Node)


@dataclass(frozen=True, eq=False)
class Part:
    """One statement of a pipeline, as a block. Asynchronous ones are begun, and waited for by who reads their results."""

    block: Block
    stage: int
    order: int
    is_async: bool


def block_of(stmt: Stmt, buffers: Mapping[Var, Buffer]) -> Block:
    """The block that a statement is, or one around it that states what it touches."""
    if isinstance(stmt, BlockRealize) and isinstance(stmt.predicate, IntImm) and stmt.predicate.value and not stmt.block.iter_vars:
        return stmt.block
    return stated(Block((), (), (), "", stmt), buffers)


def realized(block: Block, predicate: PrimExpr = TRUE) -> BlockRealize:
    """A block without axes as a statement."""
    return BlockRealize((), predicate, block)


@dataclass(eq=False)
class Pipeline:
    """A loop as a pipeline of its parts.

    allocated: the buffers of one iteration; `doubled` among them have two versions at least.
    buffers: by pointer, for what calls are handed; what the pipeline makes of them is entered.
    """

    loop: For
    parts: Sequence[Part]
    allocated: Sequence[Buffer]
    doubled: set[Buffer]
    buffers: dict[Var, Buffer]
    _queues: Queues = field(default_factory=Queues)

    def built(self) -> BlockRealize:
        """The three parts in one block, which has the buffers."""
        self._moved = self._versions()
        self._stages = max(part.stage for part in self.parts)
        for new in self._moved.values():
            self.buffers[new.data] = new
        low, extent = self.loop.min, self.loop.extent
        begun, end = low + self._stages, low + extent
        analyzer = Analyzer()
        surely_full = analyzer.known_less_equal(self._stages, extent)
        # With fewer iterations than stages the prologue's turns reach past the last iteration, and the epilogue begins where they end.
        # Where the extent isn't known, its turns ask whether the prologue had them.
        drained = maximum(begun, end) if not surely_full and isinstance(extent, IntImm) and isinstance(low, IntImm) else end
        late = None if surely_full or drained is not end else begun
        body = seq(
            # Few turns, each of which leaves out other parts: written out, their conditions are decided.
            self._turns(low, begun, ForKind.UNROLLED),
            self._turns(begun, end, self.loop.kind),
            self._turns(drained, end + self._stages, ForKind.UNROLLED, late),
        )
        block = Block((), (), (), "", body, alloc_buffers=tuple(self._moved.get(buffer, buffer) for buffer in self.allocated))
        return realized(stated(block, self.buffers))

    def _versions(self) -> dict[Buffer, Buffer]:
        accesses: dict[Buffer, list[Access]] = {buffer: [] for buffer in self.allocated}
        for part in self.parts:
            for regions, writes in ((part.block.reads, False), (part.block.writes, True)):
                for region in regions:
                    if region.buffer in accesses:
                        accesses[region.buffer].append(Access(part.stage, part.order, region, writes))
        counts = {buffer: versions(found, buffer in self.doubled) for buffer, found in accesses.items()}
        return {buffer: versioned(buffer, count) for buffer, count in counts.items() if count > 1}

    def _turns(self, start: PrimExpr, end: PrimExpr, kind: ForKind, late: PrimExpr | None = None) -> Stmt:
        """The turns from `start` to `end`, as one loop or as the only one of them; those before `late` were others'."""
        analyzer = Analyzer()
        extent = analyzer.simplify(end - start)
        if analyzer.known_less_equal(extent, 0):
            return realized(Block((), (), (), "", NOP))
        alone = analyzer.known_equal(extent, 1)
        var = Var(self.loop.loop_var.name, self.loop.loop_var.dtype)
        turn: PrimExpr = start if alone else var
        # The loop over the turns counts from where the old one did; this is how far the turns are from its variable.
        shift = start - self.loop.min
        analyzer.bind(var, Range.from_min_extent(start, extent))
        shifted = Analyzer()
        shifted.bind(var, Range.from_min_extent(self.loop.min, extent))
        steps: list[Step] = []
        for part in sorted(self.parts, key=lambda part: part.order):
            reached = turn - part.stage
            inbound = logical_and(analyzer.simplify(self.loop.min <= reached), reached < self.loop.min + self.loop.extent)
            if late is not None:
                with analyzer.constraint_scope(inbound):
                    inbound = inbound if analyzer.known_true(turn >= late) else logical_and(inbound, turn >= late)
            # A part that has no iteration in any of these turns.
            if analyzer.known_true(~inbound):
                continue
            index = reached if alone else reached + shift
            steps.append(Step(part.stage, part.is_async, self._at(part.block, index), _put(inbound, {var: var + shift}), index))
        stmts = self._queues.completed(steps, shifted, None if alone else extent, self.buffers)
        body = seq(*(realized(step.block, step.predicate) for step in stmts))
        if not alone:
            body = For(var, self.loop.min, extent, kind, body, None, self.loop.annotations)
        return realized(block_of(body, self.buffers))

    def _at(self, block: Block, iteration: PrimExpr) -> Block:
        """A copy of a part for one iteration."""
        var = self.loop.loop_var
        use = VersionUse(self._moved, var - self.loop.min, self._stages != 1)
        # A part stands in up to three places, so what it binds has to be renamed.
        copy = Copier({}).stmt(use.block(block))
        assert isinstance(copy, Block)
        return _put(copy, {var: iteration})


def _put(node: _N, values: Mapping[Var, PrimExpr]) -> _N:
    """Variables replaced, and nothing else changed: indices stay as they were written."""
    return cast(_N, post_order_rewrite(node, lambda n: values.get(n) if isinstance(n, Var) else None))
