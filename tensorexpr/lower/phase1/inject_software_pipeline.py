"""Loops whose statements belong to stages overlap their iterations: while one is finished, the next ones are begun.

    for i in range(n):   # software_pipeline_stage [0, 1], software_pipeline_order [0, 1]
        with T.block():
            B = T.alloc_buffer((4,))
            B[...] = f(i)                        f(0) into B[0]                        prologue
            g(i, B[...])              ->         for i in range(n - 1):
                                                     f(i + 1) into B[(i + 1) % 2]
                                                     g(i, B[i % 2])
                                                 g(n - 1, B[(n - 1) % 2])              epilogue

Statement s of iteration i runs in turn i + stage[s], statements of one turn by their order. Buffers of the loop's block get
as many versions as iterations are under way. A pipeline inside of the loop counts as its three parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...arith.analyzer import Analyzer
from ...arith.block_access import on_indices
from ...errors import ScheduleError
from ...tir.arithmetic import as_int
from ...tir.attrs import FrozenMap
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import IntImm, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferRealize, DeclBuffer, For, ForKind, SeqStmt, Stmt
from ...tir.stmt_functor import substitute
from ..context import PassContext
from ..rebuild import map_stmt, walk_statements
from .blocks import ORDER, STAGE, has_blocks, is_pipeline
from .pipeline_turns import Part, Pipeline, block_of
from .pipeline_versions import may_overlap

ASYNC = "software_pipeline_async_stages"


def inject_software_pipeline(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with its annotated loops as pipelines; itself without any.

    Raises:
        ScheduleError: for a loop with stages and no order or the other way round, with lists of the wrong length, an order that is
            no permutation, and stages or orders that would run something before what it needs.
    """
    if not has_blocks(func) or not any(map(is_pipeline, walk_statements(func.body))):
        return func
    return func.with_body(_Injector(func).stmt(func.body))


