"""Memory of single threads that outlives a barrier: on a CPU, where threads take turns, it has a copy for each of them.

Element `i` of thread (x, y, z) lies at ((z * Y + y) * X' + x // lanes) * size * lanes + i * lanes + x % lanes: side by side lie
one element's copies of the threads that are lanes of a vector, then a vector's elements, so that a register tile of one vector is
contiguous. With all threads side by side, tiles of 64 elements of 256 threads would lie 1 KiB apart and in four sets of the cache.
"""

from __future__ import annotations

from ...dataclass import dataclass, replace
from ...tir.arithmetic import as_int, binary, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import Add, BufferLoad, Call, IntImm, Mul, PrimExpr, Ramp, Var
from ...tir.pointers import address_of
from ...tir.stmt import BufferStore, Stmt
from ..lanes import lane_binary
from ..rebuild import map_expr, map_stmt


def product(*factors: PrimExpr) -> PrimExpr:
    """The product, folded."""
    total: PrimExpr = const(1, factors[0].dtype)
    for factor in factors:
        total = binary(Mul, total, factor)
    return total


@dataclass(frozen=True)
class Copied:
    """One array with copies: where they are, how many elements one has, how many threads stand side by side, and which copies those are."""

    data: Var
    size: PrimExpr
    lanes: int
    group: PrimExpr  # which vector of threads
    lane: PrimExpr | None  # None: these threads share the copy
    groups: PrimExpr  # how many

    @property
    def total(self) -> PrimExpr:
        """The elements of all copies."""
        return product(self.size, const(self.lanes, self.size.dtype), self.groups)

    def place(self, index: PrimExpr) -> PrimExpr:
        """Where an element of the thread's own copy is."""
        lanes = const(self.lanes, "int32")
        base = product(self.group, self.size, lanes)
        if self.lane is not None:
            base = binary(Add, base, self.lane)
        if isinstance(index, Ramp):
            stride = binary(Mul, index.stride, const(self.lanes, index.stride.dtype))
            return Ramp(binary(Add, product(index.base, lanes), base), stride, index.lanes)
        return lane_binary(Add, lane_binary(Mul, index, lanes), base)


class ThreadMemory:
    """The arrays that have copies, and code that goes to them."""

    def __init__(self) -> None:
        self.arrays: dict[Var, Copied] = {}
        self._buffers: dict[Buffer, Buffer] = {}
        self._known: dict[PrimExpr, PrimExpr] = {}

    def add(self, pointer: Var, copied: Copied) -> None:
        """From now on accesses behind `pointer` go to its copies."""
        self.arrays[pointer] = copied
        self._known.clear()

    def stmt(self, stmt: Stmt) -> Stmt:
        """`stmt` with its accesses redirected."""
        if not self.arrays:
            return stmt
        if isinstance(stmt, BufferStore) and stmt.buffer.data in self.arrays:
            predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
            index = self.arrays[stmt.buffer.data].place(self.expr(stmt.indices[0]))
            return BufferStore(self.buffer(stmt.buffer), self.expr(stmt.value), (index,), predicate)
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """`expr` with its loads redirected."""
        found = self._known.get(expr)
        if found is None:
            if isinstance(expr, Var) and expr in self.arrays:
                expr = self._address(expr)
            elif isinstance(expr, Call) and expr.op == "tir.tvm_access_ptr" and expr.args[1] in self.arrays:
                element, data, offset, *rest = expr.args
                copied = self.arrays[data]  # type: ignore[index]
                return replace(expr, args=(element, copied.data, copied.place(self.expr(offset)), *map(self.expr, rest)))
            found = map_expr(expr, self.expr)
            if isinstance(found, BufferLoad) and found.buffer.data in self.arrays:
                index = self.arrays[found.buffer.data].place(found.indices[0])
                found = BufferLoad(self.buffer(found.buffer), (index,), found.predicate)
            self._known[expr] = found
        return found

    def _address(self, pointer: Var) -> PrimExpr:
        """The address of the thread's own copy."""
        element = pointer.type_annotation.element_type.dtype if pointer.type_annotation is not None else ""
        return address_of(BufferLoad(decl_buffer((1,), element, pointer.name, data=pointer), (const(0, "int32"),)))

    def buffer(self, buffer: Buffer) -> Buffer:
        """The flat buffer of all copies."""
        if buffer not in self._buffers:
            copied = self.arrays[buffer.data]
            self._buffers[buffer] = replace(buffer, data=copied.data, shape=(copied.total,))
        return self._buffers[buffer]


def is_one(expr: PrimExpr) -> bool:
    """Whether an extent is the constant 1."""
    return isinstance(expr, IntImm) and as_int(expr) == 1
