"""Memory of a warp as registers of its threads, read by shuffles.

    w = T.allocate([64], "float32", "warp")          w = T.allocate([2], "float32", "local")
    w[tx * 2 + j] = A[tx * 2 + j]              ->    w[j] = A[tx * 2 + j]
    B[tx] = w[(tx * 2 + 2) % 64]                     B[tx] = tvm_warp_shuffle(mask, w[0], (tx * 2 + 2) % 64 // 2, 32, 32)

Thread tx holds the elements that it stores: runs of `step` elements, one every `step * width` of them. Matrix units take the
address of a thread's own part, as `ptx_mma` does of `w` at `tx * 8`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...arith import detect_linear_equation
from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...target import Target
from ...tir.arithmetic import as_int, const, floordiv, floormod
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, Call, IterVar, PrimExpr, Ramp, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, variables
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, For, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, own_expressions, pointer_like, pointer_scope, walk_statements

# Where calls have the pointer to what each thread holds of a warp's memory; the offset of the thread's part stands behind it.
_PARTS = {"tir.ptx_mma": (6, 8, 10), "tir.ptx_ldmatrix": (3,), "tir.ptx_wgmma": (2,)}
_PARTS |= {"tir.ptx_wgmma_fence": (1,), "tir.ptx_wgmma_wait_group": (2,)}  # of those that say where the sums are


def LowerWarpMemory() -> Pass:
    """No memory of scope "warp". The function's target says how many threads a warp has.

    Raises:
        LoweringError: when it runs, where no threadIdx.x is bound around the accesses, where the warp isn't a multiple of its threads,
            or where a thread stores to what another one holds.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if not any(isinstance(stmt, Allocate) and pointer_scope(stmt.buffer_var) == "warp" for stmt in walk_statements(func.body)):
            return func
        target = func.attrs.get("target")
        if not isinstance(target, Target):
            raise LoweringError("LowerWarpMemory: the function has no target; bind one with tir.transform.BindTarget")
        return func.with_body(_Lowering(target.thread_warp_size).stmt(func.body))

    return Pass("tir.LowerWarpMemory", run)


@dataclass(frozen=True)
class _Shares:
    """How the elements of a buffer are shared out among threads: `data` is a thread's own part."""

    data: Var
    thread: Var
    width: int
    step: int

    def place(self, index: PrimExpr, analyzer: Analyzer) -> tuple[PrimExpr, PrimExpr]:
        """Where in its thread's part an element is, and the thread."""
        if isinstance(index, Ramp) and as_int(index.stride) == 1:
            (first, thread), (last, other) = (self.place(index.base + skip, analyzer) for skip in (0, index.lanes - 1))
            # A run within one thread's part is a run there.
            if analyzer.can_prove_equal(thread, other) and analyzer.can_prove_equal(first + (index.lanes - 1), last):
                return Ramp(first, index.stride, index.lanes), thread
        run, count = const(self.step, index.dtype), const(self.step * self.width, index.dtype)
        # index is turn * (step * width) + thread * step + rest: runs of `step` elements are dealt out to the threads in turn.
        within, turn = floormod(index, count), floordiv(index, count)
        return analyzer.simplify(turn * run + floormod(within, run)), analyzer.simplify(floordiv(within, run))