class _Injector:
    def __init__(self, func: PrimFunc) -> None:
        self._buffers: dict[Var, Buffer] = {buffer.data: buffer for buffer in func.buffer_map.values()}
        self._doubled: set[Buffer] = set()  # whose blocks ask for two versions

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with pipelines, inner ones first."""
        match stmt:
            case Block():
                for buffer in (*stmt.alloc_buffers, *(match.buffer for match in stmt.match_buffers)):
                    self._buffers[buffer.data] = buffer
                if "double_buffer_scope" in stmt.annotations:
                    which = as_int(stmt.annotations["double_buffer_scope"])
                    if which is None or not 0 <= which < len(stmt.writes):
                        raise ScheduleError(
                            f"block {stmt.name_hint!r}: double_buffer_scope is the number of a buffer that it writes, "
                            f"below {len(stmt.writes)}, not {stmt.annotations['double_buffer_scope']}"
                        )
                    self._doubled.add(stmt.writes[which].buffer)
            case DeclBuffer() | BufferRealize():
                self._buffers[stmt.buffer.data] = stmt.buffer
        result = map_stmt(stmt, self.stmt)
        return self._pipelined(result) if isinstance(result, For) and is_pipeline(result) else result

    def _pipelined(self, loop: For) -> Stmt:
        where = f"loop {loop.loop_var.name}"
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise ScheduleError(f"{where} is {loop.kind.name.lower()}; a software pipeline needs iterations that run one after the other")
        bodies, allocated = _statements(loop, where)
        stages, orders = (_numbers(loop, key, len(bodies), where) for key in (STAGE, ORDER))
        if len(set(orders)) < len(orders):
            raise ScheduleError(f"{where}: {ORDER} gives two statements the same place: {list(orders)}")
        if min(stages) < 0:
            raise ScheduleError(f"{where}: {STAGE} has a negative stage: {list(stages)}")
        later = {number for number in map(as_int, loop.annotations.get(ASYNC, ())) if number is not None}
        parts = [
            Part(block_of(body, self._buffers), stage, order, stage in later)
            for body, stage, order in zip(bodies, stages, orders, strict=True)
        ]
        _check_dependences(parts, where)
        _check_iterations(loop, parts, set(allocated), where)
        kept = {key: value for key, value in loop.annotations.items() if key not in (STAGE, ORDER, ASYNC)}
        bare = replace(loop, annotations=FrozenMap(kept))
        return Pipeline(bare, parts, allocated, self._doubled & set(allocated), self._buffers).built()


def _statements(loop: For, where: str) -> tuple[list[Stmt], list[Buffer]]:
    """What a pipeline is made of, and the buffers that one iteration has for itself."""
    body, allocated = loop.body, list[Buffer]()
    if isinstance(body, BlockRealize):
        block = body.block
        if block.iter_vars or block.match_buffers or block.init is not None or not _holds(body.predicate):
            raise ScheduleError(
                f"{where}: the block in a software pipeline has axes, views, an init or a predicate; "
                "run LowerInitBlock, ConvertBlocksToOpaque and LowerMatchBuffer first"
            )
        allocated += block.alloc_buffers
        body = block.body
    if isinstance(body, (DeclBuffer, Allocate)):
        raise ScheduleError(f"{where}: a software pipeline takes buffers of blocks (T.alloc_buffer), not allocations")
    if not isinstance(body, SeqStmt):
        raise ScheduleError(f"{where}: a software pipeline needs a sequence of statements, which then belong to stages; there is one")
    found: list[Stmt] = []
    for part in body.seq:
        if isinstance(part, BlockRealize) and _holds(part.predicate) and isinstance(part.block.body, SeqStmt) and not part.block.iter_vars:
            allocated += part.block.alloc_buffers
            found += part.block.body.seq
        else:
            found.append(part)
    return found, allocated


def _holds(condition: PrimExpr) -> bool:
    return isinstance(condition, IntImm) and bool(condition.value)


def _numbers(loop: For, key: str, count: int, where: str) -> tuple[int, ...]:
    said: Any = loop.annotations.get(key)
    if said is None:
        raise ScheduleError(f"{where} has no {key}; a software pipeline needs {STAGE} and {ORDER}")
    numbers = tuple(number for number in map(as_int, said) if number is not None) if isinstance(said, (tuple, list)) else ()
    if not isinstance(said, (tuple, list)) or len(numbers) != count:
        raise ScheduleError(f"{where}: {key} is {said}; it takes one integer for each of the {count} statements of the pipeline")
    return numbers


def _check_dependences(parts: Sequence[Part], where: str) -> None:
    """Within an iteration everything runs after what it needs, and what it overwrites."""
    for number, later in enumerate(parts):
        for earlier in parts[:number]:
            if (earlier.stage, earlier.order) < (later.stage, later.order) and earlier.stage <= later.stage:
                continue
            made = {region.buffer for region in earlier.block.writes}
            # What was made by an earlier statement is needed, whichever region: no proof is asked for.
            buffer = next((region.buffer for region in later.block.reads if region.buffer in made), None)
            if buffer is None:
                buffer = next((a.buffer for a, b in _conflicts(earlier, later) if may_overlap(Analyzer(), a, b)), None)
            if buffer is not None:
                raise ScheduleError(
                    f"{where}: statement {number} (stage {later.stage}, order {later.order}) needs buffer {buffer.name} after statement "
                    f"{parts.index(earlier)} (stage {earlier.stage}, order {earlier.order}), and would run before it"
                )


def _conflicts(a: Part, b: Part) -> list[tuple[BufferRegion, BufferRegion]]:
    """The regions of the same buffers that both touch, at least one of them writing."""
    pairs = [(one, other) for one in a.block.writes for other in (*b.block.reads, *b.block.writes)]
    pairs += [(one, other) for one in a.block.reads for other in b.block.writes]
    return [(one, other) for one, other in pairs if one.buffer is other.buffer]


def _check_iterations(loop: For, parts: Sequence[Part], own: set[Buffer], where: str) -> None:
    """What is not the iteration's own may not be touched by a later iteration before an earlier one is done with it."""
    for first in parts:
        for second in parts:
            # `second` of iteration i + distance runs in turn i + distance + its stage: before `first` of i as far as the stages are apart.
            for distance in range(1, first.stage - second.stage + 1):
                if distance == first.stage - second.stage and second.order > first.order:
                    continue
                for region, other in _conflicts(first, second):
                    if region.buffer not in own and not _apart(loop, region, other, distance):
                        raise ScheduleError(
                            f"{where}: buffer {region.buffer.name} is outside of the pipeline, and an iteration of stage {second.stage} "
                            f"would run before stage {first.stage} of the one before is done with it; allocate it inside the loop"
                        )


def _apart(loop: For, region: BufferRegion, other: BufferRegion, distance: int) -> bool:
    """Whether `other`, `distance` iterations later, touches nothing of `region`."""
    later = {loop.loop_var: loop.loop_var + distance}
    moved = [Range.from_min_extent(substitute(r.min, later), substitute(r.extent, later)) for r in other.region]
    analyzer = on_indices(Analyzer(), *(bound for r in (*region.region, *moved) for bound in (r.min, r.extent)))
    return not may_overlap(analyzer, region, BufferRegion(other.buffer, tuple(moved)))
