"""Rolling buffers: a stage at a loop keeps the elements that its next visit needs again, in a window used round and round.

The box that one iteration needs, `[low, low + size)` along one dimension, moves by `step < size` per iteration. So element
i lives at i % size, the first iteration computes `[low, low + size - step)`, and each one `[low + size - step, low + size)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ...schedule.domain import Guard, StageDomain, stage_domain
from ...schedule.tree import At, ScheduleTree, StageNode
from ...tir.arithmetic import floormod
from ...tir.expr import EQ, IntImm, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables
from ...tir.stmt import IfThenElse, Stmt, seq
from ..rebuild import Copier


@dataclass(frozen=True, eq=False, slots=True)
class RollingPlan:
    """How a stage rolls: `dimension` of its storage is a window of `size` elements; `loop` is the variable that moves it.

    `first` is computed in the loop's first iteration only, `each` in every one.
    """

    loop: Var
    dimension: int
    size: IntImm
    first: StageDomain
    each: StageDomain

    def place(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where an element lives."""
        return tuple(floormod(index, self.size) if n == self.dimension else index for n, index in enumerate(indices))

    def bounds(self) -> tuple[Range, ...]:
        """The box of the storage."""
        region = tuple(self.each.region[axis] for axis in self.each.stage.spatial)
        window = Range.from_min_extent(IntImm(self.size.dtype, 0), self.size)
        return tuple(window if n == self.dimension else r for n, r in enumerate(region))

    def visit(self, first: Stmt, each: Stmt) -> Stmt:
        """The code of one visit, from the nests of both parts."""
        # The parts share loop variables, and a variable has one binding: the first part gets its own.
        start = EQ(self.loop, IntImm(self.loop.dtype, 0))
        return seq(IfThenElse(start, Copier({}).stmt(first)), each)


def plan_rolling_buffers(tree: ScheduleTree, domains: Mapping[int, StageDomain], analyzer: Analyzer) -> dict[int, RollingPlan]:
    """The plans of the stages that roll, by stage. One that has nothing to keep from one iteration to the next needs none.

    Raises:
        ScheduleError: for a stage whose box doesn't move as it must.
    """
    plans = {}
    for stage in tree.in_order():
        if stage.rolling_buffer and isinstance(stage.attach, At):
            target, axis = tree[stage.attach.stage], stage.attach.axis
            # A loop of one iteration has no next visit.
            if target.axes[axis].var in domains[target.id].loops():
                plan = _plan(stage, domains[stage.id], target.axes[axis].var, target.name, analyzer)
                if plan is not None:
                    plans[stage.id] = plan
    return plans


def _plan(stage: StageNode, domain: StageDomain, loop: Var, target: str, analyzer: Analyzer) -> RollingPlan | None:
    where = f"In schedule for {stage.name}: rolling_buffer at {loop.name!r} of {target}"
    remedy = "leave rolling_buffer out, or compute the stage at another loop"
    moving = [axis for axis in stage.spatial if loop in variables(domain.region[axis].min) | variables(domain.region[axis].extent)]
    if not moving:
        return None
    if len(moving) > 1:
        names = ", ".join(stage.axes[axis].name for axis in moving)
        raise ScheduleError(f"{where}: the needed box moves along {names} at once, but a window rolls along one axis; {remedy}")
    (axis,) = moving
    low, size = domain.region[axis].min, domain.region[axis].extent
    step = analyzer.simplify(substitute(low, {loop: loop + 1}) - low)
    name = stage.axes[axis].name
    if not isinstance(size, IntImm) or not isinstance(step, IntImm):
        raise ScheduleError(
            f"{where}: from one iteration to the next the box moves along {name!r} by {step}, and it has {size} elements; "
            f"both have to be constants; {remedy}"
        )
    if step.value >= size.value:  # none of the elements is needed again
        return None
    if step.value <= 0:
        raise ScheduleError(
            f"{where}: the box moves along {name!r} by {step.value} per iteration, and a window only rolls forward; {remedy}"
        )
    # Of 6 elements that move on by 2, the first visit computes 4 more than the others, which find them in the window.
    kept = IntImm(size.dtype, size.value - step.value)
    first = _part(domain, axis, Range.from_min_extent(low, kept), analyzer)
    each = _part(domain, axis, Range.from_min_extent(analyzer.simplify(low + kept), IntImm(size.dtype, step.value)), analyzer)
    return RollingPlan(loop, axis, size, first, each)


def _part(domain: StageDomain, axis: int, part: Range, analyzer: Analyzer) -> StageDomain:
    """The domain of a part of the box, guarded where it may reach past the end of the stage."""
    made = stage_domain(domain.stage, {**domain.region, axis: part}, analyzer)
    return replace(made, guards=(*made.guards, *_border_guards(made, analyzer)))


def _border_guards(domain: StageDomain, analyzer: Analyzer) -> Iterator[Guard]:
    stage, roots = domain.stage, domain.root_values()
    for axis, size in zip(stage.spatial, stage.origin.output_shape(0), strict=True):
        value = analyzer.simplify(roots[stage.axes[axis].var])
        if not analyzer.known_less(value, size):
            yield Guard(axis, value < size, False)
        if not analyzer.known_nonnegative(value):
            yield Guard(axis, value >= 0, False)
