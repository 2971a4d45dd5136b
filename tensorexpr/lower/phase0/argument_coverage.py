"""An argument that is computed at a loop of another stage is there as a whole in the end: its parts cover it.

Each visit computes a box `[start, start + extent)` of every dimension, whose start depends on the loops outside. The boxes
leave no hole if, from the loop with the smallest step up, each step is no longer than what the loops before it cover. A loop that was
made of several counts for each of them:

    for f in range(4 * 8): s[f // 8, 4 * (f % 8) : 4 * (f % 8) + 4]        f is two digits, of which each counts for itself
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import prod

from ...arith.analyzer import Analyzer
from ...arith.linear import linear_form
from ...dataclass import dataclass
from ...errors import ScheduleError
from ...schedule.attachment import enclosing_loops
from ...schedule.domain import StageDomain
from ...schedule.tree import LoopKind, ScheduleTree, StageNode
from ...tir.arithmetic import as_int, const
from ...tir.expr import FloorDiv, FloorMod, PrimExpr, Range, Var
from ...tir.insist import insisted


@dataclass(frozen=True, slots=True)
class _Digit:
    """A loop variable, or (variable // low) % count where those digits are all of it."""

    var: Var
    low: int
    count: PrimExpr


def check_covers(tree: ScheduleTree, stage: StageNode, domains: Mapping[int, StageDomain], analyzer: Analyzer) -> None:
    """Check that an argument computed at a loop is computed whole, and each element by one iteration of parallel loops.

    Raises:
        ScheduleError: naming the dimension.
    """
    if insisted():
        return
    loops: dict[Var, PrimExpr] = {}
    parallel: set[Var] = set()
    for target, axis in enclosing_loops(tree, stage):
        var = target.axes[axis].var
        loops[var] = domains[target.id].extents[axis]
        if target.mark(axis).kind in (LoopKind.PARALLEL, LoopKind.BIND):
            parallel.add(var)
    used: list[_Digit] = []
    for axis, size in zip(stage.spatial, stage.origin.output_shape(0), strict=True):
        found = _covered(domains[stage.id].region[axis], size, loops, parallel, analyzer)
        if found is None or _overlap([*used, *found]):
            _refuse(tree, stage, axis)
        used += found or []
    if not all(_is_used(var, loops[var], used) for var in parallel):
        _refuse(tree, stage, None)


def _digit(atom: object, loops: Mapping[Var, PrimExpr]) -> _Digit | None:
    """What an atom of an index is of a loop variable; None for anything else, and where a digit isn't the same for each higher one."""
    if isinstance(atom, Var):
        return _Digit(atom, 1, loops[atom]) if atom in loops else None
    count = as_int(atom.b) if isinstance(atom, FloorMod) else None
    inner = atom.a if isinstance(atom, FloorMod) else atom
    low = as_int(inner.b) if isinstance(inner, FloorDiv) else 1
    var = inner.a if isinstance(inner, FloorDiv) else inner
    extent = as_int(loops[var]) if isinstance(var, Var) and var in loops else None
    if (
        not isinstance(var, Var)
        or extent is None
        or low is None
        or low < 1
        or (isinstance(atom, FloorMod) and (count is None or count < 1))
    ):
        return None
    count = extent // low if count is None else count
    return _Digit(var, low, const(count, var.dtype)) if count > 0 and extent % (low * count) == 0 else None


def _overlap(digits: Iterable[_Digit]) -> bool:
    """Whether two digits have something of one loop in common."""
    # By variable, then from the lowest digit up, so that neighbours in the list are neighbours in the number.
    listed = sorted(digits, key=lambda one: (one.var.name, id(one.var), one.low))
    return any(a.var is b.var and a.low * (as_int(a.count) or b.low + 1) > b.low for a, b in pairwise(listed))


def _is_used(var: Var, extent: PrimExpr, digits: Iterable[_Digit]) -> bool:
    """Whether all digits of a loop variable are there."""
    own = [one for one in digits if one.var is var]
    whole = any(one.low == 1 and one.count is extent for one in own)
    return whole or as_int(extent) == prod(as_int(one.count) or 0 for one in own)


def _covered(part: Range, size: PrimExpr, loops: Mapping[Var, PrimExpr], parallel: set[Var], analyzer: Analyzer) -> list[_Digit] | None:
    """The loops over which the boxes of one dimension make up all of it; None if that can't be shown."""
    form = linear_form(analyzer.simplify(part.min))
    covered = part.extent
    if form.constant != 0:
        return None
    found: list[_Digit] = []
    # Smallest step first: each joins the boxes that those before it have put together.
    for atom, step in sorted(form.terms.items(), key=lambda term: term[1]):
        digit = _digit(atom, loops)
        if digit is None or step <= 0:
            return None
        # Parallel iterations may not share an element, so their boxes only touch; those of serial loops may overlap.
        joins = analyzer.known_equal(covered, step) if digit.var in parallel else analyzer.known_less_equal(step, covered)
        if not joins:
            return None
        covered = analyzer.simplify(covered + step * (digit.count - 1))
        found.append(digit)
    # More than the size is fine: guards cut off what is beyond the border.
    return found if analyzer.known_less_equal(size, covered) else None


def _refuse(tree: ScheduleTree, stage: StageNode, axis: int | None) -> None:
    where = f"In schedule for {stage.name}: it is an argument, and is computed in parts inside of other stages' loops"
    if axis is None:
        raise ScheduleError(f"{where}, but several iterations of a parallel loop compute the same part; compute it at the root")
    raise ScheduleError(
        f"{where}, but it isn't certain that these parts are all of its axis {stage.axes[axis].name!r}; compute it at the root, "
        "take it out of args, or insist with PassContext(config={'tir.unsafe': True})"
    )
