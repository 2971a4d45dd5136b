"""Products of several factors, contracted pair by pair."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps import Contract
from tensorexpr.spaces.contraction_order import best_order
from tensorexpr.spaces.default import default_schedule
from tensorexpr.te.operation import ComputeOp
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct


def product(equation: str, sizes: dict[str, int], dtype: str = "float32", first: int = 0) -> list[Tensor]:
    """The inputs of an equation and its result, by definition."""
    inputs, result = equation.split("->")
    axes = {name: te.reduce_axis((first, size), name) for name, size in sizes.items() if name not in result}
    shapes = [[sizes[name] for name in one] for one in inputs.split(",")]
    tensors = [te.placeholder(shape, dtype, name=chr(65 + number)) for number, shape in enumerate(shapes)]

    def element(*results: te.Var) -> te.PrimExpr:
        at = {**axes, **dict(zip(result, results, strict=True))}
        factors = [tensor(*(at[name] for name in one)) for tensor, one in zip(tensors, inputs.split(","), strict=True)]
        return te.sum(prod(factors[1:], start=factors[0]), axis=list(axes.values()))

    return [*tensors, te.compute([sizes[name] for name in result], element, name="Y")]


def order_of(y: Tensor) -> tuple[tuple[int, ...], ...]:
    assert isinstance(y.op, ComputeOp)
    return tuple(best_order(y.op))


TUCKER = {"i": 12, "j": 10, "k": 9, "r": 4, "s": 5, "t": 6}


@settings(max_examples=15, deadline=None, database=None)
@given(st.data())
def test_any_of_the_factors_may_come_first(data: st.DataObject) -> None:
    names = "ijrst"
    factors = data.draw(st.lists(st.sets(st.sampled_from(names), min_size=1).map(sorted), min_size=2, max_size=4))
    used = sorted({name for factor in factors for name in factor})
    results = data.draw(st.lists(st.sampled_from(used), min_size=1, max_size=2, unique=True))
    if not set(used) - set(results):
        return
    sizes = {name: data.draw(st.integers(2, 4)) for name in used}
    equation = f"{','.join(''.join(factor) for factor in factors)}->{''.join(results)}"
    tensors = product(equation, sizes, data.draw(st.sampled_from(["float32", "int32"])), data.draw(st.integers(0, 1)))
    chosen = data.draw(st.lists(st.integers(0, len(factors) - 1), min_size=1, max_size=len(factors) - 1, unique=True))
    s = create_schedule(tensors[-1].op)
    s.contract(tensors[-1], chosen)
    assert_schedule_correct(s, tensors, phases=(0,), compiled=False)


def test_a_contraction_is_a_step_of_the_schedule() -> None:
    tensors = product("rst,ir,js,kt->ijk", TUCKER)
    s = create_schedule(tensors[-1].op)
    made = s.contract(tensors[-1], [0, 1])
    assert str(made.op) == (
        "compute(Y.product, [i0.m, s.m, t.m], [T.reduce(T.comm_reducer(lambda x, y: x + y, [T.float32(0.0)]), "
        'source=[A[r_t, s_m, t_m] * B[i0_m, r_t]], init=[], axis=[T.iter_var(r_t, T.Range(0, 4), "CommReduce", "")], '
        "condition=T.bool(True), value_index=0)])"
    )
    again = create_schedule(tensors[-1].op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s) and "Y_product = s.contract(Y, [0, 1])" in s.as_python()


@pytest.mark.parametrize("factors", [[], [0, 0], [4], [0, 1, 2, 3]], ids=str)
def test_what_are_not_some_of_the_factors_is_refused(factors: list[int]) -> None:
    y = product("rst,ir,js,kt->ijk", TUCKER)[-1]
    with pytest.raises(ScheduleError, match=r"contract of factors .*, not some of its own; they are 0: A\[r, s, t\]; 1: B\[i0, r\]"):
        create_schedule(y.op).contract(y, factors)
    halves = product("rs,ir,js->ij", TUCKER, "float16")[-1]
    with pytest.raises(ScheduleError, match="they are none"):
        create_schedule(halves.op).contract(halves, [0, 1])


ORDERS = {
    ("rst,ir,js,kt->ijk", 16, 4): ((0, 1), (0, 1, 2)),
    ("ir,rs,sj->ij", 64, 8): ((0, 1),),
    ("ij,jk,kl->il", 32, 32): ((0, 1),),
    ("ij,jk,k->i", 64, 64): ((1, 2),),
    ("ir,jrs->ij", 64, 32): ((1,),),  # what one factor alone is summed over
    ("ir,jr,kr->ijk", 32, 32): (),  # as many steps for a product of two
    ("ir,rj->ij", 64, 64): (),
    ("ir,rs,sj->ij", 8, 4): (),  # too little
}


@pytest.mark.parametrize(("key", "order"), ORDERS.items(), ids=str)
def test_the_order_of_fewest_operations(key: tuple[str, int, int], order: tuple[tuple[int, ...], ...]) -> None:
    equation, results, terms = key
    sizes = {name: results if name in equation.split("->")[1] else terms for name in equation if name.isalpha()}
    assert order_of(product(equation, sizes)[-1]) == order


def test_no_product_is_larger_than_what_is_there() -> None:
    """Of few terms between wide sides products of both sides would fill memory."""
    assert order_of(product("ir,js,rs->ij", {"i": 64, "j": 64, "r": 2, "s": 40})[-1]) == ((1, 2),)
    assert order_of(product("ir,jr,kr,lr->ijkl", {"i": 9, "j": 9, "k": 9, "l": 9, "r": 64})[-1]) == ()


def separable(size: int, window: int) -> list[Tensor]:
    shapes = ((size + window - 1,) * 2, (window,), (window,))
    x, u, v = (te.placeholder(shape, name=name) for shape, name in zip(shapes, "Xuv", strict=True))
    r, t = te.reduce_axis((0, window), "r"), te.reduce_axis((0, window), "t")
    return [x, u, v, te.compute((size, size), lambda i, j: te.sum(x[i + r, j + t] * u[r] * v[t], axis=[r, t]), name="Y")]


def test_windows_that_are_products_are_passes() -> None:
    """A window of 9 x 9 that is u * v takes 9 + 9 steps for a result, and the first pass is as wide as what the second slides over."""
    assert order_of(separable(34, 9)[-1]) == ((0, 1),)
    tensors = separable(6, 3)
    s = create_schedule(tensors[-1].op)
    assert [int(str(extent)) for extent in s.contract(tensors[-1], [0, 1]).shape] == [6, 8]
    assert_schedule_correct(s, tensors, phases=(0,), compiled=False)


def test_a_tucker_form_is_three_products() -> None:
    """64 x 64 x 64 results of 16 x 16 x 16 terms took 25 times as long as PyTorch's einsum."""
    tensors = product("rst,ir,js,kt->ijk", {**dict.fromkeys("ijk", 12), **dict.fromkeys("rst", 5)})
    s = default_schedule(tensors, "llvm")
    assert sum(isinstance(step, Contract) for step in s.trace) == 2
    rng = np.random.default_rng(0)
    given = [rng.standard_normal([int(str(size)) for size in tensor.shape]).astype("float32") for tensor in tensors[:-1]]
    found = np.empty((12, 12, 12), "float32")
    tvm.build(s, tensors, "llvm")(*given, found)
    np.testing.assert_allclose(found, np.einsum("rst,ir,js,kt->ijk", *given), rtol=1e-4, atol=1e-4)
