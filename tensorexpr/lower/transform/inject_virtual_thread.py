"""Virtual threads as copies of the statements that they run, with storage of their own.

    virtual_thread v in 2:                      B: 8
        B: 4                                    for i:
        for i: B[i] = A[i + v]      ->              B[i] = A[i]; B[i + 4] = A[i + 1]

Loops stay outside of the copies, so that these are interleaved. What depends on no thread is done once by "vthread"s,
which share it, and once for each "cthread", which don't.
"""

from __future__ import annotations

from dataclasses import replace

from ...arith.index_analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import binary, const
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, Broadcast, BufferLoad, Call, IntImm, IterVar, Mul, PrimExpr, Ramp, Var
from ...tir.rewriting import Node, post_order_rewrite, walk
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from ...tir.stmt_functor import Renaming
from ..passes import Pass
from ..rebuild import Copier, map_stmt, own_expressions, walk_statements

_COPIES = 16  # more threads than this are a loop


def InjectVirtualThread() -> Pass:
    """No virtual threads.

    Raises:
        LoweringError: when it runs, for a number of virtual threads that is no constant.
    """
    return Pass("tir.InjectVirtualThread", lambda func, ctx: func.with_body(_threads(func.body)))


def _threads(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _threads)
    if not isinstance(result, AttrStmt) or not isinstance(result.node, IterVar):
        return result
    virtual = result.node.thread_tag.startswith(("vthread", "cthread"))
    if result.attr_key != "virtual_thread" and not (result.attr_key == "thread_extent" and virtual):
        return result
    if not isinstance(result.value, IntImm):
        raise LoweringError(f"virtual thread {result.node.var.name} runs {result.value} times; the number of virtual threads is a constant")
    shares = result.node.thread_tag != "cthread"
    injector = _Injector(result.node.var, result.value.value, shares, result.body)
    return injector.run(result.body)


