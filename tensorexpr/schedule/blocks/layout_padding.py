"""What stands in the room of a layout that no element needs: written by the writers, by a block behind them, or assumed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...arith import IndexMap
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.arithmetic import any as any_of
from ...tir.arithmetic import as_int, const, logical_not
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import LE, NE, And, BufferLoad, Call, IterVar, PrimExpr, Range, Var
from ...tir.intrin import if_then_else
from ...tir.rewriting import Node as TreeNode
from ...tir.rewriting import post_order_rewrite, substitute
from ...tir.stmt import BufferStore, Evaluate, For, ForKind, Stmt, seq
from .accesses import Redirection
from .bindings import TRUE, bound_values, inverted, is_true, loosely
from .copying import top_statement
from .diagnostics import PrimitiveError
from .nests import looped, nested
from .program import BlockProgram, Node, block_at, fresh, realized
from .scope import written


@dataclass(frozen=True)
class Padding:
    """The padding of a layout: the maps from and to it, its shape and the old one, and the value that stands there."""

    inverse: IndexMap
    index_map: IndexMap
    shape: tuple[PrimExpr, ...]
    old_shape: tuple[PrimExpr, ...]
    value: IndexMap

    def where(self, point: Sequence[Var]) -> PrimExpr:
        """The condition that nothing stands at new indices."""
        facts = Analyzer({var: Range.from_min_extent(const(0, var.dtype), extent) for var, extent in zip(point, self.shape, strict=True)})
        found = []
        for old, extent in zip(self.old(point), self.old_shape, strict=True):
            if not facts.known_less(old, extent):
                found.append(self._beyond(facts.simplify(old), extent, point, facts))
        return any_of(*(found or self._led_elsewhere(point, facts)))

    def _led_elsewhere(self, point: Sequence[Var], facts: Analyzer) -> list[PrimExpr]:
        """That the old indices of new ones have other new indices: an index of one value has but one quotient and remainder."""
        there = self.index_map.map_indices(self.old(point))
        return [NE(var, facts.simplify(new)) for var, new in zip(point, there, strict=True) if not facts.known_equal(var, new)]

    def _beyond(self, old: PrimExpr, extent: PrimExpr, point: Sequence[Var], facts: Analyzer) -> PrimExpr:
        """That an old index is no index: for o * c + i the last o and a large i."""
        for outer, inner in ((o, i) for o in point for i in point if o is not i):
            factor = self._extent(inner, point)
            count, limit = self._extent(outer, point), as_int(extent)
            if None in (factor, count, limit) or not facts.known_equal(old, outer * (factor or 1) + inner):
                continue
            assert factor is not None and count is not None and limit is not None
            # 100 in 7 tiles of 16: only the last one, o == 6, has padding, from i = 4 on
            rest = limit - (count - 1) * factor
            if 0 < rest < factor:
                last = outer.equal(const(count - 1, outer.dtype))
                return And(last, inner.equal(const(rest, inner.dtype)) if rest == factor - 1 else LE(const(rest, inner.dtype), inner))
        return LE(extent, old)

    def _extent(self, var: PrimExpr, point: Sequence[PrimExpr]) -> int | None:
        return next((as_int(extent) for other, extent in zip(point, self.shape, strict=True) if other is var), None)

    def old(self, point: Sequence[Var]) -> tuple[PrimExpr, ...]:
        """The old indices of new ones."""
        facts = Analyzer(
            {var: loosely(Range.from_min_extent(const(0, var.dtype), extent)) for var, extent in zip(point, self.shape, strict=True)}
        )
        return tuple(map(facts.simplify, inverted(self.index_map, self.inverse, point)))

    def at(self, point: Sequence[PrimExpr]) -> PrimExpr:
        """The value that stands at new indices."""
        values = {var: p if p.dtype == var.dtype else p.astype(var.dtype) for var, p in zip(self.value.initial_indices, point, strict=True)}
        return substitute(self.value.final_indices[0], values)


def with_padding(program: BlockProgram, old: Buffer, new: Buffer, moved: Redirection, padding: Padding, owner: str | None) -> BlockProgram:
    """The program with accesses of `old` sent to `new`, and the padding filled or assumed.

    Args:
        owner: the block that allocates the buffer; None for a parameter.

    Raises:
        PrimitiveError: if a block that writes the buffer stands in another scope than the buffer's.
    """
    nodes = [node for found in program.blocks.values() for node in found if node.parent is not None]
    writers = [node for node in nodes if old in written(block_at(node)) and not program.child_blocks(node)]
    if not writers:
        # Nobody writes it: a parameter, whose padding the caller fills.
        return _assumed(BlockProgram(program.func.with_body(moved(program.func.body))), new, padding)
    for node in writers:
        scope = program.scope_of(node)
        if scope is not program.root if owner is None else block_at(scope).name_hint != owner:
            name = block_at(node).name_hint
            raise PrimitiveError(
                f"transform_layout: {name} fills {old.name} from within another block, so nothing can fill the padding", node.stmt
            )
    nests = [_nest_of(node, old, program) for node in writers]
    changes: dict[Stmt, Stmt | None] = {nest.top: _filled(nest, new, moved, padding) for nest in nests if nest is not None}
    # One writer can't run over the new indices, so none does, and a block behind the last one writes the padding.
    if len(changes) < len(writers):
        top = top_statement(writers[-1])
        changes = {top: seq(top, _padding_nest(program, new, padding))}
    made = program.replaced(changes)
    return BlockProgram(made.func.with_body(moved(made.func.body)))


@dataclass(frozen=True)
class _Nest:
    """A block that writes one element for each value of its spatial axes, in loops of its own, in the order of the indices."""

    top: Stmt
    loops: tuple[For, ...]
    realize: BlockRealize
    replaced: tuple[Var, ...]  # axes that become the new indices


def _nest_of(node: Node, buffer: Buffer, program: BlockProgram) -> _Nest | None:
    """The nest of a writer if its axes can become the new indices."""
    realize = realized(node)
    block = realize.block
    loops = program.loops_above(node)
    if not _has_loops_of_its_own(realize, loops) or top_statement(node) is not loops[0]:
        return None
    spatial = [axis for axis in block.iter_vars if axis.iter_type == IterVar.DATA_PAR]
    # The element written must be the spatial axes in order, or the inverse of the layout would have to be found through the store.
    element = tuple(axis.var for axis in spatial)
    stores = [block.body] if block.init is None else [block.body, block.init]
    if len(block.writes) != 1 or not all(_writes_only(stmt, buffer, element) for stmt in stores):
        return None
    extents = zip(spatial, buffer.shape, strict=True)
    values = bound_values(realize)
    order = [loop.loop_var for loop in loops]
    bound = [values[axis.var] for axis in spatial]
    # The new loops go where the old ones were, so these have to be neighbours and in the order of the indices.
    places = [order.index(value) for value in bound if isinstance(value, Var)]
    in_order = places == list(range(places[0], places[0] + len(places))) if places else False
    if not in_order or any(axis.dom is None or as_int(axis.dom.extent) != as_int(extent) for axis, extent in extents):
        return None
    return _Nest(loops[0], tuple(loops), realize, tuple(axis.var for axis in spatial))


def _has_loops_of_its_own(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """True if a block alone stands in serial loops from 0, which are its axes' values and nothing else."""
    plain = all(loop.kind == ForKind.SERIAL and not loop.annotations and as_int(loop.min) == 0 for loop in loops)
    direct = all(outer.body is inner for outer, inner in pairwise([*loops, realize]) if isinstance(outer, For))
    # Every loop is an axis' value and every value a loop: only then can loops over the new indices take the place of these.
    one_to_one = sorted(map(id, realize.iter_values)) == sorted(id(loop.loop_var) for loop in loops)
    return bool(loops) and plain and direct and one_to_one and is_true(realize.predicate)


