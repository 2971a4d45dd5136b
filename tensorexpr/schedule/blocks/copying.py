"""Copies of buffers: which part, where the copy is made, and the nest that makes it.

    for ax0, ax1 in T.grid(1, 32):
        with T.block("B_global"):
            v0, v1 = T.axis.spatial(32, i + ax0), T.axis.spatial(32, ax1)
            B_global[v0, v1] = B[v0, v1]

Two boxes matter: what is copied where the copy stands, and what all copies within the scope make together. The new buffer
has the size of the latter; the axes of the copy count within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...arith import relax
from ...arith.analyzer import Analyzer
from ...arith.iter_map import detect_iter_map
from ...dataclass import dataclass, replace
from ...tir.arithmetic import as_int, const, is_const_int, maximum, minimum
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion, pointer_var
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables
from ...tir.stmt import AllocateConst, BufferStore, DeclBuffer, For, IfThenElse, SeqStmt, Stmt, While, seq
from .bindings import TRUE, bound_values, is_true, ranges_of, simplified
from .buffers import check_scope
from .diagnostics import PrimitiveError
from .nests import looped
from .program import BlockProgram, Node, holds_for_scope, inner_statements, realized

Box = tuple[Range, ...]


def scoped_copy(buffer: Buffer, shape: Sequence[PrimExpr], name: str, scope: str) -> Buffer:
    """A compact buffer of the same elements, of its own memory."""
    check_scope(scope)
    zero = IntImm("int32", 0)
    data = pointer_var(name, buffer.dtype, scope)
    return replace(buffer, data=data, shape=tuple(shape), strides=(), elem_offset=zero, offset_factor=1, name=name)


def box_of(program: BlockProgram, node: Node, region: BufferRegion, outside: Stmt, together: Sequence[For] = ()) -> Box:
    """The box of a region that a block states, over the loops between it and `outside`, in terms of those around that.

    It is cut to the buffer where it isn't certain to lie in it. `together` are loops further out whose iterations share the box.
    """
    realize = realized(node)
    inner: list[For] = [*together]
    for above in node.ancestors():
        if above.stmt is outside:
            break
        if isinstance(above.stmt, For):
            inner.append(above.stmt)
    values = bound_values(realize)
    domain = ranges_of(inner)
    # What varies within the box is no fact: it is what the box is over.
    facts = Analyzer({var: dom for var, dom in ranges_around(node).items() if var not in domain})
    return tuple(
        _side(substitute(r.min, values), substitute(r.extent, values), extent, domain, facts)
        for r, extent in zip(region.region, region.buffer.shape, strict=True)
    )


def _side(low: PrimExpr, extent: PrimExpr, whole: PrimExpr, domain: Mapping[Var, Range], facts: Analyzer) -> Range:
    zero = const(0, whole.dtype)
    first, last = relax(low, domain, facts), relax(low + extent - 1, domain, facts)
    if first is None or last is None:
        return Range.from_min_extent(zero, whole)
    return cut(facts.simplify(first.min), facts.simplify(last.max + 1), whole, facts)


def cut(start: PrimExpr, end: PrimExpr, whole: PrimExpr, facts: Analyzer) -> Range:
    """The part of `start` up to `end` that lies in a dimension of a buffer.

    What a block states may pass the buffer's ends where conditions keep it from touching that.
    """
    if not facts.known_less_equal(0, start):
        start = facts.simplify(maximum(start, const(0, whole.dtype)))
    count = facts.simplify(end - start)
    return Range.from_min_extent(start, count if facts.known_less_equal(end, whole) else facts.simplify(minimum(count, whole - start)))


def extent_from_zero(axis: IterVar, node: Node, primitive: str) -> PrimExpr:
    """The extent of an axis of the block at `node`.

    Raises:
        PrimitiveError: if it starts elsewhere than at 0.
    """
    assert axis.dom is not None
    if as_int(axis.dom.min) != 0:
        raise PrimitiveError(f"{primitive}: the axis {axis.var.name} starts at {axis.dom.min}, not at 0", node.stmt)
    return axis.dom.extent


def ranges_around(node: Node) -> dict[Var, Range]:
    """The ranges of the loops around a block, and of the axes and loops of the blocks around it."""
    found: dict[Var, Range] = {}
    for above in node.ancestors():
        if isinstance(above.stmt, BlockRealize):
            found.update({axis.var: axis.dom for axis in above.stmt.block.iter_vars if axis.dom is not None})
        elif isinstance(above.stmt, For):
            found[above.stmt.loop_var] = Range.from_min_extent(above.stmt.min, above.stmt.extent)
    return found


def copy_nest(
    name: str, source: Buffer, target: Buffer, here: Box, whole: Box, of_source: bool, loops: Sequence[For], inner: str = "ax"
) -> tuple[Stmt, BlockRealize]:
    """Loops that copy a box, and the realization inside.

    Args:
        here: what is copied.
        whole: what all copies make together; the smaller buffer is counted from its start.
        of_source: the smaller buffer is the target, not the source.
        loops: those around the copy.
    """
    dtypes = [r.extent.dtype for r in whole]
    ax = [Var(f"{inner}{place}", dtype) for place, dtype in enumerate(dtypes)]
    axes = [
        IterVar(Range.from_min_extent(const(0, dtype), r.extent), Var(f"v{place}", dtype))
        for place, (dtype, r) in enumerate(zip(dtypes, whole, strict=True))
    ]
    values = tuple(simplified(h.min - w.min, loops) + var for h, w, var in zip(here, whole, ax, strict=True))
    point = tuple(axis.var for axis in axes)
    far = tuple(w.min + axis.var if as_int(w.min) != 0 else axis.var for w, axis in zip(whole, axes, strict=True))
    read_at, write_at = (far, point) if of_source else (point, far)
    realize = BlockRealize(values, TRUE, copy_block(name, axes, source, read_at, target, write_at))
    return looped(ax, [r.extent for r in here], realize), realize


def copy_block(
    name: str, axes: Iterable[IterVar], source: Buffer, read_at: Sequence[PrimExpr], target: Buffer, write_at: Sequence[PrimExpr]
) -> Block:
    """The block that copies one element."""
    return Block(
        tuple(axes),
        (BufferRegion.from_point(source, read_at),),
        (BufferRegion.from_point(target, write_at),),
        name,
        BufferStore(target, BufferLoad(source, tuple(read_at)), tuple(write_at)),
    )


@dataclass(frozen=True)
class Place:
    """Where something is put: in the loop or block `within`, before `before` there, or at its end."""

    within: Stmt
    before: Stmt | None

    def put(self, program: BlockProgram, stmt: Stmt) -> BlockProgram:
        """The program with a statement put there."""
        if self.before is not None:
            return program.replace(self.before, seq(stmt, self.before))
        body = self.within.block.body if isinstance(self.within, BlockRealize) else self.within.body  # type: ignore[attr-defined]
        return program.replace(body, seq(body, stmt))

    def loops(self, program: BlockProgram) -> list[For]:
        """The loops around the place, within its scope."""
        if isinstance(self.within, BlockRealize):
            return []
        node = program.node_of(self.within)
        return [*program.loops_above(node), *([self.within] if isinstance(self.within, For) else [])]


def scope_end(scope: Node) -> Place:
    """The end of a block's body."""
    return Place(scope.stmt, None)


