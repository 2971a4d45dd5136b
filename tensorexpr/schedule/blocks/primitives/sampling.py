"""Primitives that decide numbers: tiles and choices. A decision that is given is taken, otherwise it is drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import isfinite
from typing import Any

from ....errors import ScheduleError
from ....tir.expr import IntImm
from ...tilings import count_tilings, divisors
from ..diagnostics import PrimitiveError
from ..instruction import Applied, Primitive, State, loop_of


class SamplePerfectTile(Primitive):
    """n factors of a loop's extent whose product is the extent, outermost first."""

    kind, method, output = "SamplePerfectTile", "sample_perfect_tile", "expr"
    inputs, attrs, is_pure, is_sampling = ("loop",), ("n", "max_innermost_factor"), True, True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The factors, drawn or those of the decision fitted to the extent; the state stays.

        Raises:
            ScheduleError: for less than two factors, or a loop whose extent is no constant.
        """
        extent = constant_extent(state, inputs[0], self.method)
        n, most = attrs
        if n < 2:
            raise ScheduleError(f"sample_perfect_tile makes at least 2 factors, not {n}")
        if decision is None:
            decision = list(draw_tile(state.rng, extent, n, most))
        factors = fitted(decision, extent, n)
        return Applied(state, tuple(factors), list(factors))


class SamplePartitionedTile(Primitive):
    """n factors of a loop's extent, of which those from `partition_pos` on multiply to a multiple of `innerpart_factor`."""

    kind, method, output = "SamplePartitionedTile", "sample_partitioned_tile", "expr"
    inputs, attrs, is_pure, is_sampling = ("loop",), ("n", "partition_pos", "innerpart_factor"), True, True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The factors, drawn or those of the decision fitted to the extent; the state stays.

        Raises:
            ScheduleError: for a `partition_pos` or `innerpart_factor` out of range, or a loop whose extent is no constant.
        """
        extent = constant_extent(state, inputs[0], self.method)
        n, place, inner = attrs
        if not 0 <= place < n or inner < 1:
            raise ScheduleError(f"sample_partitioned_tile: partition_pos is from 0 to {n - 1}, innerpart_factor at least 1")
        if decision is None:
            decision = self._drawn(state.rng, extent, n, place, inner)
        factors = fitted(decision, extent, n)
        return Applied(state, tuple(factors), list(factors))

    def _drawn(self, rng: random.Random, extent: int, n: int, place: int, inner: int) -> list[int]:
        """Factors whose inner part holds `inner`; [1, .., 1, extent] at the partition where nothing fits."""
        if extent % inner or place == 0:
            return list(draw_tile(rng, extent, n, extent))
        # `inner` goes to the inner part as a whole; what is left is shared out between both parts
        outer, rest = draw_tile(rng, extent // inner, 2, extent)
        return [*draw_tile(rng, outer, place, extent), *draw_tile(rng, rest * inner, n - place, extent)]


class SampleCategorical(Primitive):
    """One of some integers, by probability. The decision is the place in the list."""

    kind, method, output = "SampleCategorical", "sample_categorical", "expr"
    attrs, is_pure, is_sampling = ("candidates", "probs"), True, True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The candidate that was drawn or decided on; the state stays.

        Raises:
            ScheduleError: for probabilities that don't fit the candidates, or a decision that is no place among them.
        """
        candidates, probs = attrs
        if not candidates or len(candidates) != len(probs):
            raise ScheduleError(f"sample_categorical takes as many probabilities as candidates, not {len(probs)} for {len(candidates)}")
        if not all(isinstance(p, (int, float)) and isfinite(p) and p >= 0 for p in probs) or sum(probs) <= 0:
            raise ScheduleError(f"sample_categorical takes probabilities from 0 up that aren't all 0, not {list(probs)}")
        if decision is None:
            decision = state.rng.choices(range(len(candidates)), [float(p) for p in probs])[0]
        if type(decision) is not int or not 0 <= decision < len(candidates):
            raise ScheduleError(f"sample_categorical: the decision {decision} is no place among {len(candidates)} candidates")
        return Applied(state, (int(candidates[decision]),), decision)

    def shown(self, name: str, value: Any) -> Any:
        """As in TVM a probability that is whole prints as an integer."""
        return [int(p) if p == int(p) else p for p in value] if name == "probs" else value


def constant_extent(state: State, loop: Any, primitive: str) -> int:
    """The extent of a loop.

    Raises:
        PrimitiveError: if it is no constant.
    """
    ref = loop_of(loop, primitive)
    stmt = state.program_of(ref).loop(ref.var)
    if not isinstance(stmt.extent, IntImm):
        raise PrimitiveError(f"{primitive} needs a loop of constant extent, not {stmt.extent}; split it by a given factor", stmt)
    return stmt.extent.value


def fitted(decision: Sequence[int], extent: int, n: int) -> list[int]:
    """The decision as factors of this extent, for a loop may have another extent than the one that the decision was made for.

    A factor that doesn't divide what those further in leave takes all of that, and the outermost takes what is left, as in TVM: so a
    trace of one shape goes on for another.

    Raises:
        ScheduleError: if there are not n positive factors.
    """
    factors = [int(factor) for factor in decision]
    if len(factors) != n or min(factors) < 1:
        raise ScheduleError(f"the decision {factors} isn't {n} positive factors")
    left = extent
    for place in reversed(range(1, n)):
        factors[place] = factors[place] if left % factors[place] == 0 else left
        left //= factors[place]
    return [left, *factors[1:]]


def draw_tile(rng: random.Random, extent: int, n: int, max_innermost: int) -> tuple[int, ...]:
    """Factors of an extent, each tiling as likely as any other; the innermost is at most `max_innermost`, if that is above 0."""
    extent = max(extent, 1)  # a loop of no iterations is tiled as one of one is: `fitted` has its outermost factor be 0
    limit = max_innermost if max_innermost > 0 else extent
    inner = [d for d in divisors(extent) if d <= limit]
    # weighted by the tilings that go on from each divisor; divisors drawn alike would make some tilings likelier than others
    found = [rng.choices(inner, [count_tilings(extent // d, n - 1) for d in inner])[0]]
    rest = extent // found[0]
    for parts in range(n - 1, 1, -1):
        choices = divisors(rest)
        found.append(rng.choices(choices, [count_tilings(rest // d, parts - 1) for d in choices])[0])
        rest //= found[-1]
    return (rest, *reversed(found)) if n > 1 else (extent,)
