"""Helpers for operators and their schedules."""

from __future__ import annotations

import pytest

from tensorexpr import te, tir, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.target import Target
from tensorexpr.topi import utils


def test_positions_and_indices_are_each_others_way_back() -> None:
    for position in range(60):
        indices = [int(index) for index in utils.unravel_index(position, (3, 4, 5))]
        assert utils.ravel_index(indices, (3, 4, 5)) == position


@pytest.mark.parametrize(("number", "most", "power"), [(48, None, 16), (48, 16, 16), (48, 15, 8), (48, 8, 8), (7, 4, 1)])
def test_powers_of_two_that_divide(number: int, most: int | None, power: int) -> None:
    assert utils.get_max_power2_factor(number, most) == power


def test_constants_out_of_expressions() -> None:
    n = te.var("n")
    assert utils.get_float_tuple((1, tir.const(2.5, "float32"), n)) == (1.0, 2.5, n)
    assert utils.is_dynamic_shape((n, 2)) and not utils.is_dynamic_shape((3, 2))
    assert utils.is_empty_shape((3, 0)) and not utils.is_empty_shape((n, 2))
    with pytest.raises(DeclarationError, match="expected a constant number, not n"):
        utils.get_const_float(n)


def test_keys_of_the_current_target() -> None:
    with Target("llvm"):
        assert utils.is_target(["cpu", "other"]) and not utils.is_target("cuda")


def test_elementwise_operations_are_inlined_and_others_handed_over() -> None:
    A = te.placeholder((4, 4), name="A")
    rows = topi.sum(topi.add(topi.exp(A), A), 1)
    last = topi.tanh(topi.exp(rows))
    s = te.create_schedule(last.op)
    names: list[str] = []
    utils.traverse_inline(s, last.op, lambda op: names.append(op.name))
    assert names == [rows.op.name, "T_exp", "T_tanh"]
    assert "inlined: T_exp_1\n" in str(s)  # what the rows are made of is left to whoever schedules them
