"""Mark the loops of register tiles for expansion, whether or not anyone asked for it.

Accumulators live in registers only if their indices are constants, so the loops over a tile have to be expanded. That
pays when the tile and what it is updated from fit the register file: MR*NV accumulators, NV vectors of one operand and
one broadcast of the other. Two forms are recognised:

- the loops inside the innermost reduction loop around `C[i] = f(C[i], ...)`, and the loops that initialise the same tile;
- all loops that index a small local buffer, wherever they are.

The reduction loop around a tile of more than half the registers is marked to stay a loop (see `unroll_loop`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...arith import linear_form
from ...dataclass import dataclass, replace
from ...tir.dtype import parse_dtype
from ...tir.expr import IntImm, PrimExpr, Ramp, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore, For, ForKind, IfThenElse, SeqStmt, Stmt
from ..context import PassContext
from ..pragmas import KEEP_LOOP
from ..rebuild import FreeVars, loads_in, map_stmt, own_expressions, sub_statements
from ..register_file import RegisterFile

# Statements that the expansion of one local buffer's loops may make: tiles are smaller, and code size costs compile time.
_LOCAL_STATEMENTS = 1024


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or store: where it is, the statement it belongs to and the loops around it, outermost first."""

    buffer_data: Var
    dtype: str
    index: PrimExpr
    stmt: Stmt
    loops: tuple[For, ...]
    is_store: bool


