"""Blockize: the loops inside of a place, and the block in them, become one block; or several blocks become one.

for i_0, i_1 in T.grid(8, 16)          ->   for i_0 in range(8)              # blockize(i_1)
    B: vi = i_0 * 16 + i_1                      B_o: vi_o = i_0
       writes(B[vi])                                writes(B[vi_o * 16 : vi_o * 16 + 16])
                                                    for i_1 in range(16)
                                                        B: vi_i = i_1, writes(B[vi_o * 16 + vi_i])

The init of a reduction goes to the outer block, in loops of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith.block_access import get_block_access_region
from ....dataclass import dataclass, replace
from ....errors import ScheduleError
from ....tir.block import Block, BlockRealize
from ....tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import substitute, variables
from ....tir.stmt import For, SeqStmt, Stmt, seq
from ..affine import check_affine, why_not_affine_inside
from ..bindings import conditions, conjunction, substituted_region
from ..dataflow import check_unambiguous
from ..diagnostics import PrimitiveError
from ..handles import BlockRef, LoopRef
from ..instruction import Applied, Primitive, State, block_of
from ..nests import nested, renewed_loops
from ..program import BlockProgram, Node, common_ancestors, inner_statements, map_inner, realized
from ..subspace import DividedAxis, Division, divided
from .decompose_reduction import updating


def blockize(program: BlockProgram, var: Var, preserve_unit_iters: bool = True) -> tuple[BlockProgram, str]:
    """The program with a loop and all inside of it as one block, and this block's name; loops of one iteration stay terms of its axes."""
    loop, node = program.loop(var), program.loop_node(var)
    inner, realize = _only_block(program, loop)
    outer = program.loops_above(node)
    _check_rectangular(inner, outer)
    if why_not_affine_inside(realize, outer, inner) is not None:
        check_affine(realize, [*outer, *inner], "blockize")
    if realize.block.init is not None:  # it runs before all the inner points
        check_unambiguous(realize, "blockize")
    division = divided(realize, outer, inner, "blockize", preserve_unit_iters)
    name = program.fresh_block_name(f"{realize.block.name_hint}_o")
    axes = _outer_axes(division.axes)
    parts = _InnerParts.of(division.axes, axes)
    changed, init = _inner_block(realize, parts, inner, division.inside, program)
    body = nested(inner, BlockRealize(tuple(parts.values), division.inside, changed))
    made = _outer_block(name, axes, body, init)
    return program.replace(loop, BlockRealize(tuple(one.outer for one in division.axes), division.outside, made)), name


def _only_block(program: BlockProgram, loop: For) -> tuple[list[For], BlockRealize]:
    """The loops from `loop` down to the only block in them."""
    loops, body = [loop], loop.body
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    if not isinstance(body, BlockRealize):
        found = [n.stmt.block.name_hint for n in program.child_blocks(program.loop_node(loop.loop_var)) if isinstance(n.stmt, BlockRealize)]
        raise PrimitiveError(
            f"blockize takes a loop with one block inside; {loop.loop_var.name} holds {', '.join(found) or 'none'}"
            + ("; give the blocks as a list" if len(found) > 1 else ""),
            loop,
        )
    return loops, body


def _check_rectangular(inner: Sequence[For], outer: Sequence[For]) -> None:
    """The extents inside may not depend on loops outside, which a block doesn't see."""
    outside = {loop.loop_var for loop in outer}
    for loop in inner:
        found = (variables(loop.min) | variables(loop.extent)) & outside
        if found:
            raise PrimitiveError(f"blockize: the extent of {loop.loop_var.name} depends on {next(iter(found)).name}, outside", loop)


def _outer_axes(axes: Sequence[DividedAxis]) -> tuple[IterVar, ...]:
    return tuple(replace(one.axis, dom=one.dom, var=Var(f"{one.axis.var.name}_o", one.axis.var.dtype)) for one in axes)


