"""Reductions over loops bound to threads: each thread sums its part, the threads combine, one writes the result.

for i in range(128):                              for i in range(128):
    for ko in range(4):                               for k in T.thread_binding(32, "threadIdx.x"):
        for k in T.thread_binding(32, "threadIdx.x"):     in_thread_B[0] = 0.0
            with T.block("B"):                    ->      for ko in range(4):
                B[vi] = B[vi] + A[vi, vk]                     in_thread_B[0] = in_thread_B[0] + A[vi, vk]
                                                          tvm_thread_allreduce(.., in_thread_B[0], .., cross_thread_B[0], k)
                                                          if k == 0: B[vi] = cross_thread_B[0]

`LowerThreadAllreduce` says later how threads combine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from ...errors import ScheduleError
from ...schedule.blocks.nests import nested
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import compare, const, nested_operands
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion, decl_buffer
from ...tir.expr import EQ, And, BufferLoad, Call, IntImm, IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import reinterpret
from ...tir.reduce import CommReducer
from ...tir.reduction_laws import Reduction, recognised
from ...tir.rewriting import Node, post_order_rewrite, substitute, variables
from ...tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, Stmt, seq
from ...tir.thread import bound_tag
from ..context import PassContext
from ..passes import Pass
from ..phase1.blocks import has_blocks
from ..rebuild import map_stmt

TRUE, ZERO = IntImm("bool", 1), IntImm("int32", 0)


def LowerCrossThreadReduction() -> Pass:
    """Reduction blocks whose reducing loops are bound to threads as parts of each thread and `tvm_thread_allreduce`.

    A later block of the kernel that reads such a result outside of these threads is run by the first of them.

    Raises:
        ScheduleError: when it runs, where the reducing loops aren't the innermost ones and alone around the block, where one is bound to
            something else than threadIdx, or where the block's update is no known reduction.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(_Lowering().stmt(func.body)) if has_blocks(func) else func

    return Pass("tir.LowerCrossThreadReduction", run)


