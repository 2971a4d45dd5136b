"""Who produces and who consumes what within a scope, and which blocks may be moved.

A block is complete if it alone writes its buffers, over axes of data only, and reads none of them: its instances may run in any order.
A reduction block has an init or updates what it writes, over axes of data and of reduction, of which the latter don't say
where it writes. (The terms are TVM's.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables, walk
from ...tir.stmt import BufferStore, For
from .bindings import conditions, ranges_of
from .diagnostics import PrimitiveError, loop_name
from .program import BlockProgram, Node

SPATIAL = (IterVar.DATA_PAR,)


@dataclass(frozen=True)
class Scope:
    """The blocks directly within a scope, in the order of the text."""

    program: BlockProgram
    root: Node
    children: tuple[BlockRealize, ...]

    @staticmethod
    def around(program: BlockProgram, node: Node) -> Scope:
        """The scope that a node stands in."""
        return Scope.of(program, program.scope_of(node))

    @staticmethod
    def of(program: BlockProgram, root: Node) -> Scope:
        """The scope of a realization."""
        nodes = program.child_blocks(root)
        return Scope(program, root, tuple(node.stmt for node in nodes if isinstance(node.stmt, BlockRealize)))

    @staticmethod
    def below(program: BlockProgram, node: Node) -> Scope:
        """The blocks below a loop alone, as if nothing stood around it."""
        nodes = program.child_blocks(node)
        return Scope(program, node, tuple(below.stmt for below in nodes if isinstance(below.stmt, BlockRealize)))

    def writers(self, buffer: Buffer) -> list[BlockRealize]:
        """The blocks that write a buffer."""
        return [child for child in self.children if buffer in written(child.block)]

    def readers(self, buffer: Buffer) -> list[BlockRealize]:
        """The blocks that read a buffer."""
        return [child for child in self.children if buffer in read(child.block)]

    def producers(self, block: Block) -> list[BlockRealize]:
        """The blocks before a block that write what it reads."""
        wanted = set(read(block))
        return [child for child in self.before(block) if wanted & set(written(child.block))]

    def consumers(self, block: Block) -> list[BlockRealize]:
        """The blocks after a block that read what it writes."""
        made = set(written(block))
        return [child for child in self.after(block) if made & set(read(child.block))]

    def before(self, block: Block) -> Sequence[BlockRealize]:
        """The blocks before a block."""
        return self.children[: self._place(block)]

    def after(self, block: Block) -> Sequence[BlockRealize]:
        """The blocks after a block."""
        return self.children[self._place(block) + 1 :]

    def _place(self, block: Block) -> int:
        return next(n for n, child in enumerate(self.children) if child.block is block)

    def why_not_complete(self, block: Block) -> str | None:
        """What keeps a block from being complete; None if it is."""
        odd = next((axis for axis in block.iter_vars if axis.iter_type not in SPATIAL), None)
        if odd is not None:
            return f"its axis {odd.var.name} is not spatial"
        return self._sole_writer(block) or self._reads_own(block)

    def why_no_reduction(self, block: Block) -> str | None:
        """What keeps a block from being a reduction; None if it is one."""
        if block.init is None:
            return "it has no init (T.init), so nothing says what a reduction starts from"
        odd = next((a for a in block.iter_vars if a.iter_type not in (*SPATIAL, IterVar.COMM_REDUCE)), None)
        if odd is not None:
            return f"its axis {odd.var.name} is neither spatial nor reduced"
        reduced = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.COMM_REDUCE}
        for region in block.writes:
            if any(variables(r.min) & reduced for r in region.region):
                return f"where it writes {region.buffer.name} depends on an axis that it reduces"
        # C[i] += C[i - 1] needs what another instance writes, so the order of instances matters
        other = _read_elsewhere(block)
        return self._sole_writer(block) if other is None else f"it reads {other.name}, which it writes, elsewhere than where it writes it"

    def _sole_writer(self, block: Block) -> str | None:
        for buffer in written(block):
            others = [child.block.name_hint for child in self.writers(buffer) if child.block is not block]
            if others:
                return f"{buffer.name} is also written by {', '.join(others)}"
        return None

    def _reads_own(self, block: Block) -> str | None:
        shared = next((buffer for buffer in read(block) if buffer in written(block)), None)
        return None if shared is None else f"it reads {shared.name}, which it writes"


@lru_cache(maxsize=256)  # asked of the same block by primitives one after another
def _read_elsewhere(block: Block) -> Buffer | None:
    """A buffer that a block writes, and of which it reads other elements than those that it writes."""
    stores: dict[Buffer, set[tuple[PrimExpr, ...]]] = {}
    loads: list[BufferLoad] = []
    # The body alone: an init stores where the body does, and loads nothing of it.
    for node in walk(block.body):
        if isinstance(node, BufferStore):
            stores.setdefault(node.buffer, set()).add(node.indices)
        elif isinstance(node, BufferLoad):
            loads.append(node)
    return next((load.buffer for load in loads if load.buffer in stores and load.indices not in stores[load.buffer]), None)


def is_update(block: Block) -> bool:
    """True if a block touches of what it writes only the elements that it writes, wherever its reduced axes stand."""
    reduced = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.COMM_REDUCE}
    if any(variables(r.min) & reduced for region in block.writes for r in region.region):
        return False
    stated = {region.buffer: region.region for region in block.writes}
    own = [region for region in block.reads if region.buffer in stated]
    return all(_same_box(region.region, stated[region.buffer]) for region in own)


def _same_box(left: Sequence[Range], right: Sequence[Range]) -> bool:
    return all(a.min is b.min and a.extent is b.extent for a, b in zip(left, right, strict=True))  # expressions are interned


def written(block: Block) -> tuple[Buffer, ...]:
    """The buffers that a block says it writes, each once."""
    return tuple(dict.fromkeys(region.buffer for region in block.writes))


def read(block: Block) -> tuple[Buffer, ...]:
    """The buffers that a block says it reads, each once."""
    return tuple(dict.fromkeys(region.buffer for region in block.reads))


def check_complete(scope: Scope, realize: BlockRealize, primitive: str) -> None:
    """Refuse a block whose instances may not run in any order.

    Raises:
        PrimitiveError: with the reason.
    """
    reason = scope.why_not_complete(realize.block)
    if reason is not None:
        raise PrimitiveError(f"{primitive} needs a complete block; {realize.block.name_hint} is none: {reason}", realize)


def check_complete_or_reduction(scope: Scope, realize: BlockRealize, primitive: str) -> None:
    """Refuse a block that is neither complete nor a reduction.

    Raises:
        PrimitiveError: with the reasons.
    """
    complete = scope.why_not_complete(realize.block)
    reduction = scope.why_no_reduction(realize.block) if complete is not None else None
    if complete is not None and reduction is not None:
        name = realize.block.name_hint
        raise PrimitiveError(
            f"{primitive} needs a complete block or a reduction block; {name} is not complete: {complete}; it is no reduction: {reduction}",
            realize,
        )


def check_reduction(scope: Scope, realize: BlockRealize, primitive: str) -> None:
    """Refuse a block that is no reduction.

    Raises:
        PrimitiveError: with the reason.
    """
    reason = scope.why_no_reduction(realize.block)
    if reason is not None:
        raise PrimitiveError(f"{primitive} needs a reduction block; {realize.block.name_hint} is none: {reason}", realize)


def check_begins(realize: BlockRealize, loops: Sequence[For], primitive: str) -> None:
    """Refuse a reduction whose init doesn't run once for each element in these loops: they are a part of the reduction only.

    Raises:
        PrimitiveError: with the axis or condition.
    """
    reducing = loops_of_axes(realize, (IterVar.COMM_REDUCE,))
    # the first iteration of all loops that reduce
    start: dict[Var, PrimExpr] = {loop.loop_var: loop.min for loop in loops if loop.loop_var in reducing}
    analyzer = Analyzer(ranges_of(loops))
    block = realize.block
    for axis, value in realize.bindings():
        # Elsewhere than at its start the init has run in other loops, or never would.
        if axis.iter_type == IterVar.COMM_REDUCE and axis.dom is not None:
            first = substitute(value, start)
            if first is not axis.dom.min and not analyzer.known_equal(first, axis.dom.min):
                raise PrimitiveError(
                    f"{primitive}: the loops around {block.name_hint} begin its axis {axis.var.name} at {first}, not at {axis.dom.min}, "
                    "where its init runs: they do only a part of the reduction",
                    realize,
                )
    for condition in conditions(realize.predicate):
        if variables(condition) & reducing and not analyzer.known_true(substitute(condition, start)):
            raise PrimitiveError(
                f"{primitive}: {condition} may keep {block.name_hint} from its first instance, in which its init runs", realize
            )


def loops_of_axes(realize: BlockRealize, kinds: Sequence[int]) -> set[Var]:
    """The variables that the values of a block's axes of some kinds mention."""
    found: set[Var] = set()
    for axis, value in realize.bindings():
        if axis.iter_type in kinds:
            found |= variables(value)
    return found


def loops_with(program: BlockProgram, name: str, var: Var, primitive: str) -> list[For]:
    """The loops around a block, of which the loop over a variable must be one.

    Raises:
        PrimitiveError: if it isn't.
    """
    node, loop = program.block_node(name), program.loop(var)
    loops = program.loops_above(node)
    if all(above is not loop for above in loops):
        there = ", ".join(above.loop_var.name for above in loops) or "none"
        raise PrimitiveError(f"{primitive}: {loop_name(program, var)} is no loop around {name}; loops around it: {there}", node.stmt)
    return loops
