"""Masks: which lanes of a vector loop run under the conditions around a statement."""

from __future__ import annotations

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.arithmetic import logical_and
from ...tir.expr import GE, GT, LE, LT, And, Call, CmpExpr, IntImm, Not, Or, PrimExpr, Var
from ...tir.stmt import For
from ..rebuild import FreeVars, substituted


@dataclass(frozen=True, eq=False, slots=True)
class Mask:
    """The lanes that run: as a vector of bools, and as a scalar condition of the loop variable.

    `shape` is 1 if the lanes that run are the first ones, -1 if they are the last ones, 0 if that isn't known.
    """

    vector: PrimExpr
    scalar: PrimExpr
    shape: int


class Masks:
    """Makes the masks of one vector loop; `varying` are the variables in which lanes differ."""

    def __init__(self, loop: For, lanes: int, analyzer: Analyzer, free: FreeVars, varying: set[Var]) -> None:
        self._var, self._low, self._lanes = loop.loop_var, loop.min, lanes
        self._analyzer = analyzer
        self.free = free
        self.reads_memory = free.touches_memory
        self._varying = varying

    def varies(self, expr: PrimExpr) -> bool:
        """True if lanes may differ in the value of `expr`."""
        return not self.free(expr).isdisjoint(self._varying)

    def narrowed(self, mask: Mask | None, condition: PrimExpr, vector: PrimExpr) -> Mask:
        """The lanes of `mask` where `condition`, whose vector form is `vector`, holds."""
        shape = self._shape(condition) or 0
        if mask is None:
            return Mask(vector, condition, shape)
        # The first lanes of some and the last of others are lanes in the middle, whose ends say nothing.
        return Mask(logical_and(mask.vector, vector), logical_and(mask.scalar, condition), shape if shape == mask.shape else 0)

    def some_lane(self, mask: Mask) -> PrimExpr | None:
        """The scalar condition that any lane runs; a true constant where that is proved; None if there is no such form."""
        free = self.free(mask.scalar)
        if mask.shape == 0 or self.free.touches_memory(mask.scalar) or any(v in free for v in self._varying if v is not self._var):
            return None
        # Lanes that run are the first ones, so some lane runs just where the first does; or the last ones, and the last does.
        end = self._low if mask.shape > 0 else self._low + (self._lanes - 1)
        condition = substituted(mask.scalar, {self._var: end})
        return IntImm("bool", 1) if self._analyzer.known_true(condition) else condition

    def _shape(self, condition: PrimExpr) -> int | None:
        """1 if `condition` holds for the first lanes, -1 for the last, None if neither is known; parts that all lanes share fit both."""
        match condition:
            case Call(_, "tir.likely", (inner,)):
                return self._shape(inner)
            # Where a holds for the first lanes, its opposite holds for the last ones.
            case Not(a):
                shape = self._shape(a)
                return None if shape is None else -shape
            case And(a, b) | Or(a, b):
                if not self.varies(a) or not self.varies(b):
                    return self._shape(b if self.varies(b) else a)
                left, right = self._shape(a), self._shape(b)
                return left if left == right else None
            case LT() | LE() | GT() | GE():
                return self._comparison_shape(condition)
        return None

    def _comparison_shape(self, condition: CmpExpr) -> int | None:
        form = linear_form(condition.a).sub(linear_form(condition.b))
        # factor * var + rest < 0 with a positive factor holds up to some lane and then never again.
        factor = form.coefficient_of(self._var)
        # With another varying term, as lane
        # 2, the comparison needn't change once only.
        if not factor or any(self.varies(atom) for atom in form.terms if atom is not self._var):
            return None
        return 1 if (factor > 0) is isinstance(condition, (LT, LE)) else -1
