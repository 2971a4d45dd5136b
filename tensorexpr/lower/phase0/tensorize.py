"""The loops of a tensorized stage: an intrinsic's statement in place of a loop and all loops inside it.

    no reduction loop outside:            one is:
        for the loops outside:                for spatial loops outside the first reduction loop:
            body                                  for the other spatial loops outside: reduce_init
                                                  for the rest: reduce_update

Without a reduce_init the body makes the first part of the reduction, or ordinary loops store the initial value.
"""

from __future__ import annotations

from typing import cast

from ...arith.analyzer import Analyzer
from ...errors import ScheduleError
from ...schedule.tree import StageNode
from ...te.tensor_intrin import TensorIntrin
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import is_const_int
from ...tir.expr import PrimExpr, Reduce, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute
from ...tir.stmt import BufferBind, IfThenElse, Stmt, seq
from ..rebuild import Copier
from .loop_nest import LoopNest, guarded
from .tensor_match import TensorMatch, match_region


def tensorized_axis(stage: StageNode) -> int | None:
    """The loop of a stage that an intrinsic takes the place of."""
    return next((axis for axis in stage.leaf if stage.mark(axis).intrin is not None), None)


def tensorized_nest(nest: LoopNest, axis: int, analyzer: Analyzer) -> Stmt:
    """The whole nest of a tensorized stage.

    Args:
        nest: the stage, as it would be without the intrinsic.
        axis: the loop that the intrinsic takes the place of.
        analyzer: knows the ranges of all loops.

    Raises:
        ScheduleError: if the intrinsic computes something else, or lacks the part that is needed.
    """
    stage, intrin = nest.stage, intrinsic_of(nest.stage, axis)
    match = match_region(nest.domain, axis, nest.bodies, nest.buffers, intrin, analyzer)
    intrin = match.intrin
    outside = stage.leaf[: stage.leaf.index(axis)]
    reduced = [a for a in outside if stage.is_reduction(a)]
    # A reduction loop of one iteration adds once, as if it weren't there. An intrinsic that can start and add does that there, as in TVM:
    # programs for matrix units give a body that only adds.
    if intrin.reduce_init is None or intrin.reduce_update is None:
        reduced = [a for a in reduced if not is_const_int(nest.domain.extents[a], 1)]
    first = nest.bodies[0]
    if not reduced:
        return _whole(nest, intrin, match, outside, first)
    assert isinstance(first, Reduce)
    return _in_parts(nest, intrin, match, outside, reduced, first)


def intrinsic_of(stage: StageNode, axis: int) -> TensorIntrin:
    """The intrinsic that a loop is marked with."""
    mark = stage.mark(axis).intrin
    assert mark is not None
    return TensorIntrin.get(*mark)


def _whole(nest: LoopNest, intrin: TensorIntrin, match: TensorMatch, outside: tuple[int, ...], first: PrimExpr) -> Stmt:
    """Every visit computes its elements from first to last."""
    if intrin.body is not None and not _starts_elsewhere(first, intrin):
        stmt = _call(intrin.body, intrin, match)
    elif intrin.reduce_update is not None and isinstance(first, Reduce):
        stmt = seq(_started(nest, intrin, match, first, ()), _call(intrin.reduce_update, intrin, match))
    else:
        name = nest.stage.name
        raise ScheduleError(
            f"In schedule for {name}: {intrin.name} can't compute {name}: it has no reduce_update, and its body "
            + ("is missing" if intrin.body is None else "starts from another value than te.compute(init=...) gives")
        )
    return nest.wrap(guarded(stmt, nest.domain.guards), outside)


def _starts_elsewhere(first: PrimExpr, intrin: TensorIntrin) -> bool:
    """True if a reduction starts from a value of its own that the intrinsic's body knows nothing of."""
    described = intrin.op.body[0]
    return isinstance(first, Reduce) and bool(first.init) and not (isinstance(described, Reduce) and described.init == first.init)


def _in_parts(
    nest: LoopNest, intrin: TensorIntrin, match: TensorMatch, outside: tuple[int, ...], reduced: list[int], first: Reduce
) -> Stmt:
    """Every visit adds a part of the reduction."""
    stage = nest.stage
    if intrin.reduce_update is None:
        names = ", ".join(stage.axes[a].name for a in reduced)
        raise ScheduleError(
            f"In schedule for {stage.name}: {intrin.name} has no reduce_update, but the reduction loop{'s' if len(reduced) > 1 else ''} "
            f"{names} outside the tensorized loop add{'' if len(reduced) > 1 else 's'} to its outputs several times; "
            "let fcompute return (body, reduce_init, reduce_update), or move the reduction inside"
        )
    update = _call(intrin.reduce_update, intrin, match)
    split_at = outside.index(reduced[0])
    if intrin.reduce_init is None and intrin.body is not None and not _starts_elsewhere(first, intrin):
        # The first visit to each element: all reduction loops outside stand at 0, whatever their order.
        start = all_of(*(stage.axes[a].var == 0 for a in reduced))
        stmt: Stmt = IfThenElse(start, _call(intrin.body, intrin, match), update)
        return nest.wrap(guarded(stmt, nest.domain.guards), outside)
    rest = nest.wrap(guarded(update, nest.domain.guards), outside[split_at:])
    return nest.wrap(seq(_started(nest, intrin, match, first, outside[split_at:]), rest), outside[:split_at])


def _started(nest: LoopNest, intrin: TensorIntrin, match: TensorMatch, first: Reduce, loops: tuple[int, ...]) -> Stmt:
    """The first value of the accumulators, in loops of its own over the spatial ones among `loops`."""
    stage = nest.stage
    roots = nest.domain.root_values()
    indices = tuple(roots[stage.axes[axis].var] for axis in stage.spatial)
    # An init of the stage's own isn't what the intrinsic's reduce_init stores.
    if intrin.reduce_init is None or first.init:
        inner = stage.leaf[stage.leaf.index(cast(int, tensorized_axis(stage))) :]
        return nest.init(first, roots, indices, (*loops, *inner))
    spatial = [axis for axis in loops if not stage.is_reduction(axis)]
    fresh = {axis: Var(f"{stage.axes[axis].name}.init", stage.axes[axis].dtype) for axis in spatial}
    renaming: dict[Var, PrimExpr] = {stage.axes[axis].var: var for axis, var in fresh.items()}
    made = guarded(_call(intrin.reduce_init, intrin, match), (g for g in nest.domain.guards if not g.reduction))
    body = substitute(made, renaming)
    for axis in reversed(spatial):
        body = nest.loop(axis, fresh[axis], body, with_pragmas=False)
    return body


def _call(function: PrimFunc, intrin: TensorIntrin, match: TensorMatch) -> Stmt:
    """The intrinsic's statement with fresh names, its buffers bound to the boxes that it works on."""
    scalars = function.params[len(function.params) - len(intrin.scalars) :]
    values = {param: match.scalars[scalar] for param, scalar in zip(scalars, intrin.scalars, strict=True) if scalar in match.scalars}
    body = function.body
    buffers = [function.buffer_map[param] for param in function.params if param in function.buffer_map]
    boxes = (*match.inputs, *match.outputs)
    if function is intrin.reduce_init:  # before there are inputs
        buffers, boxes = buffers[len(match.inputs) :], match.outputs
    for buffer, box in reversed(list(zip(buffers, boxes, strict=True))):
        body = BufferBind(buffer, box, body)
    return Copier(values).stmt(body)
