"""Operators and intrinsics in terms of what a code generator has: floored divisions by truncated ones or shifts, and the
rules that a program registered with `ir.register_intrin_lowering`."""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...target import Target
from ...tir.arithmetic import binary, const
from ...tir.bitwise import bitwise_and, shift_right
from ...tir.dtype import parse_dtype
from ...tir.expr import GE, LE, LT, Add, And, Call, Div, FloorDiv, FloorMod, IntImm, Mod, Or, PrimExpr, Select, Sub
from ...tir.function import PrimFunc
from ...tir.op_registry import lowering_rule
from ...tir.stmt import For, IfThenElse, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_expr, map_stmt
from ..scopes import inside_loop, under_conditions


def LowerIntrin() -> Pass:
    """No floored divisions, and no intrinsics that a rule of the function's target lowers."""

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        target = func.attrs.get("target")
        return func.with_body(_Lowerer(target.kind.name if isinstance(target, Target) else "default").stmt(func.body))

    return Pass("tir.LowerIntrin", run)


class _Lowerer:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with lowered operators."""
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                return map_stmt(stmt, self.stmt, self.expr)
        if isinstance(stmt, IfThenElse) and stmt.else_case is None:
            with under_conditions(self._analyzer, [stmt.condition]):
                return map_stmt(stmt, self.stmt, self.expr)
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The value in terms of truncated divisions and lowered calls."""
        if isinstance(expr, Select):
            with under_conditions(self._analyzer, [expr.condition] if expr.condition.dtype == "bool" else []):
                taken = self.expr(expr.true_value)
            return Select(self.expr(expr.condition), taken, self.expr(expr.false_value))
        result = map_expr(expr, self.expr)
        if isinstance(result, (FloorDiv, FloorMod)) and parse_dtype(result.dtype).is_int:
            return self._floored(result)
        return self._called(result) if isinstance(result, Call) else result

    def _called(self, call: Call) -> PrimExpr:
        rule = lowering_rule(call.op, self._kind)
        lowered = rule(call) if rule is not None else None
        return self.expr(lowered) if isinstance(lowered, PrimExpr) and lowered is not call else call

    def _floored(self, expr: FloorDiv | FloorMod) -> PrimExpr:
        a, b, dtype = expr.a, expr.b, expr.dtype
        quotient = isinstance(expr, FloorDiv)
        scalar = parse_dtype(dtype).lanes == 1
        # An arithmetic shift rounds down, as a floored quotient does: -3 >> 1 is -2. So does the mask: -3 & 1 is 1.
        if scalar and isinstance(b, IntImm) and b.value > 0 and b.value & (b.value - 1) == 0:
            if quotient:
                return shift_right(a, const(b.value.bit_length() - 1, dtype))
            return bitwise_and(a, const(b.value - 1, dtype))
        low = const(0, dtype)
        if not parse_dtype(dtype).is_signed:
            return binary(Div if quotient else Mod, a, b)
        known = scalar and self._analyzer.known_nonnegative(b)
        if known and self._analyzer.known_nonnegative(a):
            return binary(Div if quotient else Mod, a, b)
        truncated, rest = Div(a, b), Mod(a, b)
        # Truncation rounds towards 0: right where the remainder is 0 or has the divisor's sign, else one too high.
        whole = GE(rest, low) if known else Or(And(GE(b, low), GE(rest, low)), And(LT(b, low), LE(rest, low)))
        if quotient:
            return Select(whole, truncated, binary(Sub, truncated, const(1, dtype)))
        return Select(whole, rest, binary(Add, rest, b))
