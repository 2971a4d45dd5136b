"""Integer division, floored and truncated, without undefined behaviour: a division by zero gives 0 (as NumPy has it),
the most negative integer over -1 wraps. So any of it may be evaluated ahead of a condition.

What is known of the operands (constants, loop ranges) picks the cheap forms.
"""

from __future__ import annotations

from ..errors import CodegenError
from ..tir.dtype import parse_dtype
from ..tir.expr import BinaryExpr, Broadcast, Div, FloorDiv, IntImm, Mod, PrimExpr
from .arithmetic import emit_binary
from .context import FunctionContext
from .types import VALUE_TYPE, splat, vector_of


def emit_division(ctx: FunctionContext, node: PrimExpr) -> str:
    """Div, Mod, FloorDiv, FloorMod."""
    assert isinstance(node, BinaryExpr)
    if parse_dtype(node.dtype).is_float:
        if isinstance(node, Div):
            return emit_binary(ctx, node)
        raise CodegenError(f"In {ctx.name}: {type(node).__name__} of {node.dtype}; floats take tir.floor(a / b) or tir.fmod(a, b)")
    return _Division(ctx, node).emit()


class _Division:
    """One division: its operands, and a writer for its type."""

    def __init__(self, ctx: FunctionContext, node: BinaryExpr) -> None:
        self.ctx = ctx
        self.node = node
        self.parsed = parse_dtype(node.dtype)
        self.llvm_type = VALUE_TYPE[node.dtype]
        self.mask_type = vector_of("i1", self.parsed.lanes)
        self.a, self.b = ctx.value(node.a), ctx.value(node.b)

    def write(self, operation: str, a: str, b: str) -> str:
        """A two-operand instruction on values of the type."""
        return self.ctx.text.value(f"{operation} {self.llvm_type} {a}, {b}")

    def number(self, value: int) -> str:
        """A constant in all lanes."""
        return splat(VALUE_TYPE[str(self.parsed.scalar)], str(value), self.parsed.lanes)

    def select(self, condition: str, a: str, b: str) -> str:
        """a where the condition holds, else b."""
        return self.ctx.text.value(f"select {self.mask_type} {condition}, {self.llvm_type} {a}, {self.llvm_type} {b}")

    def emit(self) -> str:
        """The quotient or remainder."""
        divisor = _constant(self.node.b)
        wants_quotient = isinstance(self.node, (Div, FloorDiv))
        if divisor == 0:
            return self.number(0)
        if not self.parsed.is_signed or (self.ctx.limits(self.node.a)[0] >= 0 and self.ctx.limits(self.node.b)[0] > 0):
            return self._unsigned(divisor, wants_quotient)
        if isinstance(self.node, (Div, Mod)):
            return self._truncated(wants_quotient)
        if divisor is not None and divisor > 0:
            return self._floored_by_constant(divisor, wants_quotient)
        return self._floored(wants_quotient)

    def _unsigned(self, divisor: int | None, wants_quotient: bool) -> str:
        """Operands that are not negative: flooring and truncation agree."""
        if divisor is not None and divisor & (divisor - 1) == 0:
            if wants_quotient:
                return self.write("lshr", self.a, self.number(divisor.bit_length() - 1))
            return self.write("and", self.a, self.number(divisor - 1))
        operation = "udiv" if wants_quotient else "urem"
        if self.ctx.limits(self.node.b)[0] > 0:
            return self.write(operation, self.a, self.b)
        is_zero = self.write("icmp eq", self.b, self.number(0))
        # Division by 0 traps, so by 1 instead: that quotient is dropped.
        result = self.write(operation, self.a, self.select(is_zero, self.number(1), self.b))
        return self.select(is_zero, self.number(0), result)

    def _floored_by_constant(self, divisor: int, wants_quotient: bool) -> str:
        """A positive constant divisor: a shift or mask; else divide the bits of a, inverted where a is negative."""
        if divisor & (divisor - 1) == 0:
            if wants_quotient:
                return self.write("ashr", self.a, self.number(divisor.bit_length() - 1))
            return self.write("and", self.a, self.number(divisor - 1))
        # a // d is ~(~a // d) for a < 0, where ~a = -a - 1 isn't negative.
        sign = self.write("ashr", self.a, self.number(self.parsed.bits - 1))
        magnitude = self.write("xor", self.a, sign)
        quotient = self.write("xor", self.write("udiv", magnitude, self.number(divisor)), sign)
        return quotient if wants_quotient else self.write("sub", self.a, self.write("mul", quotient, self.number(divisor)))

    def _truncated(self, wants_quotient: bool) -> str:
        """a / b towards zero, where b may be 0 or -1."""
        low, high = self.ctx.limits(self.node.b)
        operation = "sdiv" if wants_quotient else "srem"
        # Neither 0 nor -1 can occur, the only divisors that trap.
        if low > 0 or high < -1:
            return self.write(operation, self.a, self.b)
        is_zero = self.write("icmp eq", self.b, self.number(0))
        # The least integer has no opposite: x86 traps on its division by -1 as on one by 0.
        is_minus_one = self.write("icmp eq", self.b, self.number(-1))
        unsafe = self.ctx.text.value(f"or {self.mask_type} {is_zero}, {is_minus_one}")
        result = self.write(operation, self.a, self.select(unsafe, self.number(1), self.b))
        if not wants_quotient:
            return self.select(unsafe, self.number(0), result)
        # Wraps for the least integer, as multiplication by -1 does.
        negated = self.write("sub", self.number(0), self.a)
        return self.select(is_zero, self.number(0), self.select(is_minus_one, negated, result))

    def _floored(self, wants_quotient: bool) -> str:
        """The truncated quotient, less one where the remainder and the divisor differ in sign; 0 for a divisor of 0."""
        quotient = self._truncated(wants_quotient=True)
        remainder = self.write("sub", self.a, self.write("mul", quotient, self.b))
        low, high = self.ctx.limits(self.node.b)
        # For a divisor of 0 the quotient is 0, which would leave a as the remainder.
        if low <= 0 <= high:
            remainder = self.select(self.write("icmp eq", self.b, self.number(0)), self.number(0), remainder)
        signs_differ = self.write("icmp slt", self.write("xor", remainder, self.b), self.number(0))
        inexact = self.write("icmp ne", remainder, self.number(0))
        down = self.ctx.text.value(f"and {self.mask_type} {signs_differ}, {inexact}")
        if wants_quotient:
            return self.select(down, self.write("add", quotient, self.number(-1)), quotient)
        return self.select(down, self.write("add", remainder, self.b), remainder)


def _constant(expr: PrimExpr) -> int | None:
    match expr:
        case IntImm(_, value) | Broadcast(IntImm(_, value), _):
            return value
    return None
