"""What a block touches: the regions of the buffers that its body reads and writes, in terms of its axes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ..dataclass import dataclass, field
from ..tir.arithmetic import as_int, const, is_const_int, maximum, minimum
from ..tir.block import Block, BlockRealize
from ..tir.buffer import Buffer, BufferRegion
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, Call, IntImm, Max, Min, PrimExpr, Ramp, Range, Var
from ..tir.pointers import READ, WRITE
from ..tir.rewriting import children, substitute, variables, walk
from ..tir.scopes import parts
from ..tir.stmt import BufferBind, BufferStore, For, LetStmt, Stmt
from .analyzer import Analyzer
from .constraints import with_symbols
from .interval import Interval, relax

Regions = list[BufferRegion]
ACCESS_PTR = "tir.tvm_access_ptr"


def get_block_access_region(block: Block, buffer_var_map: Mapping[Var, Buffer] | None = None) -> list[Regions]:
    """The regions that a block reads, those it writes, and the buffers that it hands to opaque calls, whole.

    A pointer of T.tvm_access_ptr that is for reading alone, or for writing alone, counts as a read or write of the whole buffer.

    Variables of loops inside the block are relaxed over their ranges; axes stay. Buffers that exist within the block only
    are left out, and so are reads of what a block with an init writes.

    Args:
        buffer_var_map: for pointers that calls take, the buffer behind each.
    """
    reads, writes, opaque = _of_block(block, buffer_var_map)
    return [reads, writes, list(map(BufferRegion.full_region, opaque))]


def _of_block(block: Block, buffer_var_map: Mapping[Var, Buffer] | None) -> tuple[Regions, Regions, list[Buffer]]:
    """What a block reads and writes, and what it hands to calls."""
    found = _Accesses(dict(buffer_var_map or {}), {buffer for buffer in block.alloc_buffers})
    if block.init is not None:
        found.visit(block.init, {})
    found.visit(block.body, {})
    writes = found.written.regions()
    reduced = {region.buffer for region in writes} if block.init is not None else set()
    reads = [region for region in found.read.regions() if region.buffer not in reduced]
    return _through_views(block, reads), _through_views(block, writes), list(found.opaque)


@dataclass(frozen=True, slots=True)
class Touched:
    """What a statement does to one buffer: the hulls of its reads and of its writes, None for a side without any."""

    reads: BufferRegion | None
    writes: BufferRegion | None


def touched_regions(
    stmt: Stmt, buffers: Collection[Buffer], values: Mapping[Var, PrimExpr] | None = None, domain: Mapping[Var, Range] | None = None
) -> dict[Buffer, Touched]:
    """The parts of `buffers` that `stmt` touches itself, whatever its blocks state, over all loops inside of it.

    Args:
        values: of the axes of the blocks around `stmt`.
        domain: of variables around `stmt` over which it counts too.
    """
    found = _Accesses({buffer.data: buffer for buffer in buffers}, set(), dict(values or {}))
    found.visit(stmt, domain or {})
    reads, writes = ({region.buffer: region for region in boxes.regions()} for boxes in (found.read, found.written))
    # A view of the same memory may be of another shape: nothing is known of what it touches of the whole.
    views = (buffer for buffer in (*reads, *writes) if buffer not in buffers)
    by_data = {buffer.data: buffer for buffer in buffers}
    for buffer in (*found.opaque, *(by_data[view.data] for view in list(views) if view.data in by_data)):
        reads[buffer] = writes[buffer] = BufferRegion.full_region(buffer)
    return {buffer: Touched(reads.get(buffer), writes.get(buffer)) for buffer in buffers}


def is_self_contained(
    stmt: Stmt, buffer: Buffer, values: Mapping[Var, PrimExpr] | None = None, ranges: Mapping[Var, Range] | None = None
) -> bool:
    """True if one run of a statement reads no more of a buffer than it writes.

    Args:
        values: of the axes of the blocks around `stmt`.
        ranges: of the loops around it.
    """
    if _is_written_by_data(stmt, buffer):
        return False
    touched = touched_regions(stmt, [buffer], values)[buffer]
    # Without a read there is nothing to contain; a read without a write comes from elsewhere.
    if touched.reads is None or touched.writes is None:
        return touched.reads is None
    analyzer = Analyzer(ranges)
    sides = zip(touched.reads.region, touched.writes.region, buffer.shape, strict=True)
    return all(_covers(analyzer, made, _within(read, extent)) for read, made, extent in sides)


def _is_written_by_data(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether what is in memory decides where a statement accesses a buffer, and not the same all the time.

    B[i[0]] may be two places if i[0] is stored to, and of B[i[k]] over k it isn't known which elements are written.
    """
    inner: set[Var] = set()
    indices: list[tuple[bool, PrimExpr]] = []
    for node in walk(stmt):
        if isinstance(node, For):
            inner.add(node.loop_var)
        elif isinstance(node, Block):
            inner.update(axis.var for axis in node.iter_vars)
        elif isinstance(node, (BufferLoad, BufferStore)) and node.buffer is buffer:
            indices += [
                (isinstance(node, BufferStore), index) for index in node.indices if any(isinstance(n, BufferLoad) for n in walk(index))
            ]
    return any(_changed(index, stmt) or (stored and variables(index) & inner) for stored, index in indices)


