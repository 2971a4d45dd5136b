"""Graphs for those who derive nothing: what tells `Gradient` how to derive is left out."""

from __future__ import annotations

from typing import Any

from ...tir.op_registry import Op
from ..expr import Binding, Call, DataflowVar
from ..ops.calls import without_gradient
from ..ops.grad_marks import MARKS
from ..visitor import Mutator


def is_mark(expr: Any) -> bool:
    """Whether an expression is a call that marks a value for `Gradient`."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) in MARKS


def plain_call(expr: Any) -> Any:
    """What a call is for who derives nothing: `call_tir` for `call_tir_with_grad`, the value for a mark; itself for others."""
    return expr.args[0] if is_mark(expr) else without_gradient(expr)


class Plain(Mutator):
    """Rewrites functions by `plain_call`."""

    def rewrite(self, expr: Any) -> Any:
        """An expression without marks."""
        return plain_call(expr)

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding; none for a mark, whose readers get what it marks."""
        made = super().binding(binding)
        if not is_mark(binding.value) or not isinstance(binding.var, DataflowVar):
            return made
        self._variables[binding.var] = made[0].value
        return []
