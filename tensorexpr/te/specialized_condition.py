"""Conditions that the author of a schedule says hold, as TE's `SpecializedCondition` takes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.expr import PrimExpr

_current: ContextVar[tuple[SpecializedCondition, ...]] = ContextVar("tensorexpr_te_specialized_condition", default=())


class SpecializedCondition:
    """`with te.SpecializedCondition([n % 8 == 0]): ...`, around the making of a schedule.

    The conditions are kept and can be asked for; no code is specialised by them. Lowering proves from the shapes what it
    leaves out, and tails get their guards in any case, so a schedule is right whether a condition holds or not.

    Args:
        conditions: a condition or a list of them, boolean expressions.

    Raises:
        DeclarationError: for something else.
    """

    def __init__(self, conditions: PrimExpr | Sequence[PrimExpr]) -> None:
        listed = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]
        self.clauses = tuple(convert(condition) for condition in listed)
        for clause in self.clauses:
            if clause.dtype != "bool":
                raise DeclarationError(
                    f"SpecializedCondition: {clause} is {clause.dtype}; a condition is a comparison or a combination of such"
                )

    @staticmethod
    def current() -> SpecializedCondition | None:
        """The innermost one in force."""
        stack = _current.get()
        return stack[-1] if stack else None

    def __enter__(self) -> SpecializedCondition:
        # a new tuple: other threads and tasks go on with the one that they have
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.set(_current.get()[:-1])
