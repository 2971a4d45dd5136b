"""The init of a reduction block becomes statements.

    for i, k, j:                            for i:
        with T.block("C"):                      for j:
            with T.init():          ->              C[i, j] = 0
                C[vi, vj] = 0                   for k, j:
            C[vi, vj] += ...                        with T.block("C"):
                                                        C[vi, vj] += ...

It runs before the reduction's outermost loop, over the spatial loops inside of that one, so that an accumulator can stay
in registers. Where that can't be done, it stays in the block under the condition that all reduction axes stand at their
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field, replace
from ...tir.arithmetic import is_const_int
from ...tir.block import Block, BlockRealize, with_guarded_init
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import likely
from ...tir.rewriting import substitute, variables, walk
from ...tir.scopes import parts
from ...tir.stmt import BufferStore, For, IfThenElse, SeqStmt, Stmt, seq
from ...tir.stmt_functor import substitute as substitute_free
from ..context import PassContext
from ..rebuild import Copier, map_stmt
from .blocks import has_blocks


def lower_init_block(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with the inits of its blocks as plain statements."""
    if not has_blocks(func):
        return func
    plan = _Plan()
    plan.visit(func.body)
    return func.with_body(_Placing(plan).stmt(func.body))


@dataclass(frozen=True, eq=False, slots=True)
class _Init:
    """What runs before a reduction: the block, the spatial loops between, and the reduction's variables at their start."""

    realize: BlockRealize
    spatial: tuple[For, ...]
    starts: dict[Var, PrimExpr]

    def statement(self) -> Stmt:
        """The init over its loops, in terms of fresh loop variables."""
        block = self.realize.block
        values = dict(zip((axis.var for axis in block.iter_vars), self.realize.iter_values, strict=True))
        values = {var: substitute(value, self.starts) for var, value in values.items()}
        body: Stmt = substitute_free(cast(Stmt, block.init), values)
        condition = substitute(self.realize.predicate, self.starts)
        if not (isinstance(condition, IntImm) and condition.value):
            body = IfThenElse(likely(condition), body)
        for loop in reversed(self.spatial):
            body = For(loop.loop_var, loop.min, loop.extent, loop.kind, body, thread_binding=loop.thread_binding)
        # The loops stand in the program a second time, so their variables have to be others.
        return Copier({}).stmt(body)


@dataclass(slots=True)
class _Plan:
    """Which inits run before which loops."""

    before: dict[For, list[_Init]] = field(default_factory=dict)
    moved: set[BlockRealize] = field(default_factory=set)
    _path: list[Stmt] = field(default_factory=list)

    def visit(self, stmt: Stmt) -> None:
        """Plan all blocks in a statement."""
        if isinstance(stmt, BlockRealize) and stmt.block.init is not None:
            self._reduction(stmt)
        self._path.append(stmt)
        for body in parts(stmt).bodies:
            self.visit(body)
        self._path.pop()

    def _reduction(self, stmt: BlockRealize) -> None:
        values = dict(zip(stmt.block.iter_vars, stmt.iter_values, strict=True))
        reducing = {var for axis, value in values.items() if axis.iter_type == IterVar.COMM_REDUCE for var in variables(value)}
        fixed = {var for axis, value in values.items() if axis.iter_type != IterVar.COMM_REDUCE for var in variables(value)}
        found = self._outermost(reducing)
        # A loop in both kinds of axes would start the reduction anew in its course; what an init loads may change before the reduction.
        if found is None or reducing & fixed or any(isinstance(node, BufferLoad) for node in walk(cast(Stmt, stmt.block.init))):
            return
        position, loops = found
        # A loop around that no axis has runs the reduction again: its init belongs inside, or the second run would add to the first.
        if any(_repeats(loop, stmt) for loop in loops if loop.loop_var not in reducing | fixed):
            return
        starts = {loop.loop_var: loop.min for loop in loops if loop.loop_var in reducing}
        spatial = tuple(loop for loop in loops if loop.loop_var in fixed)
        if any((variables(loop.min) | variables(loop.extent)) & reducing for loop in loops) or not _begins_at(values, starts):
            return
        # Between the init's new place and its old one nobody else may see the elements.
        if _others_touch([*self._path[position:], stmt], _targets(stmt.block)):
            return
        self.moved.add(stmt)
        self.before.setdefault(loops[0], []).append(_Init(stmt, spatial, starts))

    def _outermost(self, reducing: set[Var]) -> tuple[int, list[For]] | None:
        """The position of the outermost loop of a reduction on the path, and the loops from there on."""
        left, loops = set(reducing), []
        for position in range(len(self._path) - 1, -1, -1):
            stmt = self._path[position]
            if isinstance(stmt, For):
                loops.append(stmt)
                left.discard(stmt.loop_var)
                if not left:
                    return position, loops[::-1]
            # A branch or a binding on the way may decide whether, or with what, the reduction runs.
            elif not isinstance(stmt, SeqStmt):
                return None
        return None


def _repeats(loop: For, stmt: BlockRealize) -> bool:
    """True if a loop that no axis stands for runs the block more than once, or says whether it runs."""
    return not is_const_int(loop.extent, 1) or loop.loop_var in variables(stmt.predicate)


def _begins_at(values: dict[IterVar, PrimExpr], starts: dict[Var, PrimExpr]) -> bool:
    """True if the reduction axes stand at their start where their loops do, and leave it with the next step of any loop."""
    analyzer = Analyzer()
    for axis, value in values.items():
        if axis.iter_type != IterVar.COMM_REDUCE or axis.dom is None:
            continue
        first = substitute(value, starts)
        steps = [substitute(value, {**starts, var: starts[var] + 1}) for var in variables(value)]
        if not analyzer.known_equal(first, axis.dom.min) or not all(analyzer.known_true(first < step) for step in steps):
            return False
    return True


def _targets(block: Block) -> set[Var]:
    return {node.buffer.data for node in walk(cast(Stmt, block.init)) if isinstance(node, BufferStore)}


def _others_touch(path: Sequence[Stmt], targets: set[Var]) -> bool:
    """True if a statement beside the path uses the memory that the end of the path initialises."""
    for above, below in pairwise(path):
        if isinstance(above, SeqStmt):
            for other in above.seq:
                if other is not below and any(_data(node) in targets for node in walk(other)):
                    return True
    return False


def _data(node: Stmt | PrimExpr) -> Var | None:
    if isinstance(node, (BufferLoad, BufferStore)):
        return node.buffer.data
    return node if isinstance(node, Var) else None


@dataclass(frozen=True, eq=False, slots=True)
class _Placing:
    """The rewrite."""

    plan: _Plan

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with inits as statements."""
        result = map_stmt(stmt, self.stmt)
        if isinstance(stmt, BlockRealize) and isinstance(result, BlockRealize) and result.block.init is not None:
            block = result.block
            body = block.body if stmt in self.plan.moved else with_guarded_init(block)
            return replace(result, block=replace(block, body=body, init=None))
        if isinstance(stmt, For) and stmt in self.plan.before:
            return seq(*(init.statement() for init in self.plan.before[stmt]), result)
        return result
