"""Split: one loop into a nest.

for i in range(100)        ->   for i_0, i_1 in T.grid(7, 16)
    B: vi = i                       B: vi = i_0 * 16 + i_1, where i_0 * 16 + i_1 < 100

balanced, into tiles whose sizes differ by at most one, of which the larger come first:

for i in range(100)        ->   for i_0, i_1 in T.grid(7, 15)
    B: vi = i; C[vi] = ...          B: vi_0, vi_1 = i_0, i_1, where i_1 * 7 + i_0 < 100; C[vi_0 * 14 + min(vi_0, 2) + vi_1] = ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....dataclass import dataclass, replace
from ....errors import ScheduleError
from ....tir.arithmetic import as_int, cast, ceildiv, convert, minimum
from ....tir.block import Block, BlockRealize
from ....tir.dtype import parse_dtype
from ....tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import children, substitute, variables
from ....tir.stmt import For, ForKind, Stmt
from ..bindings import TRUE, conditions, conjunction, knowing, rebound, simplified
from ..diagnostics import PrimitiveError
from ..handles import LoopRef
from ..instruction import Applied, Primitive, State, loop_of
from ..nests import nested
from ..program import BlockProgram, map_inner


def split(
    program: BlockProgram,
    var: Var,
    factors: Sequence[PrimExpr | int | None],
    disable_predication: bool = False,
    preserve_unit_iters: bool = True,
) -> tuple[BlockProgram, list[Var]]:
    """The program with a loop split into loops of the extents `factors`, and their variables.

    Args:
        factors: outermost first; one may be None and follows from the others.
        preserve_unit_iters: axes keep loops of one iteration as terms.
        disable_predication: no condition where the factors make more than the extent: the caller vouches for what runs beyond.
    """
    loop = program.loop(var)
    check_plain(loop, "split")
    extents = _extents(loop, factors)
    names = [Var(f"{var.name}_{number}", var.dtype) for number in range(len(extents))]
    total: PrimExpr = names[0]
    for name, extent in zip(names[1:], extents[1:], strict=True):
        total = total * extent + name
    outer = program.loops_above(program.loop_node(var))
    inner = [For(name, IntImm(var.dtype, 0), extent, ForKind.SERIAL, loop.body) for name, extent in zip(names, extents, strict=True)]
    around = [*outer, *inner]
    facts = knowing(around)
    covered = facts.known_true(total < loop.extent)
    guard = None if covered or disable_predication else total < loop.extent
    body = rebound(loop.body, {var: total}, around, guard, preserve_unit_iters)
    return program.replace(loop, nested(inner, body)), names


def balanced_split(program: BlockProgram, var: Var, factors: Sequence[PrimExpr | int | None]) -> tuple[BlockProgram, list[Var]]:
    """The program with a loop split into tiles whose sizes differ by at most one, and the variables of tiles and of places in one.

    A block's axis over the loop becomes two, as its place is no affine form of the tile's number: it steps by another size in the middle.

    Args:
        factors: (None, f): as few tiles as sizes of at most f allow; or (p, None): p tiles.
    """
    loop = program.loop(var)
    check_plain(loop, "split")
    extent = as_int(loop.extent)
    if extent is None or len(factors) != 2:
        made = f"got {len(factors)} parts of {loop.extent}"
        raise PrimitiveError(f"a balanced split makes two parts of a constant extent, {made}; split one of the parts again", loop)
    tiles, inside = (as_int(made) for made in _extents(loop, factors))
    if tiles is None or inside is None or all(factor is not None for factor in factors):
        raise PrimitiveError(f"a balanced split takes one number, as in [None, 16] or [7, None], not {list(factors)}", loop)
    least, larger = divmod(extent, tiles)
    parts = [Var(f"{var.name}_{number}", var.dtype) for number in range(2)]
    sizes = (tiles, least + (larger > 0))
    zero = IntImm(var.dtype, 0)
    inner = [For(part, zero, IntImm(var.dtype, size), ForKind.SERIAL, loop.body) for part, size in zip(parts, sizes, strict=True)]

    def place(tile: PrimExpr, step: PrimExpr) -> PrimExpr:
        return tile * least + minimum(tile, IntImm(var.dtype, larger)) + step if larger else tile * least + step

    # 100 in 7 tiles of 14 or 15: at place 14, 14 * 7 + tile < 100 for tiles 0 and 1 alone; at places before it, always.
    guard = parts[1] * tiles + parts[0] < extent if larger else TRUE  # a tile's last place exists if the tile is a larger one
    body = _in_tiles(loop.body, loop, _Tiles(parts, sizes, place, guard))
    return program.replace(loop, nested(inner, body)), parts


@dataclass(frozen=True, eq=False)
class _Tiles:
    """Loops over tiles and places in them: their variables and extents, the old variable in terms of two others, what holds of places."""

    parts: Sequence[Var]
    sizes: Sequence[int]
    place: Callable[[PrimExpr, PrimExpr], PrimExpr]
    guard: PrimExpr


def _in_tiles(stmt: Stmt, loop: For, tiles: _Tiles) -> Stmt:
    """A statement under a loop whose tiles are others' loops."""
    var = loop.loop_var
    if not isinstance(stmt, BlockRealize):
        moved = map_inner(stmt, lambda inner: _in_tiles(inner, loop, tiles))
        own = {node for child in children(moved) if isinstance(child, PrimExpr) for node in variables(child)}
        if var in own:
            raise PrimitiveError(f"a balanced split of {var.name}, on which a {type(stmt).__name__} outside of blocks depends", loop)
        return moved
    axes: list[IterVar] = []
    values: list[PrimExpr] = []
    meaning: dict[Var, PrimExpr] = {}
    for axis, value in stmt.bindings():
        if value is var:
            new = [IterVar(Range(0, size), Var(f"{axis.var.name}_{n}", var.dtype), axis.iter_type) for n, size in enumerate(tiles.sizes)]
            axes += new
            values += tiles.parts
            meaning[axis.var] = tiles.place(new[0].var, new[1].var)
        elif var in variables(value):
            raise PrimitiveError(
                f"a balanced split of {var.name}, of which block {stmt.block.name_hint!r} takes {value}; split the loop before others", loop
            )
        else:
            axes.append(axis)
            values.append(value)
    whole = tiles.place(*tiles.parts)
    holds = conjunction([*conditions(substitute(stmt.predicate, {var: whole})), *conditions(tiles.guard)])
    block = substitute(replace(stmt.block, iter_vars=()), meaning)
    assert isinstance(block, Block)
    return BlockRealize(tuple(values), holds, replace(block, iter_vars=tuple(axes)))


