"""One read of a tensor, axis by axis: along which axes it moves, how far apart neighbours lie, whether it slides over a window.

    A[i, 2*j + k]  with A [8, 100]
        forms    {i: 1}, {j: 2, k: 1}       strides  i: 100, j: 2, k: 1
        moves along i, j, k; contiguous along k; the first index is i and nothing else; j has a window

Rules for schedules ask it what the axes of a stage are for: rows, columns, batches, windows, sums. None looks at names or tags.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from ..arith import linear_form
from ..dataclass import dataclass
from ..tir.arithmetic import as_int
from ..tir.expr import IntImm, Max, Min, PrimExpr, ProducerLoad, Var
from ..tir.rewriting import variables

Axis = TypeVar("Axis", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Access(Generic[Axis]):
    """A read. Axes are variables, or what the caller calls them.

    Args:
        load: the read.
        forms: per index the factor of each axis, None where the index isn't a sum of multiples of axes and a constant.
        partial: per index the factors of the axes beside whatever else it is made of, between the ends that it is held within.
        moved: per index all axes that occur in it.
    """

    load: ProducerLoad
    forms: tuple[Mapping[Axis, int] | None, ...]
    partial: tuple[Mapping[Axis, int], ...]
    moved: tuple[frozenset[Axis], ...]

    @cached_property
    def strides(self) -> Mapping[Axis, int]:
        """Elements between neighbours along each axis that moves the read, in a tensor laid out row after row."""
        found: dict[Axis, int] = {}
        step = 1
        for form, extent in zip(reversed(self.partial), reversed(self.load.producer.shape), strict=True):
            for axis, factor in form.items():
                found[axis] = found.get(axis, 0) + factor * step
            # left of a symbolic extent strides aren't known; `is_affine` says so
            step *= as_int(extent) or 0
        return {axis: stride for axis, stride in found.items() if stride}

    @property
    def is_affine(self) -> bool:
        """True if the place in memory is a sum of multiples of the axes: no other atom in an index, and a constant shape."""
        return all(form is not None for form in self.forms) and all(as_int(extent) is not None for extent in self.load.producer.shape)

    def stride(self, axis: Axis) -> int:
        """Elements between neighbours along an axis; 0 if the read doesn't depend on it."""
        return self.strides.get(axis, 0)

    def moves_with(self, axis: Axis) -> bool:
        """True if the axis may change what is read."""
        return any(axis in moved for moved in self.moved)

    def index_of(self, axis: Axis) -> int | None:
        """The one index that is just this axis, with the axis in no other; None if there isn't one."""
        places = [n for n, moved in enumerate(self.moved) if axis in moved]
        return places[0] if len(places) == 1 and self.forms[places[0]] == {axis: 1} else None

    def has_windows(self, axis: Axis) -> bool:
        """True if an index adds the axis to another one, as a convolution does."""
        return any(form is not None and axis in form and len(form) > 1 for form in self.forms)


def shifted_axis(index: PrimExpr) -> Var | None:
    """The variable that an index is, plus or minus a constant; None if it is anything else."""
    match tuple(linear_form(index).terms.items()):
        case ((Var() as var, 1),):
            return var
    return None


def unclamped(index: PrimExpr) -> PrimExpr:
    """What an index is between constant ends that it is held within.

    Example:
        max(min(x + k - 2, 191), 0) is x + k - 2 for all but the first and last few x.
    """
    match index:
        case Max(inner, IntImm()) | Max(IntImm(), inner) | Min(inner, IntImm()) | Min(IntImm(), inner):
            return unclamped(inner)
    return index


def access_of(load: ProducerLoad, axis_of: Callable[[Var], Axis | None]) -> Access[Axis]:
    """A read by the axes that `axis_of` names for variables; a variable without a name is no axis.

    Args:
        load: the read.
        axis_of: the axis that a variable is.
    """
    forms: list[Mapping[Axis, int] | None] = []
    partial: list[Mapping[Axis, int]] = []
    for index in load.indices:
        free = unclamped(index)
        terms = linear_form(free).terms
        named = {atom: axis_of(atom) for atom in terms if isinstance(atom, Var)}
        known = {axis: terms[atom] for atom, axis in named.items() if axis is not None}
        partial.append(known)
        forms.append(partial[-1] if len(known) == len(terms) and free is index else None)
    moved = (frozenset(axis for var in variables(index) if (axis := axis_of(var)) is not None) for index in load.indices)
    return Access(load, tuple(forms), tuple(partial), tuple(moved))
