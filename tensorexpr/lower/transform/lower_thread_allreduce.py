"""`tvm_thread_allreduce` as the steps that threads take: shuffles within warps where the target has them, else shared memory.

A reduction within one warp halves the distance between lanes until lane 0 has the whole, and hands it round. One over
several warps does that in each warp, leaves the parts in shared memory, and lets the first warp reduce those. What
neither fits (odd sizes, threads that are not neighbours, other element types) is a tree over shared memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...target import Target
from ...tir.arithmetic import compare, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import EQ, LT, BufferLoad, Call, CommReducer, IntImm, IterVar, Mul, PrimExpr, Range, Select, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, substitute, walk
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, IfThenElse, LetStmt, Stmt, seq
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, pointer_like

_ALLREDUCE = "tir.tvm_thread_allreduce"
_SHUFFLING = ("cuda", "rocm", "metal")
# Neighbours in a warp are neighbours in x, then y, then z: that is how hardware numbers threads of a block.
_ORDER = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
TRUE, ZERO = IntImm("bool", 1), IntImm("int32", 0)


def LowerThreadAllreduce() -> Pass:
    """Reductions over threads as shuffles or as trees in shared memory. The function's target says which.

    Raises:
        LoweringError: when it runs, for a function without target, a reduction over threads that aren't launched around it
            or whose number is no constant.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        target = func.attrs.get("target")
        if has_allreduce(func) and not isinstance(target, Target):
            raise LoweringError("LowerThreadAllreduce: the function has no target; bind one with tir.transform.BindTarget")
        return lower_thread_allreduce(func, target) if isinstance(target, Target) else func

    return Pass("tir.LowerThreadAllreduce", run)


def has_allreduce(func: PrimFunc) -> bool:
    """Whether a function reduces over threads."""
    return any(isinstance(node, Call) and node.op == _ALLREDUCE for node in walk(func.body))


def lower_thread_allreduce(func: PrimFunc, target: Target) -> PrimFunc:
    """`func` without reductions over threads, in the steps that threads of `target` take; itself if there are none."""
    return func.with_body(_Lowerer(target, _shared_storage(func)).stmt(func.body)) if has_allreduce(func) else func


def _shared_storage(func: PrimFunc) -> set[Var]:
    """Storage of results that holds something else too, at another time: results of other reductions, or what is stored there."""
    found = [data for node in walk(func.body) if isinstance(node, Call) and node.op == _ALLREDUCE for data in _results_of(node)]
    stored = {node.buffer.data for node in walk(func.body) if isinstance(node, BufferStore)}
    return {data for data, count in Counter(found).items() if count > 1 or data in stored}


def _results_of(call: Call) -> list[Var]:
    """The pointers that a reduction stores to: of its arguments the count, values and a condition come first, threads last."""
    count = call.args[0].value if isinstance(call.args[0], IntImm) else 0
    return [load.buffer.data for load in call.args[2 + count : 2 + 2 * count] if isinstance(load, BufferLoad)]


@dataclass(frozen=True)
class Threads:
    """Some threads as one axis: its index, which counts x fastest, and how many there are."""

    index: PrimExpr
    extent: int


@dataclass(frozen=True)
class Result:
    """Where the result of a reduction is found: `buffer` at `index`."""

    buffer: Buffer
    index: PrimExpr


