"""The step that factors a reduction: one of its loops becomes a spatial axis of a stage of partial results."""

from __future__ import annotations

from typing import ClassVar

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...te.combiner_laws import refuted_law
from ...te.operation import ComputeOp
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import const, is_const_int
from ...tir.attrs import EMPTY
from ...tir.expr import IterVar, PrimExpr, ProducerLoad, Reduce, Var
from ...tir.intrin import if_then_else, likely
from ...tir.rewriting import substitute
from ..attachment import check_nothing_inside
from ..domain import StageDomain, full_region, stage_domain
from ..naming import PythonNames
from ..projection import Projection, derived_axes, project, related_axes
from ..tree import LoopKind, LoopMark, ScheduleTree, StageNode, make_stage
from .base import StageStep, loops_of


@dataclass(frozen=True)
class RFactor(StageStep):
    """A reduction loop becomes a spatial axis of a new stage of partial results, which the stage then reduces.

    Iterations of the new stage's axis don't share an accumulator, so it can run in parallel or as vector lanes.
    Splits, order and marks of the other reduction loops move to the new stage; those of spatial loops stay.

    for i: for ko: for ki: B[i] += f(ko*4 + ki, i)    ->    for ki: for i: for ko: B.rf[ki, i] += f(ko*4 + ki, i)
                                                            for i: for ki.v: B[i] += B.rf[ki.v, i]
    """

    code: ClassVar[str] = "rfactor"
    axis: int
    factor_axis: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """B = sum(A[k.o, k.i])   ->   B.rf[k.i] = sum(A[k.o, k.i]);  B = sum(B.rf[k.i.v])

        Raises:
            ScheduleError: if the axis is no reduction, something stands at the stage's loops already, or the combiner can't be regrouped.
        """
        stage = loops_of(tree, self.stage, (self.axis,), "rfactor")
        reduce = _reduction(stage, self.axis)
        _check_loops(tree, stage, self.axis)
        _check_combiner(stage, reduce)
        position = _position(stage, self.factor_axis)
        domain = stage_domain(stage, full_region(stage), Analyzer())
        partial = _partial(tree, domain, self.axis, position)
        # The stage keeps its number, so that handles and later steps about it go on holding.
        tree = tree.with_stage(_final(domain, self.axis, position, partial.compute))
        return tree.with_new_stage(partial, before=stage.id)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        """The call, then names for the loops of the new stage, those that stayed, and the axis that is left to reduce."""
        old, stage, new = before[self.stage], after[self.stage], after.stages[-1]
        name = names.name_stage(new)
        moved = {axis: names.axis(old, axis) for axis in range(len(old.axes))}
        factored = "" if new.compute.num_outputs == 1 else "[0]"
        lines = [
            f"{name} = s.rfactor({names.stage(stage)}, {moved[self.axis]}, {self.factor_axis}){factored}",
            *names.axis_lines(new),
        ]
        for place, kept in ((new, _moved(old, self.axis)), (stage, _kept(old))):
            for axis in derived_axes(kept, (*old.spatial, *old.reduction, *_rest(old, self.axis))):
                names.name_axis(place, kept.numbers[axis], moved[axis])
        (reduced,) = stage.reduction
        made = names.name_axis(stage, reduced, f"{moved[self.axis]}_v")
        return [*lines, f"({made},) = s[{names.stage(stage)}].op.reduce_axis"]


def _reduction(stage: StageNode, axis: int) -> Reduce:
    name = stage.axes[axis].name
    reduce = stage.compute.body[0]
    loops = ", ".join(stage.axes[a].name for a in stage.leaf if stage.is_reduction(a))
    if not isinstance(reduce, Reduce):
        raise stage.refused(f"can't rfactor {name!r}: the stage reduces nothing; it has spatial axes only")
    if not stage.is_reduction(axis):
        raise stage.refused(f"can't rfactor {name!r}: it is a spatial axis; reduction axes: {loops}")
    return reduce


def _check_loops(tree: ScheduleTree, stage: StageNode, axis: int) -> None:
    check_nothing_inside(tree, stage, ", which rfactor gives to a new stage; rfactor comes before compute_at")
    if stage.prefetches:
        raise stage.refused("its loops prefetch already, and rfactor makes others; rfactor comes before prefetch")
    # The factored loop becomes an axis of another stage, and a mark of it would have to mean something there.
    mark = stage.mark(axis)
    if mark != LoopMark():
        said = mark.kind.value if mark.kind is not LoopKind.SERIAL else mark.pragmas[0][0]
        raise stage.refused(
            f"axis {stage.axes[axis].name!r} is marked {said} already; rfactor it first, then mark the axis of the new stage"
        )


def _check_combiner(stage: StageNode, reduce: Reduce) -> None:
    # Partial results are combined in another order than the terms, and each starts from the identity: floats' rounding apart, that takes
    # laws.
    broken = refuted_law(reduce.combiner, any_start=bool(reduce.init))
    if broken is not None:
        raise stage.refused(
            f"can't rfactor a reduction whose combiner can't be regrouped: {broken}; "
            "give comm_reducer an associative and commutative function with its identity, or leave the reduction in one loop nest"
        )


def _position(stage: StageNode, factor_axis: int) -> int:
    """Where the factored axis stands among the spatial axes; negative numbers count from the end."""
    places = len(stage.spatial) + 1
    if not -places <= factor_axis < places:
        raise stage.refused(f"factor_axis {factor_axis} is no place in a result of {places} axes; it takes {-places} to {places - 1}")
    return factor_axis % places


def _as_root(domain: StageDomain, axis: int, kind: int) -> IterVar:
    """A loop as a root axis: the same variable, now with a domain."""
    return IterVar(domain.loop_range(axis), domain.stage.axes[axis].var, kind)


