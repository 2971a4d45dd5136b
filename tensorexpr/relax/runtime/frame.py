"""Slots of a call: what variables and symbols stand for, and the checks that give symbols their numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import ArgumentError, LoweringError
from ...tir.arithmetic import as_int
from ...tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    Sub,
)
from ...tir.expr import Var as Symbol
from ..evaluator import matched
from ..struct_info import StructInfo, TensorStructInfo, symbols_of

Slots = list[Any]
Read = Callable[[Slots], Any]
# Div and Mod round towards zero, as C does: -7 / 2 is -3. By floats, so exact for extents below 2**53.
ARITHMETIC: Mapping[type, Callable[[int, int], int]] = {
    Add: lambda a, b: a + b, Sub: lambda a, b: a - b, Mul: lambda a, b: a * b, FloorDiv: lambda a, b: a // b,
    FloorMod: lambda a, b: a % b, Min: min, Max: max, Div: lambda a, b: int(a / b), Mod: lambda a, b: a - b * int(a / b),
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
}  # fmt: skip


class Frame:
    """The slots of a function.

    Args:
        name: of the function, for messages.
        around: the slots of the function around a closure.
    """

    def __init__(self, name: str, around: Frame | None = None) -> None:
        self.name = name
        self._slots: dict[Any, int] = dict(around._slots) if around is not None else {}
        self.outer = len(self._slots)
        self.count = self.outer

    def slot(self, thing: Any) -> int:
        """The slot of a variable or symbol."""
        if thing not in self._slots:
            self._slots[thing] = self.count
            self.count += 1
        return self._slots[thing]

    def check(self, info: StructInfo, what: str) -> Callable[[Slots, Any], None]:
        """What looks whether a value is what it is stated to be, and gives symbols their values."""
        if isinstance(info, TensorStructInfo) and info.extents is not None and info.dtype:
            return self._tensor_check(info, info.extents, what)
        own = [(symbol, self.slot(symbol)) for symbol in symbols_of(info)]

        def match(slots: Slots, value: Any) -> None:
            # Symbols that an earlier argument gave a number are checked, others get theirs.
            known = {symbol: slots[slot] for symbol, slot in own if slots[slot] is not None}
            matched(value, info, known, what)
            for symbol, slot in own:
                slots[slot] = known.get(symbol)

        return match

    def _tensor_check(self, info: StructInfo, extents: Sequence[PrimExpr], what: str) -> Callable[[Slots, Any], None]:
        """The same for a tensor of known dtype and rank, in as few steps as can be."""
        dtype, ndim = info.dtype, len(extents)  # type: ignore[attr-defined]
        shape = tuple(as_int(one) for one in extents)
        if None not in shape:

            def same(slots: Slots, value: Any) -> None:
                # The slow check says what is wrong.
                if getattr(value, "shape", None) != shape or value.dtype != dtype:
                    matched(value, info, {}, what)

            return same
        fixed = [(n, one) for n, one in enumerate(shape) if one is not None]
        symbols = [(n, one, self.slot(one)) for n, one in enumerate(extents) if isinstance(one, Symbol)]
        computed = [(n, one) for n, one in enumerate(extents) if as_int(one) is None and not isinstance(one, Symbol)]
        numbers = [(n, self.number(one)) for n, one in computed]
        every = [(symbol, self.slot(symbol)) for symbol in symbols_of(info)]  # for messages

        def check(slots: Slots, value: Any) -> None:
            found = getattr(value, "shape", ())
            fits = len(found) == ndim and value.dtype == dtype and all([found[n] == one for n, one in fixed])
            if fits:
                for n, _, slot in symbols:
                    # The first extent that is a symbol alone gives it its number; later ones are compared with it.
                    if slots[slot] is None:
                        slots[slot] = found[n]
                    fits = fits and slots[slot] == found[n]
            # Computed extents last: they need the symbols' numbers.
            if not fits or not all([number(slots) == found[n] for n, number in numbers]):
                matched(value, info, {symbol: slots[slot] for symbol, slot in every if slots[slot] is not None}, what)

        return check

    def number(self, value: PrimExpr) -> Callable[[Slots], int]:
        """What computes an integer expression of symbols."""
        constant = as_int(value)
        if constant is not None:
            return lambda slots: constant
        if isinstance(value, Symbol):
            slot, name = self.slot(value), value.name
            return lambda slots: slots[slot] if slots[slot] is not None else _unknown(name)
        work = ARITHMETIC.get(type(value))
        if work is None:
            return self._other(value)
        left, right = self.number(value.a), self.number(value.b)  # type: ignore[attr-defined]
        return lambda slots: work(left(slots), right(slots))

    def _other(self, value: PrimExpr) -> Callable[[Slots], Any]:
        """The same for what isn't arithmetic of two numbers."""
        match value:
            case FloatImm():
                return lambda slots: value.value
            case Cast(dtype, inner):
                given, kind = self.number(inner), bool if dtype == "bool" else float if dtype.startswith(("float", "bfloat")) else int
                return lambda slots: kind(given(slots))
            case And(a, b):
                left, right = self.number(a), self.number(b)
                return lambda slots: bool(left(slots)) and bool(right(slots))
            case Or(a, b):
                left, right = self.number(a), self.number(b)
                return lambda slots: bool(left(slots)) or bool(right(slots))
            case Not(a):
                given = self.number(a)
                return lambda slots: not given(slots)
            case Select(condition, yes, no):
                chosen, left, right = self.number(condition), self.number(yes), self.number(no)
                return lambda slots: left(slots) if chosen(slots) else right(slots)
        raise LoweringError(f"{self.name}: the number {value} has a {type(value).__name__}, which the virtual machine can't compute")

    def numbers(self, values: Sequence[PrimExpr]) -> Read:
        if all(as_int(value) is not None for value in values):
            constant = tuple(as_int(value) for value in values)
            return lambda slots: constant
        parts = [self.number(value) for value in values]
        return lambda slots: tuple(part(slots) for part in parts)


def _unknown(name: str) -> int:
    raise ArgumentError(f"the symbol {name} has no value: no argument or match_cast has an extent that is {name} alone")
