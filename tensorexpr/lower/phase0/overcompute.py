"""Computing past the end of a stage instead of guarding against it.

A stage that is computed at a loop has storage for its whole box, also where the box reaches past the stage's domain at the
borders of its reader's tiles. What is computed there is never read. So the guard isn't needed where computing does no harm:
where every element that is read then still exists, as it does in a panel that was packed with padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...schedule.domain import Guard, StageDomain
from ...schedule.tree import ScheduleTree
from ...te.bounds import guarded_loads, is_harmless
from ...te.operation import ComputeOp
from ...tir.arithmetic import logical_not
from ...tir.expr import PrimExpr, ProducerLoad
from ...tir.rewriting import substitute


@dataclass(frozen=True, eq=False)
class Overcompute:
    """Says which border guards of one stage can go. `bodies` have no inlined reads."""

    domain: StageDomain
    bodies: tuple[PrimExpr, ...]
    tree: ScheduleTree
    analyzer: Analyzer

    def needed(self, borders: Sequence[Guard]) -> tuple[Guard, ...]:
        """The guards without which something else would go wrong."""
        stage = self.domain.stage
        if not borders or stage.rolling_buffer or stage.id in self.tree.carried or not isinstance(stage.op, ComputeOp):
            return tuple(borders)
        if not all(map(is_harmless, self.bodies)):
            return tuple(borders)
        kept = tuple(borders)
        for guard in borders:
            # One after the other: a guard that has gone proves nothing for the next.
            without = tuple(other for other in kept if other is not guard)
            if self._reads_exist((*self.domain.guards, *without)):
                kept = without
        return kept

    def _reads_exist(self, guards: Sequence[Guard]) -> bool:
        """True if every element that is read where `guards` hold provably exists, and is stored."""
        roots = self.domain.root_values()
        op = replace(self.domain.stage.compute, body=tuple(substitute(body, roots) for body in self.bodies))
        with ExitStack() as scopes:
            for guard in guards:
                scopes.enter_context(self.analyzer.constraint_scope(guard.condition))
            return all(self._read_exists(load, conditions) for load, conditions in guarded_loads(op))

    def _read_exists(self, load: ProducerLoad, conditions: Sequence[tuple[PrimExpr, bool]]) -> bool:
        producer = self.tree.producer(load)
        if producer.store_predicate is not None:
            return False
        with ExitStack() as scopes:
            for condition, holds in conditions:
                scopes.enter_context(self.analyzer.constraint_scope(condition if holds else logical_not(condition)))
            shape = producer.origin.output_shape(0)
            return all(
                self.analyzer.known_less(index, extent) and self.analyzer.known_nonnegative(index)
                for index, extent in zip(map(self.analyzer.simplify, load.indices), shape, strict=True)
            )
