"""Copies between global and shared memory that are marked `auto_copy` (by `read_at`, `write_at`), done by all threads of their block.

for ax0, ax1 in T.grid(16, 32):                for f_0 in range(2):
    S[ax0, ax1] = A[i * 16 + ax0, ax1]             for f_1 in T.thread_binding(16, "threadIdx.y"):
                                           ->          for f_2 in T.thread_binding(4, "threadIdx.x"):
                                                           for f_3 in T.vectorized(4): S[f // 32 % 16, f % 32] = ..

Neighbouring threads access neighbouring elements; the annotation `vector_bytes` says how many bytes a thread moves at once. Sums in the
registers of a warp (scope m16n8k8.matrixC) are stored by the threads that hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ...dataclass import dataclass, field, replace
from ...errors import LoweringError
from ...tir.arithmetic import as_int, const
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import variables
from ...tir.scopes import parts
from ...tir.stmt import AttrStmt, BufferStore, For, ForKind, IfThenElse, Stmt, While
from ...tir.thread import HARDWARE_TAGS, bound_tag
from ..context import PassContext
from ..rebuild import map_stmt, walk_statements, with_values
from .blocks import has_blocks

AUTO_COPY, VECTOR_BYTES = "auto_copy", "vector_bytes"
_SUMS, _WARP = "m16n8k8.matrixC", 32
_OF_BLOCK = tuple(tag for tag in reversed(HARDWARE_TAGS) if tag.startswith("threadIdx"))  # z, y, x: x is innermost


def lower_auto_copy(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with marked copies shared out to threads; where a kernel has none, and what is no plain copy, stays.

    Raises:
        LoweringError: for sums of `mma` in a kernel whose blocks haven't 32 threads along x.
    """
    return func.with_body(_Sharing().stmt(func.body)) if has_blocks(func) else func


@dataclass
class _Sharing:
    """One walk, with the threads of the kernel around, and the variables of those that may differ in what they run."""

    threads: Mapping[str, int] | None = None
    lanes: set[Var] = field(default_factory=set)
    apart: bool = False

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its copies shared out."""
        opened, outer = _opened(stmt), replace(self)
        if opened is not None:
            self.threads = _extents(stmt) if self.threads is None else self.threads
            if opened[0] in _OF_BLOCK:
                self.lanes.update(parts(stmt).defines)
        else:
            # Of a copy under `tx < 4` four threads do all: the others aren't there to help.
            self.apart = self.apart or any(variables(expr) & self.lanes for expr in _conditions(stmt))
        result = map_stmt(stmt, self.stmt)
        self.threads, is_reached = outer.threads, self.threads and not self.apart
        self.apart = outer.apart
        if not is_reached or not isinstance(result, Block) or not result.annotations.get(AUTO_COPY):
            return result
        body = _from_registers(result.body, outer.threads or {}) or _shared_out(result, outer.threads or {})
        return result if body is None else replace(result, body=body)


def _conditions(stmt: Stmt) -> Iterator[PrimExpr]:
    """What decides whether, and how often, the statements inside of one run."""
    match stmt:
        case IfThenElse() | While():
            yield stmt.condition
        case BlockRealize():
            yield stmt.predicate
        case For():
            yield from (stmt.min, stmt.extent)


def _opened(stmt: Stmt) -> tuple[str, PrimExpr] | None:
    """The tag and number of the threads that a statement begins."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
        return stmt.node.thread_tag, stmt.value
    tag = bound_tag(stmt)
    return (tag, stmt.extent) if isinstance(stmt, For) and tag in HARDWARE_TAGS and tag is not None else None


def _extents(kernel: Stmt) -> dict[str, int]:
    """The threads of a block by tag, z first; none of them if a number isn't constant."""
    found = {opened[0]: as_int(opened[1]) for stmt in walk_statements(kernel) if (opened := _opened(stmt)) is not None}
    known = {tag: extent for tag in _OF_BLOCK if (extent := found.get(tag)) is not None}
    return known if len(known) == sum(tag in found for tag in _OF_BLOCK) else {}


@dataclass
class _Copy:
    """A nest of loops around one copy of an element."""

    loops: list[For] = field(default_factory=list)
    store: BufferStore | None = None

    @property
    def sizes(self) -> list[int]:
        """The iterations of each loop."""
        return [as_int(loop.extent) or 0 for loop in self.loops]


def _plain_copy(stmt: Stmt, registers: bool = False) -> _Copy | None:
    found = _Copy()
    while isinstance(stmt, For):
        if stmt.kind is not ForKind.SERIAL or as_int(stmt.extent) is None or as_int(stmt.min) != 0:
            return None
        found.loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, BufferStore) or not isinstance(stmt.value, BufferLoad) or not found.loops:
        return None
    kinds = [_kind(stmt.buffer), _kind(stmt.value.buffer)]
    if kinds[0] not in ("global", "shared") or (stmt.value.buffer.scope() != _SUMS if registers else sorted(kinds) != ["global", "shared"]):
        return None
    found.store = stmt
    return found