class _Lowering:
    def __init__(self, warp_size: int) -> None:
        self._warp_size = warp_size
        self._analyzer = Analyzer()
        self._shares: dict[Var, _Shares] = {}
        self._buffers: dict[Buffer, Buffer] = {}
        self._around: list[AttrStmt] = []

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without memory of warps."""
        match stmt:
            case Allocate() if pointer_scope(stmt.buffer_var) == "warp":
                return self._allocate(stmt)
            case AttrStmt() if stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
                self._around.append(stmt)
                result = self._within(stmt, stmt.node.var, Range.from_min_extent(const(0, stmt.value.dtype), stmt.value))
                self._around.pop()
                return result
            case For():
                return self._within(stmt, stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
            case DeclBuffer():
                return DeclBuffer(self._own(stmt.buffer), self.stmt(stmt.body))
            case BufferStore() if stmt.buffer.data in self._shares:
                return self._store(stmt)
        return map_stmt(stmt, self.stmt, self._expr)

    def _within(self, stmt: Stmt, var: Var, dom: Range) -> Stmt:
        with self._analyzer.scope():
            self._analyzer.bind(var, dom, allow_override=True)
            return map_stmt(stmt, self.stmt, self._expr)

    def _allocate(self, stmt: Allocate) -> Stmt:
        thread, width = self._threads(stmt)
        size = stmt.constant_size()
        step = _step(stmt, thread)
        if size is None or size % (step * width):
            raise LoweringError(f"{stmt.buffer_var.name}: {size} elements of a warp aren't shared evenly by {width} threads, {step} each")
        own = pointer_like(stmt.buffer_var, "local", stmt.dtype)
        self._shares[stmt.buffer_var] = _Shares(own, thread, width, step)
        return replace(stmt, buffer_var=own, extents=(const(size // width, "int32"),), body=self.stmt(stmt.body))

    def _threads(self, stmt: Allocate) -> tuple[Var, int]:
        """threadIdx.x around an allocation or in it, and how many threads there are."""
        for one in (*self._around, *walk_statements(stmt.body)):
            if isinstance(one, AttrStmt) and isinstance(one.node, IterVar) and one.node.thread_tag == "threadIdx.x":
                width = as_int(one.value)
                if width is None or width > self._warp_size or self._warp_size % width:
                    raise LoweringError(f"{stmt.buffer_var.name}: a warp has {self._warp_size} threads; that is no multiple of {one.value}")
                return one.node.var, width
        raise LoweringError(f"{stmt.buffer_var.name} belongs to a warp, but no threadIdx.x is launched around its accesses")

    def _own(self, buffer: Buffer) -> Buffer:
        shares = self._shares.get(buffer.data)
        if shares is None:
            return buffer
        return self._buffers.setdefault(buffer, replace(buffer, data=shares.data))

    def _store(self, stmt: BufferStore) -> Stmt:
        shares = self._shares[stmt.buffer.data]
        local, thread = shares.place(stmt.indices[0], self._analyzer)
        # A shuffle reads from other threads; there is no instruction that writes to them.
        if shares.thread in variables(local) or not self._analyzer.can_prove_equal(thread, shares.thread):
            raise LoweringError(f"{stmt.buffer.name}[{stmt.indices[0]}] is stored to by another thread than the one that holds it")
        return BufferStore(self._own(stmt.buffer), self._expr(stmt.value), (local,), stmt.predicate)

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, Call) and expr.op in _PARTS:
            expr = self._unit(expr)

        def rule(node: Node) -> Node | None:
            if isinstance(node, Var) and node in self._shares:
                raise LoweringError(f"{node.name} belongs to a warp; only its elements can be used, not its address")
            return self._load(node) if isinstance(node, BufferLoad) and node.buffer.data in self._shares else None

        return post_order_rewrite(expr, rule)

    def _unit(self, call: Call) -> Call:
        """A call of matrix units on the threads' own parts."""
        args = list(call.args)
        for at in (at for at in _PARTS[call.op] if at < len(args)):
            shares = self._shares.get(args[at])  # type: ignore[call-overload]
            if shares is None:
                continue
            local, thread = shares.place(args[at + 1], self._analyzer)
            if shares.thread in variables(local) or not self._analyzer.can_prove_equal(thread, shares.thread):
                raise LoweringError(f"{call.op}: element {args[at + 1]} of {args[at]} is held by another thread than the one that calls it")
            args[at : at + 2] = [shares.data, local]
        return replace(call, args=tuple(args))

    def _load(self, load: BufferLoad) -> PrimExpr:
        shares = self._shares[load.buffer.data]
        local, thread = shares.place(load.indices[0], self._analyzer)
        value = BufferLoad(self._own(load.buffer), (local,))
        # One's own element needs no shuffle.
        if self._analyzer.can_prove_equal(thread, shares.thread):
            return value
        if shares.thread in variables(local):
            raise LoweringError(f"{load.buffer.name}[{load.indices[0]}]: each thread would read another place of another thread")
        mask = Call("uint32", "tir.tvm_warp_activemask", ())
        width, warp = const(shares.width, "int32"), const(self._warp_size, "int32")
        return Call(load.dtype, "tir.tvm_warp_shuffle", (mask, value, thread, width, warp))


def _step(stmt: Allocate, thread: Var) -> int:
    """How far apart the elements are that neighbouring threads store."""
    found: set[int | None] = set()
    # Stores alone decide: they say which thread holds which element.
    for one in walk_statements(stmt.body):
        for index in _stored(one, stmt.buffer_var):
            terms = detect_linear_equation(index.base if isinstance(index, Ramp) else index, [thread])
            found.add(as_int(terms[0]) if terms else None)
    step = found.pop() if len(found) == 1 else None
    if not step or step < 1:
        raise LoweringError(f"{stmt.buffer_var.name}: a warp's thread stores to [{thread.name} * step + ..] with one constant step")
    return step


def _stored(stmt: Stmt, memory: Var) -> Iterator[PrimExpr]:
    """Where a statement itself stores to a warp's memory."""
    if isinstance(stmt, BufferStore) and stmt.buffer.data is memory:
        yield stmt.indices[0]
    for call in own_expressions(stmt):
        if isinstance(call, Call) and call.op in _PARTS and call.args[_PARTS[call.op][-1]] is memory:
            yield call.args[_PARTS[call.op][-1] + 1]