def _writes_only(stmt: Stmt, buffer: Buffer, element: tuple[Var, ...]) -> bool:
    """True for a store of this element, without a mask."""
    return isinstance(stmt, BufferStore) and stmt.buffer is buffer and stmt.predicate is None and tuple(stmt.indices) == element


def _filled(nest: _Nest, new: Buffer, moved: Redirection, padding: Padding) -> Stmt:
    """The nest over the new indices, which writes the padding too."""
    block = nest.realize.block
    dtype = block.iter_vars[0].var.dtype
    loops = [Var(f"axis{place}", dtype) for place in range(len(padding.shape))]
    point = [Var(f"v_axis{place}", dtype) for place in range(len(padding.shape))]
    own = [IterVar(Range.from_min_extent(const(0, dtype), extent), var) for var, extent in zip(point, padding.shape, strict=True)]
    values = dict(zip(nest.replaced, padding.old(point), strict=True))
    spatial = set(nest.replaced)
    where = padding.where(point)
    made = substitute(_body_of(block), values)
    assert isinstance(made, Block)
    kept = [(axis, value) for axis, value in nest.realize.bindings() if axis.var not in spatial]
    body, init = _guarded(made.body, new, point, where, padding), _guarded(made.init, new, point, where, padding)
    assert body is not None
    facts = Analyzer({axis.var: loosely(axis.dom) for axis in (*own, *(axis for axis, _ in kept)) if axis.dom is not None})
    writes = (BufferRegion.from_point(new, point),)
    reads = tuple(_own_region(region, new, point, moved, facts) for region in made.reads)
    first = next(place for place, axis in enumerate(block.iter_vars) if axis.var in spatial)
    axes = [axis for axis, _ in kept]
    bound = [value for _, value in kept]
    done = replace(made, iter_vars=(*axes[:first], *own, *axes[first:]), reads=reads, writes=writes, body=body, init=init)
    stmt: Stmt = BlockRealize((*bound[:first], *loops, *bound[first:]), TRUE, done)
    replaced = {value for axis, value in nest.realize.bindings() if axis.var in spatial}
    return _with_new_loops(nest.loops, replaced, list(zip(loops, padding.shape, strict=True)), stmt)


