"""RemovePurityChecking: functions are taken as pure as they say they are."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ..expr import Call, Function
from ..visitor import Mutator
from .passes import each_function


class _Plain(Mutator):
    """Calls of registered functions as such."""

    def rewrite(self, expr: Any) -> Any:
        """The call itself in place of the one that says it is pure."""
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op == "relax.call_pure_packed":
            return Call(expr.args[0], expr.args[1:], expr.attrs, expr.sinfo_args)
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op == "relax.invoke_pure_closure":
            return Call(Op.of("relax.invoke_closure"), expr.args, expr.attrs, expr.sinfo_args)
        return expr


def RemovePurityChecking() -> ModulePass:
    """A pass: pure functions get the attribute "relax.force_pure", and calls of registered functions and closures no longer say that they
    are pure.

    Passes that remove or move calls without effects come before it.
    """

    def run(func: Function, mod: IRModule) -> Function:
        made = _Plain().function(func)
        return made.with_attr("relax.force_pure", True) if made.is_pure else made

    return each_function("RemovePurityChecking", run)
