"""&, | and ^ on bools are the logical connectives; they raised for want of a truth value."""

from __future__ import annotations

from tensorexpr import tir

i = tir.Var("i")


def test_bitwise_operators_on_bools() -> None:
    assert (i < 3) & (i > 1) is tir.And(i < 3, i > 1)
    assert (i < 3) | (i > 1) is tir.Or(i < 3, i > 1)
    assert (i < 3) ^ (i > 1) is tir.NE(i < 3, i > 1)
    assert tir.bitwise_and(tir.const(False), i < 3) is tir.const(False)


def test_bitwise_operators_on_integers() -> None:
    assert str(i & 3) == "T.bitwise_and(i, 3)"
    assert tir.bitwise_xor(6, 3) is tir.const(5)
