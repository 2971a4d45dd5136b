"""Affine forms."""

from __future__ import annotations

from tensorexpr.arith import Linear, linear_form
from tensorexpr.tir.expr import Add, Cast, FloorDiv, IntImm, Mul, Sub, Var

x, y, z = (Var(name) for name in "xyz")


def test_terms_are_collected_in_order_of_appearance() -> None:
    form = linear_form((y + x * 2 - (y - z)) * 3 + 4)
    assert list(form.terms.items()) == [(x, 6), (z, 3)]
    assert form.constant == 4
    assert form.coefficient_of(x) == 6
    assert form.coefficient_of(y) == 0


def test_what_is_not_affine_is_an_atom() -> None:
    quotient = FloorDiv(x + 1, IntImm("int32", 2))
    form = linear_form(quotient * 3 + x * y)
    assert list(form.terms) == [quotient, x * y]
    assert linear_form(Var("a", "float32")).constant == 0


def test_arithmetic_of_forms() -> None:
    form = linear_form(x * 2 + y + 3)
    assert form.sub(form).is_constant
    assert str(form.add(linear_form(x), 2).to_expr("int32")) == "x * 4 + y + 3"
    assert str(form.scale(-1).to_expr("int32")) == "-3 - x * 2 - y"
    assert str(form.without(x).to_expr("int32")) == "y + 3"
    assert form.scale(0).same(Linear({}, 0))
    assert form.content() == 1


def test_expressions_of_forms_are_read_back() -> None:
    for form in (Linear({x: -1, y: 2}, -3), Linear({x: -1, y: -2}, 0), Linear({x: -1}, 5), Linear({}, -7), Linear({x: 3, y: -1}, 1)):
        assert linear_form(form.to_expr("int32")).same(form)


def test_coefficients_wrap_like_the_dtype() -> None:
    byte = Var("b", "uint8")
    assert str(Linear({byte: 255, x: 0}, 256).to_expr("uint8")) == "b * T.uint8(255)"
    assert str(Linear({x: 1, y: (1 << 32) - 1}, 1 << 32).to_expr("int32")) == "x - y"
    assert str(Linear({x: 1 << 32}, 0).to_expr("int32")) == "0"
    assert str(Linear({x: 1}, -(1 << 31)).to_expr("int32")) == "x + -2147483648"


def test_casts_are_seen_through_on_request_only() -> None:
    wide = Cast("int64", x + 1) + Cast("int64", y)
    assert len(linear_form(wide).terms) == 2
    form = linear_form(wide, lambda cast: True)
    assert list(form.terms) == [x, y]
    assert form.constant == 1


def test_large_sums_take_each_node_once() -> None:
    total = x
    for _ in range(100):
        total = Add(Sub(total, Mul(y, IntImm("int32", 2))), total)  # type: ignore[assignment]
    form = linear_form(total)
    assert form.terms[x] == 1 << 100
    assert form.terms[y] == -2 * ((1 << 100) - 1)