def unroll_register_tile(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with the loops of register tiles of kind UNROLLED; itself if there are none."""
    accesses = list(_accesses(func.body, ()))
    tiles = _Tiles(RegisterFile.of(func), accesses)
    tiles.find_locals(func.body)
    tiles.find_accumulators()
    tiles.find_inits(func.body)
    return func.with_body(tiles.marked(func.body))


def _accesses(root: Stmt, loops: tuple[For, ...]) -> Iterator[_Access]:
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(root, loops)]
    while stack:
        stmt, around = stack.pop()
        for load in loads_in(own_expressions(stmt)):
            yield _Access(load.buffer.data, load.dtype, load.indices[0], stmt, around, False)
        if isinstance(stmt, BufferStore):
            yield _Access(stmt.buffer.data, stmt.value.dtype, stmt.indices[0], stmt, around, True)
        inner = (*around, stmt) if isinstance(stmt, For) else around
        stack.extend((child, inner) for child in reversed(list(sub_statements(stmt))))


def _extents(loops: Iterable[For]) -> int | None:
    """The product of constant extents of loops that could be expanded."""
    total = 1
    for loop in loops:
        if not isinstance(loop.extent, IntImm) or loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            return None
        total *= max(loop.extent.value, 0)
    return total


class _Tiles:
    def __init__(self, registers: RegisterFile, accesses: list[_Access]) -> None:
        self._registers = registers
        self._free = FreeVars()
        self._unrolled: set[Var] = set()
        self._kept: set[Var] = set()
        self._accumulated: dict[Var, int] = {}
        self._by_data: dict[Var, list[_Access]] = {}
        self._by_stmt: dict[int, list[_Access]] = {}
        for access in accesses:
            self._by_data.setdefault(access.buffer_data, []).append(access)
            self._by_stmt.setdefault(id(access.stmt), []).append(access)

    def find_locals(self, root: Stmt) -> None:
        """Small allocations whose every index is a constant combination of variables of constant loops inside."""
        stack: list[tuple[Stmt, int]] = [(root, 0)]
        while stack:
            stmt, depth = stack.pop()
            if isinstance(stmt, Allocate):
                self._local(stmt, depth)
            inner = depth + isinstance(stmt, For)
            stack.extend((child, inner) for child in sub_statements(stmt))

    def _local(self, stmt: Allocate, depth: int) -> None:
        accesses = self._by_data.get(stmt.buffer_var, [])
        dtypes = {access.dtype for access in accesses}
        size = stmt.constant_size()
        # With accesses of two widths, X[0:8] and X[3], one register would be a part of another.
        if size is None or len(dtypes) != 1 or stmt.buffer_var.type_annotation is None:
            return
        dtype = dtypes.pop()
        values = -(-size * parse_dtype(stmt.dtype).lanes // parse_dtype(dtype).lanes)
        # What doesn't fit in registers stays in memory, where a loop over it is as good as its expansion and much shorter.
        if values * self._registers.needed(dtype) > self._registers.count:
            return
        chosen: set[Var] = set()
        for access in accesses:
            loops = self._index_loops(access, access.loops[depth:])
            # Threads share the allocation, and a register has one owner.
            if loops is None or any(loop.kind is ForKind.PARALLEL for loop in access.loops[depth:]):
                return
            chosen.update(loop.loop_var for loop in loops)
        # By statement: one that accesses the buffer twice is expanded once.
        statements = {id(a.stmt): _extents(loop for loop in a.loops[depth:] if loop.loop_var in chosen) or 1 for a in accesses}
        if sum(statements.values()) <= _LOCAL_STATEMENTS:
            self._unrolled |= chosen

    def _index_loops(self, access: _Access, inside: tuple[For, ...]) -> list[For] | None:
        """The loops whose variables make up an index, if that is all there is to it and they are constant."""
        base = access.index.base if isinstance(access.index, Ramp) else access.index
        if parse_dtype(base.dtype).lanes > 1:
            return None
        used = self._free(base)
        loops = [loop for loop in inside if loop.loop_var in used]
        # A variable that is bound elsewhere, by a let or outside of the allocation, would stay in the index.
        return loops if len(loops) == len(used) and _extents(loops) is not None else None

    def find_accumulators(self) -> None:
        """Tiles of accumulators by their innermost reduction loop."""
        anchored: dict[Var, tuple[For, list[tuple[BufferStore, tuple[For, ...]]]]] = {}
        for group in self._by_stmt.values():
            store = next((a for a in group if a.is_store), None)
            if store is None or not isinstance(store.stmt, BufferStore) or not self._is_update(store, group):
                continue
            anchor = self._anchor(store)
            if anchor is not None:
                depth = store.loops.index(anchor)
                anchored.setdefault(anchor.loop_var, (anchor, []))[1].append((store.stmt, store.loops[depth + 1 :]))
        for anchor, stores in anchored.values():
            self._tile(anchor, stores)

    def _is_update(self, store: _Access, group: list[_Access]) -> bool:
        return any(not a.is_store and a.buffer_data is store.buffer_data and a.index is store.index for a in group)

    def _anchor(self, store: _Access) -> For | None:
        """The innermost loop that the element doesn't depend on and that stays a loop."""
        used = self._free(store.index)
        for loop in reversed(store.loops):
            # Each iteration of a parallel loop may be another thread, so no register outlives it.
            if loop.kind is ForKind.PARALLEL:
                return None
            if loop.loop_var not in used and loop.kind is ForKind.SERIAL and loop.loop_var not in self._unrolled:
                return loop
        return None

    def _tile(self, anchor: For, stores: list[tuple[BufferStore, tuple[For, ...]]]) -> None:
        values = operand_values = 0
        chosen: set[Var] = set()
        for store, loops in stores:
            # A reduction loop that will be expanded inside the anchor updates the same elements again.
            tile = tuple(loop for loop in loops if loop.loop_var in self._free(store.indices[0]))
            extents = _extents(tile)
            if extents is None or _extents(loops) is None or not self._is_affine(store.indices[0], loops):
                return
            values += extents * self._registers.needed(store.value.dtype)
            operand_values += self._operand_registers(store, tile)
            chosen.update(loop.loop_var for loop in loops)
        # One more for the operand that is broadcast: it lives as long as one of its products.
        if values + operand_values + 1 > self._registers.count:
            return
        self._unrolled |= chosen
        if 2 * values > self._registers.count:
            self._kept.add(anchor.loop_var)
        for store, _ in stores:
            data = store.buffer.data
            self._accumulated[data] = max(values, self._accumulated.get(data, 0))

    def _is_affine(self, index: PrimExpr, loops: tuple[For, ...]) -> bool:
        """True if every loop moves the index by a constant per step, or not at all."""
        form = linear_form(index.base if isinstance(index, Ramp) else index)
        inside = {loop.loop_var for loop in loops}
        return all(isinstance(atom, Var) or self._free(atom).isdisjoint(inside) for atom in form.terms)

    def _operand_registers(self, store: BufferStore, loops: tuple[For, ...]) -> int:
        """Registers for the vectors that one step of the reduction loads besides the accumulators."""
        total = 0
        for load in loads_in((store.value,)):
            if load.buffer.data is store.buffer.data or parse_dtype(load.dtype).lanes == 1:
                continue
            used = self._free(load.indices[0])
            total += (_extents(loop for loop in loops if loop.loop_var in used) or 1) * self._registers.needed(load.dtype)
        return total

    def find_inits(self, root: Stmt) -> None:
        """Loop nests beside an accumulating loop that touch nothing of the tile's buffer but the tile."""
        if not self._accumulated:
            return
        stack = [root]
        while stack:
            stmt = stack.pop()
            stack.extend(sub_statements(stmt))
            if isinstance(stmt, SeqStmt):
                for part in stmt.seq:
                    self._beside(part)

    def _beside(self, part: Stmt) -> None:
        """Mark the loops of `part` if it is one nest around one store of a tile, and makes no more values than the tile has."""
        loops: list[For] = []
        while isinstance(part, For) or (isinstance(part, IfThenElse) and part.else_case is None):
            if isinstance(part, For):
                loops.append(part)
            part = part.body if isinstance(part, For) else part.then_case
        if not loops or not isinstance(part, BufferStore):
            return
        limit = self._accumulated.get(part.buffer.data)
        extents = _extents(loops)
        if limit is None or extents is None or not self._is_affine(part.indices[0], tuple(loops)):
            return
        loop_vars = {loop.loop_var for loop in loops}
        # Every loop moves the element: one that doesn't would store it again and again, which is no initialisation.
        if extents * self._registers.needed(part.value.dtype) <= limit and loop_vars <= self._free(part.indices[0]):
            self._unrolled |= loop_vars

    def marked(self, stmt: Stmt) -> Stmt:
        """`stmt` with the marks that were found."""
        result = map_stmt(stmt, self.marked) if self._unrolled or self._kept else stmt
        if isinstance(result, For):
            if result.loop_var in self._unrolled and result.kind is ForKind.SERIAL:
                return replace(result, kind=ForKind.UNROLLED)
            if result.loop_var in self._kept:
                return replace(result, annotations=result.annotations.set(**{KEEP_LOOP: True}))
        return result