def _within(read: Range, extent: PrimExpr) -> Range:
    """What is read of a dimension: a condition keeps a read that seems to begin below it, or to go beyond its constant end, inside."""
    ends = as_int(read.min), as_int(read.extent), as_int(extent)
    if None in ends:
        return read
    low, count, size = (end or 0 for end in ends)
    first, last, dtype = max(low, 0), min(low + count, size), read.min.dtype
    if (first, last) == (low, low + count):
        return read
    return Range.from_min_extent(const(first, dtype), const(max(last - first, 0), dtype))


def _covers(analyzer: Analyzer, outer: Range, inner: Range) -> bool:
    if outer.min is inner.min and outer.extent is inner.extent:
        return True
    known = on_indices(analyzer, outer.min, outer.extent, inner.min, inner.extent).known_true
    return known(outer.min <= inner.min) and known(inner.min + inner.extent <= outer.min + outer.extent)


def _changed(value: PrimExpr, body: Stmt) -> bool:
    """Whether a statement may change what a value is read from."""
    read = {node.buffer.data for node in walk(value) if isinstance(node, BufferLoad)}
    stored = {node.buffer.data for node in walk(body) if isinstance(node, BufferStore)}
    # A call may write through any pointer.
    return bool(read & stored) or any(isinstance(node, Call) for node in (*walk(value), *walk(body)))


def on_indices(analyzer: Analyzer, *exprs: PrimExpr) -> Analyzer:
    """An analyzer that knows the same, and that arithmetic on the variables of `exprs` does not overflow, since they are indices."""
    found = {var for expr in exprs for var in variables(expr)}
    if found <= analyzer.facts.symbols:
        return analyzer
    result = Analyzer()
    result.facts = with_symbols(analyzer.facts, found)
    return result


def get_block_read_write_region(block: Block, buffer_var_map: Mapping[Var, Buffer] | None = None) -> list[Regions]:
    """The regions that a block reads and those it writes; what opaque calls get counts as both."""
    found = _of_block(block, buffer_var_map)
    handed = found[2]
    return [
        [*(region for region in regions if region.buffer not in handed), *map(BufferRegion.full_region, handed)] for regions in found[:2]
    ]


def _through_views(block: Block, regions: Regions) -> Regions:
    """A view of a box counts as the box."""
    views = {match.buffer: match.source for match in block.match_buffers}
    return [views.get(region.buffer, region) for region in regions]


@dataclass(eq=False)
class _Boxes:
    """For each buffer the hull of what was touched so far, in order of first touch. None is a side without bounds."""

    analyzer: Analyzer
    boxes: dict[Buffer, list[Interval | None]] = field(default_factory=dict)

    def add(self, buffer: Buffer, box: list[Interval | None]) -> None:
        """Widen the hull of a buffer by a box."""
        old = self.boxes.get(buffer)
        self.boxes[buffer] = box if old is None else [self._hull(a, b) for a, b in zip(old, box, strict=True)]

    def _hull(self, a: Interval | None, b: Interval | None) -> Interval | None:
        if a is None or b is None:
            return None
        if a.min is b.min and a.max is b.max:
            return a
        simplify = on_indices(self.analyzer, a.min, a.max, b.min, b.max).simplify
        return Interval(simplify(minimum(a.min, b.min)), simplify(maximum(a.max, b.max)))

    def regions(self) -> Regions:
        """The hulls as regions."""
        return [
            BufferRegion(buffer, tuple(self._range(buffer, d, side) for d, side in enumerate(box))) for buffer, box in self.boxes.items()
        ]

    def _range(self, buffer: Buffer, dimension: int, side: Interval | None) -> Range:
        if side is None:
            extent = buffer.shape[dimension]
            return Range.from_min_extent(IntImm(extent.dtype, 0), extent)
        if side.min is side.max:
            return Range.from_min_extent(side.min, IntImm(side.min.dtype, 1))
        extent = on_indices(self.analyzer, side.min, side.max).simplify(side.max - side.min + 1)
        # Of a hull of unrelated ends nothing gets simpler; scripts show it in this order.
        return Range.from_min_extent(side.min, side.max + 1 - side.min if any(isinstance(n, (Min, Max)) for n in walk(extent)) else extent)


