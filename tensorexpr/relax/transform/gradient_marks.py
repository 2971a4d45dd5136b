"""Graphs for those who derive nothing: what tells `Gradient` how to derive is left out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...tir.op_registry import Op
from ..expr import Binding, Call, DataflowVar
from ..ops.calls import without_gradient
from ..ops.grad_marks import BARRIER, MARKS
from ..visitor import Mutator


def is_mark(expr: Any) -> bool:
    """Whether an expression is a call that marks a value for `Gradient`."""
    return _is_call(expr, MARKS)


def _is_call(expr: Any, names: Collection[str]) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) in names


def plain_call(expr: Any) -> Any:
    """What a call is for who derives nothing: `call_tir` for `call_tir_with_grad`, the value for a mark; itself for others."""
    return expr.args[0] if is_mark(expr) else without_gradient(expr)


class Plain(Mutator):
    """Rewrites functions by `plain_call`.

    Args:
        barriers: whether values behind barriers become those in front of them, too.
    """

    def __init__(self, barriers: bool = False) -> None:
        super().__init__()
        self._gone = (*MARKS, BARRIER) if barriers else MARKS

    def rewrite(self, expr: Any) -> Any:
        """An expression without marks."""
        return expr.args[0] if _is_call(expr, self._gone) else plain_call(expr)

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding; none for a mark, whose readers get what it marks."""
        made = super().binding(binding)
        if not _is_call(binding.value, self._gone) or not isinstance(binding.var, DataflowVar):
            return made
        self._variables[binding.var] = made[0].value
        return []