class _Injector:
    def __init__(self, var: Var, count: int, shares: bool, body: Stmt) -> None:
        self._var, self._count, self._shares = var, count, shares
        self._touched = _touched(body, var)
        self._strides: dict[Var, PrimExpr] = {}
        self._buffers: dict[Buffer, Buffer] = {}
        self._analyzer = Analyzer()

    def run(self, body: Stmt) -> Stmt:
        """The body for all threads."""
        return self._stmt(body)

    def _stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Allocate() if stmt.buffer_var in self._touched or not self._shares:
                return self._allocate(stmt)
            case DeclBuffer() if stmt.buffer.data in self._strides:
                return DeclBuffer(self._buffer(stmt.buffer), self._stmt(stmt.body))
            case SeqStmt():
                return seq(*map(self._stmt, stmt.seq))
            case For() | IfThenElse() | AttrStmt() | Allocate() | DeclBuffer() if not self._own_depends(stmt):
                return map_stmt(stmt, self._stmt, self._expr)
            case LetStmt():
                return self._copies(self._inner(stmt)) if self._depends(stmt) else map_stmt(stmt, self._stmt, self._expr)
        rewritten = self._inner(stmt)
        return self._copies(rewritten) if self._depends(rewritten) or not self._shares else rewritten

    def _inner(self, stmt: Stmt) -> Stmt:
        """A statement for one thread, with its own storage."""
        if isinstance(stmt, Allocate) and (stmt.buffer_var in self._touched or not self._shares):
            return stmt  # inside of what is copied whole, each copy has storage of its own
        if isinstance(stmt, BufferStore):
            predicate = None if stmt.predicate is None else self._expr(stmt.predicate)
            return BufferStore(self._buffer(stmt.buffer), self._expr(stmt.value), self._place(stmt.buffer, stmt.indices), predicate)
        return map_stmt(stmt, self._inner, self._expr)

    def _own_depends(self, stmt: Stmt) -> bool:
        return any(self._uses(expr) for expr in own_expressions(stmt))

    def _depends(self, stmt: Stmt) -> bool:
        return any(self._uses(expr) for one in walk_statements(stmt) for expr in own_expressions(one))

    def _uses(self, expr: PrimExpr) -> bool:
        return any(node is self._var or (isinstance(node, BufferLoad) and node.buffer.data in self._touched) for node in walk(expr))

    def _copies(self, stmt: Stmt) -> Stmt:
        if self._count > _COPIES:
            loop = Var(self._var.name, self._var.dtype)
            body = Renaming({self._var: loop}, folding=False).apply(stmt)
            return For(loop, const(0, loop.dtype), const(self._count, loop.dtype), ForKind.SERIAL, body)
        numbers = (const(number, self._var.dtype) for number in range(self._count))
        copies = [Renaming({self._var: number}, folding=False).apply(stmt) for number in numbers]
        # A variable has one binding, so all copies but one get names of their own for what is defined inside.
        return seq(copies[0], *(Copier({}).stmt(copy) if _defines(copy) else copy for copy in copies[1:]))

    def _allocate(self, stmt: Allocate) -> Stmt:
        size: PrimExpr = const(1, "int32")
        for extent in stmt.extents:
            size = binary(Mul, size, extent)
        self._strides[stmt.buffer_var] = size
        total = (binary(Mul, size, const(self._count, size.dtype)),)
        return replace(stmt, extents=total, body=self._stmt(stmt.body))

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data not in self._strides:
            return buffer
        if buffer not in self._buffers:
            shape = (*buffer.shape[:-1], binary(Mul, buffer.shape[-1], const(self._count, buffer.shape[-1].dtype)))
            self._buffers[buffer] = replace(buffer, shape=shape)
        return self._buffers[buffer]

    def _place(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        new = tuple(map(self._expr, indices))
        stride = self._strides.get(buffer.data)
        return new if stride is None else (*new[:-1], self._shifted(new[-1], stride))

    def _shifted(self, index: PrimExpr, stride: PrimExpr) -> PrimExpr:
        offset = binary(Mul, self._var, stride)
        if isinstance(index, Ramp):
            return Ramp(self._analyzer.simplify(binary(Add, index.base, offset)), index.stride, index.lanes)
        if parse_dtype(index.dtype).lanes != 1:
            return binary(Add, index, Broadcast(offset, parse_dtype(index.dtype).lanes))
        return self._analyzer.simplify(binary(Add, index, offset))

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        def rule(node: Node) -> Node | None:
            if isinstance(node, BufferLoad) and node.buffer.data in self._strides:
                shifted = self._shifted(node.indices[-1], self._strides[node.buffer.data])
                return BufferLoad(self._buffer(node.buffer), (*node.indices[:-1], shifted), node.predicate)
            if isinstance(node, Call) and node.op == "tir.tvm_access_ptr" and node.args[1] in self._strides:
                kind, data, offset, *rest = node.args
                moved = binary(Add, offset, binary(Mul, self._var, self._strides[data]))  # type: ignore[index]
                return Call(node.dtype, node.op, (kind, data, moved, *rest))
            if isinstance(node, Call) and node.op == "tir.tvm_context_id" and not self._shares:
                return self._var
            return None

        return post_order_rewrite(expr, rule)


def _defines(stmt: Stmt) -> bool:
    return any(isinstance(one, (For, LetStmt, Allocate)) for one in walk_statements(stmt))


def _touched(body: Stmt, var: Var) -> set[Var]:
    """The pointers behind which stands what depends on the thread, directly or by way of others."""
    edges: list[tuple[set[Var], set[Var]]] = []
    for stmt in walk_statements(body):
        if isinstance(stmt, BufferStore):
            edges.append(({stmt.buffer.data}, _read((*stmt.indices, stmt.value))))
        elif isinstance(stmt, LetStmt):
            edges.append(({stmt.var}, _read((stmt.value,))))
        elif isinstance(stmt, For):
            edges.append(({stmt.loop_var}, _read((stmt.min, stmt.extent))))
        elif isinstance(stmt, Evaluate):
            edges.append((_written(stmt.value), _read((stmt.value,))))
    found = {var}
    while True:
        more = {name for writes, reads in edges if reads & found for name in writes} - found
        if not more:
            return found - {var}
        found |= more


def _read(exprs: tuple[PrimExpr, ...]) -> set[Var]:
    nodes = [node for expr in exprs for node in walk(expr)]
    loads = {node.buffer.data for node in nodes if isinstance(node, BufferLoad)}
    return loads | {node for node in nodes if isinstance(node, Var)}


def _written(expr: PrimExpr) -> set[Var]:
    """What a call may write: behind the pointers it is given for writing, or without saying for what."""
    found = set()
    for node in walk(expr):
        if isinstance(node, Call) and node.op == "tir.tvm_access_ptr" and isinstance(node.args[1], Var):
            mask = node.args[4]
            if not isinstance(mask, IntImm) or mask.value & 2:
                found.add(node.args[1])
        elif isinstance(node, Call) and node.op.startswith("tir.call_"):
            found |= {arg for arg in node.args if isinstance(arg, Var) and arg.dtype == "handle"}
    return found
