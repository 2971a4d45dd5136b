"""A block put into a loop: where in the loop, over which part of its axes, and the program after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import is_const_int
from ...tir.block import BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import GE, LE, IntImm, PrimExpr, Range, Var
from ...tir.stmt import For, Stmt, seq, statements_of
from .bindings import TRUE, ranges_of
from .block_domains import AxisDomain, Box, axis_domains, union_of
from .coverage import reads_inside, shares, why_not_covered
from .dataflow import AT_ONCE, REDUCED, check_movable, is_symbolic_split, odd_surroundings, partial_sums, reduces_across, touched_box
from .diagnostics import PrimitiveError
from .nests import looped
from .program import BlockProgram, Node, realized
from .scope import Scope, check_complete_or_reduction, loops_of_axes, read, written

FIRST_PLACE, LAST_PLACE = -2, -1


@dataclass(frozen=True)
class Move:
    """A block that is to be computed in a loop of others.

    `forward`: it makes what they read; otherwise it reads what they write.
    """

    program: BlockProgram
    node: Node
    loop: For
    primitive: str
    forward: bool

    @staticmethod
    def of(program: BlockProgram, name: str, loop_var: Var, primitive: str, forward: bool) -> Move:
        """The move of a block that may be moved.

        Raises:
            PrimitiveError: with the reason if it may not.
        """
        node, at = program.block_node(name), program.loop_node(loop_var)
        realize, loop = realized(node), program.loop(loop_var)
        if node is program.root:
            raise PrimitiveError(f"{primitive} moves a block inside of the root block, not the root itself", realize)
        if program.scope_of(node) is not program.scope_of(at):
            raise PrimitiveError(f"{primitive}: the block {name} and the loop {loop_var.name} don't stand in the same block scope", loop)
        if any(above.stmt is loop for above in node.ancestors()):
            raise PrimitiveError(
                f"{primitive}: {name} stands in the loop {loop_var.name} already, an "
                f"ancestor of block {name}; give a loop of another block",
                loop,
            )
        odd = odd_surroundings(at)
        if odd is not None:
            raise PrimitiveError(f"{primitive}: the loop {loop_var.name} may not run: {odd}", loop)
        check_complete_or_reduction(Scope.around(program, node), realize, primitive)
        check_movable(program, node, primitive)
        return Move(program, node, loop, primitive, forward)

    @property
    def realize(self) -> BlockRealize:
        """The realization that is moved."""
        return realized(self.node)

    @cached_property
    def scope(self) -> Scope:
        """The scope that the block and the loop stand in."""
        return Scope.around(self.program, self.node)

    @cached_property
    def partners(self) -> list[BlockRealize]:
        """The blocks that must stand in the loop: the consumers of a block that goes forward, the producers of one that goes back."""
        return self.scope.consumers(self.realize.block) if self.forward else self.scope.producers(self.realize.block)

    def refused(self, reason: str) -> PrimitiveError:
        """The error that says why this move is illegal."""
        return PrimitiveError(
            f"{self.primitive}: {self.realize.block.name_hint} can't go into {self.loop.loop_var.name}: {reason}", self.loop
        )

    def done(self, index: int, preserve_unit_loops: bool) -> BlockProgram:
        """The program after the move.

        Raises:
            PrimitiveError: if a partner stands elsewhere, the index is no place, or the block would run too early there.
        """
        place = self._place(index)
        nest = self._nest(self._domains(self._partners_below()), preserve_unit_loops)
        body = statements_of(self.loop.body)
        loop = replace(self.loop, body=seq(*body[:place], nest, *body[place:]))
        # `Move.of` has seen that the block isn't in the loop, so neither replacement hides the other
        made = self.program.replaced({self.realize: None, self.loop: loop})
        reason = next(self._reasons_against(made), None)  # of the result: only there does it show what runs before what
        if reason is not None:
            raise self.refused(reason)
        return made

    def _partners_below(self) -> list[Node]:
        below = {id(node.stmt): node for node in self.program.child_blocks(self.program.loop_node(self.loop.loop_var))}
        role, away = ("consumer" if self.forward else "producer"), [p for p in self.partners if id(p) not in below]
        if away:
            names = ", ".join(partner.block.name_hint for partner in away)
            raise self.refused(f"{self.primitive} requires all the {role}s of a block to stand in the loop; missing: {names}")
        if not self.partners:
            raise self.refused(f"it has no {role}s")
        return [below[id(partner)] for partner in self.partners]

    def _place(self, index: int) -> int:
        """The place in the loop's body: after all producers, before all consumers; the last or first such, or the one given."""
        scope, subtrees = self.scope, statements_of(self.loop.body)
        inside = [{id(node.stmt) for node in self.program.child_blocks(self.program.node_of(part))} | {id(part)} for part in subtrees]
        made = {id(producer) for producer in scope.producers(self.realize.block)}
        used = {id(consumer) for consumer in scope.consumers(self.realize.block)}
        # inside[n]: the identities of the blocks in the n-th statement of the loop
        first = max((n + 1 for n, part in enumerate(inside) if part & made), default=0)
        last = min((n for n, part in enumerate(inside) if part & used), default=len(subtrees))
        if first > last:
            raise self.refused("no place there is after all its producers and before all its consumers")
        found = {FIRST_PLACE: first, LAST_PLACE: last}.get(index, index)
        if not first <= found <= last:
            raise self.refused(f"index {index} is no place for it; places: {first} to {last}, or -1 for the last and -2 for the first")
        return found

    def _domains(self, partners: Sequence[Node]) -> list[AxisDomain]:
        """What of its axes the block must run over in one iteration."""
        program, block = self.program, self.realize.block
        at = program.loop_node(self.loop.loop_var)
        above = [*program.loops_above(at), self.loop]
        analyzer = Analyzer(ranges_of(above))
        boxes: dict[Buffer, Box] = {}
        for buffer in written(block) if self.forward else read(block):
            # Threads that share the buffer each need what all of them need, so their loops count like those inside.
            threads = [loop for loop in above if shares(loop, buffer, virtual=self.forward)]
            needed = []
            for partner in partners:
                inner = program.loops_above(partner)[len(above) :]
                regions = realized(partner).block.reads if self.forward else realized(partner).block.writes
                needed += [touched_box(r, realized(partner), [*threads, *inner], analyzer) for r in regions if r.buffer is buffer]
            if needed:
                everywhere = self.forward or all(reads_inside(block, r) for r in block.reads if r.buffer is buffer)
                # A point that may read nothing of the buffer isn't found from what is written there.
                boxes[buffer] = union_of(needed, analyzer) if everywhere else [None] * buffer.ndim
        return axis_domains(block, block.writes if self.forward else block.reads, boxes, analyzer)

    def _nest(self, domains: Sequence[AxisDomain], preserve_unit_loops: bool) -> Stmt:
        """The block under new loops ax0, ax1, ... over the domains."""
        program = self.program
        above = [*program.loops_above(program.loop_node(self.loop.loop_var)), self.loop]
        analyzer = Analyzer(ranges_of(above))
        loops: list[tuple[Var, PrimExpr]] = []
        values: list[PrimExpr] = []
        conditions: list[PrimExpr] = []
        for axis, domain in zip(self.realize.block.iter_vars, domains, strict=True):
            extent = analyzer.simplify(domain.span.max - domain.span.min + 1)
            value = domain.span.min
            if preserve_unit_loops or not is_const_int(extent, 1):
                var = Var(f"ax{len(loops)}", axis.dtype)
                loops.append((var, extent))
                analyzer.bind(var, Range.from_min_extent(IntImm(axis.dtype, 0), extent))
                value = value + var
            values.append(value)
            if domain.cut and axis.dom is not None:
                bounds = (value >= axis.dom.min, value < axis.dom.min + axis.dom.extent)
                # Where the box was cut to the domain, its end may lie beyond it in some iterations.
                conditions += [_constant_first(analyzer.simplify(bound)) for bound in bounds if not analyzer.known_true(bound)]
        made = BlockRealize(tuple(values), TRUE, self.realize.block)
        ranges = ranges_of(above) | {var: Range.from_min_extent(IntImm(var.dtype, 0), extent) for var, extent in loops}
        # Loops that are a split of the axis with symbolic extents stay in bounds by themselves, which the analyzer can't prove.
        if conditions and not is_symbolic_split(made, ranges):
            made = replace(made, predicate=all_of(*conditions))
        return looped([var for var, _ in loops], [extent for _, extent in loops], made)

    def _reasons_against(self, made: BlockProgram) -> Iterator[str]:
        """What the block would get or do wrong in its new place."""
        node = made.block_node(self.realize.block.name_hint)
        scope = Scope.around(made, node)
        at_once = {loop.loop_var for loop in made.loops_above(node) if loop.kind in AT_ONCE and not reduces_across(loop)}
        # but for threads of a block, whose partial sums lowering combines
        racing = at_once & loops_of_axes(realized(node), REDUCED)
        if racing:
            yield f"it would reduce over {next(iter(racing)).name}, whose iterations run at once"
        for producer in map(made.node_of, scope.producers(self.realize.block)):
            yield from partial_sums(made, producer, node)
            if why := why_not_covered(made, producer, node):
                yield why
        for consumer in map(made.node_of, scope.consumers(self.realize.block)):
            yield from partial_sums(made, node, consumer)
            # Forward, all consumers stand in the loop and the domain is made of what they read; back, it follows from the producers alone.
            if not self.forward and (why := why_not_covered(made, node, consumer)):
                yield why


def _constant_first(bound: PrimExpr) -> PrimExpr:
    """A lower bound as TVM writes it: 1 <= x."""
    return LE(bound.b, bound.a) if isinstance(bound, GE) else bound
