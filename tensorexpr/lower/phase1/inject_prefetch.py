"""Turn scheduled prefetches into calls: one per cache line of the box that a later iteration reads.

    for i:                                  for i:
        attr A "prefetch_scope" 2     ->        for line: prefetch(A[i + 2, line * 16])
            ... A[i, 0:64] ...                  ... A[i, 0:64] ...

The box is that of all reads inside the loop, its variable moved on. It may reach past the end of the buffer: a prefetch
of any address is legal. Where a row isn't known to begin a cache line, counted from the start of its buffer, one more line is fetched.

Pixels that run on over the ends of rows are in several rows, whole ones as far as a box can tell, but next to each other in memory:

    A[i, (48 * t + p) // 80, (48 * t + p) % 80] for p in 0..47        box: A[i, 48 * t // 80 .. , 0:80]        span: 48 elements
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ...arith.analyzer import Analyzer
from ...arith.interval import Interval, extent_bound, relax
from ...target import Target
from ...tir.arithmetic import add, as_int, ceildiv, maximum, minimum, multiply
from ...tir.attrs import PREFETCH_SCOPE
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, Call, IntImm, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute, walk
from ...tir.stmt import AttrStmt, Evaluate, For, ForKind, Prefetch, Stmt, seq
from ..context import PassContext
from ..rebuild import map_stmt, own_expressions, sub_statements, walk_statements
from ..scopes import inside_loop

# Bytes of a line where no target says: those of x86 and of most of ARM; on longer lines some are asked for twice, which costs a slot only.
_LINE_BYTES = 64
# Up to so many calls are written out; more are a loop, whose end is predicted wrongly in each iteration of the loop around it. Tiles of 6
# rows by four vectors read 12 lines for three taps: 36 cycles of multiply-adds, which a loop's end delays by 20.
_UNROLLED = 32
_MOST = 1 << 31


def inject_prefetch(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with prefetches as calls; itself if it has none."""
    if not any(isinstance(s, Prefetch) or (isinstance(s, AttrStmt) and s.attr_key == PREFETCH_SCOPE) for s in walk_statements(func.body)):
        return func
    return func.with_body(_Injector(_line_bytes(func)).stmt(func.body))


def _line_bytes(func: PrimFunc) -> int:
    """Bytes that one prefetch brings: of the function's target, else of the current one; of a common CPU where none is known."""
    target = func.attrs.get("target") or Target.current(allow_none=True)
    return target.machine.line_bytes if isinstance(target, Target) and target.is_built else _LINE_BYTES


