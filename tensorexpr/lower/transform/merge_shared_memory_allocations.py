"""The shared memory of a kernel as one allocation of bytes, in which buffers that are never needed together share a place.

    s = T.allocate([128], "float32", "shared.dyn")      buf_dyn_shmem = T.allocate([640], "uint8", "shared.dyn")
    t = T.allocate([64], "float16", "shared.dyn")   ->  ... s[i] ... t[i + 256] ...

A device has one block of dynamic shared memory, so a kernel with two such allocations needs this. Barriers between what
shares a place are `ThreadSync`'s, which comes later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ...errors import LoweringError
from ...tir.arithmetic import binary, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import Add, BufferLoad, Call, FloorDiv, IntImm, IterVar, Mul, PointerType, PrimExpr, PrimType, Ramp, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Stmt
from ..context import PassContext
from ..lifetimes import Life, Lifetimes
from ..passes import Pass
from ..rebuild import FreeVars, map_expr, map_stmt, pointer_scope

_ACCESS, _EIGHT_ROWS = 16, 1024  # bytes
_NAMES = {"shared.dyn": "buf_dyn_shmem", "shared": "buf_shmem"}


def MergeSharedMemoryAllocations() -> Pass:
    """One allocation of dynamic shared memory per kernel; with `tir.merge_static_smem` one of static shared memory too.

    For flat buffers, before `ThreadSync`. A kernel with a single allocation stays as it is.

    Raises:
        LoweringError: when it runs on a buffer of several dimensions.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        scopes = ["shared.dyn", *(["shared"] if ctx.flag("tir.merge_static_smem") else [])]
        body = func.body
        for scope in scopes:
            body = _kernels(body, scope)
        return func.with_body(body)

    return Pass("tir.MergeSharedMemoryAllocations", run)


MergeDynamicSharedMemoryAllocations = MergeSharedMemoryAllocations  # its name before static shared memory was merged too


def _kernels(stmt: Stmt, scope: str) -> Stmt:
    if not isinstance(stmt, AttrStmt) or stmt.attr_key != "thread_extent" or not isinstance(stmt.node, IterVar):
        return map_stmt(stmt, lambda inner: _kernels(inner, scope))
    found = Lifetimes(FreeVars(), lambda one: pointer_scope(one.buffer_var) == scope, ())
    found.survey(stmt.body)
    if len(found.lives) < 2:
        return stmt
    offsets, size = _placed(found.lives.values(), _swizzled(stmt.body))
    merged = Var(_NAMES[scope], "handle", PointerType(PrimType("uint8"), scope))
    body = _Merger(merged, offsets).stmt(stmt.body)
    return replace(stmt, body=Allocate(merged, "uint8", (size,), IntImm("bool", 1), body))