def scope_start(scope: Node) -> Place:
    """The start of a block's body, behind what is declared for all of it."""
    assert isinstance(scope.stmt, BlockRealize)
    body = scope.stmt.block.body
    while isinstance(body, (AllocateConst, DeclBuffer)):
        body = body.body
    return Place(scope.stmt, first_of(body))


def first_of(body: Stmt) -> Stmt:
    """The first statement of a sequence; the statement itself if it is none."""
    return body.seq[0] if isinstance(body, SeqStmt) else body


def before_first(writer: Node, readers: Sequence[Node]) -> Place:
    """Directly before the first reader, in the innermost statement that has both it and the writer."""
    first = readers[0]
    path = {id(above.stmt) for above in writer.ancestors()}
    below = first
    for above in first.ancestors():
        if id(above.stmt) in path:
            within = above
            while not isinstance(within.stmt, (For, BlockRealize)) and within.parent is not None:
                within = within.parent
            return Place(within.stmt, below.stmt)
        below = above
    raise PrimitiveError("the blocks are of different functions", first.stmt)


def covers(program: BlockProgram, node: Node, region: BufferRegion) -> bool:
    """True if it is certain that a block touches each element of the box around all that it touches within its scope."""
    realize = realized(node)
    # A store under a condition may leave out any element.
    if _is_conditional(realize.block.body):
        return False
    loops = program.loops_above(node)
    values = bound_values(realize)
    domain = ranges_of(loops)
    indices: list[PrimExpr] = []
    for r in region.region:
        index, extent = substitute(r.min, values), as_int(r.extent)
        if extent is None:
            return False
        # A region wider than a point is touched whole, as by one more loop.
        if extent > 1:
            inside = Var("t", index.dtype)
            domain[inside] = Range.from_min_extent(const(0, index.dtype), r.extent)
            index = index + inside
        indices.append(index)
    # The common case, without the detection: each index a loop of its own, and the box around them is what they run over.
    if not indices or (is_true(realize.predicate) and _distinct_variables(indices, domain)):
        return True
    # Loops that no index has repeat the same elements; given to the detection they would look like iterators left out.
    used = set().union(*map(variables, indices))
    kept = {var: dom for var, dom in domain.items() if var in used}
    predicate = None if is_true(realize.predicate) or not used >= variables(realize.predicate) else realize.predicate
    if predicate is None and not is_true(realize.predicate):
        return False
    found = detect_iter_map(indices, kept, predicate)
    # A step other than 1 leaves elements between those it touches.
    if not found.indices or any(abs(split.scale) != 1 for total in found.indices for split in total.args):
        return False
    # A predicate may leave out the end of the box.
    box = box_of(program, node, region, program.scope_of(node).stmt) if predicate is not None else ()
    reached = [total.args[0].extent if total.args else 1 for total in found.indices]
    return all(is_const_int(side.extent, extent) for side, extent in zip(box, reached, strict=False))


def _distinct_variables(indices: Sequence[PrimExpr], domain: Mapping[Var, Range]) -> bool:
    moving = [index for index in indices if variables(index)]
    return len(set(moving)) == len(moving) and all(isinstance(index, Var) and index in domain for index in moving)


def _is_conditional(stmt: Stmt) -> bool:
    if isinstance(stmt, (IfThenElse, While)):
        return True
    return any(_is_conditional(inner) for inner in inner_statements(stmt))


def top_statement(node: Node) -> Stmt:
    """The statement directly in its scope that a block is in, or the block's realization itself."""
    below = node
    for above in node.ancestors():
        if isinstance(above.stmt, Block):
            break
        if (
            isinstance(above.stmt, SeqStmt)
            and above.parent is not None
            and (isinstance(above.parent.stmt, Block) or holds_for_scope(above.parent))
        ):
            break
        below = above
    return below.stmt
