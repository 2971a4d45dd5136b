"""Numbers that only a run of the program knows."""

from __future__ import annotations

from ..dataclass import dataclass, field
from .atoms import PrimExpr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Any(PrimExpr):
    """An extent of a shape that nobody knows before the program runs. Lowering refuses it: name it by a variable there."""

    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", "int32")
