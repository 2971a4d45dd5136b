"""Ranges, axes and reductions over them."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from ..dataclass import dataclass, field
from .atoms import PrimExpr, Var
from .interning import Built
from .node import Object
from .operators import ExprOp

Condition: TypeAlias = PrimExpr  # None makes it true


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Range(Object):
    """The integers from `min` up to, not including, `min + extent`: `Range(begin, end)`, or `Range(end)` from 0."""

    min: PrimExpr
    extent: PrimExpr

    def __init__(self, begin: Any, end: Any = None, span: object = None) -> None:
        first, last = (0, begin) if end is None else (begin, end)
        convert, subtract = ExprOp._build["convert"], ExprOp._build["sub"]
        # Range(0, n) begins at a 0 of the dtype of n.
        if not isinstance(first, ExprOp) and isinstance(last, ExprOp):
            first = ExprOp._build["const"](first, convert(last).dtype)
        object.__setattr__(self, "min", convert(first))
        object.__setattr__(self, "extent", convert(last) if end is None else subtract(last, first))

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any, span: object = None) -> Range:
        """The range that starts at `min_value` and has `extent` elements."""
        convert = ExprOp._build["convert"]
        made: Range = object.__new__(Range)
        object.__setattr__(made, "min", min_value if isinstance(min_value, PrimExpr) else convert(min_value))
        object.__setattr__(made, "extent", extent if isinstance(extent, PrimExpr) else convert(extent))
        return made

    @property
    def end(self) -> PrimExpr:
        """The first integer behind it."""
        return self.min + self.extent

    def __reduce__(self) -> tuple[Any, ...]:
        return Range.from_min_extent, (self.min, self.extent)

    def __repr__(self) -> str:
        return f"Range({self.min}, {self.end})"


def as_range(value: Any) -> Range | None:
    """A range as `Range`, a pair (begin, end), or None."""
    return value if value is None or isinstance(value, Range) else Range(*value)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class IterVar(Built, ExprOp, Object):
    """An axis: a variable, the range it takes and its role. Identity is equality.

    `iter_type` is one of `IterVar.DATA_PAR` (a spatial axis), `COMM_REDUCE`, `THREAD_INDEX`, ... as numbered by TE.
    """

    dom: Range | None
    var: Var
    iter_type: int = 0
    thread_tag: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.var, str):
            dtype = "int32" if self.dom is None else self.dom.extent.dtype
            object.__setattr__(self, "var", Var(self.var, dtype))

    DATA_PAR: ClassVar[int] = 0
    THREAD_INDEX: ClassVar[int] = 1
    COMM_REDUCE: ClassVar[int] = 2
    ORDERED: ClassVar[int] = 3
    DIM_INFO: ClassVar[int] = 4
    UNROLLED: ClassVar[int] = 5
    VECTORIZED: ClassVar[int] = 6
    PARALLELIZED: ClassVar[int] = 7
    TENSORIZED: ClassVar[int] = 8
    DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized = range(9)
    Opaque: ClassVar[int] = 3  # by the name of an older release

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.var.name

    @property
    def dtype(self) -> str:
        """The variable's dtype."""
        return self.var.dtype

    def asobject(self) -> PrimExpr:
        """The variable."""
        return self.var

    def __repr__(self) -> str:
        return self.script()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class CommReducer(Built, ExprOp, Object):
    """A combiner: `result` in terms of the accumulators `lhs` and the new values `rhs`, and the identity elements.

    It is taken to be associative and commutative: that is what reordering a reduction relies on.
    """

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[PrimExpr, ...]
    identity_element: tuple[PrimExpr, ...]

    def __repr__(self) -> str:
        return self.script()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Reduce(PrimExpr):
    """The reduction of `source` over `axis` where `condition` holds; element `value_index` of the tuple.

    `init` replaces the combiner's identity elements as the starting value; empty means the identity.
    """

    _aliases: ClassVar[dict[str, str]] = {"src": "source", "rdom": "axis"}

    combiner: CommReducer
    source: tuple[PrimExpr, ...]
    axis: tuple[IterVar, ...]
    condition: Condition
    value_index: int = 0
    init: tuple[PrimExpr, ...] = ()
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.source[self.value_index].dtype)
