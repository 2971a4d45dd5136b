"""Arithmetic, comparisons and connectives: expressions of one or two operands."""

from __future__ import annotations

from ..dataclass import dataclass, field
from ..errors import TypeMismatchError
from .atoms import PrimExpr
from .dtype import parse_dtype, with_lanes


def _check_same_dtype(node: BinaryExpr | CmpExpr) -> None:
    if node.a.dtype != node.b.dtype:
        raise TypeMismatchError(
            f"{type(node).__name__} of {node.a} ({node.a.dtype}) and {node.b} ({node.b.dtype}): "
            "both sides need one dtype; convert one with .astype(...)"
        )


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BinaryExpr(PrimExpr):
    """Two operands of one dtype, which is also the result's."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_dtype(self)
        object.__setattr__(self, "dtype", self.a.dtype)


class Add(BinaryExpr):
    """a + b; integers wrap."""

    __slots__ = ()


class Sub(BinaryExpr):
    """a - b; integers wrap."""

    __slots__ = ()


class Mul(BinaryExpr):
    """a * b; integers wrap."""

    __slots__ = ()


class Div(BinaryExpr):
    """a / b: IEEE on floats, truncated towards zero on integers."""

    __slots__ = ()


class Mod(BinaryExpr):
    """The remainder of the truncated integer division; it has the sign of a."""

    __slots__ = ()


class FloorDiv(BinaryExpr):
    """The integer quotient rounded towards minus infinity."""

    __slots__ = ()


class FloorMod(BinaryExpr):
    """The remainder of `FloorDiv`; it has the sign of b."""

    __slots__ = ()


class Min(BinaryExpr):
    """The smaller operand. If exactly one is NaN the result is b's comparison a < b: b."""

    __slots__ = ()


class Max(BinaryExpr):
    """The larger operand. If exactly one is NaN the result is b (a > b is false)."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class CmpExpr(PrimExpr):
    """A comparison of two operands of one dtype; the result is bool with their lanes."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_dtype(self)
        object.__setattr__(self, "dtype", with_lanes("bool", parse_dtype(self.a.dtype).lanes))


class EQ(CmpExpr):
    """a == b."""

    __slots__ = ()


class NE(CmpExpr):
    """a != b."""

    __slots__ = ()


class LT(CmpExpr):
    """a < b."""

    __slots__ = ()


class LE(CmpExpr):
    """a <= b."""

    __slots__ = ()


class GT(CmpExpr):
    """a > b."""

    __slots__ = ()


class GE(CmpExpr):
    """a >= b."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class LogicalExpr(PrimExpr):
    """A connective of two bools."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.a.dtype != self.b.dtype or parse_dtype(self.a.dtype).code != "bool":
            raise TypeMismatchError(f"{type(self).__name__} takes bools, not {self.a} ({self.a.dtype}) and {self.b} ({self.b.dtype})")
        object.__setattr__(self, "dtype", self.a.dtype)


class And(LogicalExpr):
    """a and b; b may be left unevaluated where a is false."""

    __slots__ = ()


class Or(LogicalExpr):
    """a or b; b may be left unevaluated where a is true."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Not(PrimExpr):
    """not a."""

    a: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if parse_dtype(self.a.dtype).code != "bool":
            raise TypeMismatchError(f"not takes a condition, not {self.a} ({self.a.dtype})")
        object.__setattr__(self, "dtype", self.a.dtype)
