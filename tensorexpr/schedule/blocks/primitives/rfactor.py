"""Rfactor: partial results of a reduction, one for each iteration of a loop, in a buffer of their own; then these are reduced.

for i, k_0, k_1 in T.grid(8, 4, 16)        ->   for i, k_0, k_1 in T.grid(8, 4, 16)          # rfactor(k_0, factor_axis=1)
    B: B[vi] += A[vi, vk]                           B_rf: B_rf[vi, vk_0] += A[vi, vk_0 * 16 + vk_1]
                                                for i, k_0 in T.grid(8, 4)
                                                    B: B[vi] += B_rf[vi, vk_0]

The partial results may be made in parallel, which those of the reduction itself may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ....arith.analyzer import Analyzer
from ....dataclass import dataclass, replace
from ....tir.block import BlockRealize
from ....tir.buffer import Buffer, BufferRegion, decl_buffer
from ....tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ....tir.reduction_laws import Reduction, recognised
from ....tir.rewriting import substitute, variables
from ....tir.stmt import BufferStore, For, LetStmt, Stmt, seq
from ..affine import check_affine
from ..bindings import conditions, conjunction, ranges_of, renewed_axes, substituted_region
from ..dataflow import check_unambiguous
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, loop_of
from ..nests import nested, renewed_loops
from ..program import ROOT, BlockProgram, Node, fresh, realized
from ..scope import Scope, check_begins, check_reduction, loops_of_axes, loops_with

REDUCED = (IterVar.COMM_REDUCE,)
SPATIAL = (IterVar.DATA_PAR,)


def rfactor(program: BlockProgram, name: str, var: Var, factor_axis: int) -> tuple[BlockProgram, str]:
    """The program with the reduction of a block in two steps, and the name of the block of the partial results."""
    plan = _planned(program, name, var, factor_axis)
    first = plan.nest(plan.partial())
    second = plan.nest(plan.final())
    scope = realized(program.scope_of(program.block_node(name)))
    changed = program.replace(plan.loops[0], seq(first, second))
    return changed.allocated(scope.block.name_hint or ROOT, *plan.buffers), plan.name


@dataclass(frozen=True)
class _Plan:
    """All that the two blocks are made of. `loops` are those that are written twice, outermost first."""

    realize: BlockRealize
    loops: Sequence[For]
    loop: For
    reduction: Reduction
    buffers: tuple[Buffer, ...]
    place: int
    name: str

    def nest(self, realize: BlockRealize) -> Stmt:
        """A block in fresh copies of the loops that it depends on, or that run once for all."""
        used = loops_of_axes(realize, (IterVar.DATA_PAR, IterVar.COMM_REDUCE)) | variables(realize.predicate)
        kept = [loop for loop in self.loops if loop.loop_var in used or realize.block.name_hint == self.name]
        if realize.block.name_hint == self.name:  # handles of loops stand for those of the partial results
            return nested(kept, realize)
        loops, renamed = renewed_loops(kept)
        values = tuple(substitute(value, renamed) for value in realize.iter_values)
        return nested(loops, replace(realize, iter_values=values, predicate=substitute(realize.predicate, renamed)))

    def partial(self) -> BlockRealize:
        """The block that makes the partial results."""
        factor = self._factor_axis(IterVar.DATA_PAR)
        axes, values, meaning = self._axes_of_partial(factor)
        block = self.realize.block
        where = _inserted(tuple(substitute(index, meaning) for index in self.reduction.indices), self.place, factor.var)
        terms = tuple(substitute(term, meaning) for term in self.reduction.terms)
        reduced = any(axis.iter_type == IterVar.COMM_REDUCE for axis in axes)
        current = tuple(BufferLoad(buffer, where) for buffer in self.buffers)
        # Without another reduced axis a partial result is one term, with nothing to start from.
        initial = self._stores(self.buffers, where, self.reduction.initial) if reduced else None
        combined = self.reduction.combined(current, terms) if reduced else terms
        made = replace(
            block,
            iter_vars=axes,
            reads=tuple(substituted_region(region, meaning) for region in block.reads),
            writes=tuple(BufferRegion.from_point(buffer, where) for buffer in self.buffers),
            name_hint=self.name,
            init=initial,
            body=self._stores(self.buffers, where, combined),
        )
        return BlockRealize(values, self.realize.predicate, made)

    def final(self) -> BlockRealize:
        """The block that reduces the partial results, under the name of before."""
        factor = self._factor_axis(IterVar.COMM_REDUCE)
        block = self.realize.block
        spatial = [(a, v) for a, v in self.realize.bindings() if a.iter_type == IterVar.DATA_PAR]
        renewed, meaning = renewed_axes([axis for axis, _ in spatial])
        target = tuple(substitute(index, meaning) for index in self.reduction.indices)
        where = _inserted(target, self.place, factor.var)
        current = tuple(BufferLoad(buffer, target) for buffer in self.reduction.buffers)
        partial = tuple(BufferLoad(buffer, where) for buffer in self.buffers)
        made = replace(
            block,
            iter_vars=(factor, *renewed),
            reads=tuple(BufferRegion.from_point(buffer, where) for buffer in self.buffers),
            writes=tuple(BufferRegion.from_point(buffer, target) for buffer in self.reduction.buffers),
            init=self._stores(self.reduction.buffers, target, self.reduction.initial),
            body=self._stores(self.reduction.buffers, target, self.reduction.combined(current, partial)),
        )
        reducing = loops_of_axes(self.realize, REDUCED)
        # Conditions on reduced loops belong to the terms. Partial results exist for the whole loop: see `_check_partials_begin`.
        holds = [one for one in conditions(self.realize.predicate) if not variables(one) & reducing]
        return BlockRealize((self.loop.loop_var, *(value for _, value in spatial)), conjunction(holds), made)

    def _factor_axis(self, kind: int) -> IterVar:
        var = self.loop.loop_var
        return IterVar(Range.from_min_extent(self.loop.min, self.loop.extent), Var(f"v{var.name}", var.dtype), kind)

    def _axes_of_partial(self, factor: IterVar) -> tuple[tuple[IterVar, ...], tuple[PrimExpr, ...], dict[Var, PrimExpr]]:
        """Spatial axes and reductions without the loop as they are; others come apart into their loops."""
        axes = [factor]
        own: dict[Var, PrimExpr] = {self.loop.loop_var: factor.var}
        meaning: dict[Var, PrimExpr] = {}
        loops = {loop.loop_var: loop for loop in self.loops}
        bound: list[PrimExpr] = [self.loop.loop_var]
        apart = self._loops_apart()
        for axis, value in self.realize.bindings():
            if not variables(value) & apart:
                axes.append(axis)
                bound.append(value)
                continue
            # In the order of the loops, whatever order the axis names them in.
            for var in [loop.loop_var for loop in self.loops if loop.loop_var in variables(value)]:
                if var not in own:
                    made = IterVar(
                        Range.from_min_extent(loops[var].min, loops[var].extent), Var(f"v{var.name}", var.dtype), IterVar.COMM_REDUCE
                    )
                    own[var] = made.var
                    axes.append(made)
                    bound.append(var)
            meaning[axis.var] = substitute(value, own)
        return tuple(axes), tuple(bound), meaning

    def _loops_apart(self) -> set[Var]:
        """The loop and those that share an axis with it, or with one of these: an axis that kept its value would count twice."""
        found = {self.loop.loop_var}
        used = [variables(value) for value in self.realize.iter_values]
        # Until nothing is new: loop a may share an axis with b, and b another one with c.
        while (more := found.union(*(loops for loops in used if loops & found))) != found:
            found = more
        return found

    def _stores(self, buffers: Sequence[Buffer], where: tuple[PrimExpr, ...], values: Sequence[PrimExpr]) -> Stmt:
        """One store, or several at once: their values are computed before the first."""
        if len(buffers) == 1 or all(not variables(value) for value in values):
            return seq(*(BufferStore(buffer, value, where) for buffer, value in zip(buffers, values, strict=True)))
        held = [Var(f"v_{buffer.name}", buffer.dtype) for buffer in buffers]
        body = seq(*(BufferStore(buffer, var, where) for buffer, var in zip(buffers, held, strict=True)))
        for var, value in reversed(list(zip(held, values, strict=True))):
            body = LetStmt(var, value, body)
        return body


def _inserted(indices: tuple[PrimExpr, ...], place: int, index: PrimExpr) -> tuple[PrimExpr, ...]:
    return (*indices[:place], index, *indices[place:])


def _planned(program: BlockProgram, name: str, var: Var, factor_axis: int) -> _Plan:
    """What the two blocks are made of, if it is legal."""
    node, realize, loop = program.block_node(name), program.realize(name), program.loop(var)
    loops = loops_with(program, name, var, "rfactor")
    check_affine(realize, loops, "rfactor")
    check_unambiguous(realize, "rfactor")
    check_reduction(Scope.around(program, node), realize, "rfactor")
    check_begins(realize, loops, "rfactor")
    _check_loop(realize, loop)
    chain = _chain(node, loops, realize, loop)
    reduction = recognised(realize.block)
    if isinstance(reduction, str):
        raise PrimitiveError(f"rfactor: {name} can't be reduced in two steps: {reduction}", realize)
    _check_partials_begin(realize, loops, loop)
    ndim = len(reduction.indices)
    if not -ndim - 1 <= factor_axis <= ndim:
        raise PrimitiveError(
            f"rfactor: factor_axis is from {-ndim - 1} to {ndim}, where {name} writes {ndim} dimensions, not {factor_axis}", realize
        )
    # -1 is behind the last dimension, where Python's insert would put it in front of that.
    place = factor_axis + ndim + 1 if factor_axis < 0 else factor_axis
    taken = {buffer.name for buffer in program.buffers()}
    buffers = tuple(_partial_buffer(buffer, place, loop.extent, taken) for buffer in reduction.buffers)
    return _Plan(realize, chain, loop, reduction, buffers, place, program.fresh_block_name(f"{name}_rf"))


def _check_loop(realize: BlockRealize, loop: For) -> None:
    """The loop belongs to reductions alone."""
    name, var = realize.block.name_hint, loop.loop_var
    if var not in loops_of_axes(realize, REDUCED):
        raise PrimitiveError(f"rfactor: {name} doesn't reduce over {var.name}; give a loop of a reduction axis", loop)
    mixed = loops_of_axes(realize, SPATIAL) & loops_of_axes(realize, REDUCED)
    if mixed:
        raise PrimitiveError(f"rfactor: the loop {next(iter(mixed)).name} belongs both to spatial and to reduced axes of {name}", loop)


def _chain(node: Node, loops: Sequence[For], realize: BlockRealize, loop: For) -> list[For]:
    """The loops around the block that hold nothing else; all that reduce must be among them."""
    chain = [loops[-1]] if loops[-1].body is node.stmt else []
    for inner, outer in pairwise(reversed(loops)):
        if not chain or outer.body is not inner:
            break
        chain.append(outer)
    chain.reverse()
    reducing = loops_of_axes(realize, REDUCED)
    # A reduced loop above the chain would run both steps in each of its iterations, and add partial results before they are done.
    odd = next((above for above in loops if above.loop_var in reducing and all(above is not one for one in chain)), None)
    if odd is not None:
        raise PrimitiveError(
            f"rfactor: something besides {realize.block.name_hint} stands in {odd.loop_var.name}, which it reduces over", loop
        )
    return chain


def _check_partials_begin(realize: BlockRealize, loops: Sequence[For], loop: For) -> None:
    """Where a condition cuts the reduction short, the first instance of each partial result still runs: it makes the first value."""
    reducing = loops_of_axes(realize, REDUCED)
    analyzer = Analyzer(ranges_of(loops))
    start: dict[Var, PrimExpr] = {one.loop_var: one.min for one in loops if one.loop_var in reducing and one is not loop}
    for condition in conditions(realize.predicate):
        if variables(condition) & reducing and not analyzer.known_true(substitute(condition, start)):
            raise PrimitiveError(
                f"rfactor: where {condition} fails from the start, a partial result of {realize.block.name_hint} would have no value; "
                f"split so that each iteration of {loop.loop_var.name} has at least one instance",
                realize,
            )


def _partial_buffer(buffer: Buffer, place: int, extent: PrimExpr, taken: set[str]) -> Buffer:
    """The buffer of partial results: one more dimension."""
    shape = _inserted(buffer.shape, place, extent)
    return decl_buffer(shape, buffer.dtype, fresh(f"{buffer.name}_rf", taken), scope=buffer.scope())


class RFactor(Primitive):
    """The instruction. The block's handle goes on standing for the block that writes the result."""

    kind, method, output, inputs, attrs = "RFactor", "rfactor", "block", ("loop",), ("factor_axis",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The program with the block of partial results, whose handle is the result.

        Raises:
            ScheduleError: if the loop doesn't hold exactly one block.
        """
        ref = loop_of(inputs[0], self.method)
        program = state.program_of(ref)
        loop = program.loop(ref.var)
        below = [n.stmt.block.name_hint for n in program.child_blocks(program.loop_node(ref.var)) if isinstance(n.stmt, BlockRealize)]
        if len(below) != 1:
            raise PrimitiveError(f"rfactor takes a loop with one block inside; {ref.var.name} holds {', '.join(below) or 'none'}", loop)
        program, name = rfactor(program, below[0], ref.var, int(attrs[0]))
        return Applied(state.updated(ref.func, program), (BlockRef(ref.func, name),))
