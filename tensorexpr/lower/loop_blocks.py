"""Loops as blocks: the stores of a schedule of tensors become blocks over the loops around them, so that a trace may go on after it.

    for i, j, k: C[i * 8 + j] = C[i * 8 + j] + A[k]
->  for i, j, k:
        with T.block("C_update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi * 8 + vj] = C[vi * 8 + vj] + A[vk]

An axis is spatial if it takes part in where the block stores; one that doesn't is a reduction's if the block reads what it stores, and
opaque if it doesn't. A guard directly around a store is the block's predicate. The passes on blocks make the loops of it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..arith.block_access import get_block_access_region
from ..tir.arithmetic import as_int
from ..tir.block import Block, BlockRealize
from ..tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Range, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import substitute, variables, walk
from ..tir.stmt import BufferStore, Evaluate, For, IfThenElse, Stmt
from .rebuild import map_stmt

_TRUE = IntImm("bool", 1)


def loops_to_blocks(func: PrimFunc) -> PrimFunc:
    """A function of loops with a block around each store and each call."""
    return func.with_body(_Blocks(func).statement(func.body, {}))


class _Blocks:
    """The walk, with the names that are taken."""

    def __init__(self, func: PrimFunc) -> None:
        self._names = {"root": 1}
        stores = [node for node in walk(func.body) if isinstance(node, BufferStore)]
        reduced = {store.buffer for store in stores if _reads_itself(store)}
        self._init = {id(store) for store in stores if store.buffer in reduced and not _reads_itself(store)}
        self._update = {id(store) for store in stores if _reads_itself(store)}

    def statement(self, stmt: Stmt, loops: Mapping[Var, Range]) -> Stmt:
        """A statement with blocks inside, within loops of constant extents."""
        if isinstance(stmt, For):
            inside = {**loops, stmt.loop_var: Range.from_min_extent(stmt.min, stmt.extent)} if _is_constant(stmt) else loops
            return map_stmt(stmt, lambda inner: self.statement(inner, inside))
        if isinstance(stmt, IfThenElse) and stmt.else_case is None and isinstance(stmt.then_case, BufferStore):
            condition = stmt.condition
            if isinstance(condition, Call) and condition.op == "tir.likely":
                return self._block(stmt.then_case, loops, condition.args[0])
        if isinstance(stmt, BufferStore):
            return self._block(stmt, loops, _TRUE)
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call):
            return self._opaque(stmt)
        return map_stmt(stmt, lambda inner: self.statement(inner, loops))

    def _block(self, store: BufferStore, loops: Mapping[Var, Range], predicate: PrimExpr) -> BlockRealize:
        """A store as a block over those of the loops around it whose variables it uses."""
        name = self._name(store.buffer.name + ("_init" if id(store) in self._init else "_update" if id(store) in self._update else ""))
        used = variables(store)
        axes = [IterVar(dom, Var(f"v_{var.name}", var.dtype), _role(var, store)) for var, dom in loops.items() if var in used]
        values = [var for var in loops if var in used]
        body = substitute(store, dict(zip(values, (axis.var for axis in axes), strict=True)))
        return BlockRealize(tuple(values), predicate, _stated(Block(tuple(axes), (), (), name, body)))

    def _opaque(self, stmt: Stmt) -> BlockRealize:
        """What is no store as a block without axes."""
        return BlockRealize((), _TRUE, _stated(Block((), (), (), self._name("call"), stmt)))

    def _name(self, wanted: str) -> str:
        number = self._names[wanted] = self._names.get(wanted, 0) + 1
        return wanted if number == 1 else self._name(f"{wanted}_{number - 1}")


def _stated(block: Block) -> Block:
    """A block that states what it reads and writes."""
    reads, writes, opaque = get_block_access_region(block)
    return replace(block, reads=(*reads, *opaque), writes=(*writes, *opaque))


def _is_constant(loop: For) -> bool:
    return as_int(loop.min) is not None and as_int(loop.extent) is not None


def _reads_itself(store: BufferStore) -> bool:
    return any(isinstance(node, BufferLoad) and node.buffer is store.buffer for node in walk(store.value))


def _role(var: Var, store: BufferStore) -> int:
    places: Sequence[PrimExpr] = store.indices
    if any(var in variables(index) for index in places):
        return IterVar.DATA_PAR
    # A loop that neither names an element nor adds to one: its iterations depend on their order, as the last store stays.
    return IterVar.COMM_REDUCE if _reads_itself(store) else IterVar.Opaque