class _Accesses:
    """One walk over a block's statements, with the loops around each access."""

    def __init__(self, buffers: dict[Var, Buffer], own: set[Buffer], values: dict[Var, PrimExpr] | None = None) -> None:
        self._values = values  # of axes, where blocks are looked into; None where their word is taken
        self._analyzer = Analyzer()
        self._buffers = buffers
        self._own = {buffer.data for buffer in own}
        self.read, self.written = _Boxes(self._analyzer), _Boxes(self._analyzer)
        self.opaque: dict[Buffer, None] = {}  # in order of first use

    def visit(self, stmt: Stmt, domain: Mapping[Var, Range]) -> None:
        """Note all accesses of a statement."""
        if isinstance(stmt, BlockRealize):
            self._nested(stmt, domain) if self._values is None else self._through(stmt, domain, self._values)
            return
        own = parts(stmt)
        self._own.update(own.defines)
        if isinstance(stmt, BufferStore):
            self._touch(self.written, stmt.buffer, stmt.indices, domain)
        elif isinstance(stmt, BufferBind):
            self._view(stmt.source, domain)
        for expr in _evaluated(stmt, own.exprs):
            self._expr(expr, domain)
        if isinstance(stmt, For):
            domain = {**domain, stmt.loop_var: Range.from_min_extent(stmt.min, stmt.extent)}
        elif isinstance(stmt, LetStmt) and parse_dtype(stmt.var.dtype).is_int:
            # Where blocks are looked into, boxes of several times are compared: what memory held at one says nothing of another.
            known = _is_index(stmt.value) or (self._values is None and not _changed(stmt.value, stmt.body))
            body = substitute(stmt.body, {stmt.var: stmt.value}) if known else stmt.body
            self.visit(body, domain)
            return
        for body in own.bodies:
            self.visit(body, domain)

    def _nested(self, stmt: BlockRealize, domain: Mapping[Var, Range]) -> None:
        """An inner block touches what it states, at the values that its axes take."""
        block = stmt.block
        values = {axis.var: value for axis, value in stmt.bindings()}
        for expr in (*stmt.iter_values, stmt.predicate):
            self._expr(expr, domain)
        for boxes, regions in ((self.read, block.reads), (self.written, block.writes)):
            for region in regions:
                if region.buffer.data not in self._own:
                    box = [self._side(r, values, domain) for r in region.region]
                    boxes.add(region.buffer, box)

    def _through(self, stmt: BlockRealize, domain: Mapping[Var, Range], known: dict[Var, PrimExpr]) -> None:
        """The accesses of an inner block itself, and the boxes that its views stand for."""
        block = stmt.block
        for expr in (*stmt.iter_values, stmt.predicate):
            self._expr(expr, domain)
        for axis, value in stmt.bindings():
            known[axis.var] = substitute(value, known)
        for match in block.match_buffers:
            self._view(match.source, domain)
        for inner in (block.init, block.body):
            if inner is not None:
                self.visit(inner, domain)

    def _view(self, source: BufferRegion, domain: Mapping[Var, Range]) -> None:
        """A box that something else stands for is read and written."""
        box = [self._side(r, self._values or {}, domain) for r in source.region]
        for boxes in (self.read, self.written):
            boxes.add(source.buffer, box)

    def _side(self, r: Range, values: Mapping[Var, PrimExpr], domain: Mapping[Var, Range]) -> Interval | None:
        low = relax(substitute(r.min, values), domain, self._analyzer)
        if is_const_int(r.extent, 1):
            return low
        high = relax(substitute(r.min + r.extent - 1, values), domain, self._analyzer)
        return None if low is None or high is None else Interval(low.min, high.max)

    def _expr(self, expr: PrimExpr, domain: Mapping[Var, Range]) -> None:
        """Note the loads in an expression, outer ones first."""
        # Expressions share nodes: without this a DAG would be walked as its tree, which is exponential.
        seen: set[PrimExpr] = set()
        stack = [expr]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, BufferLoad):
                self._touch(self.read, node.buffer, node.indices, domain)
            elif isinstance(node, Var) and node in self._buffers:
                self._hand_over(self._buffers[node])
            elif isinstance(node, Call):
                self._pointers(node)
                # The mask has said what is done to the buffer; as an operand it would count as read and written.
                if node.op == ACCESS_PTR:
                    stack.extend(arg for arg in reversed(node.args) if not (isinstance(arg, Var) and arg in self._buffers))
                    continue
            stack.extend(child for child in reversed(children(node)) if isinstance(child, PrimExpr))  # a stack turns them round

    def _pointers(self, call: Call) -> None:
        mask = as_int(call.args[-1]) if call.op == ACCESS_PTR else None
        for arg in call.args:
            if call.op == ACCESS_PTR and isinstance(arg, Var) and arg in self._buffers:
                self._point_into(self._buffers[arg], READ | WRITE if mask is None else mask)
            elif isinstance(arg, BufferLoad) and call.op == "tir.address_of" and arg.buffer.data not in self._own:
                self._hand_over(arg.buffer)

    def _hand_over(self, buffer: Buffer) -> None:
        """Note that a call may read and write a buffer anywhere."""
        self.opaque[buffer] = None

    def _point_into(self, buffer: Buffer, mask: int) -> None:
        """Note a pointer that says what is done through it: reads or writes anywhere are no more than that."""
        if mask & READ and mask & WRITE:
            self._hand_over(buffer)
            return
        for boxes, bit in ((self.read, READ), (self.written, WRITE)):
            if mask & bit and buffer.data not in self._own:
                boxes.add(buffer, [None] * buffer.ndim)

    def _touch(self, boxes: _Boxes, buffer: Buffer, indices: tuple[PrimExpr, ...], domain: Mapping[Var, Range]) -> None:
        if buffer.data not in self._own:
            boxes.add(buffer, [self._index(index, domain) for index in indices])

    def _index(self, index: PrimExpr, domain: Mapping[Var, Range]) -> Interval | None:
        if self._values:
            index = substitute(index, self._values)
        # A stride may be negative, so either end may be the lower one.
        if isinstance(index, Ramp):
            ends = [relax(end, domain, self._analyzer) for end in (index.base, index.base + index.stride * (index.lanes - 1))]
            first, last = ends
            if first is None or last is None:
                return None
            hull = (minimum(first.min, last.min), maximum(first.max, last.max))
            return Interval(*map(on_indices(self._analyzer, *hull).simplify, hull))
        if _through_floats(index):
            low, high = self._clamped(index, domain)
            return None if low is None or high is None else Interval(low, high)
        if not domain or isinstance(index, IntImm):
            return Interval(index, index)
        if isinstance(index, Var):  # most indices are, and need no algebra
            dom = domain.get(index)
            if dom is None:
                return Interval(index, index)
            if isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm):
                return Interval(dom.min, IntImm(index.dtype, dom.min.value + dom.extent.value - 1))
        return relax(index, domain, self._analyzer)

    def _clamped(self, index: PrimExpr, domain: Mapping[Var, Range]) -> tuple[PrimExpr | None, PrimExpr | None]:
        """The least and the largest value of an index that floats are rounded to, as far as minima and maxima say; None is no bound."""
        if not _through_floats(index):
            found = self._index(index, domain)
            return (None, None) if found is None else (found.min, found.max)
        if not isinstance(index, (Min, Max)):
            return None, None
        (low, high), (other_low, other_high) = (self._clamped(part, domain) for part in (index.a, index.b))
        if isinstance(index, Min):  # any bound from above holds, of those from below the lesser one
            return _both(minimum, low, other_low), _either(minimum, high, other_high)
        return _either(maximum, low, other_low), _both(maximum, high, other_high)


