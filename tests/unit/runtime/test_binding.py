"""How extents of arrays define and constrain variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.codegen.signature import Signature
from tensorexpr.errors import ArgumentError, CodegenError
from tensorexpr.runtime import binding
from tensorexpr.runtime.arguments import ArgumentChecker
from tensorexpr.tir import arithmetic
from tensorexpr.tir.expr import Call, PrimExpr, Var
from tests.effort import share_of

from .functions import buffer, scalar, signature


def symbols(described: Signature, *shapes: tuple[int, ...]) -> list[int]:
    """The values of the symbols for arrays of these shapes."""
    block, _ = ArgumentChecker(described).block(tuple(np.zeros(shape, np.float32) for shape in shapes))
    words = list(np.array(block[:], np.uint64).view(np.int64))
    return [int(word) for word in words[len(described.params) : len(described.params) + len(described.symbols)]]


def test_first_occurrence_defines_and_later_ones_agree() -> None:
    n, m = Var("n"), Var("m")
    described = signature(buffer("a", (n, 4)), buffer("b", (m, n)), symbols=(n, m))
    assert symbols(described, (3, 4), (5, 3)) == [3, 5]
    with pytest.raises(ArgumentError, match=r"f: argument b \(2 of 2\) has extent 1 4, but n is 3 \(extent 0 of a\)"):
        symbols(described, (3, 4), (5, 4))


def test_an_expression_is_solved_for_its_one_unknown() -> None:
    n = Var("n")
    described = signature(buffer("a", (n * 2 + 1,)), symbols=(n,))
    assert symbols(described, (9,)) == [4]
    with pytest.raises(ArgumentError, match=r"has extent 0 8, but no n gives \(\(n \* 2\) \+ 1\) = 8"):
        symbols(described, (8,))


def test_an_expression_of_known_variables_is_compared() -> None:
    n, m = Var("n"), Var("m")
    described = signature(buffer("a", (arithmetic.minimum(n, m) // 2,)), buffer("b", (n, m)), symbols=(n, m))
    assert symbols(described, (3,), (7, 9)) == [7, 9]
    with pytest.raises(ArgumentError, match=r"has extent 0 4, needs .* = 3"):
        symbols(described, (4,), (7, 9))


def test_solving_may_need_what_a_later_argument_defines() -> None:
    n, m, k = Var("n"), Var("m"), Var("k")
    described = signature(buffer("a", (n + m * k,)), buffer("b", (m, k)), symbols=(n, m, k))
    assert symbols(described, (20,), (3, 5)) == [5, 3, 5]


def test_a_scalar_parameter_takes_part() -> None:
    n = scalar("n", "int32")
    checker = ArgumentChecker(signature(buffer("a", (n.var,)), n))
    assert list(checker.block((np.zeros(3, np.float32), 3))[0])[1] == 3
    with pytest.raises(ArgumentError, match=r"argument n \(2 of 2\) has value 4, but n is 3 \(extent 0 of a\)"):
        checker.block((np.zeros(3, np.float32), 4))


def test_strides_define_variables_in_elements() -> None:
    s, t = Var("s"), Var("t")
    described = signature(buffer("a", (4, 3), strides=(s, t)), symbols=(s, t))
    checker = ArgumentChecker(described)
    base = np.zeros((8, 6), np.float32)
    words = np.array(checker.block((base[::2, ::2],))[0][:], np.uint64).view(np.int64)
    assert words[1:].tolist() == [12, 2]
    words = np.array(checker.block((base[4:1:-1, :4].T,))[0][:], np.uint64).view(np.int64)
    assert words[1:].tolist() == [1, -6]


def test_constant_strides_are_compared_where_the_axis_is_walked() -> None:
    checker = ArgumentChecker(signature(buffer("a", (2, 1), strides=(4, 1))))
    base = np.zeros((2, 4), np.float32)
    checker.block((base[:, 1:2],))
    checker.block((base[:, ::4],))  # a stride of an axis of extent 1 says nothing
    with pytest.raises(ArgumentError, match="has stride 0 1, needs 4"):
        checker.block((np.zeros((2, 1), np.float32),))


def test_strides_that_are_no_multiple_of_an_element() -> None:
    s = Var("s")
    checker = ArgumentChecker(signature(buffer("a", (2,), strides=(s,)), symbols=(s,)))
    record = np.zeros(2, np.dtype([("x", np.float32), ("y", np.int8)]))
    with pytest.raises(ArgumentError, match="has a stride of 5 bytes, no multiple of its 4-byte elements"):
        checker.block((record["x"],))


def test_an_offset_is_zero() -> None:
    offset = Var("o")
    described = signature(buffer("a", (4,), offset=offset), symbols=(offset,))
    assert symbols(described, (4,)) == [0]


def test_lanes_are_one_more_dimension() -> None:
    described = signature(buffer("a", (3,), "float32x4", alignment=4))
    ArgumentChecker(described).block((np.zeros((3, 4), np.float32),))
    with pytest.raises(ArgumentError, match=r"needs 2: \[3, 4\]"):
        ArgumentChecker(described).block((np.zeros(3, np.float32),))


def test_too_large_for_the_variable() -> None:
    n = Var("n", "int8")
    with pytest.raises(ArgumentError, match=r"has extent 0 128, too large for n \(int8\); declare it as int64"):
        symbols(signature(buffer("a", (n,)), symbols=(n,)), (128,))


def test_division_by_an_extent_of_zero() -> None:
    n, m = Var("n"), Var("m")
    described = signature(buffer("a", (n, m)), buffer("b", (n // m,)), symbols=(n, m))
    with pytest.raises(ArgumentError, match=r"has extent 0 \(n // m\), which divides by zero"):
        symbols(described, (2, 0), (1,))


@pytest.mark.parametrize("make", [lambda n, m: n * m, lambda n, m: n // 2 + m, lambda n, m: arithmetic.minimum(n, 4) + m * 0 + m])
def test_what_can_not_be_found_is_refused_when_built(make: Any) -> None:
    n, m = Var("n"), Var("m")
    with pytest.raises(CodegenError, match="the arguments do not determine"):
        binding.make_plan(signature(buffer("a", (make(n, m),)), symbols=(n, m)))


def test_what_can_not_be_computed_is_refused_when_built() -> None:
    n = Var("n")
    strange: PrimExpr = Call("int32", "tir.popcount", (n,))
    with pytest.raises(CodegenError, match="can't be checked at a call"):
        binding.make_plan(signature(buffer("a", (n,)), buffer("b", (strange,)), symbols=(n,)))


VARIABLES = tuple(Var(name, "int64") for name in "abc")


def affine(draw: st.DrawFn, used: list[Var]) -> PrimExpr:
    """An affine extent of some variables."""
    expr: PrimExpr = arithmetic.const(draw(st.integers(0, 3)), "int64")
    for var in used:
        expr = expr + var * draw(st.integers(1, 3))
    return expr


@settings(deadline=None, derandomize=True, max_examples=share_of(80))
@given(st.data())
def test_affine_extents_give_the_values_they_were_made_of(data: st.DataObject) -> None:
    values = {var: data.draw(st.integers(0, 4)) for var in VARIABLES}
    order = data.draw(st.permutations(VARIABLES))
    # Extent k adds one more unknown to those before it; in any order of the arguments they can be found.
    extents = [data.draw(st.composite(affine)(list(order[: k + 1]))) for k in range(len(order))]
    params = data.draw(st.permutations([buffer(f"x{k}", (extent,)) for k, extent in enumerate(extents)]))
    described = signature(*params, symbols=VARIABLES)
    shapes = [(evaluate(param.shape[0], values),) for param in params]
    assert symbols(described, *shapes) == [values[var] for var in VARIABLES]


def evaluate(expr: PrimExpr, values: dict[Var, int]) -> int:
    """The value of an expression, by the folding builders."""
    from tensorexpr.tir.rewriting import substitute

    folded = substitute(expr, {var: arithmetic.const(value, "int64") for var, value in values.items()})
    number = arithmetic.as_int(folded)
    assert number is not None
    return number
