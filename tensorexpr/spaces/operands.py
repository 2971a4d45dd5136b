"""What a stage reads along each of its axes: which loads an axis moves, and whether its neighbours are neighbours in memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..arith.linear import linear_form
from ..schedule.tree import ScheduleTree, StageNode
from ..tir.arithmetic import as_int
from ..tir.expr import ProducerLoad, Var
from .stages import extents


@dataclass(frozen=True, eq=False)
class Operand:
    """One load of a stage: per index the factor of each root axis of the stage, or None where the index isn't affine."""

    load: ProducerLoad
    producer: StageNode
    forms: tuple[dict[int, int] | None, ...]

    def moves_with(self, axis: int) -> bool:
        """True if the axis changes what is read."""
        return any(form is None or axis in form for form in self.forms)

    def is_contiguous(self, axis: int) -> bool:
        """True if the next iteration of the axis reads the next element."""
        if not self.forms:
            return False
        *others, last = self.forms
        return last is not None and last.get(axis) == 1 and all(form is not None and axis not in form for form in others)

    def index_of(self, axis: int) -> int | None:
        """The one index that is just this axis, with the axis in no other; None if there isn't one."""
        places = [n for n, form in enumerate(self.forms) if form is None or axis in form]
        return places[0] if len(places) == 1 and self.forms[places[0]] == {axis: 1} else None

    def has_windows(self, axis: int) -> bool:
        """True if an index adds the axis to another one, as a convolution does."""
        return any(form is not None and axis in form and len(form) > 1 for form in self.forms)


def operands_of(tree: ScheduleTree, stage: StageNode) -> list[Operand]:
    """The loads of a stage, each once. Axes of one iteration move nothing, so they are left out of the forms."""
    axes = [*stage.spatial, *stage.reduction]
    roots = {stage.axes[axis].var: axis for axis in axes}
    still = {axis for axis, extent in zip(axes, extents(stage, axes), strict=True) if extent == 1 and _is_constant(stage, axis)}
    found = []
    for load in dict.fromkeys(tree.reads(stage)):
        forms: list[dict[int, int] | None] = []
        for index in load.indices:
            terms = dict(linear_form(index).terms)
            known = {roots[atom]: factor for atom, factor in terms.items() if isinstance(atom, Var) and atom in roots}
            moving = {axis: factor for axis, factor in known.items() if axis not in still}
            forms.append(moving if len(known) == len(terms) else None)
        found.append(Operand(load, tree.producer(load), tuple(forms)))
    return found


def _is_constant(stage: StageNode, axis: int) -> bool:
    dom = stage.axes[axis].dom
    return dom is not None and as_int(dom.extent) is not None
