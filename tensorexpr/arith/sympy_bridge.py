"""Sympy for the little that affine forms and rule tables leave: division of polynomials by polynomials of symbols.

Sympy is imported on first use (0.4 s) and only asked to divide or expand, which takes a millisecond; results are
memoised. Integer division, remainder, minimum and maximum are functions of our own that sympy doesn't look into.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ..tir.expr import Add, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, Sub

_FUNCTIONS: dict[type[PrimExpr], str] = {FloorDiv: "FloorDiv", FloorMod: "FloorMod", Min: "Minimum", Max: "Maximum"}
# Ours, and those that PyTorch has for sizes, whose operands aren't negative.
_NODES: dict[str, Any] = {
    **{name: kind for kind, name in _FUNCTIONS.items()},
    **{"Mod": FloorMod, "PythonMod": FloorMod, "CleanDiv": FloorDiv, "Max": Max, "Min": Min},
}
_MEMO_SIZE = 4096


@lru_cache(maxsize=1)
def functions() -> dict[str, Any]:
    """Our sympy functions by name: uninterpreted, integer valued."""
    import sympy

    return {name: sympy.Function(name, integer=True) for name in _FUNCTIONS.values()}


class Translation:
    """A correspondence of atoms and symbols, good for expressions that are to be combined."""

    def __init__(self) -> None:
        self.symbols: dict[PrimExpr, Any] = {}
        self.atoms: dict[Any, PrimExpr] = {}

    def to_sympy(self, expr: PrimExpr) -> Any:
        """The sympy expression of an integer expression; what is no arithmetic becomes a symbol."""
        match expr:
            case IntImm(_, value):
                import sympy

                return sympy.Integer(value)
            case Add(a, b):
                return self.to_sympy(a) + self.to_sympy(b)
            case Sub(a, b):
                return self.to_sympy(a) - self.to_sympy(b)
            case Mul(a, b):
                return self.to_sympy(a) * self.to_sympy(b)
            case FloorDiv(a, b) | FloorMod(a, b) | Min(a, b) | Max(a, b):
                return functions()[_FUNCTIONS[type(expr)]](self.to_sympy(a), self.to_sympy(b))
        return self._symbol(expr)

    def _symbol(self, atom: PrimExpr) -> Any:
        import sympy

        symbol = self.symbols.get(atom)
        if symbol is None:
            # By number, as two variables may have one name.
            symbol = self.symbols[atom] = sympy.Symbol(f"x{len(self.symbols)}", integer=True)
            self.atoms[symbol] = atom
        return symbol

    def from_sympy(self, found: Any, dtype: str) -> PrimExpr:
        """The expression of what sympy made of translated ones: sums, products, powers and our functions."""
        atom = self.atoms.get(found)
        if atom is not None:
            return atom
        if found.is_Integer:
            return IntImm(dtype, int(found))
        if found.is_Pow and found.exp.is_Integer and found.exp > 0:
            return self._joined(Mul, [found.base] * int(found.exp), dtype)
        if found.is_Add:
            return self._joined(Add, found.as_ordered_terms(), dtype)
        if found.is_Mul:
            # Constants last, as everywhere in arith.
            return self._joined(Mul, sorted(found.args, key=lambda factor: factor.is_Integer), dtype)
        return self._joined(_NODES[found.func.__name__], list(found.args), dtype)

    def _joined(self, op: Callable[[PrimExpr, PrimExpr], PrimExpr], args: list[Any], dtype: str) -> PrimExpr:
        total = self.from_sympy(args[0], dtype)
        for arg in args[1:]:
            total = op(total, self.from_sympy(arg, dtype))
        return total


@lru_cache(maxsize=_MEMO_SIZE)
def divide_polynomials(numerator: PrimExpr, divisor: PrimExpr) -> tuple[PrimExpr, PrimExpr] | None:
    """numerator == divisor * quotient + rest, as polynomials with integer coefficients; None if that divides nothing."""
    import sympy

    translation = Translation()
    above, below = translation.to_sympy(numerator), translation.to_sympy(divisor)
    # By first appearance: the quotient depends on which symbol comes first, and sets have no order.
    symbols = sorted(above.free_symbols | below.free_symbols, key=lambda symbol: int(symbol.name[1:]))
    if not below.is_polynomial(*symbols) or not above.is_polynomial(*symbols) or not symbols:
        return None
    quotient, rest = sympy.div(above, below, *symbols, domain="ZZ")
    if quotient == 0:
        return None
    return translation.from_sympy(sympy.expand(quotient), numerator.dtype), translation.from_sympy(sympy.expand(rest), numerator.dtype)
