"""Buffers of blocks get storage for the box that is accessed within the block, not for their whole shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...arith import Interval, extent_bound
from ...arith.analyzer import Analyzer
from ...arith.block_access import Touched, on_indices, touched_regions
from ...tir.arithmetic import is_const_int
from ...tir.attrs import EMPTY, FrozenMap
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import variables, walk
from ...tir.scopes import parts
from ...tir.stmt import AttrStmt, BufferRealize, For, Stmt
from ...tir.thread import HARDWARE_TAGS, bound_tag
from ..context import PassContext
from ..rebuild import map_stmt
from ..scopes import inside_loop
from .blocks import has_blocks

TRUE = IntImm("bool", 1)


def compact_buffer_allocation(func: PrimFunc, ctx: PassContext, joins_all: bool = False, is_strict: bool = True) -> PrimFunc:
    """`func` with a BufferRealize of the accessed box for every buffer of a block.

    The box is that of all threads that share the buffer's memory.

    Args:
        joins_all: global memory and virtual threads count for that too; else they run one after the other, each with its own.
        is_strict: a box is never larger than the buffer's shape.
    """
    if not has_blocks(func):
        return func
    return func.with_body(_Compaction(_alignments(func.body), joins_all, is_strict).stmt(func.body))


def _alignments(body: Stmt) -> dict[Buffer, FrozenMap]:
    """For buffers whose strides blocks ask to be aligned, the triples (dimension, factor, offset) as their storage takes them."""
    found: dict[Buffer, list[tuple[int, int, int]]] = {}
    stack = [body]
    while stack:
        stmt = stack.pop()
        # Rows whose columns are permuted meet all banks; ldmatrix counts them without gaps.
        if isinstance(stmt, Block) and not stmt.annotations.get("permuted_layout"):
            for number, *triple in stmt.annotations.get("buffer_dim_align", ()):
                found.setdefault(stmt.writes[number].buffer, []).append((triple[0], triple[1], triple[2]))
        stack += parts(stmt).bodies
    return {buffer: FrozenMap({"storage_align": tuple(aligns)}) for buffer, aligns in found.items()}


class _Compaction:
    """One walk, with the ranges of the loops around."""

    def __init__(self, aligns: Mapping[Buffer, FrozenMap], joins_all: bool, is_strict: bool) -> None:
        self._analyzer = Analyzer()
        self._aligns = aligns
        self._joins_all = joins_all
        self._is_strict = is_strict
        self._threads: list[tuple[Var, Range, str]] = []  # around, with their tags

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with boxes for its buffers."""
        thread = _thread(stmt)
        if thread is not None:
            self._threads.append(thread)
        result = self._within(stmt)
        if thread is not None:
            self._threads.pop()
        return result

    def _within(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                return map_stmt(stmt, self.stmt)
        result = map_stmt(stmt, self.stmt)
        if not isinstance(stmt, BlockRealize) or not isinstance(result, BlockRealize) or not stmt.block.alloc_buffers:
            return result
        boxes = self._boxes(stmt)
        body = result.block.body
        for buffer in reversed(stmt.block.alloc_buffers):
            body = BufferRealize(buffer, boxes[buffer], TRUE, body, self._aligns.get(buffer, EMPTY))
        return replace(result, block=replace(result.block, body=body, alloc_buffers=()))

    def _boxes(self, stmt: BlockRealize) -> dict[Buffer, tuple[Range, ...]]:
        block = stmt.block
        values = dict(zip((axis.var for axis in block.iter_vars), stmt.iter_values, strict=True))
        inside = _variables_inside(block)
        sharing: dict[tuple[Var, ...], list[Buffer]] = {}
        for buffer in block.alloc_buffers:
            threads = tuple(var for var, _, tag in self._threads if self._is_shared(buffer.scope(), tag))
            sharing.setdefault(threads, []).append(buffer)
        touched: dict[Buffer, Touched] = {}
        for shared_by, buffers in sharing.items():
            domain = {var: dom for var, dom, _ in self._threads if var in shared_by}
            touched |= touched_regions(replace(block, alloc_buffers=()), buffers, values, domain)
        return {buffer: self._box(buffer, touched[buffer], inside) for buffer in block.alloc_buffers}

    def _is_shared(self, scope: str, tag: str) -> bool:
        if not self._joins_all and (tag not in HARDWARE_TAGS or scope.split(".")[0] not in ("shared", "warp")):
            return False
        return _is_shared(scope, tag)

    def _box(self, buffer: Buffer, touched: Touched, inside: set[Var]) -> tuple[Range, ...]:
        whole = BufferRegion.full_region(buffer).region
        regions = [region.region for region in (touched.reads, touched.writes) if region is not None]
        # Declared strides and offsets are those of the whole shape, not of a box.
        if buffer.strides or not regions or not is_const_int(buffer.elem_offset, 0):
            return whole
        return tuple(self._side(full, [region[d] for region in regions], inside) for d, full in enumerate(whole))

    def _side(self, full: Range, found: Sequence[Range], inside: set[Var]) -> Range:
        """The hull of what is accessed along one dimension, if it is smaller than all of it."""
        analyzer = on_indices(self._analyzer, *(end for one in found for end in (one.min, one.extent)))
        first = found[0]
        low, high = first.min, first.min + first.extent - 1
        for other in found[1:]:
            last = other.min + other.extent - 1
            # Where neither end is proved to be the outer one, the side of the whole shape is.
            if not analyzer.known_true(low <= other.min):
                low = other.min if analyzer.known_true(other.min <= low) else full.min
            if not analyzer.known_true(last <= high):
                high = last if analyzer.known_true(high <= last) else full.min + full.extent - 1
        low, high = analyzer.simplify(low), analyzer.simplify(high)
        # The storage is made before these variables have values.
        if (variables(low) | variables(high)) & inside or _reads_memory(low) or _reads_memory(high):
            return full
        if not self._is_strict:
            return Range.from_min_extent(low, self._extent(low, high))
        if isinstance(low, IntImm) and isinstance(high, IntImm) and isinstance(full.extent, IntImm):  # guarded accesses may go beyond
            low, high = IntImm(low.dtype, max(low.value, 0)), IntImm(high.dtype, min(high.value, full.extent.value - 1))
        extent = self._extent(low, high)
        # Of a box of known size beside a shape that isn't, the box: it holds what is accessed, whichever is larger.
        smaller = isinstance(extent, IntImm) and not isinstance(full.extent, IntImm)
        return Range.from_min_extent(low, extent) if smaller or analyzer.known_true(extent < full.extent) else full

    def _extent(self, low: PrimExpr, high: PrimExpr) -> PrimExpr:
        bound = extent_bound(Interval(low, high), self._analyzer)
        return self._analyzer.simplify(high - low + 1) if bound is None else IntImm(low.dtype, max(bound, 0))


def _thread(stmt: Stmt) -> tuple[Var, Range, str] | None:
    """The thread axis that a statement binds: its variable, range and tag."""
    tag = bound_tag(stmt)
    if isinstance(stmt, For) and tag is not None:
        return stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent), tag
    if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread") and isinstance(stmt.node, IterVar):
        return stmt.node.var, Range.from_min_extent(IntImm(stmt.value.dtype, 0), stmt.value), stmt.node.thread_tag
    return None


def _is_shared(scope: str, tag: str) -> bool:
    """Whether the threads of an axis see the same memory of a scope."""
    match scope.split(".")[0]:
        case "shared":
            return not tag.startswith("blockIdx")
        case "warp":
            return tag == "threadIdx.x"
        case kind:
            return kind in ("", "global", "texture")


def _variables_inside(stmt: Stmt) -> set[Var]:
    """Everything that is defined within a statement."""
    found: set[Var] = set()
    stack = [stmt]
    while stack:
        own = parts(stack.pop())
        found.update(own.defines)
        stack += own.bodies
    return found


def _reads_memory(expr: PrimExpr) -> bool:
    """True if a value depends on memory, which may change while the storage lives."""
    return any(isinstance(node, BufferLoad) for node in walk(expr))
