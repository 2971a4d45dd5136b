"""Loops that somebody wrote for a CPU, as threads of a grid.

for r in T.parallel(rows):                   keys = T.allocate([rows, n], "uint32")       one allocation for all threads, around the kernel
    keys = T.allocate([n], "uint32")     ->  for bx, tx in launch_thread(ceildiv(rows, 64), 64):
    f(r, keys)                                   if bx * 64 + tx < rows: f(bx * 64 + tx, keys[bx * 64 + tx, :])
for i in range(n): B[i] = 0                  another kernel, as each iteration stores an element of its own
for i in range(n): B[A[i]] = i               one thread: nothing says that iterations are independent

Parallel loops are independent by their writer's word, others where it shows. Loops of the host around kernels stay.
"""

from __future__ import annotations

from dataclasses import replace

from ..arith import detect_linear_equation
from ..tir.arithmetic import as_int, const, floordiv, floormod
from ..tir.buffer import decl_buffer, pointer_var, product
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, Call, IterVar, PrimExpr, Range, Var
from ..tir.intrin import INTRINSICS
from ..tir.rewriting import Node, post_order_rewrite, substitute, variables, walk
from ..tir.stmt import (
    Allocate,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)
from ..tir.stmt_functor import Renaming
from ..tir.thread import HARDWARE_TAGS

_OF_STORES, _OF_LOOPS, _WARP = 256, 64, 32  # threads of a block, the fewer the more each has to do
_LOCAL_BYTES = 512  # of a thread's own arrays; larger ones are parts of one in global memory
_PLAIN = (ForKind.SERIAL, ForKind.UNROLLED, ForKind.PARALLEL)


def loops_in_threads(stmt: Stmt) -> Stmt:
    """A statement of a host as kernels, and what the host does around them; threads that it launches itself stay."""
    made = _kernels(stmt)
    return _alone(stmt) if made is None else made


def stores_by_threads(stmt: Stmt) -> Stmt | None:
    """The kernel of a store, or of a nest of loops whose iterations each store one element of their own and read none of these; or None."""
    loops, body = _nest(stmt, _PLAIN)
    store = body
    while isinstance(store, DeclBuffer):
        store = store.body
    if not isinstance(store, BufferStore) or store.predicate is not None or (len(store.indices) > 1 and store.buffer.axis_separators):
        return None
    alone = not loops
    if any(_is_call_of_host(node) or not (alone or _is_settled(node, store)) for node in walk(store.value)):
        return None
    if not alone and not _apart(store.buffer.offset_of(store.indices)[0], loops):
        return None
    return _launched(loops, body, _OF_STORES)


def is_launch(stmt: Stmt) -> bool:
    """Whether a statement runs over threads of a grid, by a loop or an attribute."""
    if isinstance(stmt, AttrStmt):
        return stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar) and stmt.node.thread_tag in HARDWARE_TAGS
    return isinstance(stmt, For) and stmt.thread_binding is not None and stmt.thread_binding.thread_tag in HARDWARE_TAGS


def _kernels(stmt: Stmt) -> Stmt | None:
    """The kernels of a statement; None if one thread does all of it."""
    if is_launch(stmt):
        return stmt
    match stmt:
        case SeqStmt(parts):
            return _in_order(parts)
        case Allocate():
            body = _kernels(stmt.body)
            return None if body is None else _shared_by_kernels(replace(stmt, body=body))
        case AttrStmt() | DeclBuffer() | BufferRealize():
            body = _kernels(stmt.body)
            return None if body is None else replace(stmt, body=body)
        case For(kind=ForKind.PARALLEL):
            loops, body = _nest(stmt, (ForKind.PARALLEL,))
            return _launched(loops, body, _OF_LOOPS)
        case For() if _has_kernels(stmt.body) and _is_known(stmt.min) and _is_known(stmt.extent):
            return replace(stmt, kind=ForKind.SERIAL, body=loops_in_threads(stmt.body))
        case IfThenElse() if _has_kernels(stmt) and _is_known(stmt.condition):
            otherwise = None if stmt.else_case is None else loops_in_threads(stmt.else_case)
            return replace(stmt, then_case=loops_in_threads(stmt.then_case), else_case=otherwise)
        case LetStmt() if _is_known(stmt.value):
            body = _kernels(stmt.body)
            return None if body is None else replace(stmt, body=body)
        case For():
            return stores_by_threads(stmt)
        case Evaluate() if as_int(stmt.value) is not None:
            return stmt
    return None


def _in_order(parts: tuple[Stmt, ...]) -> Stmt | None:
    """Kernels one after the other; what one thread does in a row is one kernel."""
    made = [_kernels(part) for part in parts]
    if all(one is None for one in made):
        return None
    found: list[Stmt] = []
    waiting: list[Stmt] = []
    for part, one in zip(parts, made, strict=True):
        if one is None:
            waiting.append(part)
            continue
        if waiting:
            found.append(_alone(seq(*waiting)))
            waiting.clear()
        found.append(one)
    return seq(*found, *([_alone(seq(*waiting))] if waiting else []))


def _has_kernels(stmt: Stmt) -> bool:
    nodes = (node for node in walk(stmt) if isinstance(node, Stmt))
    return any((isinstance(node, For) and node.kind is ForKind.PARALLEL) or is_launch(node) for node in nodes)


def _is_known(expr: PrimExpr) -> bool:
    """Whether the host can compute it: it looks into no array of the device."""
    return not any(isinstance(node, BufferLoad) or _is_call_of_host(node) for node in walk(expr))


def _alone(stmt: Stmt) -> Stmt:
    """A kernel of one thread; there is no launch of fewer than a warp, and lowering would take one of a single thread for none."""
    return _launched([], stmt, _WARP)


