"""Expand loops: those scheduled as unrolled, and small ones under an `auto_unroll_max_step` pragma or option.

A loop is expanded without being asked if all its inner loops were and its statements, counted after expansion, are at
most as many as the limit says. The reduction around a large register tile is left alone: LLVM would merge the loads of
several steps and run out of registers.
"""

from __future__ import annotations

from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...tir.arithmetic import add
from ...tir.attrs import FrozenMap
from ...tir.expr import BufferLoad, Call, IntImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import variables, walk
from ...tir.stmt import NOP, AttrStmt, BufferStore, Evaluate, For, ForKind, SeqStmt, Stmt, seq
from ..context import PassContext
from ..options import UnrollLoopConfig
from ..pragmas import EXPLICIT, KEEP_LOOP, MAX_STEP, NO_LOAD_MERGE, UNROLL_PRAGMAS
from ..rebuild import Copier, map_stmt, sub_statements, walk_statements

_OWN_LOADS = Evaluate(Call("int32", "tir.no_load_merge", ()))


def unroll_loop(func: PrimFunc, ctx: PassContext, mark: bool = False) -> PrimFunc:
    """`func` without UNROLLED loops and unroll pragmas; itself if it has no loops to expand.

    Args:
        mark: where `explicit_unroll` is off, loops to be unrolled are UNROLLED afterwards, and not serial.

    Raises:
        LoweringError: if the requested unrolling makes more statements than `explicit_max_step`.
    """
    option = ctx.option(UnrollLoopConfig)
    asked = option.auto_max_step or option.auto_max_extent or option.unroll_local_access
    if not asked and not any(_concerns(s) for s in walk_statements(func.body)):
        return func
    if option.explicit_unroll:
        _check_size(func.body, option.explicit_max_step)
    unroller = _Unroller(option, ctx.flag("tir.debug_keep_trivial_loop"), mark and not option.explicit_unroll)
    if option.unroll_local_access:
        unroller.local_indices = _local_indices(func.body)
    return func.with_body(unroller.stmt(func.body, option.auto_max_step).stmt)


def _local_indices(body: Stmt) -> set[Var]:
    """The variables in indices of buffers in "local" memory."""
    found: set[Var] = set()
    for node in walk(body):
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.scope() == "local":
            found.update(*(variables(index) for index in node.indices))
    return found


def _concerns(stmt: Stmt) -> bool:
    if isinstance(stmt, AttrStmt):
        return stmt.attr_key in UNROLL_PRAGMAS
    return isinstance(stmt, For) and (
        stmt.kind is ForKind.UNROLLED or any(key in stmt.annotations for key in UNROLL_PRAGMAS) or _is_single(stmt)
    )