def _kind(buffer: Buffer) -> str:
    return (buffer.scope() or "global").split(".")[0]


def _from_registers(stmt: Stmt, threads: Mapping[str, int]) -> Stmt | None:
    """Sums of tiles of 16 x 8 to memory, by the threads of the warp that hold them; None for other copies."""
    copy = _plain_copy(stmt, registers=True)
    if copy is None or copy.store is None or len(copy.loops) < 2 or copy.sizes[-2] % 16 or copy.sizes[-1] % 8:
        return None
    if threads.get("threadIdx.x") != _WARP:
        raise LoweringError(
            f"{copy.store.value} of scope {_SUMS} is held by {_WARP} threads along threadIdx.x, which a block has: {dict(threads)}"
        )
    *others, rows, columns = copy.loops
    dtype = rows.loop_var.dtype
    tile, eight, lane, two = (Var(f"{rows.loop_var.name}_{name}", dtype) for name in ("tile", "eight", "lane", "two"))
    across = copy.sizes[-1] // 8
    values: dict[PrimExpr, PrimExpr] = {
        rows.loop_var: tile // across * 16 + eight * 8 + lane // 4,
        columns.loop_var: tile % across * 8 + lane % 4 * 2 + two,
    }

    def loop(var: Var, extent: int, kind: ForKind, body: Stmt, binding: IterVar | None = None) -> Stmt:
        return For(var, const(0, dtype), const(extent, dtype), kind, body, binding)

    body = loop(two, 2, ForKind.VECTORIZED, with_values(copy.store, values))
    body = loop(tile, copy.sizes[-2] // 16 * across, ForKind.SERIAL, loop(eight, 2, ForKind.SERIAL, body))
    body = loop(lane, _WARP, ForKind.THREAD_BINDING, body, IterVar(None, Var("", dtype), IterVar.THREAD_INDEX, "threadIdx.x"))
    for outer in reversed(others):
        body = replace(outer, body=body)
    return body


def _shared_out(block: Block, threads: Mapping[str, int]) -> Stmt | None:
    """The body of a marked block as each thread's part of it; None for what isn't a plain copy."""
    copy = _plain_copy(block.body)
    if copy is None or copy.store is None:
        return None
    sizes = copy.sizes
    lanes = max(int(block.annotations.get(VECTOR_BYTES, 1)) // parse_dtype(copy.store.value.dtype).itemsize, 1)
    # A vector lies in one row.
    if sizes[-1] % lanes:
        lanes = 1
    total = prod(sizes)
    turns = -(-total // (prod(threads.values()) * lanes))
    dtype = copy.loops[0].loop_var.dtype
    name = "_".join([*(loop.loop_var.name for loop in copy.loops), "fused"])
    extents = [turns, *threads.values(), lanes]
    own = [Var(f"{name}_{number}", dtype) for number in range(len(extents))]
    start = _flat(own[:-1], extents[:-1], dtype) * const(lanes, dtype)
    at = start + own[-1]
    values: dict[PrimExpr, PrimExpr] = {loop.loop_var: value for loop, value in zip(copy.loops, _digits(at, sizes), strict=True)}
    body: Stmt = with_values(copy.store, values)
    body = For(own[-1], const(0, dtype), const(lanes, dtype), ForKind.VECTORIZED if lanes > 1 else ForKind.SERIAL, body)
    if total % (prod(threads.values()) * lanes):
        body = IfThenElse(start < const(total, dtype), body, None)
    for var, (tag, extent) in reversed(list(zip(own[1:-1], threads.items(), strict=True))):
        binding = IterVar(None, Var("", dtype), IterVar.THREAD_INDEX, tag)
        body = For(var, const(0, dtype), const(extent, dtype), ForKind.THREAD_BINDING, body, binding)
    return For(own[0], const(0, dtype), const(turns, dtype), ForKind.SERIAL, body)


def _flat(variables: Sequence[Var], extents: Sequence[int], dtype: str) -> PrimExpr:
    """The number that has these digits, the last fastest."""
    result: PrimExpr = variables[0]
    for var, extent in zip(variables[1:], extents[1:], strict=True):
        result = result * const(extent, dtype) + var
    return result


def _digits(number: PrimExpr, sizes: Sequence[int]) -> Iterator[PrimExpr]:
    """The digits of a number, one for each size, the last fastest."""
    for place, size in enumerate(sizes):
        step = const(prod(sizes[place + 1 :]), number.dtype)
        yield number // step % const(size, number.dtype)
