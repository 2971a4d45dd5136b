"""Axes of blocks in terms of loops, after loops have changed: substituted and simplified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ...arith import IndexMap
from ...arith.analyzer import Analyzer
from ...errors import DeclarationError
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import nested_operands
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import Add, And, FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, Range, Sub, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import map_children, substitute, variables, walk
from ...tir.stmt import For, Stmt
from .program import map_inner

TRUE = IntImm("bool", 1)


def rebound(
    stmt: Stmt, values: Mapping[Var, PrimExpr], loops: Sequence[For], predicate: PrimExpr | None = None, unit_loops: bool = False
) -> Stmt:
    """A statement with loop variables replaced by values in terms of other loops.

    Args:
        values: what each replaced variable stands for.
        loops: those around the statement.
        predicate: what must hold besides where a block is to run.
        unit_loops: axes keep loops of one iteration as terms, so that these still count as loops of the axis.
    """
    return _rebound(substitute(stmt, values) if values else stmt, Ranges(loops, unit_loops), predicate)


class Ranges:
    """What is known of loops, for simplifying the values of axes.

    Args:
        loops: the loops.
        unit_loops: keep loops of one iteration as terms, unless a quotient becomes simpler without.
    """

    def __init__(self, loops: Sequence[For], unit_loops: bool = False) -> None:
        self.exact = knowing(loops)
        self._unit_loops = unit_loops
        self._loose = (
            Analyzer({loop.loop_var: loosely(Range.from_min_extent(loop.min, loop.extent)) for loop in loops}) if unit_loops else self.exact
        )
        # without such loops both analyzers give the same, so one is asked
        self._has_unit = unit_loops and any(_is_unit(loop) for loop in loops)

    def bind(self, loop: For) -> None:
        """Know of a loop inside of the others too."""
        self.exact.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), allow_override=True)
        if self._unit_loops:
            self._loose.bind(loop.loop_var, loosely(Range.from_min_extent(loop.min, loop.extent)), allow_override=True)
            self._has_unit = self._has_unit or _is_unit(loop)

    def simplify(self, value: PrimExpr) -> PrimExpr:
        """The value of an axis, in the form of TVM's iterators.

        A quotient of a sum of loops stays one: (i * 64 + j) // 128 for splits of a fused loop. A part in the middle is x % 12 // 4.
        """
        sums: dict[PrimExpr, Var] = {}
        found = self._simplified(self._over_iterators(value, sums) if _quotients(value) else value)
        found = remainders_first(found) if _quotients(found) else found
        return substitute(found, {var: total for total, var in sums.items()}) if sums else found

    def _over_iterators(self, value: PrimExpr, sums: dict[PrimExpr, Var]) -> PrimExpr:
        """The value with a variable in place of each sum that is divided; `sums` has them."""
        made = map_children(value, lambda child: self._over_iterators(child, sums) if isinstance(child, PrimExpr) else child)
        if not isinstance(made, (FloorDiv, FloorMod)) or isinstance(made.a, (Var, IntImm)):
            return made
        total = self.simplify(substitute(made.a, {var: inner for inner, var in sums.items()}))
        if not isinstance(total, (Add, Sub)) or len(variables(total)) < 2:
            # sums below it, as in (i * 336 + j) % 180 // 30, stay unknowns: 336 is no multiple of j's extent modulo 180
            return type(made)(self._over_iterators(total, sums), made.b)
        if total not in sums:
            # One unknown for the whole sum, as the simplifier would spread the quotient over its terms.
            sums[total] = Var("total", total.dtype)
            bound = self.exact.const_int_bound(total)
            if bound.min_value == 0 and bound.max_value < 1 << 31:  # else its range is no constant of every index type
                dom = Range(IntImm(total.dtype, 0), IntImm(total.dtype, bound.max_value + 1))
                for facts in (self.exact, self._loose):
                    facts.bind(sums[total], dom, allow_override=True)
        return type(made)(sums[total], made.b)

    def _simplified(self, value: PrimExpr) -> PrimExpr:
        found = self.exact.simplify(value)
        if not self._has_unit:
            return found
        kept = self._loose.simplify(value)
        return kept if _quotients(kept) <= _quotients(found) else found  # the name of a unit loop isn't worth a quotient


_Tree = TypeVar("_Tree", PrimExpr, Block)


def remainders_first(value: _Tree) -> _Tree:
    """The value, or block, with x // 4 % 3 as x % 12 // 4 in it."""
    found: _Tree = _with_remainders_first(value)
    return found


def _with_remainders_first(node: Any) -> Any:
    made = map_children(node, _with_remainders_first)
    match made:
        case FloorMod(FloorDiv(inner, IntImm() as low), IntImm() as extent) if low.value > 0 and extent.value > 0:
            # x
            # l % e is x % (l*e)
            # l for l, e > 0, whatever sign x has.
            return FloorDiv(FloorMod(inner, IntImm(made.dtype, low.value * extent.value)), low)
    return made


