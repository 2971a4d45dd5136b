"""Buffers marked "rolling_buffer_scope" as windows that are used round and round.

A buffer that one iteration of a loop needs as the box [low, low + size) along one dimension, where `low` moves by less
than `size` per iteration, keeps its elements from iteration to iteration:

    for i:                                        realize B[0:6]
        realize B[i * 4 : i * 4 + 6]              for i:
            for j in 6: B[j + i * 4] = ..   ->        for j in 6:
            .. B[i * 4 + k] ..                            if likely(i < 1 or j >= 2): B[(j + i * 4) % 6] = ..
                                                      .. B[(i * 4 + k) % 6] ..
"""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.arithmetic import any as any_of
from ...tir.arithmetic import binary, compare, const, floormod
from ...tir.buffer import Buffer
from ...tir.expr import GE, LT, BufferLoad, IntImm, PrimExpr, Range, Sub, Var
from ...tir.intrin import likely
from ...tir.rewriting import Node, post_order_rewrite, substitute, variables
from ...tir.stmt import AttrStmt, BufferRealize, BufferStore, For, IfThenElse, Stmt
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements

_SCOPE = "rolling_buffer_scope"


def InjectRollingBuffer() -> Pass:
    """Rolling buffers as windows; the mark goes, also where nothing moves."""
    return Pass("tir.InjectRollingBuffer", lambda func, ctx: func.with_body(_Injector(func.body).stmt(func.body)))


@dataclass(frozen=True)
class _Window:
    """How a buffer rolls: `dimension` of it is a window of `size` elements, moved by `loop`; each visit finds the first
    `overlap` elements from `low` computed, but the first one."""

    loop: For
    dimension: int
    size: IntImm
    low: PrimExpr
    overlap: int


class _Injector:
    def __init__(self, body: Stmt) -> None:
        marked = (stmt for stmt in walk_statements(body) if isinstance(stmt, AttrStmt) and stmt.attr_key == _SCOPE)
        self._marked = {stmt.node for stmt in marked if isinstance(stmt.node, Buffer)}
        self._loops: list[For] = []
        self._windows: dict[Buffer, _Window] = {}
        self._hoisted: dict[Var, list[BufferRealize]] = {}  # by the variable of the loop that they go around
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its marked buffers as windows."""
        match stmt:
            case AttrStmt() if stmt.attr_key == _SCOPE:
                return self.stmt(stmt.body)
            case For():
                self._loops.append(stmt)
                result = map_stmt(stmt, self.stmt, self._expr)
                self._loops.pop()
                for realize in self._hoisted.pop(stmt.loop_var, ()):
                    result = replace(realize, body=result)
                return result
            case BufferRealize() if stmt.buffer in self._marked:
                return self._realize(stmt)
            case BufferStore():
                return self._store(stmt)
        return map_stmt(stmt, self.stmt, self._expr)

    def _realize(self, stmt: BufferRealize) -> Stmt:
        window = self._plan(stmt)
        if window is None:
            return map_stmt(stmt, self.stmt, self._expr)
        self._windows[stmt.buffer] = window
        rolled = Range(IntImm(window.size.dtype, 0), window.size)
        bounds = tuple(rolled if axis == window.dimension else bound for axis, bound in enumerate(stmt.bounds))
        body = self.stmt(stmt.body)
        self._hoisted.setdefault(window.loop.loop_var, []).append(replace(stmt, bounds=bounds))
        return body

    def _plan(self, stmt: BufferRealize) -> _Window | None:
        """The window over the innermost loop that moves the box, if it moves it along one dimension by less than the box."""
        for loop in reversed(self._loops):
            var = loop.loop_var
            moving = [axis for axis, bound in enumerate(stmt.bounds) if var in variables(bound.min) | variables(bound.extent)]
            if not moving:
                continue
            bound = stmt.bounds[moving[0]]
            step = self._analyzer.simplify(binary(Sub, substitute(bound.min, {var: var + 1}), bound.min))
            starts_at_0 = isinstance(loop.min, IntImm) and loop.min.value == 0
            if len(moving) > 1 or not starts_at_0 or not isinstance(step, IntImm) or not isinstance(bound.extent, IntImm):
                return None
            overlap = bound.extent.value - step.value
            known = step.value > 0 and overlap > 0
            return _Window(loop, moving[0], bound.extent, bound.min, overlap) if known else None
        return None

    def _rolled(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        window = self._windows.get(buffer)
        if window is None:
            return indices
        return tuple(floormod(index, window.size) if axis == window.dimension else index for axis, index in enumerate(indices))

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        def rule(node: Node) -> Node | None:
            if isinstance(node, BufferLoad) and node.buffer in self._windows:
                return BufferLoad(node.buffer, self._rolled(node.buffer, node.indices), node.predicate)
            return None

        return post_order_rewrite(expr, rule)

    def _store(self, stmt: BufferStore) -> Stmt:
        window = self._windows.get(stmt.buffer)
        if window is None:
            return map_stmt(stmt, self.stmt, self._expr)
        indices = self._rolled(stmt.buffer, tuple(map(self._expr, stmt.indices)))
        stored = BufferStore(stmt.buffer, self._expr(stmt.value), indices, stmt.predicate)
        position = self._analyzer.simplify(binary(Sub, stmt.indices[window.dimension], window.low))
        var = window.loop.loop_var
        # The first visit fills the whole window, the others what the one before them hasn't.
        first = compare(LT, var, const(1, var.dtype))
        fresh = compare(GE, position, const(window.overlap, position.dtype))
        return IfThenElse(likely(any_of(first, fresh)), stored)