def _body_of(block: Block) -> Block:
    """The block without its axes, whose variables are about to be replaced."""
    return replace(block, iter_vars=(), writes=())


def _own_region(region: BufferRegion, new: Buffer, point: Sequence[PrimExpr], moved: Redirection, facts: Analyzer) -> BufferRegion:
    if region.buffer is moved.old:
        return BufferRegion.from_point(new, point)
    return BufferRegion(region.buffer, tuple(Range.from_min_extent(facts.simplify(r.min), r.extent) for r in region.region))


def _guarded(stmt: Stmt | None, new: Buffer, point: Sequence[Var], where: PrimExpr, padding: Padding) -> Stmt | None:
    if stmt is None:
        return None
    assert isinstance(stmt, BufferStore)
    loads = _with_loads(stmt.value, stmt.buffer, new, tuple(point))
    return BufferStore(new, if_then_else(where, padding.at(point), loads), tuple(point))


def _with_loads(value: PrimExpr, old: Buffer, new: Buffer, point: tuple[Var, ...]) -> PrimExpr:
    """The value with loads of what the block writes at its new place."""

    def load(node: TreeNode) -> TreeNode | None:
        return BufferLoad(new, point) if isinstance(node, BufferLoad) and node.buffer is old else None

    return post_order_rewrite(value, load)


def _with_new_loops(loops: Sequence[For], gone: set[PrimExpr], made: Sequence[tuple[Var, PrimExpr]], stmt: Stmt) -> Stmt:
    """Loops with those of the old indices replaced, at the place of the first, by those of the new ones."""
    nest: list[For] = []
    placed = False
    for loop in loops:
        if loop.loop_var not in gone:
            nest.append(loop)
        elif not placed:
            placed = True
            nest += [For(var, const(0, var.dtype), extent, ForKind.SERIAL, stmt) for var, extent in made]
    return nested(nest, stmt)


def _axes(padding: Padding) -> tuple[list[Var], list[IterVar], list[Var]]:
    dtype = padding.old_shape[0].dtype if padding.old_shape else "int32"
    loops = [Var(f"axis{place}", dtype) for place in range(len(padding.shape))]
    axes = [
        IterVar(Range.from_min_extent(const(0, dtype), extent), Var(f"v_axis{place}", dtype)) for place, extent in enumerate(padding.shape)
    ]
    return loops, axes, [axis.var for axis in axes]


def _padding_nest(program: BlockProgram, new: Buffer, padding: Padding) -> Stmt:
    """A block that writes the padding."""
    loops, axes, point = _axes(padding)
    writes = (BufferRegion.from_point(new, point),)
    name = fresh(f"buffer_{new.name}_padding", program.blocks)
    block = Block(tuple(axes), (), writes, name, BufferStore(new, padding.at(point), tuple(point)))
    return looped(loops, padding.shape, BlockRealize(tuple(loops), padding.where(loops), block))


def _assumed(program: BlockProgram, new: Buffer, padding: Padding) -> BlockProgram:
    """The program that takes for granted what stands in the padding of a parameter."""
    loops, axes, point = _axes(padding)
    # an implication: where there is padding, the value stands
    holds = logical_not(padding.where(point)) | (new[tuple(point)].equal(padding.at(point)))
    name = fresh(f"buffer_{new.name}_assumptions", program.blocks)
    reads = (BufferRegion.from_point(new, point),)
    block = Block(tuple(axes), reads, (), name, Evaluate(Call("bool", "tir.assume", (holds,))))
    nest = looped(loops, padding.shape, BlockRealize(tuple(loops), TRUE, block))
    root = realized(program.root)
    return program.replace(root.block.body, seq(nest, root.block.body))