@dataclass(frozen=True)
class _InnerParts:
    """The axes inside and the values they are bound to, and what each axis of before is in terms of outer and inner ones."""

    axes: tuple[IterVar, ...]
    values: tuple[PrimExpr, ...]
    meaning: dict[Var, PrimExpr]

    @staticmethod
    def of(divided_axes: Sequence[DividedAxis], outer: Sequence[IterVar]) -> _InnerParts:
        """The inner sides of divided axes."""
        axes, values, meaning = [], [], dict[Var, PrimExpr]()
        for one, out in zip(divided_axes, outer, strict=True):
            old = one.axis.var
            if one.inner is None:
                meaning[old] = out.var
                continue
            dom = Range.from_min_extent(IntImm(old.dtype, 0), IntImm(old.dtype, one.extent))
            axis = replace(one.axis, dom=dom, var=Var(f"{old.name}_i", old.dtype))
            axes.append(axis)
            values.append(one.inner)
            meaning[old] = axis.var if one.is_inside else out.var * one.extent + axis.var
        return _InnerParts(tuple(axes), tuple(values), meaning)


def _inner_block(
    realize: BlockRealize, parts: _InnerParts, loops: Sequence[For], holds: PrimExpr, program: BlockProgram
) -> tuple[Block, Stmt | None]:
    """The block over the inner axes without its init, and the init as a nest for the outer block."""
    name = realize.block.name_hint
    changed = _over_inner_axes(realize.block, parts)
    if changed.init is None:
        return changed, None
    spatial = [value for axis, value in zip(parts.axes, parts.values, strict=True) if axis.iter_type == IterVar.DATA_PAR]
    used: set[Var] = set().union(*map(variables, spatial))
    # The init has only the spatial loops, so other conditions have no meaning in it.
    kept = [condition for condition in conditions(holds) if variables(condition) & used]
    # The init runs once for all reduced points, so a condition on one of these has no value there.
    mixed = next((condition for condition in kept if variables(condition) - used), None)
    if mixed is not None:
        raise PrimitiveError(f"blockize: the condition {mixed} of {name} is about reduced and other loops at once", realize)
    return updating(changed, name), _init_nest(changed, parts, loops, conjunction(kept), program.fresh_block_name(f"{name}_init"))


def _over_inner_axes(block: Block, parts: _InnerParts) -> Block:
    """The block in terms of outer and inner axes, over the inner ones."""
    changed = substitute(replace(block, iter_vars=()), parts.meaning)
    assert isinstance(changed, Block)
    return replace(changed, iter_vars=parts.axes)


def _init_nest(block: Block, parts: _InnerParts, inner: Sequence[For], holds: PrimExpr, name: str) -> Stmt:
    """The loops over the inner spatial axes with a block that makes the first values."""
    assert block.init is not None
    pairs = [(a, v) for a, v in zip(parts.axes, parts.values, strict=True) if a.iter_type == IterVar.DATA_PAR]
    used: set[Var] = set().union(*(variables(value) for _, value in pairs))
    loops, fresh = renewed_loops([loop for loop in inner if loop.loop_var in used])
    axes = [replace(axis, var=Var(f"{axis.var.name}_init", axis.var.dtype)) for axis, _ in pairs]
    meaning: dict[Var, PrimExpr] = {old.var: new.var for (old, _), new in zip(pairs, axes, strict=True)}
    writes = tuple(substituted_region(region, meaning) for region in block.writes)
    made = Block(tuple(axes), (), writes, name, substitute(block.init, meaning))
    # An init may read too, as a bias that the reduction starts from.
    made = replace(made, reads=tuple(get_block_access_region(made)[0]))
    values = tuple(substitute(value, fresh) for _, value in pairs)
    return nested(loops, BlockRealize(values, substitute(holds, fresh), made))


def _outer_block(name: str, axes: tuple[IterVar, ...], body: Stmt, init: Stmt | None) -> Block:
    bare = Block(axes, (), (), name, body, init)
    reads, writes, _ = get_block_access_region(bare)
    return replace(bare, reads=tuple(reads), writes=tuple(writes))


def blockize_blocks(program: BlockProgram, names: Sequence[str], preserve_unit_iters: bool = True) -> tuple[BlockProgram, str]:
    """The program with several neighbouring blocks as one, at the innermost place around them all; and this block's name."""
    if len(set(names)) != len(names) or len(names) < 1:
        raise ScheduleError("blockize takes a loop, or a list of at least one block, each once")
    nodes = [program.block_node(name) for name in names]
    above, old = _shared_place(program, nodes)
    outer = [*program.loops_above(above), *([above.stmt] if isinstance(above.stmt, For) else [])]
    divisions = [_division(program, node, outer, preserve_unit_iters) for node in nodes]
    first = _same_outside(divisions, nodes)
    name = program.fresh_block_name("outer_" + "".join(f"{one}_" for one in names))
    axes = _outer_axes(first.axes)
    changes: dict[Stmt, Stmt | None] = {}
    for node, division in zip(nodes, divisions, strict=True):
        realize = realized(node)
        parts = _InnerParts.of(division.axes, axes)
        changes[realize] = BlockRealize(parts.values, division.inside, _over_inner_axes(realize.block, parts))
    body = _with(seq(*old), changes)
    made = BlockRealize(tuple(one.outer for one in first.axes), first.outside, _outer_block(name, axes, body, None))
    replaced: dict[Stmt, Stmt | None] = {old[0]: made, **{stmt: None for stmt in old[1:]}}
    return program.replaced(replaced), name