def _untouched(stage: StageNode, axis: int) -> tuple[int, ...]:
    """The root reduction axes that `axis` is not made of."""
    touched = related_axes(stage, axis)
    # These come along as they are, root axes of the new stage with all that was split from them.
    return tuple(root for root in stage.reduction if root not in touched)


def _rest(stage: StageNode, axis: int) -> tuple[int, ...]:
    """The other loops that are made of what `axis` is made of."""
    touched = related_axes(stage, axis)
    # Example: of k split in ko, ki and ki factored, ko: a root of the new stage, as k is no axis there.
    return tuple(leaf for leaf in stage.leaf if leaf in touched and leaf != axis)


def _moved(stage: StageNode, axis: int) -> Projection:
    """What of the reduction's loops goes to the stage of partial results, where `rest` loops are roots."""
    first = len(stage.spatial) + 1
    roots = (*_untouched(stage, axis), *_rest(stage, axis))
    return project(stage, {root: first + n for n, root in enumerate(roots)}, first + len(roots))


def _kept(stage: StageNode) -> Projection:
    """What of the spatial loops stays; the one reduction axis comes after the root spatial axes."""
    return project(stage, {axis: axis for axis in stage.spatial}, len(stage.spatial) + 1)


def _partial(tree: ScheduleTree, domain: StageDomain, axis: int, position: int) -> StageNode:
    """The stage of partial results."""
    stage, op, moved = domain.stage, domain.stage.compute, _moved(domain.stage, axis)
    # axes of its own, as those of before stay with the stage that reduces the partial results
    spatial = tuple(IterVar(a.dom, Var(a.name, a.dtype), a.iter_type) for a in op.axis)
    factor = _as_root(domain, axis, IterVar.DATA_PAR)
    reduce_axis = (
        *(stage.axes[root] for root in _untouched(stage, axis)),
        *(_as_root(domain, leaf, IterVar.COMM_REDUCE) for leaf in _rest(stage, axis)),
    )
    all_axes = (*spatial[:position], factor, *spatial[position:])
    bodies = _partial_bodies(domain, axis, {a.var: b.var for a, b in zip(op.axis, spatial, strict=True)}, reduce_axis)
    made = ComputeOp(tree.unique_name(f"{op.name}.rf"), op.tag, EMPTY, all_axes, reduce_axis, bodies)
    node = make_stage(len(tree.stages), made.name, made)
    derived = tuple(stage.axes[a] for a in derived_axes(moved, (*_untouched(stage, axis), *_rest(stage, axis))))
    leaf = (*range(len(all_axes)), *moved.leaf)
    return replace(node, axes=node.axes + derived, leaf=leaf, relations=moved.relations, marks=moved.marks)


def _partial_bodies(domain: StageDomain, axis: int, spatial: dict[Var, PrimExpr], reduce_axis: tuple[IterVar, ...]) -> tuple[PrimExpr, ...]:
    """The reduction's sources over the loops that are left, guarded where the loops reach past the end of a root."""
    stage, values = domain.stage, domain.root_values()
    touched = related_axes(stage, axis)
    renamed = {**spatial, **{stage.axes[root].var: values[stage.axes[root].var] for root in stage.reduction if root in touched}}
    # loops that a root was cut into may pass its end, and are roots themselves in the new stage: the guard goes into the terms
    inside = all_of(*(likely(guard.condition) for guard in domain.guards if guard.axis in touched))
    bodies: list[PrimExpr] = []
    for body in stage.compute.body:
        assert isinstance(body, Reduce)
        source = tuple(substitute(item, renamed) for item in body.source)
        where = substitute(body.condition, renamed)
        if reduce_axis:
            bodies.append(Reduce(body.combiner, source, reduce_axis, all_of(inside, where), body.value_index))
            continue
        # Nothing is left to reduce: a partial result is one term, or the identity where the loops run past the end.
        value, identity = source[body.value_index], body.combiner.identity_element[body.value_index]
        bodies.append(_chosen(inside, _chosen(where, value, identity), identity))
    return tuple(bodies)


def _chosen(condition: PrimExpr, value: PrimExpr, otherwise: PrimExpr) -> PrimExpr:
    return value if is_const_int(condition, 1) else if_then_else(condition, value, otherwise)


def _final(domain: StageDomain, axis: int, position: int, partial: ComputeOp) -> StageNode:
    """The stage itself: the reduction of the partial results, which alone starts at `init`."""
    stage = domain.stage
    op, kept, leaf = stage.compute, _kept(stage), stage.axes[axis]
    reduced = IterVar(domain.loop_range(axis), Var(f"{leaf.name}.v", leaf.dtype), IterVar.COMM_REDUCE)
    own = tuple(a.var for a in op.axis)
    indices = (*own[:position], reduced.var, *own[position:])
    source = tuple(ProducerLoad(partial.output(n), indices) for n in range(partial.num_outputs))
    bodies = []
    for body in op.body:
        assert isinstance(body, Reduce)
        bodies.append(Reduce(body.combiner, source, (reduced,), const(True), body.value_index, body.init))
    number = len(stage.spatial)
    # the axis that is left to reduce stands among the spatial loops where the factored one stood
    before = sum(not stage.is_reduction(a) for a in stage.leaf[: stage.leaf.index(axis)])
    return replace(
        stage,
        op=ComputeOp(op.name, op.tag, op.attrs, op.axis, (reduced,), tuple(bodies)),
        axes=(*op.axis, reduced, *(stage.axes[a] for a in derived_axes(kept, stage.spatial))),
        leaf=(*kept.leaf[:before], number, *kept.leaf[before:]),
        relations=kept.relations,
        marks=kept.marks,
    )