class _Lowerer:
    def __init__(self, target: Target, shared: Set[Var]) -> None:
        self._target = target
        self._shared = shared
        self._warp = target.thread_warp_size
        self._threads: dict[str, tuple[Var, PrimExpr]] = {}
        self._reducers: list[CommReducer] = []
        self._results: dict[Var, Result] = {}  # by the pointer of the buffer that a reduction stored to
        self._analyzer = Analyzer()

    # The walk

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without reductions over threads."""
        match stmt:
            case AttrStmt() if stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
                # Kernels of one function may launch other numbers of threads under the same names.
                outer = dict(self._threads)
                self._threads[stmt.node.thread_tag] = (stmt.node.var, stmt.value)
                self._analyzer.bind(stmt.node.var, Range(IntImm(stmt.value.dtype, 0), stmt.value), allow_override=True)
                result = map_stmt(stmt, self.stmt, self._expr)
                self._threads = outer
                return result
            case AttrStmt() if stmt.attr_key == "reduce_scope" and isinstance(stmt.node, CommReducer):
                self._reducers.append(stmt.node)
                result = map_stmt(stmt, self.stmt, self._expr)
                self._reducers.pop()
                return result
            case Evaluate(value=Call() as call) if call.op == _ALLREDUCE:
                return self._allreduce(call)
            case Allocate():
                return self._allocate(stmt)
            case DeclBuffer():
                body = self.stmt(stmt.body)
                moved = self._results.get(stmt.buffer.data)
                return DeclBuffer(stmt.buffer if moved is None else moved.buffer, body)
            case BufferStore() if stmt.buffer.data in self._results:
                raise LoweringError(f"buffer {stmt.buffer.name} holds the result of a reduction over threads, and is stored to")
        return map_stmt(stmt, self.stmt, self._expr)

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        def rule(node: Node) -> Node | None:
            moved = self._results.get(node.buffer.data) if isinstance(node, BufferLoad) else None
            return None if moved is None else BufferLoad(moved.buffer, (moved.index,))

        return post_order_rewrite(expr, rule) if self._results else expr

    def _allocate(self, stmt: Allocate) -> Stmt:
        body = self.stmt(stmt.body)
        moved = self._results.get(stmt.buffer_var)
        if moved is None:
            return stmt if body is stmt.body else replace(stmt, body=body)
        data = moved.buffer.data
        if moved.buffer.scope() == "shared":  # every thread reads what another one wrote
            body = AttrStmt(data, "volatile_scope", IntImm("int32", 1), body)
        return Allocate(data, moved.buffer.dtype, moved.buffer.shape, stmt.condition, body, stmt.annotations)

    # One reduction

    def _allreduce(self, call: Call) -> Stmt:
        if not self._reducers:
            raise LoweringError("tvm_thread_allreduce stands in no reduce_scope, which would say how values are combined")
        reducer = self._reducers[-1]
        count = len(reducer.result)
        values = [self._expr(value) for value in call.args[1 : 1 + count]]
        condition = call.args[1 + count]
        results = [load.buffer for load in call.args[2 + count : 2 + 2 * count] if isinstance(load, BufferLoad)]
        if not (isinstance(condition, IntImm) and condition.value):
            # A thread with nothing to add takes part with the value that changes nothing: all threads meet at barriers and shuffles.
            values = [Select(condition, value, idle) for value, idle in zip(values, reducer.identity_element, strict=True)]
        axes = call.args[2 + 2 * count :]
        if axes and all(isinstance(axis, IntImm) for axis in axes):  # a single thread has the whole
            return seq(*(BufferStore(buffer, value, (ZERO,)) for buffer, value in zip(results, values, strict=True)))
        over, others, neighbours = self._split(axes)
        step = _Step(reducer, over, others, self._warp, self._analyzer, self._target.kind.name == "metal")
        # Shuffles address lanes, so the threads must be consecutive ones of a warp.
        if neighbours and self._shuffles(values, over, others):
            if over.extent <= self._warp:
                return step.within_warp(values, results)
            body, found = step.over_warps(values)
        else:
            body, found = step.in_shared_memory(values)
        if any(old.data in self._shared for old in results):
            copies = (BufferStore(old, BufferLoad(new.buffer, (new.index,)), (ZERO,)) for old, new in zip(results, found, strict=True))
            return _allocated([new.buffer for new in found], seq(body, *copies))
        # Reads of the old buffer, which come later in the walk, are turned to the new one.
        for old, new in zip(results, found, strict=True):
            self._results[old.data] = new
        return body

    def _split(self, axes: Sequence[PrimExpr]) -> tuple[Threads, Threads, bool]:
        """The threads that are reduced over, the others of the block, and whether the first are neighbours."""
        present = [(tag, *self._threads[tag]) for tag in _ORDER if tag in self._threads]
        wanted = [entry for entry in present if any(entry[1] is axis for axis in axes)]
        reducing = [axis for axis in axes if not isinstance(axis, IntImm)]
        if not wanted or len(wanted) != len(reducing):
            raise LoweringError("a reduction over threads that are not launched around it (axes of one thread take no part)")
        rest = [entry for entry in present if entry not in wanted]
        others, over = self._flat(rest), self._flat(wanted)
        # Axes of a single thread don't come between neighbours.
        first = [entry for entry in present if not (isinstance(entry[2], IntImm) and entry[2].value == 1)]
        real = [entry for entry in wanted if entry in first]
        return over, others, first[: len(real)] == real

    def _flat(self, threads: Sequence[tuple[str, Var, PrimExpr]]) -> Threads:
        index: PrimExpr | None = None
        total = 1
        for _, var, extent in reversed(threads):
            if not isinstance(extent, IntImm):
                raise LoweringError(f"a reduction over threads whose number is {extent}; it has to be a constant")
            index = var if index is None else index * extent + var
            total *= extent.value
        return Threads(self._analyzer.simplify(ZERO if index is None else index), total)

    def _shuffles(self, values: Sequence[PrimExpr], over: Threads, others: Threads) -> bool:
        """Whether the target's shuffles can do it."""
        warp = self._warp
        if self._target.kind.name not in _SHUFFLING or warp <= 1 or over.extent == 1:
            return False
        if not all(_is_shuffled(value.dtype) for value in values):
            return False
        if self._target.kind.name == "rocm":
            return over.extent == warp
        if over.extent <= warp:
            # Groups that don't divide a warp would lie across two of them, unless there is only one group.
            return warp % over.extent == 0 or others.extent == 1
        # The sums of the warps are reduced by one warp in the second step: there are at most as many as it has threads.
        limit = self._target.attrs.get("max_num_threads", self._target.attrs.get("max_threads_per_block", 0))
        return int(limit) <= warp * warp and over.extent % warp == 0


