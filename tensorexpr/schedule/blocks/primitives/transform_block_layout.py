"""Transform block layout: a block runs over other axes, in loops over these.

for i, j in T.grid(8, 8)        ->   for ax0 in range(64)                             # (i, j) -> (i * 8 + j)
    B: B[vi, vj] = A[vi, vj]             B: B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ....arith import IndexMap, index_map_from_json
from ....arith.analyzer import Analyzer
from ....errors import DeclarationError
from ....tir.arithmetic import as_int, const
from ....tir.block import Block, BlockRealize
from ....tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import Node as TreeNode
from ....tir.rewriting import post_order_rewrite, substitute, variables
from ....tir.stmt import BufferStore, For, ForKind, Stmt
from ..bindings import TRUE, bound_to_function, inverted, is_true, loosely, remainders_first
from ..copying import extent_from_zero, ranges_around
from ..dataflow import check_unambiguous
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..nests import looped
from ..program import BlockProgram, Node, block_at, realized
from ..scope import Scope
from .split import check_plain


def transform_block_layout(program: BlockProgram, name: str, index_map: IndexMap) -> BlockProgram:
    """The program with a block's axes replaced by those of a map, one to one."""
    node = program.block_node(name)
    realize, block = program.realize(name), block_at(node)
    loops = own_loops(program, node, "transform_block_layout")
    odd = next((loop for loop in loops if loop.kind != ForKind.SERIAL), None)
    if odd is not None:
        raise PrimitiveError(
            f"transform_block_layout: the loop over {odd.loop_var.name} runs {odd.kind.name}; say how loops run after they are replaced",
            odd,
        )
    # New loops run the iterations in another order, which what the block reads of its own writes must allow.
    _check_order(program, node)
    check_unambiguous(realize, "transform_block_layout")
    extents = [extent_from_zero(axis, node, "transform_block_layout") for axis in block.iter_vars]
    try:
        index_map = bound_to_function(index_map, program.func)
        new_values = index_map.map_indices([axis.var for axis in block.iter_vars])
        shape = index_map.map_shape(extents)
        inverse = index_map.inverse(extents)
    except DeclarationError as error:
        raise PrimitiveError(f"transform_block_layout of {name}: {error}", node.stmt) from error
    kinds = [_kind(value, block, node) for value in new_values]
    dtype = next((axis.var.dtype for axis in block.iter_vars), "int32")
    shape = tuple(const(as_int(extent), dtype) if as_int(extent) is not None else extent for extent in shape)
    axes = tuple(
        IterVar(Range.from_min_extent(const(0, dtype), extent), Var(f"v{place}", dtype), kind)
        for place, (extent, kind) in enumerate(zip(shape, kinds, strict=True))
    )
    facts = Analyzer({**ranges_around(node), **{axis.var: loosely(axis.dom) for axis in axes if axis.dom is not None}})
    back = inverted(index_map, inverse, [axis.var for axis in axes])
    values = {old.var: facts.simplify(new) for old, new in zip(block.iter_vars, back, strict=True)}
    made = remainders_first(simplified_block(substitute(replace(block, iter_vars=()), values), facts))
    ax = [Var(f"ax{place}", dtype) for place in range(len(shape))]
    nest = looped(ax, shape, BlockRealize(tuple(ax), TRUE, replace(made, iter_vars=axes)))
    return program.replace(loops[0] if loops else realize, nest)


def _kind(value: PrimExpr, block: Block, node: Node) -> int:
    """Whether a new axis is spatial or reduced: as all old ones that it is made of."""
    kinds = {axis.iter_type: axis.var.name for axis in block.iter_vars if axis.var in variables(value)}
    if len(kinds) > 1:
        raise PrimitiveError(
            f"transform_block_layout: {value} is made of {' and '.join(kinds.values())}, of which one is reduced and the other not",
            node.stmt,
        )
    return next(iter(kinds), IterVar.DATA_PAR)


def own_loops(program: BlockProgram, node: Node, primitive: str) -> list[For]:
    """The loops around a block, which must be one for each axis, with nothing else inside.

    Raises:
        PrimitiveError: with what is otherwise.
    """
    realize = realized(node)
    name, loops = realize.block.name_hint, program.loops_above(node)
    if not is_true(realize.predicate):
        raise PrimitiveError(f"{primitive}: {name} runs under the condition {realize.predicate}; do this before loops are split", node.stmt)
    for loop in loops:
        check_plain(loop, primitive)
    direct = not loops or (all(outer.body is inner for outer, inner in pairwise(loops)) and loops[-1].body is realize)
    if not direct:
        raise PrimitiveError(f"{primitive}: {name} stands in loops with other blocks; do this before compute_at", node.stmt)
    # One loop an axis: of split or fused ones it isn't clear which go when the axes do.
    moving = [value for value in realize.iter_values if variables(value)]
    if {*moving} != {loop.loop_var for loop in loops} or len(moving) != len(loops):
        values = ", ".join(map(str, realize.iter_values))
        raise PrimitiveError(
            f"{primitive} needs a loop for each axis of {name}, but these are {values}; do it before split and fuse", node.stmt
        )
    for axis, value in realize.bindings():
        extent = next((loop.extent for loop in loops if loop.loop_var is value), const(1, axis.var.dtype))
        if axis.dom is None or not Analyzer().known_equal(axis.dom.extent, extent):
            raise PrimitiveError(f"{primitive}: the axis {axis.var.name} of {name} has more values than its loop", node.stmt)
    return loops


def _check_order(program: BlockProgram, node: Node) -> None:
    """The block's instances may run in any order."""
    block, scope = block_at(node), Scope.around(program, node)
    odd = next((a for a in block.iter_vars if a.iter_type not in (IterVar.DATA_PAR, IterVar.COMM_REDUCE)), None)
    reason = f"its axis {odd.var.name} is neither spatial nor reduced" if odd is not None else scope.why_not_complete(block)
    if odd is None and reason is not None:
        reduced = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.COMM_REDUCE}
        if all(not variables(r.min) & reduced for region in block.writes for r in region.region):
            return
    if reason is not None:
        raise PrimitiveError(f"transform_block_layout: the instances of {block.name_hint} may not change their order: {reason}", node.stmt)


def simplified_block(block: Stmt, facts: Analyzer) -> Block:
    """A block with its indices simplified."""
    assert isinstance(block, Block)

    def simpler(node: TreeNode) -> TreeNode | None:
        if isinstance(node, (BufferLoad, BufferStore)):
            return replace(node, indices=tuple(map(facts.simplify, node.indices)))
        return None

    def region(r: Range) -> Range:
        return Range.from_min_extent(facts.simplify(r.min), facts.simplify(r.extent))

    reads, writes = (
        tuple(replace(one, region=tuple(map(region, one.region))) for one in regions) for regions in (block.reads, block.writes)
    )
    body = post_order_rewrite(block.body, simpler)
    init = None if block.init is None else post_order_rewrite(block.init, simpler)
    return replace(block, reads=reads, writes=writes, body=body, init=init)


class TransformBlockLayout(BlockPrimitive):
    """The instruction."""

    kind, method, attrs = "TransformBlockLayout", "transform_block_layout", ("index_map",)
    change = staticmethod(transform_block_layout)

    def attrs_from_json(self, attrs: Sequence[Any]) -> list[Any]:
        return [index_map_from_json(attrs[0])]