def _item(dtype: str) -> int:
    """The bytes of an element, a vector's for vectors."""
    kind = parse_dtype(dtype)
    return max(kind.bits * kind.lanes // 8, 1)


def _swizzled(stmt: Stmt) -> set[Var]:
    """What the copy engine writes, which may be swizzled in groups of eight rows."""
    copies = [node for node in walk(stmt) if isinstance(node, Call) and node.op == "tir.ptx_cp_async_bulk_tensor"]
    return {node for copy in copies for node in walk(copy.args[0]) if isinstance(node, Var) and node.dtype == "handle"}


def _placed(lives: Iterable[Life], swizzled: set[Var]) -> tuple[dict[Var, PrimExpr], PrimExpr]:
    """Where each allocation begins, in bytes, and how many there are: the first place that is free as long as it is needed.

    Those of symbolic size follow the others, each at a place of its own.
    """
    offsets: dict[Var, PrimExpr] = {}  # multiples of an element, in which accesses count, and of the largest access that fits
    taken: list[tuple[int, int, Life]] = []
    symbolic: list[Allocate] = []
    for life in sorted(lives, key=lambda life: life.first):
        count, item = life.stmt.constant_size(), _item(life.stmt.dtype)
        if count is None:
            symbolic.append(life.stmt)
            continue
        begin = 0
        # In the order of their places, so that moving past one never runs back into one before it.
        for low, high, other in sorted(taken, key=lambda place: place[0]):
            together = other.last >= life.first and life.last >= other.first
            if together and low < begin + count * item and begin < high:
                multiple = _EIGHT_ROWS if life.stmt.buffer_var in swizzled else _alignment(item, count)
                begin = -(-high // multiple) * multiple
        taken.append((begin, begin + count * item, life))
        offsets[life.stmt.buffer_var] = IntImm("int32", begin)
    size: PrimExpr = IntImm("int32", max((high for _, high, _ in taken), default=0))
    # Larger elements first, which leaves the fewest bytes for alignment.
    for stmt in sorted(symbolic, key=lambda one: -_item(one.dtype)):
        item = _item(stmt.dtype)
        number = _alignment(item, None)
        span, unit = const(item, "int32"), const(number, "int32")
        size = binary(Mul, binary(FloorDiv, binary(Add, size, const(number - 1, "int32")), unit), unit)
        offsets[stmt.buffer_var] = size
        for extent in stmt.extents:
            span = binary(Mul, span, extent)
        size = binary(Add, size, span)
    return offsets, size


def _alignment(item: int, count: int | None) -> int:
    """What the place of an allocation is a multiple of, in bytes: one access takes up to 16, or all that there is."""
    return math.lcm(item, _ACCESS if count is None or count * item >= _ACCESS else item)


class _Merger:
    """Accesses behind the one pointer."""

    def __init__(self, merged: Var, offsets: dict[Var, PrimExpr]) -> None:
        self._merged, self._offsets = merged, offsets
        self._buffers: dict[Buffer, Buffer] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without the merged allocations."""
        match stmt:
            case Allocate() if stmt.buffer_var in self._offsets:
                return self.stmt(stmt.body)
            case DeclBuffer() if stmt.buffer.data in self._offsets:
                return DeclBuffer(self._buffer(stmt.buffer), self.stmt(stmt.body))
            case BufferStore() if stmt.buffer.data in self._offsets:
                indices = self._indices(stmt.buffer, stmt.indices)
                predicate = None if stmt.predicate is None else self._expr(stmt.predicate)
                return BufferStore(self._buffer(stmt.buffer), self._expr(stmt.value), indices, predicate)
        return map_stmt(stmt, self.stmt, self._expr)

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        match expr:
            case BufferLoad() if expr.buffer.data in self._offsets:
                predicate = None if expr.predicate is None else self._expr(expr.predicate)
                return BufferLoad(self._buffer(expr.buffer), self._indices(expr.buffer, expr.indices), predicate)
            case Call(_, "tir.tvm_access_ptr", (element, Var() as data, offset, *rest)) if data in self._offsets:
                item = _item(element.dtype)
                begin = binary(FloorDiv, self._offsets[data], const(item, "int32"))
                return replace(expr, args=(element, self._merged, binary(Add, self._expr(offset), begin), *map(self._expr, rest)))
            case Call(_, "tir.ptx_cp_async" | "tir.ptx_cp_async_bulk" | "tir.ptx_cp_async_bulk_tensor", (Var() as data, offset, *rest)) if (
                data in self._offsets
            ):
                begin = binary(FloorDiv, self._offsets[data], const(_item(expr.dtype), "int32"))
                return replace(expr, args=(self._merged, binary(Add, self._expr(offset), begin), *map(self._expr, rest)))
            case Var() if expr in self._offsets:
                bytes_of = decl_buffer((1,), "uint8", self._merged.name, self._merged)
                return Call("handle", "tir.address_of", (BufferLoad(bytes_of, (self._offsets[expr],)),))
        return map_expr(expr, self._expr)

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(buffer, data=self._merged)
        return self._buffers[buffer]

    def _indices(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        if len(indices) != 1:
            raise LoweringError(f"buffer {buffer.name} has {len(indices)} dimensions; run FlattenBuffer before this pass")
        index = self._expr(indices[0])
        begin = binary(FloorDiv, self._offsets[buffer.data], const(_item(buffer.dtype), "int32"))
        if isinstance(index, Ramp):
            return (Ramp(binary(Add, index.base, begin), index.stride, index.lanes),)
        return (binary(Add, index, begin),)