class _Lowering:
    def __init__(self) -> None:
        self._path: list[For] = []  # the loops around, those around the blocks around included
        self._new: list[Buffer] = []  # buffers for the innermost block around
        self._threads_of: dict[Buffer, dict[str, PrimExpr]] = {}  # of results: the threads that reduced, and how many there were

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its reductions lowered."""
        if isinstance(stmt, For):
            found = self._reduction(stmt)
            if found is not None:
                return found
            self._path.append(stmt)
            result = map_stmt(stmt, self.stmt)
            self._path.pop()
            return result
        return self._block(stmt) if isinstance(stmt, BlockRealize) else map_stmt(stmt, self.stmt)

    def _block(self, stmt: BlockRealize) -> Stmt:
        if _over_threads(self._path, stmt):  # its loops are not what `_reduction` takes: they hold more than the block
            raise _stranded(stmt)
        # Buffers belong to the innermost block around, which allocates them.
        outer, self._new = self._new, []
        block = cast(Block, map_stmt(stmt.block, self.stmt))
        if self._new:
            block = replace(block, alloc_buffers=(*block.alloc_buffers, *self._new))
        self._new = outer
        return self._in_first_thread(stmt if block is stmt.block else replace(stmt, block=block))

    def _in_first_thread(self, stmt: BlockRealize) -> BlockRealize | For:
        """A block that reads results, in the first of the threads that reduced them if no loop is bound to these."""
        bound = {bound_tag(loop) for loop in self._path}
        missing: dict[str, PrimExpr] = {}
        for region in stmt.block.reads:
            missing.update({tag: n for tag, n in self._threads_of.get(region.buffer, {}).items() if tag not in bound})
        result: BlockRealize | For = stmt
        names = {tag: Var(tag.replace("threadIdx.", "t"), extent.dtype) for tag, extent in missing.items()}
        if missing:
            first = [compare(EQ, var, const(0, var.dtype)) for var in names.values()]
            result = replace(stmt, predicate=_conjunction([stmt.predicate, *first]))
        for tag, var in reversed(names.items()):
            axis = IterVar(None, Var("", var.dtype), IterVar.THREAD_INDEX, tag)
            result = For(var, const(0, var.dtype), missing[tag], ForKind.THREAD_BINDING, result, axis)
        return result

    def _reduction(self, outermost: For) -> Stmt | None:
        """What a loop becomes, if it begins the reducing loops of a block that reduces over threads."""
        loops, inner = [outermost], outermost.body
        while isinstance(inner, For):
            loops.append(inner)
            inner = inner.body
        if not isinstance(inner, BlockRealize) or inner.block.init is None:
            return None
        reducing = _reducing(loops, inner)
        if outermost not in reducing or not _over_threads(loops, inner):
            return None
        # A reducing loop further out would start the threads' sum anew in each of its iterations.
        if _reducing(self._path, inner):
            raise _stranded(inner)
        name = inner.block.name_hint
        for loop in reducing:
            if loop.kind is ForKind.THREAD_BINDING and not (bound_tag(loop) or "").startswith("threadIdx."):
                raise ScheduleError(
                    f"block {name} reduces over loop {loop.loop_var.name}, which is bound to {bound_tag(loop)}; use threadIdx"
                )
        if len(reducing) != len(loops):
            raise ScheduleError(f"block {name} reduces over threads, but its reducing loops aren't the innermost ones; reorder them")
        reduction = recognised(inner.block)
        if isinstance(reduction, str):
            raise ScheduleError(f"block {name} can't be reduced over threads: {reduction}")
        return self._lowered(loops, inner, reduction)

    def _lowered(self, loops: Sequence[For], realize: BlockRealize, reduction: Reduction) -> Stmt:
        threads = [loop for loop in loops if loop.kind is ForKind.THREAD_BINDING]
        serial = [loop for loop in loops if loop.kind is not ForKind.THREAD_BINDING]
        for buffer in reduction.buffers:
            self._threads_of[buffer] = {bound_tag(loop) or "": loop.extent for loop in threads}
        results = self._registers("cross_thread", reduction)
        if serial or realize.predicate is not TRUE:  # a thread without an iteration contributes the neutral value
            parts = self._registers("in_thread", reduction)
            steps = [_start(realize, reduction, parts), nested(serial, _in_thread(realize, reduction, parts))]
            loads = [_element(part) for part in parts.values()]
            block = Block((), _ones(parts.values()), _ones(results.values()), "", _combined(reduction, loads, results, threads))
            across = BlockRealize((), TRUE, block)
        else:
            steps = []
            body = _combined(reduction, reduction.terms, results, threads)
            across = replace(realize, block=replace(realize.block, writes=_ones(results.values()), body=body, init=None))
        across = replace(across, block=replace(across.block, name_hint=f"{realize.block.name_hint}_cross_thread"))
        return nested(threads, seq(*steps, across, _written_back(realize, reduction, results, loops)))

    def _registers(self, prefix: str, reduction: Reduction) -> dict[Buffer, Buffer]:
        """For each buffer that is reduced into one element that a thread has for itself."""
        made = {
            buffer: decl_buffer((1,), buffer.dtype, f"{prefix}_{buffer.name}", strides=(1,), scope="local") for buffer in reduction.buffers
        }
        self._new += made.values()
        return made


def _reducing(loops: Iterable[For], realize: BlockRealize) -> list[For]:
    """The loops over which a block reduces."""
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    found = set().union(*(variables(value) for axis, value in pairs if axis.iter_type == IterVar.COMM_REDUCE))
    return [loop for loop in loops if loop.loop_var in found] if realize.block.init is not None else []


def _over_threads(loops: Iterable[For], realize: BlockRealize) -> bool:
    return any(loop.kind is ForKind.THREAD_BINDING for loop in _reducing(loops, realize))


def _stranded(realize: BlockRealize) -> ScheduleError:
    return ScheduleError(f"block {realize.block.name_hint} reduces over threads, but isn't alone in its reducing loops")


def _element(buffer: Buffer) -> BufferLoad:
    return BufferLoad(buffer, (ZERO,))


def _ones(buffers: Iterable[Buffer]) -> tuple[BufferRegion, ...]:
    return tuple(BufferRegion.from_point(buffer, (ZERO,)) for buffer in buffers)


def _conjunction(conditions: Sequence[PrimExpr]) -> PrimExpr:
    left = [condition for condition in conditions if condition is not TRUE]
    return all_of(*left) if left else TRUE


def _start(realize: BlockRealize, reduction: Reduction, parts: Mapping[Buffer, Buffer]) -> Stmt:
    """Each thread's part at the neutral value."""
    values = {axis.var: value for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)}
    initial = dict(zip(reduction.buffers, reduction.initial, strict=True))
    stores = seq(*(BufferStore(part, substitute(initial[buffer], values), (ZERO,)) for buffer, part in parts.items()))
    return BlockRealize((), TRUE, Block((), (), _ones(parts.values()), f"{realize.block.name_hint}_in_thread_init", stores))