def _both(of: Callable[[PrimExpr, PrimExpr], PrimExpr], a: PrimExpr | None, b: PrimExpr | None) -> PrimExpr | None:
    return None if a is None or b is None else of(a, b)


def _either(of: Callable[[PrimExpr, PrimExpr], PrimExpr], a: PrimExpr | None, b: PrimExpr | None) -> PrimExpr | None:
    return b if a is None else a if b is None else of(a, b)


def _through_floats(index: PrimExpr) -> bool:
    """True if a function of floats, such as rounding, decides an index: nobody proves anything about where that points."""
    if isinstance(index, (Var, IntImm)):  # most are
        return False
    return any(isinstance(node, Call) and parse_dtype(node.dtype).is_float for node in walk(index))


def _evaluated(stmt: Stmt, exprs: tuple[PrimExpr, ...]) -> Iterator[PrimExpr]:
    """The expressions of a statement in the order in which they count as read: a store's value before its indices."""
    if isinstance(stmt, BufferStore):
        yield from (stmt.value, *stmt.indices, *(() if stmt.predicate is None else (stmt.predicate,)))
    else:
        yield from exprs


def _is_index(value: PrimExpr) -> bool:
    """True for integer arithmetic without loads."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (BufferLoad, Call)):
            return False
        stack.extend(child for child in children(node) if isinstance(child, PrimExpr))
    return True
