"""Loop partition: a loop as several one after another, each over a part of the range, with a copy of what is inside.

for i in range(100)            ->   with T.block("B_i_common")                      # loop_partition(i, [10, None])
    B: vi = i                           with T.block("B_i0_partition")
                                            for i0 in range(10)
                                                B_i0: vi = i0
                                        with T.block("B_i1_partition")
                                            for i1 in range(10, 100)
                                                B_i1: vi = i1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ....arith.block_access import get_block_access_region
from ....tir.arithmetic import as_int, convert
from ....tir.block import Block, BlockRealize
from ....tir.expr import IntImm, PrimExpr, Var
from ....tir.scopes import parts
from ....tir.stmt import For, ForKind, Stmt, seq
from ....tir.stmt_functor import Renaming
from ..bindings import TRUE, simplified
from ..diagnostics import PrimitiveError
from ..handles import BlockRef, LoopRef
from ..instruction import Applied, Primitive, State, loop_of
from ..program import BlockProgram, inner_statements, map_inner
from .split import check_plain


def loop_partition(program: BlockProgram, var: Var, factors: Sequence[PrimExpr | int | None]) -> tuple[BlockProgram, list[Var], list[str]]:
    """The program with a loop in parts of the lengths `factors`, the parts' variables, and the blocks that were copied.

    Args:
        factors: in the order of the range; one may be None and takes what is left; what they leave at the end makes one more part.
    """
    loop = program.loop(var)
    check_plain(loop, "loop_partition")
    points = _points(loop, factors)
    inside = [n.stmt for n in program.child_blocks(program.loop_node(var))]
    blocks = [stmt.block.name_hint for stmt in inside if isinstance(stmt, BlockRealize)]
    if not blocks:
        raise PrimitiveError(f"loop_partition: no block stands in {var.name}", loop)
    stem = blocks[0]
    made, names = [], []
    for number, (low, high) in enumerate(pairwise(points)):
        one = Var(f"{var.name}{number}", var.dtype)
        body = _copy(loop.body, {var: one}, f"{var.name}{number}", program)
        part = For(one, low, simplified(high - low, ()), ForKind.SERIAL, body)
        made.append(_around(program.fresh_block_name(f"{stem}_{var.name}{number}_partition"), part))
        names.append(one)
    whole = _around(program.fresh_block_name(f"{stem}_{var.name}_common"), seq(*made))
    return program.replace(loop, whole), names, blocks


def _points(loop: For, factors: Sequence[PrimExpr | int | None]) -> list[PrimExpr]:
    """Where the parts begin, and where the last ends."""
    dtype, extent = loop.loop_var.dtype, as_int(loop.extent)
    given = [None if factor is None else as_int(convert(factor)) for factor in factors]
    numbers = [number for number in given if number is not None]
    if extent is None:
        raise PrimitiveError(f"loop_partition needs a loop of constant extent, not {loop.extent}", loop)
    if not factors or given.count(None) != list(factors).count(None) or list(factors).count(None) > 1 or any(n < 1 for n in numbers):
        raise PrimitiveError(f"loop_partition takes positive lengths, of which at most one is None, not {list(factors)}", loop)
    total = sum(numbers)
    if total >= extent and (None in given or total > extent or len(given) < 2):
        raise PrimitiveError(
            f"loop_partition: lengths of {total} in all leave nothing of the extent {extent} of {loop.loop_var.name}", loop
        )
    lengths = [extent - total if number is None else number for number in given]
    if sum(lengths) < extent:
        lengths.append(extent - total)
    points = [0]
    for length in lengths:
        points.append(points[-1] + length)
    return [IntImm(dtype, point) for point in points]


def _copy(stmt: Stmt, values: Mapping[Var, PrimExpr], suffix: str, program: BlockProgram) -> Stmt:
    """A statement with variables of its own for all that it defines, and blocks renamed."""
    defined = [var for inner in _all(stmt) for var in parts(inner).defines]
    # what a copy defines is its own, or two loops would have one variable
    fresh = {var: type(var)(var.name, var.dtype, var.type_annotation) for var in dict.fromkeys(defined)}
    copied = Renaming({**fresh, **values}, folding=True).apply(stmt)
    return _renamed(copied, suffix, program)


def _all(stmt: Stmt) -> list[Stmt]:
    found, stack = [], [stmt]
    while stack:
        one = stack.pop()
        found.append(one)
        stack.extend(inner_statements(one))
        # `inner_statements` leaves the init out, which may define variables too
        if isinstance(one, Block) and one.init is not None:
            stack.append(one.init)
    return found


def _renamed(stmt: Stmt, suffix: str, program: BlockProgram) -> Stmt:
    """All blocks in a statement under names that end in the part's."""
    stmt = map_inner(stmt, lambda inner: _renamed(inner, suffix, program))
    return replace(stmt, name_hint=program.fresh_block_name(f"{stmt.name_hint}_{suffix}")) if isinstance(stmt, Block) else stmt


def _around(name: str, body: Stmt) -> BlockRealize:
    """A block without axes, which states what is touched inside."""
    reads, writes, _ = get_block_access_region(Block((), (), (), name, body))
    return BlockRealize((), TRUE, Block((), tuple(reads), tuple(writes), name, body))


class LoopPartition(Primitive):
    """The instruction. Handles of blocks inside, and of the loop, are gone: there are several copies of them."""

    kind, method, output = "LoopPartition", "loop_partition", "loop"
    inputs, attrs = ("loop", "factors..."), ("preserve_unit_iters",)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = loop_of(inputs[0], self.method)
        program, names, copied = loop_partition(state.program_of(ref), ref.var, list(inputs[1:]))
        gone: dict[BlockRef | LoopRef, BlockRef | LoopRef | None] = {BlockRef(ref.func, name): None for name in copied}
        outputs = tuple(LoopRef(ref.func, name) for name in names)
        return Applied(state.updated(ref.func, program), outputs, renamed={**gone, ref: None})
