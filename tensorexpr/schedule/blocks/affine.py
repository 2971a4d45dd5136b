"""Whether a block's axes are made of the loops around it by splitting and fusing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import lcm

from ...arith.iter_map import detect_iter_map
from ...tir.arithmetic import as_int
from ...tir.block import BlockRealize
from ...tir.expr import FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables, walk
from ...tir.stmt import For
from .bindings import conditions, conjunction, is_true
from .dataflow import is_symbolic_split
from .diagnostics import PrimitiveError


def why_not_affine(realize: BlockRealize, loops: Sequence[For]) -> str | None:
    """What keeps a block's axes from being splits and fusions of the loops around it; None if they are."""
    return _why_not_affine(realize, tuple((loop.loop_var, loop.min, loop.extent) for loop in loops))


def why_not_affine_inside(realize: BlockRealize, outer: Sequence[For], inner: Sequence[For]) -> str | None:
    """The same, but that loops outside may do a copy again: of warps that read the same rows, `v0 = warp // 2 * 16 + i`, two do."""
    reason = why_not_affine(realize, [*outer, *inner])
    is_copy = realize.block.init is None and all(axis.iter_type == IterVar.DATA_PAR for axis in realize.block.iter_vars)
    if reason is None or not is_copy:
        return reason
    first = {loop.loop_var: loop.min for loop in outer}
    values = tuple(substitute(value, first) for value in realize.iter_values)
    return why_not_affine(replace(realize, iter_values=values, predicate=substitute(realize.predicate, first)), inner)


@lru_cache(maxsize=256)  # of primitives one after another most ask it of the same block in the same loops
def _why_not_affine(realize: BlockRealize, loops: tuple[tuple[Var, PrimExpr, PrimExpr], ...]) -> str | None:
    domain = {var: Range.from_min_extent(low, extent) for var, low, extent in loops}
    if _is_trivial(realize, domain):
        return None
    used = set().union(*map(variables, realize.iter_values), variables(realize.predicate)) if realize.iter_values else set()
    kept = {var: dom for var, dom in domain.items() if var in used}
    symbolic = {var: _long(dom) for var, dom in kept.items() if as_int(dom.extent) is None}
    guarded = not symbolic and not is_true(realize.predicate)
    found = detect_iter_map(realize.iter_values, {**kept, **symbolic}, realize.predicate if guarded else None)
    if found.indices or not realize.iter_values or (is_true(realize.predicate) and is_symbolic_split(realize, domain)):
        return None
    return found.errors[0]


def tells_apart(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether different iterations of these inner loops have different axes, those around them standing still.

    More than `why_not_affine` can tell: an axis may begin anywhere. Of conditions those on these loops alone count, where they help.
    """
    domain = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    divisors = {as_int(node.b) or 1 for value in realize.iter_values for node in walk(value) if isinstance(node, (FloorDiv, FloorMod))}
    ranges = {var: _long(dom, lcm(*divisors)) if as_int(dom.extent) is None else dom for var, dom in domain.items()}
    own = [condition for condition in conditions(realize.predicate) if variables(condition) <= set(ranges)]
    return any(detect_iter_map(realize.iter_values, ranges, where).indices for where in (None, *([conjunction(own)] if own else ())))


def _long(dom: Range, divisor: int = 1) -> Range:
    """A range in place of a symbolic one: what tells apart the iterations of it tells apart those of any part of it.

    It is so long that a multiple of a longer one overflows its type. Quotients come apart only where they divide, so it has many divisors.
    """
    length = 2**15 * 3**6 * 5 * 7 if dom.extent.dtype == "int32" else 2**38 * 3**8 * 5**2 * 7 * 11
    return Range.from_min_extent(IntImm(dom.extent.dtype, 0), IntImm(dom.extent.dtype, length // divisor * divisor))


def _is_trivial(realize: BlockRealize, domain: Mapping[Var, Range]) -> bool:
    """True if each axis is a loop of its own or a constant."""
    values = [value for value in realize.iter_values if not _is_constant(value)]
    return is_true(realize.predicate) and len(set(values)) == len(values) and all(isinstance(v, Var) and v in domain for v in values)


def _is_constant(value: PrimExpr) -> bool:
    return not variables(value)


def check_affine(realize: BlockRealize, loops: Sequence[For], primitive: str) -> None:
    """Refuse a block whose axes aren't splits and fusions of its loops.

    Raises:
        PrimitiveError: with the reason.
    """
    reason = why_not_affine(realize, loops)
    if reason is not None:
        raise PrimitiveError(
            f"{primitive} needs axes that are made of loops by splitting and fusing; {realize.block.name_hint}: {reason}", realize
        )
