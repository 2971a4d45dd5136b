"""Marks for a code generator around calls that a program chooses, as its annotation passes set them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..ops.annotation import compiler_begin, compiler_end
from ..visitor import ExprMutator, remade


class WhiteListAnnotator(ExprMutator):
    """Marks around each call of some operators.

    Example:
        func = WhiteListAnnotator(["add", "nn.relu"], "mine").visit(mod["main"])

    Args:
        op_list: names of the operators.
        compiler: the generator.
    """

    def __init__(self, op_list: Collection[str], compiler: str) -> None:
        super().__init__()
        self.op_list, self.compiler = frozenset(op_list), compiler

    def visit_call(self, call: Any) -> Any:
        """The call between marks, if its operator is one of them."""
        made = super().visit_call(call)
        if str(made.op) not in self.op_list:
            return made
        return compiler_end(remade(made, made.op, [compiler_begin(arg, self.compiler) for arg in made.args]), self.compiler)


__all__ = ["WhiteListAnnotator"]