class _Injector:
    def __init__(self, line: int) -> None:
        self._line, self._analyzer = line, Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with calls in place of attributes. An attribute outside a loop has no later iteration."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == PREFETCH_SCOPE:
            return self.stmt(stmt.body)
        if isinstance(stmt, Prefetch):
            return _fetch(stmt.buffer, [(r.min, r.extent) for r in stmt.bounds], self._analyzer, self._line)
        if not isinstance(stmt, For):
            return map_stmt(stmt, self.stmt)
        body, wanted = stmt.body, []
        # Attributes stand right inside the loop whose later iterations they are for.
        while isinstance(body, AttrStmt) and body.attr_key == PREFETCH_SCOPE:
            wanted.append(body)
            body = body.body
        with inside_loop(self._analyzer, stmt):
            calls = [self._calls(stmt.loop_var, attr.node, attr.value, body) for attr in wanted]
            result = map_stmt(stmt, lambda s: self.stmt(body))
        assert isinstance(result, For)
        return For(
            result.loop_var, result.min, result.extent, result.kind, seq(*calls, result.body), result.thread_binding, result.annotations
        )

    def _calls(self, loop: Var, buffer: Buffer, offset: PrimExpr, body: Stmt) -> Stmt:
        box = self._box(buffer, body)
        if box is None:
            return seq()
        later: dict[Var, PrimExpr] = {loop: add(loop, offset)}
        boxes = [box, *self._span(buffer, body)]
        moved = [[(substitute(low, later), extent) for low, extent in one] for one in boxes]
        # Box or span, whichever takes fewer calls.
        return min((_fetch(buffer, one, self._analyzer, self._line) for one in moved), key=_calls_made)

    def _box(self, buffer: Buffer, body: Stmt) -> list[tuple[PrimExpr, PrimExpr]] | None:
        """(first index, extent) per dimension of all reads of `buffer` in `body`; None if nothing is known of them."""
        intervals: list[list[Interval | None]] = []
        for load, inside in _loads(body, buffer, {}):
            intervals.append([relax(index, inside, self._analyzer) for index in load.indices])
        box = []
        for dimension, size in enumerate(buffer.shape):
            known = [found for row in intervals if (found := row[dimension]) is not None]
            if not known:
                return None
            low, high = known[0].min, known[0].max
            for other in known[1:]:
                low, high = self._lower(low, other.min), self._upper(high, other.max)
            bound = extent_bound(Interval(low, high), self._analyzer)
            # Without a bound the whole dimension, which a cache may not hold, but which is right.
            box.append((low, size if bound is None else IntImm(low.dtype, bound)))
        return box

    def _span(self, buffer: Buffer, body: Stmt) -> Iterator[list[tuple[PrimExpr, PrimExpr]]]:
        """The reads of `buffer` in `body` as one box along memory, counted from its first element; nothing if it isn't known."""
        low: PrimExpr | None = None
        high: PrimExpr | None = None
        # Counted in the dtype of indices, so that a buffer of 2^31 elements and more has no span.
        size = prod(as_int(extent) or _MOST for extent in buffer.shape)
        for load, inside in _loads(body, buffer, {}) if len(buffer.shape) > 1 and not buffer.strides and size < _MOST else ():
            found = relax(_flat(buffer, load.indices), inside, self._analyzer)
            if found is None:
                return
            low = found.min if low is None else self._lower(low, found.min)
            high = found.max if high is None else self._upper(high, found.max)
        bound = None if low is None or high is None else extent_bound(Interval(low, high), self._analyzer)
        if low is not None and bound is not None:
            begin = IntImm(low.dtype, 0)
            yield [*((begin, IntImm(low.dtype, 1)) for _ in buffer.shape[1:]), (low, IntImm(low.dtype, bound))]

    def _lower(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        return a if self._analyzer.known_less_equal(a, b) else b if self._analyzer.known_less_equal(b, a) else minimum(a, b)

    def _upper(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        return b if self._analyzer.known_less_equal(a, b) else a if self._analyzer.known_less_equal(b, a) else maximum(a, b)


def _loads(stmt: Stmt, buffer: Buffer, inside: dict[Var, Range]) -> Iterator[tuple[BufferLoad, dict[Var, Range]]]:
    """The reads of a buffer, each with the loops between it and the body."""
    for expr in own_expressions(stmt):
        for node in walk(expr):
            if isinstance(node, BufferLoad) and node.buffer is buffer:
                yield node, inside
    if isinstance(stmt, For):
        inside = {**inside, stmt.loop_var: Range.from_min_extent(stmt.min, stmt.extent)}
    for child in sub_statements(stmt):
        yield from _loads(child, buffer, inside)


def _fetch(buffer: Buffer, box: list[tuple[PrimExpr, PrimExpr]], analyzer: Analyzer, line_bytes: int) -> Stmt:
    """Calls for every line of a box. Innermost dimensions that are needed as a whole are one long row."""
    if not box:
        return _loops(buffer, [], [])
    row = len(box) - 1
    while row > 0 and not buffer.strides and all(_is_whole(box[d], buffer.shape[d], analyzer) for d in range(row, len(box))):
        row -= 1
    inner: PrimExpr = IntImm("int32", 1)
    for extent in buffer.shape[row + 1 :]:
        inner = multiply(inner, extent)
    line = max(1, line_bytes // parse_dtype(buffer.dtype).itemsize)
    # At least one element to a line, should an element ever be longer than one.
    steps: list[tuple[int, PrimExpr, int]] = [(d, extent, 1) for d, (_, extent) in enumerate(box[:row])]
    last = len(box) - 1
    total = analyzer.simplify(multiply(box[row][1], inner))
    is_one = isinstance(total, IntImm) and total.value == 1
    is_exact = is_one or _begins_line(buffer, [low if d <= row else IntImm(low.dtype, 0) for d, (low, _) in enumerate(box)], line, analyzer)
    # From an unknown place in a line, n elements touch at most ceil((n - 1) / line) + 1 lines.
    steps.append((last, ceildiv(total, line) if is_exact else add(ceildiv(analyzer.simplify(total - 1), line), 1), line))
    indices = [low if d <= row else IntImm(low.dtype, 0) for d, (low, _) in enumerate(box)]
    return _loops(buffer, indices, [(d, analyzer.simplify(count), step) for d, count, step in steps])


def _begins_line(buffer: Buffer, indices: list[PrimExpr], line: int, analyzer: Analyzer) -> bool:
    """Whether an element is a whole number of lines behind the first one of its buffer, which begins a line where `nd.empty` made it."""
    if buffer.strides or not indices:
        return False
    return analyzer.known_divisible(analyzer.simplify(_flat(buffer, indices)), line)


def _flat(buffer: Buffer, indices: Sequence[PrimExpr]) -> PrimExpr:
    """How many elements an element is behind the first one of its buffer, which has no strides."""
    flat: PrimExpr = IntImm("int32", 0)
    for index, extent in zip(indices, buffer.shape, strict=True):
        flat = add(multiply(flat, extent), index)
    return flat


def _calls_made(stmt: Stmt) -> int:
    """How many prefetches a statement makes; as many as there may be where that isn't constant."""
    calls = 1
    while isinstance(stmt, For):
        calls *= as_int(stmt.extent) or _MOST
        stmt = stmt.body
    return calls


def _is_whole(part: tuple[PrimExpr, PrimExpr], size: PrimExpr, analyzer: Analyzer) -> bool:
    low, extent = part
    return isinstance(low, IntImm) and low.value == 0 and analyzer.known_equal(extent, size)


def _loops(buffer: Buffer, indices: list[PrimExpr], steps: list[tuple[int, PrimExpr, int]]) -> Stmt:
    loops: list[tuple[Var, PrimExpr]] = []
    for dimension, count, step in steps:
        if isinstance(count, IntImm) and count.value == 1:
            continue
        var = Var(f"line{len(loops)}", count.dtype)
        loops.append((var, count))
        indices[dimension] = add(indices[dimension], multiply(var, step))
    # As LLVM's prefetch has them: to read, to stay in all caches, data.
    arguments = (BufferLoad(buffer, tuple(indices)), *(IntImm("int32", flag) for flag in (0, 3, 1)))
    stmt: Stmt = Evaluate(Call("int32", "tir.prefetch", arguments))
    calls = 1
    for var, count in reversed(loops):
        calls = calls * count.value if isinstance(count, IntImm) else _UNROLLED + 1
        stmt = For(var, IntImm(var.dtype, 0), count, ForKind.UNROLLED if calls <= _UNROLLED else ForKind.SERIAL, stmt)
    return stmt