def _check_factors(loop: For, factors: Sequence[PrimExpr | int | None]) -> None:
    """Integers of at least 1, but for one that may be left open."""
    if not factors or list(factors).count(None) > 1:
        raise PrimitiveError(f"split takes factors of which at most one is None, not {list(factors)}", loop)
    for factor in (factor for factor in factors if factor is not None):
        value = convert(factor)
        number = as_int(value)
        if not parse_dtype(value.dtype).is_int:
            raise PrimitiveError(f"split takes integers as factors, not {factor}", loop)
        if number is not None and number < 1:
            raise PrimitiveError(f"split takes positive factors, not {number}", loop)


def _extents(loop: For, factors: Sequence[PrimExpr | int | None]) -> list[PrimExpr]:
    """The extents of the parts; an open one is the loop's extent by the others, rounded up."""
    _check_factors(loop, factors)
    dtype = loop.loop_var.dtype
    known = [cast(convert(factor), dtype) if factor is not None else None for factor in factors]
    product: PrimExpr = IntImm(dtype, 1)
    for factor in known:
        product = product if factor is None else product * factor
    if None not in factors:
        # More than the extent is fine, as a guard cuts it off; less would leave iterations out. Symbolic ones are as the user says.
        have, want = as_int(product), as_int(loop.extent)
        if have is not None and want is not None and have < want:
            raise PrimitiveError(f"split of {loop.loop_var.name}: factors of product {have} don't cover its extent of {want}", loop)
    return [simplified(ceildiv(loop.extent, product), ()) if k is None else k for k in known]


def check_plain(loop: For, primitive: str) -> None:
    """Refuse a loop that already says how it runs, or that doesn't start at 0.

    Raises:
        PrimitiveError: with the reason.
    """
    if loop.annotations or loop.thread_binding is not None:
        raise PrimitiveError(
            f"{primitive}: the loop {loop.loop_var.name} has annotations or is bound; do this before you annotate it", loop
        )
    if as_int(loop.min) != 0:
        raise PrimitiveError(f"{primitive}: the loop {loop.loop_var.name} starts at {loop.min}, not at 0", loop)


class Split(Primitive):
    """The instruction."""

    kind, method, output = "Split", "split", "loop"
    inputs, attrs = ("loop", "factors..."), ("preserve_unit_iters", "disable_predication", "balanced")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The loop as a nest, balanced if the third attribute says so."""
        ref = loop_of(inputs[0], "split")
        unchecked = bool(attrs[1]) if len(attrs) > 1 else False
        if len(attrs) > 2 and attrs[2]:
            program, names = balanced_split(state.program_of(ref), ref.var, list(inputs[1:]))
        else:
            program, names = split(state.program_of(ref), ref.var, list(inputs[1:]), unchecked, bool(attrs[0]))
        return Applied(state.updated(ref.func, program), tuple(LoopRef(ref.func, name) for name in names))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        if len(attrs) not in (1, 2, 3):
            raise ScheduleError(f"Split has 1 to 3 attributes, not {len(attrs)}")
        shown = super().arguments(inputs, (*attrs, *[0] * (3 - len(attrs))))
        return shown if len(attrs) == 3 else shown[:-1]  # as TVM writes it where there is nothing that TVM hasn't