def _is_shuffled(dtype: str) -> bool:
    """True for the types of a register or a pair of them; the instructions know no bfloat16."""
    kind = parse_dtype(dtype)
    return kind.lanes == 1 and kind.bits in (16, 32, 64) and dtype != "bfloat16"


@dataclass(frozen=True)
class _Step:
    """The statements of one reduction."""

    reducer: CommReducer
    over: Threads
    others: Threads
    warp: int
    analyzer: Analyzer
    unmasked: bool

    def _place(self, index: Any, extent: int) -> PrimExpr:
        """Where element `index` of these threads' group is, among `extent` each."""
        return self.analyzer.simplify(self.others.index * extent + index)

    def _combined(self, into: Sequence[BufferLoad], other: Sequence[PrimExpr]) -> Stmt:
        """The combination of both, stored where the first came from. Several values are computed before one is stored."""
        reducer = self.reducer
        mapping = dict(zip((*reducer.lhs, *reducer.rhs), (*into, *other), strict=True))
        values = [substitute(value, mapping) for value in reducer.result]
        if len(values) == 1:
            return BufferStore(into[0].buffer, values[0], into[0].indices)
        # A reducer of several values, as argmax, reads all of the old ones for each new one.
        # argmax's new index depends on the old value, which the store of the new value would have overwritten.
        names = [Var(f"combined{number}", value.dtype) for number, value in enumerate(values)]
        body = seq(*(BufferStore(load.buffer, name, load.indices) for load, name in zip(into, names, strict=True)))
        for name, value in reversed(list(zip(names, values, strict=True))):
            body = LetStmt(name, value, body)
        return body

    def within_warp(self, values: Sequence[PrimExpr], results: Sequence[Buffer]) -> Stmt:
        """All in one warp; every thread gets the result, in the buffers that were asked for."""
        stages, buffers, mask = self._shuffled(results, self.over.extent)
        alone = isinstance(self.others.index, IntImm)
        first = self.others.index if alone else Mul(const(self.over.extent, self.others.index.dtype), self.others.index)
        stores = [BufferStore(buffer, value, (ZERO,)) for buffer, value in zip(results, values, strict=True)]
        rounds = [
            BufferStore(buffer, self._shuffle("tvm_warp_shuffle", mask, BufferLoad(buffer, (ZERO,)), first), (ZERO,)) for buffer in results
        ]
        return _allocated(buffers, seq(*stores, *stages, *rounds))

    def over_warps(self, values: Sequence[PrimExpr]) -> tuple[Stmt, list[Result]]:
        """Each warp by itself, then the first one over their parts."""
        warps, one = self.over.extent // self.warp, const(1, "int32")
        parts = [decl_buffer((1,), value.dtype, f"red_buf{n}", scope="local") for n, value in enumerate(values)]
        own = [decl_buffer((1,), value.dtype, f"red_buf{n}", scope="local") for n, value in enumerate(values)]
        size = (self.others.extent * warps,)
        staging = [decl_buffer(size, value.dtype, "red_buf_staging", scope="shared") for value in values]
        final = [decl_buffer((self.others.extent,), value.dtype, "red_result", scope="shared") for value in values]
        inner, inner_buffers, _ = self._shuffled(own, self.warp)
        outer, outer_buffers, _ = self._shuffled(parts, warps)
        index, place = self.over.index, self._place(self.over.index // (one * self.warp), warps)
        leads = compare(EQ, self.analyzer.simplify(index % (one * self.warp)), ZERO)
        there = (self.analyzer.simplify(self.others.index),)
        body = seq(
            *(BufferStore(buffer, value, (ZERO,)) for buffer, value in zip(own, values, strict=True)),
            *inner,
            IfThenElse(leads, seq(*(BufferStore(s, BufferLoad(b, (ZERO,)), (place,)) for s, b in zip(staging, own, strict=True)))),
            _sync(),
            IfThenElse(compare(LT, index, one * warps), self._taken(parts, staging, warps)),
            *outer,
            IfThenElse(
                compare(EQ, index, ZERO), seq(*(BufferStore(f, BufferLoad(b, (ZERO,)), there) for f, b in zip(final, parts, strict=True)))
            ),
            _sync(),
        )
        buffers = [*parts, *outer_buffers, *own, *inner_buffers, *staging]
        return _allocated(buffers, body), [Result(buffer, there[0]) for buffer in final]

    def _taken(self, parts: Sequence[Buffer], staging: Sequence[Buffer], warps: int) -> Stmt:
        place = self._place(self.over.index, warps)
        return seq(*(BufferStore(part, BufferLoad(stage, (place,)), (ZERO,)) for part, stage in zip(parts, staging, strict=True)))

    def _shuffled(self, buffers: Sequence[Buffer], extent: int) -> tuple[list[Stmt], list[Buffer], PrimExpr]:
        """The halving steps over `extent` lanes, the buffers that they need, and the mask of lanes."""
        received = [decl_buffer((1,), buffer.dtype, f"t{n}", scope="local") for n, buffer in enumerate(buffers)]
        lanes = decl_buffer((1,), "uint32", "mask", scope="local")
        mask: PrimExpr = ZERO if self.unmasked else BufferLoad(lanes, (ZERO,))
        steps: list[Stmt] = [] if self.unmasked else [BufferStore(lanes, Call("uint32", "tir.tvm_warp_activemask", ()), (ZERO,))]
        loads = [BufferLoad(buffer, (ZERO,)) for buffer in buffers]
        offset = 1
        while offset * 2 < extent:
            offset *= 2
        partial = extent & (extent - 1) != 0
        while offset:
            distance = const(offset, "int32")
            steps += [
                BufferStore(t, self._shuffle("tvm_warp_shuffle_down", mask, load, distance), (ZERO,))
                for t, load in zip(received, loads, strict=True)
            ]
            step = self._combined(loads, [BufferLoad(t, (ZERO,)) for t in received])
            if partial:  # the first round reaches past the last lane
                step, partial = IfThenElse(compare(LT, self.over.index + distance, const(extent, "int32")), step), False
            steps.append(step)
            offset //= 2
        return steps, [*([] if self.unmasked else [lanes]), *reversed(received)], mask

    def _shuffle(self, name: str, mask: PrimExpr, value: PrimExpr, lane: PrimExpr) -> PrimExpr:
        width = const(self.warp, "int32")
        return Call(value.dtype, f"tir.{name}", (mask, value, lane, width, width))

    def in_shared_memory(self, values: Sequence[PrimExpr]) -> tuple[Stmt, list[Result]]:
        """A tree over shared memory, in halves, the upper part of an odd size first."""
        extent = self.over.extent
        shape = (self.others.extent * extent,)
        buffers = []
        for number, value in enumerate(values):
            buffer = decl_buffer(shape, value.dtype, f"red_buf{number}", scope="shared")
            buffers.append(replace(buffer, data=pointer_like(buffer.data, "shared", value.dtype)))
        place = self._place(self.over.index, extent)
        stores = [BufferStore(buffer, value, (place,)) for buffer, value in zip(buffers, values, strict=True)]
        steps = list(self._tree(buffers, place))
        first = self._place(ZERO, extent)
        return seq(_sync(), *stores, _sync(), *steps), [Result(buffer, first) for buffer in buffers]

    def _tree(self, buffers: Sequence[Buffer], place: PrimExpr) -> Iterator[Stmt]:
        extent = self.over.extent
        half = 1
        while half < extent:
            half *= 2
        while half > 1:
            half //= 2
            # Of 6 elements, 2 have a partner 4 above them; what is left is 4, which halves evenly.
            active = extent - half if half * 2 > extent else half
            loads = [BufferLoad(buffer, (place,)) for buffer in buffers]
            there = self._place(self.over.index + const(half, "int32"), self.over.extent)
            step = self._combined(loads, [BufferLoad(buffer, (there,)) for buffer in buffers])
            yield IfThenElse(compare(LT, self.over.index, const(active, "int32")), step)
            yield _sync()
            extent = half


def _sync() -> Stmt:
    return Evaluate(Call("int32", "tir.tvm_storage_sync", (StringImm("shared"),)))


def _allocated(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """`body` with storage for `buffers`, the first outermost."""
    for buffer in reversed(buffers):
        body = Allocate(buffer.data, buffer.dtype, buffer.shape, TRUE, DeclBuffer(buffer, body))
    return body