def _is_unit(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value == 1


def _quotients(value: PrimExpr) -> int:
    return sum(isinstance(node, (FloorDiv, FloorMod)) for node in walk(value))


def _rebound(stmt: Stmt, ranges: Ranges, predicate: PrimExpr | None) -> Stmt:
    # The block inside sees its axes, not the loops: only what the axes are bound to changes.
    if isinstance(stmt, BlockRealize):
        holds = stmt.predicate if predicate is None else all_of(stmt.predicate, predicate) if not is_true(stmt.predicate) else predicate
        values = tuple(map(ranges.simplify, stmt.iter_values))
        return replace(stmt, iter_values=values, predicate=holds)
    if isinstance(stmt, Block):
        return stmt
    if isinstance(stmt, For):
        ranges.bind(stmt)
    return map_inner(stmt, lambda inner: _rebound(inner, ranges, predicate))


def is_true(predicate: PrimExpr) -> bool:
    """True for the constant."""
    return isinstance(predicate, IntImm) and bool(predicate.value)


def simplified(expr: PrimExpr, loops: Sequence[For]) -> PrimExpr:
    """An expression of loop variables, simplified with their ranges."""
    return knowing(loops).simplify(expr)


def bound_values(realize: BlockRealize) -> dict[Var, PrimExpr]:
    """The values of a block's axes."""
    return {axis.var: value for axis, value in realize.bindings()}


def ranges_of(loops: Sequence[For]) -> dict[Var, Range]:
    """The ranges of loops by their variables."""
    return {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}


def knowing(loops: Sequence[For]) -> Analyzer:
    """An analyzer that knows the ranges of loops."""
    return Analyzer(ranges_of(loops))


def conditions(predicate: PrimExpr) -> list[PrimExpr]:
    """The conditions that a predicate is the conjunction of; none for the constant."""
    return [part for part in nested_operands(predicate, And) if not is_true(part)]


def conjunction(found: Sequence[PrimExpr]) -> PrimExpr:
    """The predicate that all of some conditions hold."""
    return all_of(*found) if found else TRUE


def renewed_axes(axes: Sequence[IterVar]) -> tuple[tuple[IterVar, ...], dict[Var, PrimExpr]]:
    """Axes with variables of their own, and these by the old ones."""
    made = tuple(replace(axis, var=Var(axis.var.name, axis.var.dtype)) for axis in axes)
    return made, {old.var: new.var for old, new in zip(axes, made, strict=True)}


def substituted_region(region: BufferRegion, values: Mapping[Var, PrimExpr]) -> BufferRegion:
    """A region with axes replaced."""
    return BufferRegion(
        region.buffer, tuple(Range.from_min_extent(substitute(r.min, values), substitute(r.extent, values)) for r in region.region)
    )


def in_other_buffer(block: Block, old: Buffer, new: Buffer) -> Block:
    """A block that states of `new` what it stated of `old`, and allocates it instead."""

    def region(stated: BufferRegion) -> BufferRegion:
        return BufferRegion(new, stated.region) if stated.buffer is old else stated

    return replace(
        block,
        reads=tuple(map(region, block.reads)),
        writes=tuple(map(region, block.writes)),
        alloc_buffers=tuple(new if buffer is old else buffer for buffer in block.alloc_buffers),
    )


def loosely(dom: Range) -> Range:
    """The range of an axis for simplifying indices: of an axis of one value it is wider, so that indices keep the axis's name."""
    extent = dom.extent
    return Range.from_min_extent(dom.min, IntImm(extent.dtype, 2)) if isinstance(extent, IntImm) and extent.value == 1 else dom


def inverted(index_map: IndexMap, inverse: IndexMap, point: Sequence[Var]) -> list[PrimExpr]:
    """The old indices in terms of new ones; an index that stays as it is keeps the name, even if it has one value alone."""
    same = {old: new for old, new in zip(index_map.final_indices, point, strict=True)}
    back = inverse.map_indices(point)
    dtypes = [var.dtype for var in point]
    found = [same.get(old, value) for old, value in zip(index_map.initial_indices, back, strict=True)]
    return [index.astype(dtypes[0]) if dtypes and index.dtype != dtypes[0] else index for index in found]


def bound_to_function(index_map: IndexMap, func: PrimFunc) -> IndexMap:
    """The map with the function's own sizes and parameters as its free variables, which may come by name, as from a trace.

    Raises:
        DeclarationError: for a variable that the function doesn't have.
    """
    if not index_map.free_variables:
        return index_map
    known = dict.fromkeys(func.params)
    for buffer in func.buffer_map.values():
        known.update(dict.fromkeys(var for extent in buffer.shape for var in variables(extent)))
    values: dict[Var, PrimExpr] = {}
    for var in index_map.free_variables:
        # By name only if a single one has it: of two it can't be told which was meant, and the error below says so.
        alike = [var] if var in known else [own for own in known if own.name == var.name and own.dtype == var.dtype]
        if len(alike) == 1:
            values[var] = alike[0]
    made = index_map.with_values(values)
    unknown = next((var for var in made.free_variables if var not in known), None)
    if unknown is not None:
        raise DeclarationError(
            f"the index map {made} uses {unknown.name}, which is no index, no parameter or size of the function, and was not sampled"
        )
    return made