def _launched(loops: list[For], body: Stmt, threads: int) -> Stmt:
    """A kernel with a thread for each iteration of a nest of loops."""
    total: PrimExpr = const(1, "int32" if not loops else loops[0].loop_var.dtype)
    for loop in loops:
        total = total * loop.extent
    block, thread = Var("bx", total.dtype), Var("tx", total.dtype)
    number = block * threads + thread
    rest: PrimExpr = number
    values: dict[Var, PrimExpr] = {}
    for loop in reversed(loops):
        length = loop.extent if as_int(loop.extent) != 0 else const(1, loop.extent.dtype)  # where nothing runs nothing is divided
        values[loop.loop_var] = floormod(rest, length) + loop.min
        rest = floordiv(rest, length)
    own = _Own(number, total, set(values) | {block, thread})
    inner = own.thread(substitute(body, values))
    blocks = floordiv(total + (threads - 1), const(threads, total.dtype))
    guarded = IfThenElse(number < total, inner)
    made = _over(block, "blockIdx.x", blocks, _over(thread, "threadIdx.x", const(threads, total.dtype), guarded))
    for storage in own.workspaces:
        made = replace(storage, body=made)
    return made


def _over(var: Var, tag: str, extent: PrimExpr, body: Stmt) -> Stmt:
    axis = IterVar(Range.from_min_extent(const(0, var.dtype), extent), var, IterVar.THREAD_INDEX, tag)
    return AttrStmt(axis, "thread_extent", extent, body)


class _Own:
    """What a thread allocates for itself: in its registers, or a part of what is allocated for all.

    Args:
        number: of the thread.
        total: how many there are.
        inside: variables that only threads know.
    """

    def __init__(self, number: PrimExpr, total: PrimExpr, inside: set[Var]) -> None:
        self._number, self._total, self._inside = number, total, inside
        self.workspaces: list[Allocate] = []

    def thread(self, stmt: Stmt) -> Stmt:
        """The statement as one thread runs it: loops one iteration after the other, memory of its own."""

        def rule(node: Node) -> Node | None:
            if isinstance(node, For) and node.kind in (ForKind.PARALLEL, ForKind.VECTORIZED):
                return replace(node, kind=ForKind.SERIAL)
            return self._placed(node) if isinstance(node, Allocate) else None

        self._inside |= {node.loop_var if isinstance(node, For) else node.var for node in walk(stmt) if isinstance(node, (For, LetStmt))}
        return post_order_rewrite(stmt, rule)

    def _placed(self, stmt: Allocate) -> Stmt:
        size, dtype = stmt.constant_size(), parse_dtype(stmt.dtype)
        if size is not None and size * dtype.itemsize * dtype.lanes <= _LOCAL_BYTES:
            return _in_scope(stmt, "local")
        if any(var in self._inside for extent in stmt.extents for var in variables(extent)):
            return stmt
        old, length = stmt.buffer_var, product(stmt.extents)
        storage = decl_buffer((self._total, length), stmt.dtype, old.name, pointer_var(old.name, stmt.dtype))
        self.workspaces.append(Allocate(storage.data, stmt.dtype, storage.shape, stmt.condition, seq(), stmt.annotations))

        def rule(node: Node) -> Node | None:
            if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is old:
                return replace(node, buffer=storage, indices=(self._number, node.buffer.offset_of(node.indices)[0]))
            return node.body if isinstance(node, DeclBuffer) and node.buffer.data is old else None

        return post_order_rewrite(stmt.body, rule)


def _shared_by_kernels(stmt: Allocate) -> Stmt:
    """Storage around kernels, which is global: what a thread of a CPU kept for itself is handed from one kernel to the next."""
    return stmt if is_launch(stmt.body) else _in_scope(stmt, "global")


def _in_scope(stmt: Allocate, scope: str) -> Stmt:
    old = stmt.buffer_var
    pointer = pointer_var(old.name, stmt.dtype, scope)
    return Renaming({old: pointer}, folding=False).apply(replace(stmt, buffer_var=pointer))


def _nest(stmt: Stmt, kinds: tuple[ForKind, ...]) -> tuple[list[For], Stmt]:
    """The loops of some kinds that stand directly in each other, outer ones first, and what the innermost one runs."""
    loops: list[For] = []
    # Of an extent that depends on a loop around it the number of a thread tells neither.
    while isinstance(stmt, For) and stmt.kind in kinds and not variables(stmt.extent) & {loop.loop_var for loop in loops}:
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _apart(index: PrimExpr, loops: list[For]) -> bool:
    """Whether different iterations store to different places: each loop's step is at least what the loops of smaller steps span."""
    terms = detect_linear_equation(index, [loop.loop_var for loop in loops])
    if not terms:
        return False
    steps = [as_int(term) for term in terms[:-1]]
    if len(loops) == 1:
        return bool(steps[0])
    extents = [as_int(loop.extent) for loop in loops]
    span = 1
    for step, extent in sorted((abs(step or 0), extent or 0) for step, extent in zip(steps, extents, strict=True)):
        if step < span or not extent:
            return False
        span = step * extent
    return True


def _is_settled(node: object, store: BufferStore) -> bool:
    """Whether a load gives the same before and behind the stores of other iterations."""
    return not isinstance(node, BufferLoad) or node.buffer.data is not store.buffer.data


def _is_call_of_host(node: object) -> bool:
    return isinstance(node, Call) and (node.op not in INTRINSICS or not INTRINSICS[node.op].pure)


__all__ = ["is_launch", "loops_in_threads", "stores_by_threads"]
