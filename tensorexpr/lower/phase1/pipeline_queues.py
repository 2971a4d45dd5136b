"""Asynchronous stages of a software pipeline: what they begin is committed to a queue, and who reads it waits for the queue.

A wait says how many commits may still be under way: the newest ones, which are for later iterations than the reader's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, field, replace
from ...tir.arithmetic import compare
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import GE, IntImm, PrimExpr, Var
from ...tir.intrin import if_then_else
from ...tir.stmt import AttrStmt, Stmt, seq
from .blocks import stated

_ZERO = IntImm("int32", 0)


@dataclass(frozen=True)
class Step:
    """A part of the pipeline in one turn: its block where `predicate` holds, for iteration `index`."""

    stage: int
    is_async: bool
    block: Block
    predicate: PrimExpr
    index: PrimExpr


@dataclass
class _Queue:
    """What is known of one asynchronous stage in the turns that are being made."""

    head: PrimExpr | None = None  # the newest iteration that was committed
    predicate: PrimExpr | None = None
    groups: list[list[int]] = field(default_factory=list)  # which steps are committed together
    waited_for: bool = False
    seen: set[Buffer] = field(default_factory=set)
    wait: tuple[int, PrimExpr] | None = None  # in front of which step, and for how many


@dataclass
class Queues:
    """The queues of a pipeline, over all its turns."""

    _heads: dict[int, PrimExpr] = field(default_factory=dict)
    _written: dict[int, set[Buffer]] = field(default_factory=dict)

    def completed(self, steps: Sequence[Step], analyzer: Analyzer, extent: PrimExpr | None, buffers: Mapping[Var, Buffer]) -> list[Step]:
        """The steps with commits and waits.

        Args:
            analyzer: knows the range of the loop over the turns.
            extent: how many turns there are; None for one.
        """
        # Later turns may have no asynchronous step of their own and still read what one wrote.
        if not self._written and not any(step.is_async for step in steps):
            return list(steps)
        queues, group_of = self._committed(steps, analyzer)
        self._wait(steps, analyzer, queues, group_of)
        result = self._marked(steps, analyzer, queues, buffers)
        for stage, queue in queues.items():
            if queue.head is not None:
                self._heads[stage] = queue.head if extent is None else self._heads.get(stage, IntImm("int32", -1)) + extent
        return result

    def _committed(self, steps: Sequence[Step], analyzer: Analyzer) -> tuple[dict[int, _Queue], dict[Buffer, int]]:
        queues: dict[int, _Queue] = {}
        group_of: dict[Buffer, int] = {}
        for number, step in enumerate(steps):
            if step.is_async:
                queue = queues.setdefault(step.stage, _Queue())
                # What comes behind a reader is no part of the commit that the reader waits for.
                if not queue.groups or queue.waited_for:
                    queue.groups.append([])
                queue.groups[-1].append(number)
                for region in step.block.writes:
                    self._written.setdefault(step.stage, set()).add(region.buffer)
                    group_of[region.buffer] = len(queue.groups) - 1
                queue.head = step.index
                if queue.predicate is None or analyzer.known_true(queue.predicate):
                    queue.predicate = step.predicate
                else:
                    queue.predicate = analyzer.simplify(queue.predicate & step.predicate)
            for stage in self._sources(step):
                queues.setdefault(stage, _Queue()).waited_for = True
        return queues, group_of

    def _sources(self, step: Step) -> list[int]:
        """The asynchronous stages that made what a step reads."""
        read = {region.buffer for region in step.block.reads}
        return [stage for stage, written in self._written.items() if stage <= step.stage and read & written]

    def _wait(self, steps: Sequence[Step], analyzer: Analyzer, queues: dict[int, _Queue], group_of: Mapping[Buffer, int]) -> None:
        for number, step in enumerate(steps):
            for stage in self._sources(step):
                queue = queues[stage]
                count = self._in_flight(step, analyzer, stage, queue, group_of)
                # One wait in a turn: in front of the first reader, for what the strictest one needs.
                if queue.wait is None or analyzer.known_less(count, queue.wait[1]):
                    queue.wait = (queue.wait[0] if queue.wait is not None else number, count)
            if step.is_async:
                queues[step.stage].seen |= {region.buffer for region in step.block.writes}

    def _in_flight(self, step: Step, analyzer: Analyzer, stage: int, queue: _Queue, group_of: Mapping[Buffer, int]) -> PrimExpr:
        """How many commits may be under way when a step begins; 0 where it isn't known."""
        heads: dict[int, PrimExpr | None] = {}
        if queue.head is None:
            heads[0] = self._heads.get(stage)
        else:
            for region in step.block.reads:
                if region.buffer in self._written[stage]:
                    group = group_of[region.buffer]
                    # Before this turn's own commit the newest result there can be is that of the turn before.
                    heads.setdefault(group, queue.head if region.buffer in queue.seen else queue.head - 1)
        total: PrimExpr = _ZERO
        for head in heads.values():
            # 0 waits for everything, which is always right.
            if head is None or not analyzer.known_true(compare(GE, head, 0)):
                return _ZERO
            total = total + Analyzer().simplify(head - step.index)
        return total

    def _marked(self, steps: Sequence[Step], analyzer: Analyzer, queues: Mapping[int, _Queue], buffers: Mapping[Var, Buffer]) -> list[Step]:
        bodies: list[Stmt] = [
            AttrStmt(_ZERO, "async_scope", IntImm("int32", 1), _kept(step.block)) if step.is_async else step.block.body for step in steps
        ]
        for stage, queue in queues.items():
            if queue.wait is not None:
                number, count = queue.wait
                if queue.predicate is not None and not analyzer.known_true(queue.predicate):
                    # In a turn that commits nothing no newer commit is there to be left under way.
                    count = if_then_else(queue.predicate, count, 0)
                waiting = AttrStmt(_ZERO, "async_wait_inflight_count", count, bodies[number])
                bodies[number] = AttrStmt(_ZERO, "async_wait_queue_scope", IntImm("int32", stage), waiting)
        result: list[Step] = []
        together: list[int] | None = None
        for number, step in enumerate(steps):
            group = next((g for g in queues[step.stage].groups if number in g), None) if step.is_async else None
            if group is not None and group is together:
                result[-1] = _joined(result[-1], replace(step, block=replace(step.block, body=bodies[number])), buffers)
            elif group is not None:
                result.append(_commit(replace(step, block=replace(step.block, body=bodies[number])), buffers))
            else:
                result.append(step if bodies[number] is step.block.body else replace(step, block=replace(step.block, body=bodies[number])))
            together = group
        return result


def _kept(block: Block) -> Stmt:
    """What a block does, still under its annotations, which say how."""
    return BlockRealize((), IntImm("bool", 1), replace(block, alloc_buffers=())) if block.annotations else block.body


def _commit(step: Step, buffers: Mapping[Var, Buffer]) -> Step:
    body = AttrStmt(_ZERO, "async_commit_queue_scope", IntImm("int32", step.stage), step.block.body)
    return replace(step, block=stated(_holding(body, step.block.alloc_buffers), buffers))


def _joined(first: Step, second: Step, buffers: Mapping[Var, Buffer]) -> Step:
    """Both under the first one's commit."""
    commit = first.block.body
    assert isinstance(commit, AttrStmt)
    body = replace(commit, body=seq(commit.body, second.block.body))
    return replace(first, block=stated(_holding(body, (*first.block.alloc_buffers, *second.block.alloc_buffers)), buffers))


def _holding(body: Stmt, allocated: tuple[Buffer, ...]) -> Block:
    return Block((), (), (), "", body, alloc_buffers=allocated)
