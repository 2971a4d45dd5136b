"""Decompose padding: a block that pads becomes one that fills in the constant and one that copies what is inside.

for i in range(32)                                   ->   for i in range(32)
    P: P[vi] = if_then_else(2 <= vi, A[vi - 2], 0)            P_pad_const: P[vi] = 0
                                                          for i in range(30)
                                                              P: P[vi + 2] = A[vi]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....arith.analyzer import Analyzer
from ....dataclass import dataclass, replace
from ....tir.arithmetic import as_int, const
from ....tir.block import BlockRealize
from ....tir.expr import GE, GT, LE, LT, Call, IterVar, PrimExpr, Range, Select, Var
from ....tir.rewriting import substitute, variables
from ....tir.stmt import BufferStore, For, Stmt, seq, statements_of
from ..bindings import conditions, conjunction, loosely, ranges_of, renewed_axes, substituted_region
from ..dataflow import check_unambiguous
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, block_of, loop_of
from ..nests import nested, renewed_loops
from ..program import BlockProgram, Node, block_at
from ..scope import Scope, check_complete, loops_with
from .transform_block_layout import simplified_block


@dataclass(frozen=True)
class _Pattern:
    """A store of `inside` where each axis is in its range, else of a constant."""

    store: BufferStore
    inside: PrimExpr
    constant: PrimExpr
    ranges: Mapping[Var, tuple[int, int]]  # from, up to


def decompose_padding(program: BlockProgram, name: str, var: Var) -> tuple[BlockProgram, str]:
    """The program with a block that fills in a constant at a loop, before what copies the rest; and the filling block's name."""
    node, loop = program.block_node(name), program.loop(var)
    realize = program.realize(name)
    above = loops_with(program, name, var, "decompose_padding")
    check_complete(Scope.around(program, node), realize, "decompose_padding")
    check_unambiguous(realize, "decompose_padding")
    inner = above[next(place for place, around in enumerate(above) if around is loop) :]
    own = _own_loops(inner, node)
    pattern = _pattern(node)
    outer = above[: len(above) - len(inner)]
    facts = Analyzer(ranges_of(outer))
    made_name = program.fresh_block_name(f"{name}_pad_const")
    filling = _filling(realize, inner, pattern, made_name, facts)
    copying = _copying(realize, inner, own, pattern, facts)
    if own == inner:
        return program.replace(loop, seq(filling, copying)), made_name
    # What else stands in the loops isn't disturbed: only this block writes the buffer, and outside always the same.
    copied = program.replace(own[0] if own else realize, copying)
    return copied.replace(copied.loop(var), seq(filling, copied.loop(var))), made_name


def _own_loops(inner: Sequence[For], node: Node) -> list[For]:
    """The innermost of the loops down to a block, in which it stands alone.

    Raises:
        PrimitiveError: if something else than loops and other statements stands in between.
    """
    own: list[For] = []
    alone, below = True, node.stmt
    for loop in reversed(inner):
        together = statements_of(loop.body)
        if not any(part is below for part in together):
            raise PrimitiveError(f"decompose_padding: a {type(loop.body).__name__} stands in the loop over {loop.loop_var.name}", loop)
        # From the inside out: once a loop holds something else, neither it nor those around it are the block's own.
        alone = alone and len(together) == 1
        own = [loop, *own] if alone else own
        below = loop
    return own


def _filling(realize: BlockRealize, inner: Sequence[For], pattern: _Pattern, name: str, facts: Analyzer) -> Stmt:
    """The block that stores the constant everywhere, in loops of its own."""
    loops, fresh = renewed_loops(inner, plain=True)
    axes, renamed = renewed_axes(realize.block.iter_vars)
    store = replace(pattern.store, value=pattern.constant)
    block = replace(
        realize.block,
        iter_vars=axes,
        reads=(),
        writes=tuple(substituted_region(region, renamed) for region in realize.block.writes),
        name_hint=name,
        body=substitute(store, renamed),
    )
    values = tuple(substitute(facts.simplify(value), fresh) for value in realize.iter_values)
    return nested(loops, BlockRealize(values, substitute(realize.predicate, fresh), block))


def _copying(realize: BlockRealize, inner: Sequence[For], own: Sequence[For], pattern: _Pattern, facts: Analyzer) -> Stmt:
    """The block in its own loops over what is inside: its axes are shorter, and count from there."""
    # A loop in a predicate keeps its extent: shifted, the condition would speak of other points.
    guarded = variables(realize.predicate)
    block, loops = realize.block, {loop.loop_var: loop for loop in own if loop.loop_var not in guarded}
    extents: dict[Var, PrimExpr] = {loop.loop_var: loop.extent for loop in own}
    values: list[PrimExpr] = []
    holds: list[PrimExpr] = []
    known = Analyzer(ranges_of(inner))
    for axis, value in realize.bindings():
        low, high = pattern.ranges.get(axis.var, (None, None))
        if low is None or high is None:
            values.append(facts.simplify(value))
        # The loop runs over the inside alone, from 0: nothing else counts with it.
        elif isinstance(value, Var) and value in loops and _alone(axis, loops[value], realize):
            extents[value] = const(high - low, value.dtype)
            values.append(value)
        else:
            values.append(facts.simplify(value - low))
            holds += [c for c in (LE(const(low, value.dtype), value), value < high) if not _certain(c, facts, known)]
    # The axes count from the inside's begin, so that their domains start at 0 as blocks' do.
    moved: dict[Var, PrimExpr] = {var: var + low for var, (low, _) in pattern.ranges.items()}
    axes = tuple(_narrowed(axis, pattern.ranges.get(axis.var)) for axis in block.iter_vars)
    ranges = Analyzer({axis.var: loosely(axis.dom) for axis in axes if axis.dom is not None})
    body = replace(block, iter_vars=(), body=replace(pattern.store, value=pattern.inside))
    made = replace(simplified_block(substitute(body, moved), ranges), iter_vars=axes)
    condition = conjunction([*holds, *conditions(realize.predicate)])
    return nested([replace(loop, extent=extents[loop.loop_var]) for loop in own], BlockRealize(tuple(values), condition, made))


