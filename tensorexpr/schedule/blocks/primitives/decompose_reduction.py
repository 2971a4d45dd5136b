"""Decompose a reduction: its first values in a block and loops of their own, before a loop.

for i, j, k in T.grid(4, 8, 16)        ->   for i in range(4)
    C: init C[vi, vj] = 0                       for j_init in range(8)
       C[vi, vj] += A[vi, vk] * B[vk, vj]           C_init: C[vi, vj] = 0
                                                for j, k in T.grid(8, 16)        # decompose_reduction(C, j)
                                                    C_update: C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith.block_access import get_block_access_region
from ....dataclass import dataclass, replace
from ....tir.arithmetic import as_int
from ....tir.attrs import EMPTY
from ....tir.block import Block, BlockRealize
from ....tir.expr import BufferLoad, IterVar, PrimExpr, Var
from ....tir.rewriting import substitute, variables, walk
from ....tir.stmt import BufferStore, For, Stmt, seq
from ..affine import check_affine
from ..bindings import conditions, conjunction, renewed_axes, substituted_region
from ..dataflow import check_unambiguous
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, block_of, loop_of
from ..nests import nested, renewed_loops
from ..program import BlockProgram
from ..scope import Scope, check_begins, check_reduction, loops_of_axes, loops_with, read, written


@dataclass(frozen=True)
class Decomposed:
    """The program, and the names of the block that starts the reduction and of the one that goes on with it."""

    program: BlockProgram
    init: str
    update: str


def decompose_reduction(program: BlockProgram, name: str, var: Var) -> Decomposed:
    """The program with the init of a block in loops of its own before the loop over a variable."""
    node, realize, loop = program.block_node(name), program.realize(name), program.loop(var)
    loops = loops_with(program, name, var, "decompose_reduction")
    check_affine(realize, loops, "decompose_reduction")
    check_unambiguous(realize, "decompose_reduction")
    check_reduction(Scope.around(program, node), realize, "decompose_reduction")
    check_begins(realize, loops, "decompose_reduction")
    place = next(n for n, above in enumerate(loops) if above is loop)
    _check_above_reduction(realize, loops[:place], loop)
    _check_not_repeated(realize, loops[place:])
    _check_moved(program, realize, loop)
    update = program.fresh_block_name(f"{name}_update")
    init = program.fresh_block_name(f"{name}_init")
    before = _init_nest(realize, loops[place:], init)
    after = replace(realize, block=updating(realize.block, update))
    changed = program.replace(realize, after)
    moved = changed.loop(var)
    return Decomposed(changed.replace(moved, seq(before, moved)), init, update)


def updating(block: Block, name: str) -> Block:
    """A reduction block without its init, which reads what it writes."""
    # an init makes what the body reads; without it the result comes from outside of the block
    own = [region for region in block.writes if region.buffer not in read(block)]
    return replace(block, name_hint=name, init=None, reads=(*own, *block.reads))


def _check_above_reduction(realize: BlockRealize, outside: Sequence[For], loop: For) -> None:
    """All loops that reduce are inside, so that the first values are made once."""
    reducing = loops_of_axes(realize, (IterVar.COMM_REDUCE,))
    early = next((above for above in outside if above.loop_var in reducing), None)
    if early is not None:
        raise PrimitiveError(
            f"decompose_reduction: {realize.block.name_hint} reduces over {early.loop_var.name}, which is around {loop.loop_var.name}: "
            f"the first values would be made again in each of its iterations; give {early.loop_var.name} or a loop around it",
            loop,
        )


def _check_not_repeated(realize: BlockRealize, inside: Sequence[For]) -> None:
    """No loop that would be inside does the whole reduction again without an axis: the sum starts anew in each of its iterations."""
    used = {var for value in realize.iter_values for var in variables(value)}
    again = next((loop for loop in inside if loop.loop_var not in used and as_int(loop.extent) != 1), None)
    if again is not None:
        raise PrimitiveError(
            f"decompose_reduction: {again.loop_var.name} is no part of an axis of {realize.block.name_hint}, each of its iterations makes "
            "the first values again; give a loop inside of it",
            again,
        )


def _check_moved(program: BlockProgram, realize: BlockRealize, loop: For) -> None:
    """Nothing that stands in the loop before the block reads its result, or writes what its init reads."""
    scope = Scope.around(program, program.block_node(realize.block.name_hint))
    inside = {id(node.stmt) for node in program.child_blocks(program.loop_node(loop.loop_var))}
    result = set(written(realize.block))
    for other in scope.before(realize.block):
        if id(other) in inside and result & set(read(other.block)):
            raise PrimitiveError(
                f"decompose_reduction: {other.block.name_hint} stands in {loop.loop_var.name} before {realize.block.name_hint} and reads "
                "its result of an earlier iteration; give a loop that isn't around both",
                loop,
            )
    started = {load for load in _loaded(realize.block.init)}
    # in front of the block or behind it: the init comes before all iterations of the loop
    writer = next((other for other in scope.children if id(other) in inside and started & set(written(other.block))), None)
    if writer is not None:
        raise PrimitiveError(
            f"decompose_reduction: the init of {realize.block.name_hint} reads what {writer.block.name_hint} writes in "
            f"{loop.loop_var.name}; give a loop that isn't around both",
            loop,
        )


def _loaded(stmt: Stmt | None) -> set[Any]:
    """The buffers that a statement loads from."""
    return set() if stmt is None else {node.buffer for node in walk(stmt) if isinstance(node, BufferLoad)}


def _init_nest(realize: BlockRealize, inside: Sequence[For], name: str) -> Stmt:
    """Loops over the elements whose first values the block makes, with a block that makes them."""
    block = realize.block
    spatial = [(axis, value) for axis, value in realize.bindings() if axis.iter_type == IterVar.DATA_PAR]
    used: set[Var] = set().union(*(variables(value) for _, value in spatial))
    loops = [loop for loop in inside if loop.loop_var in used]
    renewed, fresh = renewed_loops(loops, "_init")
    gone = {loop.loop_var for loop in inside} - used
    made = init_block(block, [axis for axis, _ in spatial], name)
    values = tuple(substitute(value, fresh) for _, value in spatial)
    holds = _kept(realize, gone, used)
    body: Stmt = BlockRealize(values, substitute(holds, fresh), made)
    # What annotations ask of the reduction's loops isn't meant for the init.
    return nested([replace(loop, annotations=EMPTY) for loop in renewed], body)


def _kept(realize: BlockRealize, gone: set[Var], used: set[Var]) -> PrimExpr:
    """The conditions on loops that the init runs in."""
    kept = []
    for condition in conditions(realize.predicate):
        mentioned = variables(condition)
        if not mentioned & gone:
            kept.append(condition)
        elif mentioned & used:
            raise PrimitiveError(
                f"decompose_reduction: the condition {condition} of {realize.block.name_hint} is about reduced and other loops at once, "
                "so nothing says which elements have a first value",
                realize,
            )
    return conjunction(kept)


def init_block(block: Block, axes: Sequence[IterVar], name: str) -> Block:
    """The block that does what a reduction block's init does, over copies of its spatial axes."""
    assert block.init is not None
    if block.match_buffers or block.alloc_buffers:
        views = {match.buffer for match in block.match_buffers} | set(block.alloc_buffers)
        if any(isinstance(node, (BufferStore, BufferLoad)) and node.buffer in views for node in walk(block.init)):
            raise PrimitiveError(f"decompose_reduction: the init of {block.name_hint} uses buffers that only exist within the block")
    renewed, values = renewed_axes(axes)
    body = substitute(block.init, values)
    writes = tuple(substituted_region(region, values) for region in block.writes)
    bare = Block(renewed, (), writes, name, body, annotations=block.annotations)
    reads = get_block_access_region(bare)[0]
    return replace(bare, reads=tuple(reads))


class DecomposeReduction(Primitive):
    """The instruction. The block's handle stands for the updating block from then on."""

    kind, method, output, inputs = "DecomposeReduction", "decompose_reduction", "block", ("block", "loop")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        loop = loop_of(inputs[1], self.method, ref.func)
        made = decompose_reduction(state.program_of(ref), ref.name, loop.var)
        outputs = (BlockRef(ref.func, made.init),)
        return Applied(state.updated(ref.func, made.program), outputs, renamed={ref: BlockRef(ref.func, made.update)})
