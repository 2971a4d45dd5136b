"""Calls around functions and loops, by which a profiler sees when they begin and end.

Which loops: with `tir.instr_siblings` (the default) those that have a neighbour loop at the same level, else all that
are at most `tir.lwp_max_depth` deep. Never the innermost `tir.lwp_min_height` levels, and nothing inside a parallel loop.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ...tir.expr import Call, IntImm
from ...tir.function import PrimFunc
from ...tir.stmt import Evaluate, For, ForKind, SeqStmt, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, sub_statements


def InstrumentProfileIntrinsics() -> Pass:
    """`start_profile_intrinsic(id)` and `end_profile_intrinsic(id)` around what the options choose; ids count loops in order."""
    return Pass("tir.InstrumentProfileIntrinsics", lambda func, ctx: _Instrumenter(func, ctx).run())


class _Numbers:
    """The ids of this process: they go on from function to function, so that a profile tells all loops apart."""

    def __init__(self) -> None:
        self._next = 0

    def restart(self) -> None:
        """Begin at 0."""
        self._next = 0

    def take(self) -> int:
        """The next id."""
        self._next += 1
        return self._next - 1


_numbers = _Numbers()


@dataclass(frozen=True)
class _Loop:
    number: int
    depth: int
    height: int
    has_sibling: bool


class _Instrumenter:
    def __init__(self, func: PrimFunc, ctx: PassContext) -> None:
        self._func = func
        self._max_depth = int(ctx.config.get("tir.lwp_max_depth", 0))
        self._min_height = int(ctx.config.get("tir.lwp_min_height", 1))
        self._siblings = ctx.flag("tir.instr_siblings", True)
        self._with_function = not ctx.flag("tir.lwp_disable_func_prof")
        if ctx.flag("tir.reset_start_id"):
            _numbers.restart()
        self._loops: dict[For, _Loop] = {}
        self._number = _numbers.take()

    def run(self) -> PrimFunc:
        """The function with the calls."""
        self._measure(self._func.body, 0, False)
        body = self._stmt(self._func.body, False)
        return self._func.with_body(_around(self._number, body) if self._with_function else body)

    def _measure(self, stmt: Stmt, depth: int, sibling: bool) -> int:
        """Number the loops of `stmt` in order; the height of the nest."""
        if isinstance(stmt, For):
            number = _numbers.take()
            inner = stmt.body
            height = 1 + self._measure(inner, depth + 1, False)
            self._loops[stmt] = _Loop(number, depth, height, sibling)
            return height
        if isinstance(stmt, SeqStmt):
            several = depth > 0 and sum(isinstance(one, For) for one in stmt.seq) > 1
            return max(self._measure(one, depth, several) for one in stmt.seq)
        return max((self._measure(one, depth, False) for one in sub_statements(stmt)), default=0)

    def _stmt(self, stmt: Stmt, in_parallel: bool) -> Stmt:
        parallel = in_parallel or (isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL)
        result = map_stmt(stmt, lambda inner: self._stmt(inner, parallel))
        if not isinstance(stmt, For) or in_parallel or not self._chosen(self._loops[stmt]):
            return result
        return _around(self._loops[stmt].number, result)

    def _chosen(self, loop: _Loop) -> bool:
        if loop.height <= self._min_height:
            return False
        return loop.has_sibling if self._siblings else loop.depth < self._max_depth


def _around(number: int, body: Stmt) -> Stmt:
    start, end = (Evaluate(Call("handle", f"tir.{name}_profile_intrinsic", (IntImm("int32", number),))) for name in ("start", "end"))
    return SeqStmt((start, *(body.seq if isinstance(body, SeqStmt) else (body,)), end))