def _certain(condition: PrimExpr, *facts: Analyzer) -> bool:
    return any(known.known_true(condition) for known in facts)


def _alone(axis: IterVar, loop: For, realize: BlockRealize) -> bool:
    """True if a loop is for one axis alone, and for all of it."""
    users = sum(loop.loop_var in variables(value) for value in realize.iter_values)
    assert axis.dom is not None
    return users == 1 and as_int(loop.min) == 0 and as_int(loop.extent) == as_int(axis.dom.extent)


def _narrowed(axis: IterVar, found: tuple[int, int] | None) -> IterVar:
    if found is None:
        return axis
    return replace(axis, dom=Range.from_min_extent(const(0, axis.var.dtype), const(found[1] - found[0], axis.var.dtype)))


def _pattern(node: Node) -> _Pattern:
    """What the block stores where.

    Raises:
        PrimitiveError: if it is no padding.
    """
    block, store = block_at(node), block_at(node).body
    value = store.value if isinstance(store, BufferStore) and block.init is None else None
    if isinstance(value, Call) and value.op == "tir.if_then_else":
        condition, inside, constant = value.args
    elif isinstance(value, Select):
        condition, inside, constant = value.condition, value.true_value, value.false_value
    else:
        raise _no_padding(node, "it stores no if_then_else(inside, value, constant)")
    assert isinstance(store, BufferStore)
    if variables(constant) or (as_int(constant) is None and not hasattr(constant, "value")):
        raise _no_padding(node, f"what it stores outside, {constant}, is no constant")
    domains = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    ranges: dict[Var, tuple[int, int]] = {}
    for part in conditions(condition):
        var, low, high = _bound(part, node)
        dom = domains.get(var)
        start, count = (as_int(dom.min), as_int(dom.extent)) if dom is not None else (None, None)
        # Bounds that aren't numbers can't be told from the axis' own ends, so whether there is any padding wouldn't be known.
        if start != 0 or count is None:
            raise _no_padding(node, f"{var.name} is no axis of it of constant extent from 0")
        # Several conditions on one axis meet; each may bound one side.
        old = ranges.get(var, (0, count))
        ranges[var] = (max(old[0], low if low is not None else 0), min(old[1], high if high is not None else count))
    empty = next((var for var, (low, high) in ranges.items() if low >= high), None)
    if empty is not None:
        raise _no_padding(node, f"nothing is inside along {empty.name}")
    if all(found == (0, as_int(domains[var].extent)) for var, found in ranges.items()):
        raise _no_padding(node, "all points of its axes are inside")
    order = {axis.var: ranges[axis.var] for axis in block.iter_vars if axis.var in ranges}
    return _Pattern(store, inside, constant, order)


def _bound(part: PrimExpr, node: Node) -> tuple[Var, int | None, int | None]:
    """The axis that a condition bounds, and where its values start, or end."""
    if not isinstance(part, (LT, LE, GT, GE)):
        raise _no_padding(node, f"the condition {part} doesn't bound an axis by a constant")
    left, right = part.a, part.b
    is_less = isinstance(part, (LT, LE))
    if isinstance(left, Var) and as_int(right) is not None:
        var, number, is_upper = left, as_int(right), is_less
    elif isinstance(right, Var) and as_int(left) is not None:
        var, number, is_upper = right, as_int(left), not is_less
    else:
        raise _no_padding(node, f"the condition {part} doesn't bound an axis by a constant")
    assert number is not None
    is_strict = isinstance(part, (LT, GT))
    return (var, None, number if is_strict else number + 1) if is_upper else (var, number + 1 if is_strict else number, None)


def _no_padding(node: Node, reason: str) -> PrimitiveError:
    return PrimitiveError(f"decompose_padding: {block_at(node).name_hint} is no padding: {reason}", node.stmt)


class DecomposePadding(Primitive):
    """The instruction."""

    kind, method, output, inputs = "DecomposePadding", "decompose_padding", "block", ("block", "loop")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        loop = loop_of(inputs[1], self.method, ref.func)
        program, name = decompose_padding(state.program_of(ref), ref.name, loop.var)
        return Applied(state.updated(ref.func, program), (BlockRef(ref.func, name),))
