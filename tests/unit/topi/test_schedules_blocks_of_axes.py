"""Default schedules of operators that read quotients and remainders of their axes: heads side by side, tiles, groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

TARGET = Target("llvm -mcpu=znver3 -num-cores=2")

# Each with blocks of so many elements, three of them. 500 x 12 heads of 48 took 0.102 ms and 0.022 since (two cores of Zen 3); a Kronecker
# product with 48 columns 0.454 and 0.045.
FORMS: dict[str, Callable[[int], tuple[list[Tensor], tuple[int, ...], Callable[..., Any]]]] = {
    "heads": lambda size: ([x := placed(3, 5, size)], (5, 3 * size), lambda i, j: x[j // size, i, j % size]),
    "tiled": lambda size: ([x := placed(5, size)], (5, 3 * size), lambda i, j: x[i, j % size]),
    "groups": lambda size: ([x := placed(5, 3 * size), m := placed(5, 3)], (5, 3 * size), lambda i, j: x[i, j] - m[i, j // size]),
    "product": lambda size: (
        [a := placed(2, 3), b := placed(4, size)],
        (8, 3 * size),
        lambda i, j: a[i // 4, j // size] * b[i % 4, j % size],
    ),
    "its number, too": lambda size: (
        [x := placed(3, 5, size)],
        (5, 3 * size),
        lambda i, j: x[j // size, i, j % size] + j.astype("float32"),
    ),
    "of two sizes": lambda size: ([x := placed(5, 3), y := placed(5, size)], (5, 3 * size), lambda i, j: x[i, j // size] + y[i, j % size]),
}


def placed(*shape: int) -> Tensor:
    return te.placeholder(shape, name=f"X{len(shape)}{shape[-1]}")


@pytest.mark.parametrize("size", [12, 47, 48, 64, 423])
@pytest.mark.parametrize("form", FORMS)
def test_axes_are_cut_where_vectors_would_reach_over_the_ends_of_blocks(form: str, size: int) -> None:
    inputs, shape, body = FORMS[form](size)
    tensors = [*inputs, te.compute(shape, body, name="Y")]
    schedule = default_schedule(tensors, TARGET)
    assert (f"factor={size})" in schedule.as_python()) is (size not in (48, 64))  # three of 48 are six vectors of 24
    text = tvm.lower(schedule, tensors).script()
    assert "% T.Broadcast" not in text and "// T.Broadcast" not in text
    assert_schedule_correct(schedule, tensors, phases=(0,))