def _is_single(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value == 1 and loop.kind is not ForKind.THREAD_BINDING


def _check_size(body: Stmt, limit: int) -> None:
    """Refuse an expansion that no one can want, before any work is done."""

    def steps(stmt: Stmt) -> int:
        # Counted before anything is copied: the copies alone could fill the memory.
        inner = sum(steps(s) for s in sub_statements(stmt)) + isinstance(stmt, (BufferStore, Evaluate))
        if isinstance(stmt, For) and stmt.kind is ForKind.UNROLLED and isinstance(stmt.extent, IntImm):
            inner *= max(stmt.extent.value, 0)
            if inner > limit:
                raise LoweringError(
                    f"unrolling the loop {stmt.loop_var.name} of extent {stmt.extent.value} makes {inner} statements; the limit is "
                    f"explicit_max_step={limit}. Split the loop and unroll the inner part, or raise the limit with "
                    f'PassContext(config={{"tir.UnrollLoop": {{"explicit_max_step": {inner}}}}})'
                )
        return inner

    steps(body)


@dataclass(frozen=True, slots=True)
class _Result:
    """A rewritten statement: its statements in one pass over its loops, how deep loops remain, how deep loops were expanded."""

    stmt: Stmt
    steps: int
    loops: int
    expanded: int


class _Unroller:
    def __init__(self, option: UnrollLoopConfig, keep_trivial: bool, mark: bool) -> None:
        self._option = option
        self._keep_trivial = keep_trivial
        self._mark = mark
        self.local_indices: set[Var] = set()

    def stmt(self, stmt: Stmt, max_step: int) -> _Result:
        """The statement with loops expanded; `max_step` is what pragmas and options allow here."""
        if isinstance(stmt, For):
            return self._loop(stmt, max_step)
        if isinstance(stmt, AttrStmt) and stmt.attr_key == MAX_STEP and isinstance(stmt.value, IntImm):  # a pragma around several loops
            return self.stmt(stmt.body, stmt.value.value)
        if isinstance(stmt, (BufferStore, Evaluate)):
            return _Result(stmt, 1, 0, 0)
        inner: list[_Result] = []

        def visit(child: Stmt) -> Stmt:
            inner.append(self.stmt(child, max_step))
            return inner[-1].stmt

        result = map_stmt(stmt, visit)
        return _Result(
            result, sum(r.steps for r in inner), max((r.loops for r in inner), default=0), max((r.expanded for r in inner), default=0)
        )

    def _loop(self, loop: For, max_step: int) -> _Result:
        max_step = int(loop.annotations.get(MAX_STEP, max_step))
        if not loop.annotations.get(EXPLICIT, True):
            max_step = 0
        body = self.stmt(loop.body, max_step)
        extent = loop.extent.value if isinstance(loop.extent, IntImm) else None
        wanted = extent is not None and self._wanted(loop, extent, body, max_step)
        # A single iteration needs no mark: it becomes its body at once.
        if wanted and self._mark and extent != 1:
            marked = replace(loop, kind=ForKind.UNROLLED, body=body.stmt)
            return _Result(marked, body.steps * (extent or 0), body.loops, body.expanded + 1)
        if extent is not None and wanted:
            return _Result(_expanded(loop, body.stmt, extent), body.steps * extent, body.loops, body.expanded + 1)
        # What can't be expanded, having an unknown extent, runs as a plain loop.
        kind = ForKind.SERIAL if loop.kind is ForKind.UNROLLED else loop.kind
        kept = FrozenMap({k: v for k, v in loop.annotations.items() if k not in UNROLL_PRAGMAS})
        if kind is loop.kind and body.stmt is loop.body and len(kept) == len(loop.annotations):
            return _Result(loop, body.steps, body.loops + 1, body.expanded)
        same = len(kept) == len(loop.annotations)
        result = replace(loop, kind=kind, body=body.stmt, annotations=loop.annotations if same else kept)
        return _Result(result, body.steps, body.loops + 1, body.expanded)

    def _wanted(self, loop: For, extent: int, body: _Result, max_step: int) -> bool:
        if loop.kind is ForKind.UNROLLED:
            return self._option.explicit_unroll or self._mark
        if extent == 1 and loop.kind is not ForKind.THREAD_BINDING:
            return not self._keep_trivial
        if loop.kind is not ForKind.SERIAL or KEEP_LOOP in loop.annotations:
            return False
        # Innermost loops only: the copies would hold a loop each.
        if body.loops or body.expanded > self._option.auto_max_depth:
            return False
        if loop.loop_var in self.local_indices:
            return True
        return body.steps * extent <= max_step or extent <= self._option.auto_max_extent


def _expanded(loop: For, body: Stmt, extent: int) -> Stmt:
    """The iterations one after the other."""
    if extent <= 0:
        return NOP
    copies = [Copier({loop.loop_var: add(loop.min, IntImm(loop.min.dtype, step))}).stmt(body) for step in range(extent)]
    if loop.annotations.get(NO_LOAD_MERGE):  # of one iteration, too: it may be a part of a loop that was cut at a border
        copies = [seq(_OWN_LOADS, copy) for copy in copies]
    flat = [part for copy in copies for part in (copy.seq if isinstance(copy, SeqStmt) else (copy,))]
    return seq(*flat)