def _shared_place(program: BlockProgram, nodes: Sequence[Node]) -> tuple[Node, list[Stmt]]:
    """The innermost statement around all blocks that isn't a sequence, and the statements in it that hold them: these blocks alone."""
    place = next(one for one in common_ancestors(nodes) if not isinstance(one.stmt, (SeqStmt, Block)))
    body = inner_statements(place.stmt)[0]
    if isinstance(body, Block):
        body = body.body
    listed = list(body.seq) if isinstance(body, SeqStmt) else [body]
    wanted = {id(node.stmt) for node in nodes}
    held = [bool(_blocks_in(stmt) & wanted) for stmt in listed]
    # from the first to the last that holds one of the blocks: what stands between would go into the new block too
    taken = listed[held.index(True) : len(held) - held[::-1].index(True)]
    strange = set().union(*map(_blocks_in, taken)) - wanted
    if strange or any(not _blocks_in(stmt) for stmt in taken):
        raise PrimitiveError("blockize: something else stands between the blocks; give all blocks that stand together", nodes[0].stmt)
    return place, taken


def _blocks_in(stmt: Stmt) -> set[int]:
    if isinstance(stmt, BlockRealize):
        return {id(stmt)}
    return set().union(*map(_blocks_in, inner_statements(stmt)), set())


def _division(program: BlockProgram, node: Node, outer: Sequence[For], preserve_unit_iters: bool) -> Division:
    realize = realized(node)
    if realize.block.init is not None:
        raise PrimitiveError(
            f"blockize: {realize.block.name_hint} is a reduction with an init, which would run with the block only; decompose it first",
            realize,
        )
    loops = program.loops_above(node)
    inner = [loop for loop in loops if all(loop is not above for above in outer)]
    _check_rectangular(inner, outer)
    check_affine(realize, loops, "blockize")
    return divided(realize, outer, inner, "blockize", preserve_unit_iters)


def _same_outside(divisions: Sequence[Division], nodes: Sequence[Node]) -> Division:
    """The blocks agree on what is outside."""
    first = divisions[0]

    def outside(one: Division) -> list[Any]:
        return [one.outside, *((d.outer, d.dom.min, d.dom.extent, d.axis.iter_type) for d in one.axes)]

    for division, node in zip(divisions[1:], nodes[1:], strict=True):
        if outside(division) != outside(first):
            raise PrimitiveError("blockize: the axes of the blocks differ in what they are outside of the new block", node.stmt)
    return first


def _with(stmt: Stmt, changes: dict[Stmt, Stmt | None]) -> Stmt:
    """A statement with realizations in it replaced."""
    new = changes.get(stmt)
    if new is not None:
        return new
    return stmt if isinstance(stmt, BlockRealize) else map_inner(stmt, lambda inner: _with(inner, changes))


class Blockize(Primitive):
    """The instruction."""

    kind, method, output, inputs, attrs = "Blockize", "blockize", "block", ("target",), ("preserve_unit_iters",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The program with the loop's body, or the listed blocks, inside a new block; the result is the handle of that.

        Raises:
            ScheduleError: for blocks of several functions, or none.
        """
        target = inputs[0]
        if isinstance(target, LoopRef):
            program, name = blockize(state.program_of(target), target.var, bool(attrs[0]))
            return Applied(state.updated(target.func, program), (BlockRef(target.func, name),))
        refs = [block_of(state, one, "blockize") for one in (target if isinstance(target, (list, tuple)) else [target])]
        if not refs or len({ref.func for ref in refs}) != 1:
            raise ScheduleError("blockize takes a loop, or a list of blocks of one function")
        program, name = blockize_blocks(state.program_of(refs[0]), [ref.name for ref in refs], bool(attrs[0]))
        return Applied(state.updated(refs[0].func, program), (BlockRef(refs[0].func, name),))
