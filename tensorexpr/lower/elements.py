"""Sets of elements of a buffer, as the accesses of a program name them, and what loops make of them.

`A[i*4 + j]` under `j < 3` names, in one iteration, the elements `a` with `a == i*4 + j` and `j < 3`. What all iterations of
the loops name has no `i` and `j`: a loop's variable is solved for, here `j = a - i*4` with `0 <= a - i*4 < 4`, then
`i = a // 4`, which leaves `a % 4 < 3` and `0 <= a < 16`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..arith import linear_form
from ..arith.index_analyzer import Analyzer
from ..dataclass import dataclass, replace
from ..tir.arithmetic import any as any_of
from ..tir.arithmetic import const
from ..tir.buffer import Buffer
from ..tir.expr import EQ, GE, LT, NE, IntImm, Not, PrimExpr, Var
from ..tir.rewriting import substitute, variables
from ..tir.stmt import For

Band = tuple[PrimExpr, int, int]
"""An expression, its least value, and the first one past the largest."""


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Elements of a buffer: those whose place along each of `axes` fulfils all of `equal`, `bands` and `conditions`."""

    buffer: Buffer
    axes: tuple[Var, ...]
    equal: tuple[tuple[Var, PrimExpr], ...] = ()
    bands: tuple[Band, ...] = ()
    conditions: tuple[PrimExpr, ...] = ()

    def at(self, indices: tuple[PrimExpr, ...]) -> list[PrimExpr]:
        """What has to hold for one element to be in the set."""
        places = dict(zip(self.axes, indices, strict=True))
        wanted: list[PrimExpr] = [EQ(axis, value) for axis, value in self.equal]
        for expr, low, high in self.bands:
            wanted += [GE(expr, const(low, expr.dtype)), LT(expr, const(high, expr.dtype))]
        # One substitution of all axes at once: an index may itself mention another set's axis.
        return [substitute(condition, places) for condition in (*wanted, *self.conditions)]

    def mentions(self, var: Var) -> bool:
        """True if the set differs with `var`."""
        return any(var in variables(part) for part in self._parts())

    def _parts(self) -> list[PrimExpr]:
        return [*(value for _, value in self.equal), *(band[0] for band in self.bands), *self.conditions]

    def filled(self, values: Mapping[Var, PrimExpr]) -> Elements:
        """The set for certain values of variables."""
        return replace(
            self,
            equal=tuple((axis, substitute(value, values)) for axis, value in self.equal),
            bands=tuple((substitute(expr, values), low, high) for expr, low, high in self.bands),
            conditions=tuple(substitute(condition, values) for condition in self.conditions),
        )

    def solved(self, loop: For) -> tuple[Elements, PrimExpr] | None:
        """The elements of all iterations of a loop, and the iteration that each belongs to; None where several may."""
        return self._from_equality(loop) or self._from_band(loop)

    def _from_equality(self, loop: For) -> tuple[Elements, PrimExpr] | None:
        for number, (axis, value) in enumerate(self.equal):
            form = linear_form(value)
            step, rest = form.coefficient_of(loop.loop_var), form.without(loop.loop_var).to_expr(value.dtype)
            # Quotients and remainders by the step name the iteration only if it counts upwards.
            if step < 1 or loop.loop_var in variables(rest):
                continue
            others = replace(self, equal=self.equal[:number] + self.equal[number + 1 :])
            return others._of_iterations(loop, axis - rest, step, 1)
        return None

    def _from_band(self, loop: For) -> tuple[Elements, PrimExpr] | None:
        for number, (expr, low, high) in enumerate(self.bands):
            form = linear_form(expr)
            step, rest = -form.coefficient_of(loop.loop_var), form.without(loop.loop_var).shift(-low).to_expr(expr.dtype)
            # Bands wider than the step overlap, and an element may belong to several iterations.
            if step < high - low or loop.loop_var in variables(rest):
                continue
            others = replace(self, bands=self.bands[:number] + self.bands[number + 1 :])
            return others._of_iterations(loop, rest, step, high - low)
        return None

    def _of_iterations(self, loop: For, distance: PrimExpr, step: int, width: int) -> tuple[Elements, PrimExpr]:
        """The elements at a `distance` of `step` for each iteration and less than `width` past that."""
        iteration = distance if step == 1 else distance // step
        filled = self.filled({loop.loop_var: iteration})
        # Between the bands lie elements of no iteration: i * 4 + j with j < 3 leaves out those with a % 4 == 3.
        if step > width:
            filled = replace(filled, conditions=(*filled.conditions, distance % step < width))
        if isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm):
            first, end = loop.min.value * step, (loop.min.value + loop.extent.value) * step
            return replace(filled, bands=(*filled.bands, (distance, first, end))), iteration
        within = (iteration >= loop.min, iteration < loop.min + loop.extent)
        return replace(filled, conditions=(*filled.conditions, *within)), iteration

    def widened(self, dropped: set[Var]) -> Elements:
        """At least the elements for any value of some variables."""

        def stays(expr: PrimExpr) -> bool:
            return variables(expr).isdisjoint(dropped)

        return replace(
            self,
            equal=tuple((axis, value) for axis, value in self.equal if stays(value)),
            bands=tuple(band for band in self.bands if stays(band[0])),
            conditions=tuple(filter(stays, self.conditions)),
        )

    def of_others(self, loop: For) -> Elements:
        """At least the elements of the other iterations of a loop, seen from one of them."""
        found = self.solved(loop)
        if found is None:
            # Unsolved: dropping what depends on the iteration makes the set larger, which is what ends need.
            return self.widened({loop.loop_var})
        elements, iteration = found
        return replace(elements, conditions=(*elements.conditions, NE(iteration, loop.loop_var)))

    def over(self, loop: For) -> Elements:
        """At least the elements of all iterations of a loop."""
        found = self.solved(loop)
        return self.widened({loop.loop_var}) if found is None else found[0]


def unproved(elements: Elements, indices: tuple[PrimExpr, ...], analyzer: Analyzer) -> list[PrimExpr] | None:
    """What is left to prove of an element to be in a set; None if it is proved not to be."""
    left = []
    for condition in elements.at(indices):
        known = analyzer.simplify(condition)
        if not isinstance(known, IntImm):
            left.append(known)
        elif not known.value:
            return None
    return left


def has(elements: Elements, indices: tuple[PrimExpr, ...], analyzer: Analyzer) -> bool:
    """True if an element is proved to be in the set."""
    return unproved(elements, indices, analyzer) == []


def lacks(elements: Elements, indices: tuple[PrimExpr, ...], analyzer: Analyzer) -> bool:
    """True if an element is proved not to be in the set."""
    left = unproved(elements, indices, analyzer)
    # One condition that fails is enough, whichever it is; with nothing left to prove the element is in the set.
    return left is None or (bool(left) and analyzer.can_prove(any_of(*map(Not, left))))
