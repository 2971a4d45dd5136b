"""Systems of conditions on integer variables, their transforms, and the bounds of one variable of a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tir.arithmetic import convert, floordiv
from ..tir.expr import EQ, GE, LE, IntImm, PrimExpr, Range, Var
from ..tir.rewriting import substitute
from .index_analyzer import Analyzer

_WIDEST = 1 << 30  # a larger extent comes from the width of the dtype and says nothing


class IntConstraints:
    """Variables, their ranges, and relations between them."""

    def __init__(
        self, variables: Sequence[Var] | None = None, ranges: Mapping[Var, Range] | None = None, relations: Sequence[Any] | None = None
    ) -> None:
        self.variables: list[Var] = list(variables or ())
        self.ranges: dict[Var, Range] = dict(ranges or {})
        self.relations: list[PrimExpr] = [convert(relation) for relation in relations or ()]

    def __repr__(self) -> str:
        ranges = ", ".join(f"{var}: [{dom.min}, {dom.min} + {dom.extent})" for var, dom in self.ranges.items())
        return f"IntConstraints({self.variables}, {{{ranges}}}, [{', '.join(map(str, self.relations))}])"


class IntConstraintsTransform:
    """Two equivalent systems and the variables of each in terms of the other's."""

    def __init__(
        self, src: IntConstraints, dst: IntConstraints, src_to_dst: Mapping[Var, PrimExpr], dst_to_src: Mapping[Var, PrimExpr]
    ) -> None:
        self.src, self.dst = src, dst
        self.src_to_dst: dict[Var, PrimExpr] = dict(src_to_dst)
        self.dst_to_src: dict[Var, PrimExpr] = dict(dst_to_src)

    def __repr__(self) -> str:
        return f"IntConstraintsTransform({self.src}, {self.dst}, {self.src_to_dst}, {self.dst_to_src})"


class IntGroupBounds:
    """What bounds `coef * var`: lower <= coef * var <= upper for each of them, and coef * var == equal."""

    def __init__(self, coef: Any, lower: Sequence[Any], equal: Sequence[Any], upper: Sequence[Any]) -> None:
        self.coef: PrimExpr = convert(coef)
        self.lower, self.equal, self.upper = ([convert(bound) for bound in bounds] for bounds in (lower, equal, upper))

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """The bounds of a variable that lies in a range."""
        analyzer = Analyzer()
        coef = IntImm(rng.min.dtype, 1)
        if isinstance(rng.extent, IntImm) and rng.extent.value == 1:
            return IntGroupBounds(coef, [], [rng.min], [])
        return IntGroupBounds(coef, [rng.min], [], [analyzer.simplify(rng.min + rng.extent - 1)])

    def conditions(self, var: Var) -> list[PrimExpr]:
        """The bounds as comparisons of the variable."""
        scale = self.coef.value if isinstance(self.coef, IntImm) else 1
        whole = var if scale == 1 else var * scale
        return [kind(whole, bound) for kind, bounds in ((EQ, self.equal), (GE, self.lower), (LE, self.upper)) for bound in bounds]

    def find_best_range(self, ranges: Mapping[Var, Range] | None = None) -> Range | None:
        """The shortest range found that holds all values, given the ranges of other variables; None if there is none."""
        return self.best_range(ranges or {}, {})

    def best_range(self, ranges: Mapping[Var, Range], points: Mapping[Var, PrimExpr]) -> Range | None:
        """As `find_best_range`, with other variables that are known to be one value."""
        analyzer = Analyzer()
        for var, dom in ranges.items():
            analyzer.bind(var, dom)
        coef = self.coef

        def simple(expr: PrimExpr) -> PrimExpr:
            return analyzer.simplify(substitute(expr, points))

        if self.equal:
            known = [simple(bound) for bound in self.equal]
            value = next((found for found in known if isinstance(found, IntImm)), known[0])
            return Range.from_min_extent(simple(floordiv(value, coef)), 1)
        best: tuple[int, Range] | None = None
        for lower in map(simple, self.lower):
            least = simple(floordiv(lower + coef - 1, coef))
            for upper in map(simple, self.upper):
                gap = analyzer.simplify(floordiv(upper, coef) - least, 4)
                # A constant extent: what the gap is at most, where the gap itself may be symbolic.
                most = analyzer.const_int_bound(gap).max_value
                if most < _WIDEST and (best is None or most < best[0]):
                    best = most, Range.from_min_extent(least, IntImm(least.dtype, most + 1))
        return None if best is None else best[1]
