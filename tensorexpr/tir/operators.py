"""The Python operators of everything that can stand in an expression, and comparisons that nobody has used yet.

What an operator builds is said by `arithmetic`, which fills `ExprOp._build` when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import DeclarationError, TypeMismatchError

if TYPE_CHECKING:
    from .expr import PrimExpr


class ExprOp:
    """The Python operators of everything that can stand in an expression (expressions, axes, tensors)."""

    __slots__ = ()
    _build: ClassVar[dict[str, Callable[..., PrimExpr]]] = {}

    def asobject(self) -> PrimExpr:
        """This object as an expression node."""
        raise NotImplementedError(f"{type(self).__name__} does not say which expression it stands for")

    def __add__(self, other: Any) -> PrimExpr:
        return self._build["add"](self, other)

    def __radd__(self, other: Any) -> PrimExpr:
        return self._build["add"](other, self)

    def __sub__(self, other: Any) -> PrimExpr:
        return self._build["sub"](self, other)

    def __rsub__(self, other: Any) -> PrimExpr:
        return self._build["sub"](other, self)

    def __mul__(self, other: Any) -> PrimExpr:
        return self._build["mul"](self, other)

    def __rmul__(self, other: Any) -> PrimExpr:
        return self._build["mul"](other, self)

    def __truediv__(self, other: Any) -> PrimExpr:
        return self._build["true_divide"](self, other)

    def __rtruediv__(self, other: Any) -> PrimExpr:
        return self._build["true_divide"](other, self)

    def __floordiv__(self, other: Any) -> PrimExpr:
        return self._build["floordiv"](self, other)

    def __rfloordiv__(self, other: Any) -> PrimExpr:
        return self._build["floordiv"](other, self)

    def __mod__(self, other: Any) -> PrimExpr:
        return self._build["floormod"](self, other)

    def __rmod__(self, other: Any) -> PrimExpr:
        return self._build["floormod"](other, self)

    def __neg__(self) -> PrimExpr:
        return self._build["neg"](self)

    def __lshift__(self, other: Any) -> PrimExpr:
        return self._build["shift_left"](self, other)

    def __rlshift__(self, other: Any) -> PrimExpr:
        return self._build["shift_left"](other, self)

    def __rrshift__(self, other: Any) -> PrimExpr:
        return self._build["shift_right"](other, self)

    def __rshift__(self, other: Any) -> PrimExpr:
        return self._build["shift_right"](self, other)

    def __and__(self, other: Any) -> PrimExpr:
        return self._build["bitwise_and"](self, other)

    def __rand__(self, other: Any) -> PrimExpr:
        return self._build["bitwise_and"](other, self)

    def __or__(self, other: Any) -> PrimExpr:
        return self._build["bitwise_or"](self, other)

    def __ror__(self, other: Any) -> PrimExpr:
        return self._build["bitwise_or"](other, self)

    def __xor__(self, other: Any) -> PrimExpr:
        return self._build["bitwise_xor"](self, other)

    def __rxor__(self, other: Any) -> PrimExpr:
        return self._build["bitwise_xor"](other, self)

    def __invert__(self) -> PrimExpr:
        return self._build["bitwise_not"](self)

    def __lt__(self, other: Any) -> PrimExpr:
        return self._build["lt"](self, other)

    def __le__(self, other: Any) -> PrimExpr:
        return self._build["le"](self, other)

    def __gt__(self, other: Any) -> PrimExpr:
        return self._build["gt"](self, other)

    def __ge__(self, other: Any) -> PrimExpr:
        return self._build["ge"](self, other)

    def __eq__(self, other: object) -> EqualOp:  # type: ignore[override]
        return EqualOp(self, other, negated=False)

    def __ne__(self, other: object) -> EqualOp:  # type: ignore[override]
        return NotEqualOp(self, other)

    # A class that defines `__eq__` loses it, and nodes are keys of dicts everywhere.
    __hash__ = object.__hash__

    def __float__(self) -> float:
        raise TypeMismatchError(
            f"{self!s} has no value while the computation is declared; use te.exp(...) and its like in place of math's functions, "
            'and .astype("float32") in place of float(...)'
        )

    def __bool__(self) -> bool:
        raise DeclarationError(
            f"{self!s} has no truth value while the computation is declared; use te.if_then_else, tir.Select, "
            "te.all or te.any in place of `if`, `and`, `or` and chained comparisons"
        )

    def astype(self, dtype: str, span: object = None) -> PrimExpr:
        """This value converted to `dtype`; integers wrap, floats truncate towards zero when made integers."""
        return self._build["cast"](self, dtype)

    def equal(self, other: Any, span: object = None) -> PrimExpr:
        """The comparison `self == other` as an expression node."""
        return self._build["eq"](self, other)


class EqualOp(ExprOp):
    """`a == b` before anyone said what it is for: an expression when used as one, else identity of the two.

    A constant is also the Python number that it holds: `axis.dom.extent == 16`.
    """

    __slots__ = ("a", "b", "negated")

    def __init__(self, a: ExprOp, b: object, negated: bool = False) -> None:
        self.a, self.b, self.negated = a, b, negated

    def same_as(self, value: object) -> bool:
        """Whether `value` is the comparison's node."""
        return self.asobject() is value

    def __bool__(self) -> bool:
        same = self.a is self.b
        if not same and not isinstance(self.b, ExprOp):
            value = getattr(self.a, "value", None)
            same = isinstance(value, (int, float, str)) and bool(value == self.b)
        return same is not self.negated

    @property
    def dtype(self) -> str:
        """That of the comparison: bool, or a vector of it."""
        return self.asobject().dtype

    def asobject(self) -> PrimExpr:
        """The comparison as a node."""
        return self._build["ne" if self.negated else "eq"](self.a, self.b)

    def __str__(self) -> str:
        return str(self.asobject())

    __repr__ = __str__


class NotEqualOp(EqualOp):
    """`a != b` before anyone said what it is for."""

    __slots__ = ()

    def __init__(self, a: ExprOp, b: object) -> None:
        super().__init__(a, b, negated=True)


def div_ambiguity_error() -> RuntimeError:
    """What to raise where integers are divided by `/`."""
    return RuntimeError(
        "`/` of integers may round down or towards zero: write tir.floordiv or // for the first, tir.truncdiv for the second"
    )
