"""Split: one loop into a nest.

for i in range(100)        ->   for i_0, i_1 in T.grid(7, 16)
    B: vi = i                       B: vi = i_0 * 16 + i_1, where i_0 * 16 + i_1 < 100
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import ScheduleError
from ....tir.arithmetic import as_int, cast, ceildiv, convert
from ....tir.dtype import parse_dtype
from ....tir.expr import IntImm, PrimExpr, Var
from ....tir.stmt import For, ForKind
from ..bindings import knowing, rebound, simplified
from ..diagnostics import PrimitiveError
from ..handles import LoopRef
from ..instruction import Applied, Primitive, State, loop_of
from ..nests import nested
from ..program import BlockProgram


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


def _extents(loop: For, factors: Sequence[PrimExpr | int | None]) -> list[PrimExpr]:
    dtype = loop.loop_var.dtype
    open_places = [place for place, factor in enumerate(factors) if factor is None]
    if len(factors) < 1 or len(open_places) > 1:
        raise PrimitiveError(f"split takes factors of which at most one is None, not {list(factors)}", loop)
    for factor in factors:
        number = None if factor is None else as_int(convert(factor))
        if factor is not None and not parse_dtype(convert(factor).dtype).is_int:
            raise PrimitiveError(f"split takes integers as factors, not {factor}", loop)
        if number is not None and number < 1:
            raise PrimitiveError(f"split takes positive factors, not {number}", loop)
    known = [cast(convert(factor), dtype) if factor is not None else None for factor in factors]
    product: PrimExpr = IntImm(dtype, 1)
    for factor in known:
        product = product if factor is None else product * factor
    if not open_places:
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
    inputs, attrs = ("loop", "factors..."), ("preserve_unit_iters", "disable_predication")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = loop_of(inputs[0], "split")
        unchecked = bool(attrs[1]) if len(attrs) > 1 else False
        program, names = split(state.program_of(ref), ref.var, list(inputs[1:]), unchecked, bool(attrs[0]))
        return Applied(state.updated(ref.func, program), tuple(LoopRef(ref.func, name) for name in names))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        if len(attrs) not in (1, 2):
            raise ScheduleError(f"Split has 1 or 2 attributes, not {len(attrs)}")
        return super().arguments(inputs, (*attrs, *([0] if len(attrs) == 1 else [])))