def _in_thread(realize: BlockRealize, reduction: Reduction, parts: Mapping[Buffer, Buffer]) -> Stmt:
    """The block, summing into its thread's part."""

    def redirected(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer in parts:
            return _element(parts[node.buffer])
        return BufferStore(parts[node.buffer], node.value, (ZERO,)) if isinstance(node, BufferStore) and node.buffer in parts else None

    block = realize.block
    reads = tuple(region for region in block.reads if region.buffer not in parts)
    body = post_order_rewrite(block.body, redirected)
    block = replace(block, name_hint=f"{block.name_hint}_in_thread", reads=reads, writes=_ones(parts.values()), init=None, body=body)
    return replace(realize, block=block)


def _combined(reduction: Reduction, values: Sequence[PrimExpr], results: Mapping[Buffer, Buffer], threads: Sequence[For]) -> Stmt:
    """The values of all threads in one, by `tvm_thread_allreduce`."""
    left = tuple(Var(f"x{n}", value.dtype) for n, value in enumerate(values))
    right = tuple(Var(f"y{n}", value.dtype) for n, value in enumerate(values))
    reducer = CommReducer(left, right, reduction.combined(left, right), reduction.initial)
    loads = map(_element, results.values())
    args = (const(len(values), "uint32"), *values, TRUE, *loads, *(loop.loop_var for loop in threads))
    call = Evaluate(Call("handle", "tir.tvm_thread_allreduce", args))
    return AttrStmt(reducer, "reduce_scope", reinterpret("handle", const(0, "uint64")), call)


def _written_back(realize: BlockRealize, reduction: Reduction, results: Mapping[Buffer, Buffer], loops: Sequence[For]) -> Stmt:
    """The results where they belong: by every thread into its own memory, by the first one into memory that threads share."""
    pairs = [(a, v) for a, v in zip(realize.block.iter_vars, realize.iter_values, strict=True) if a.iter_type != IterVar.COMM_REDUCE]
    fresh = {axis.var: Var(axis.name, axis.dtype) for axis, _ in pairs}
    axes = tuple(replace(axis, var=fresh[axis.var]) for axis, _ in pairs)
    indices = tuple(substitute(index, fresh) for index in reduction.indices)
    reduced = {loop.loop_var for loop in loops}
    # What the predicate says of reducing loops is about terms; the element is stored whatever the last of them was.
    conditions = [one for one in nested_operands(realize.predicate, And) if not variables(one) & reduced]
    # Memory of a thread's own has no other writer, so every thread keeps a copy.
    if any(buffer.scope() != "local" for buffer in results):
        threads = [loop for loop in loops if loop.kind is ForKind.THREAD_BINDING]
        conditions += [compare(EQ, loop.loop_var, loop.min) for loop in threads]
    writes = tuple(BufferRegion.from_point(buffer, indices) for buffer in results)
    stores = seq(*(BufferStore(buffer, _element(result), indices) for buffer, result in results.items()))
    block = Block(axes, _ones(results.values()), writes, f"{realize.block.name_hint}_write_back", stores)
    return BlockRealize(tuple(value for _, value in pairs), _conjunction(conditions), block)
