"""An argument that is computed at a loop of another stage is there as a whole in the end: its parts cover it.

Each visit computes a box `[start, start + extent)` of every dimension, whose start depends on the loops outside. The boxes
leave no hole if, from the loop with the smallest step up, each step is no longer than what the loops before it cover.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...arith.analyzer import Analyzer
from ...arith.linear import linear_form
from ...errors import ScheduleError
from ...schedule.attachment import enclosing_loops
from ...schedule.domain import StageDomain
from ...schedule.tree import LoopKind, ScheduleTree, StageNode
from ...tir.arithmetic import as_int
from ...tir.expr import PrimExpr, Range, Var
from ...tir.insist import insisted


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
    used: set[Var] = set()
    for axis, size in zip(stage.spatial, stage.origin.output_shape(0), strict=True):
        found = _covered(domains[stage.id].region[axis], size, loops, parallel, analyzer)
        if found is None or not used.isdisjoint(found):
            _refuse(tree, stage, axis)
        used |= found or set()
    if not parallel <= used | {var for var, extent in loops.items() if as_int(extent) == 1}:
        _refuse(tree, stage, None)


def _covered(part: Range, size: PrimExpr, loops: Mapping[Var, PrimExpr], parallel: set[Var], analyzer: Analyzer) -> set[Var] | None:
    """The loops over which the boxes of one dimension make up all of it; None if that can't be shown."""
    form = linear_form(analyzer.simplify(part.min))
    covered = part.extent
    if form.constant != 0:
        return None
    for atom, step in sorted(form.terms.items(), key=lambda term: term[1]):
        count = loops.get(atom) if isinstance(atom, Var) else None
        joins = analyzer.known_equal(covered, step) if atom in parallel else analyzer.known_less_equal(step, covered)
        if count is None or step <= 0 or not joins:
            return None
        covered = analyzer.simplify(covered + step * (count - 1))
    return {atom for atom in form.terms if isinstance(atom, Var)} if analyzer.known_less_equal(size, covered) else None


def _refuse(tree: ScheduleTree, stage: StageNode, axis: int | None) -> None:
    where = f"In schedule for {stage.name}: it is an argument, and is computed in parts inside of other stages' loops"
    if axis is None:
        raise ScheduleError(f"{where}, but several iterations of a parallel loop compute the same part; compute it at the root")
    raise ScheduleError(
        f"{where}, but it isn't certain that these parts are all of its axis {stage.axes[axis].name!r}; compute it at the root, "
        "take it out of args, or insist with PassContext(config={'tir.unsafe': True})"
    )
