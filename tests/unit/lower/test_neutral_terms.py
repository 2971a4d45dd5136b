"""Guards at the end of a sum go exactly where the terms past it exist and add nothing."""

from __future__ import annotations

from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct

LENGTH, GROUP = 10, 4


def grouped(pads: tuple[Any, Any] = (0, 0), dtype: str = "int32", reducer: Any = te.sum) -> tuple[Schedule, list[Tensor]]:
    """A reduction over 10 terms in groups of 4; each operand is copied with a padded end, or not where its pad is "no"."""
    a, b = te.placeholder((LENGTH,), dtype, name="A"), te.placeholder((3, LENGTH), dtype, name="B")
    k = te.reduce_axis((0, LENGTH), name="k")
    c = te.compute((3,), lambda i: reducer(a[k] * b[i, k], axis=k), name="C")
    s = create_schedule(c.op)
    for tensor, pad in zip((a, b), pads, strict=True):
        if pad != "no":
            copy = s.cache_read(tensor, "global", [c])
            s[copy].transform_layout(lambda *i: [*i[:-1], i[-1] // GROUP, i[-1] % GROUP], pad_value=pad)
    s[c].split(s[c].op.reduce_axis[0], factor=GROUP)
    return s, [a, b, c]


def guards(s: Schedule, args: list[Tensor]) -> int:
    """How many conditions there are around updates of C."""
    body = tvm.lower(s, args, upto=0)["main"].body
    found = [node for node in tir.rewriting.walk(body) if isinstance(node, tir.IfThenElse)]
    updates = [node for node in found if isinstance(node.then_case, tir.BufferStore) and node.then_case.buffer.name == "C"]
    return len(updates)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64"])
def test_products_of_zeros_need_no_guard(dtype: str) -> None:
    s, args = grouped((0, 0), dtype)
    assert guards(s, args) == 0
    assert_schedule_correct(s, args)


KEPT: dict[str, Any] = {
    "one is not padded": {"pads": (0, "no")},
    "neither is padded": {"pads": ("no", "no")},
    "no zeros": {"pads": (1, 1)},
    "zero is not neutral": {"reducer": te.max},
    "zero is not neutral in a smallest value": {"reducer": te.min, "dtype": "float32"},
}


@pytest.mark.parametrize("name", KEPT)
def test_other_terms_keep_theirs(name: str) -> None:
    s, args = grouped(**KEPT[name])
    assert guards(s, args) == 1
    assert_schedule_correct(s, args)


def test_the_neutral_value_of_a_maximum_is_one() -> None:
    """Padding of the smallest value: a largest value over it is the same."""
    a = te.placeholder((LENGTH,), "int32", name="A")
    k = te.reduce_axis((0, LENGTH), name="k")
    c = te.compute((3,), lambda i: te.max(a[k], axis=k), name="C")
    s = create_schedule(c.op)
    copy = s.cache_read(a, "global", [c])
    s[copy].transform_layout(lambda i: [i // GROUP, i % GROUP], pad_value=-(2**31))
    s[c].split(s[c].op.reduce_axis[0], factor=GROUP)
    assert guards(s, [a, c]) == 0
    assert_schedule_correct(s, [a, c])


def test_a_group_that_reaches_further_than_the_padding_keeps_its_guard() -> None:
    a, b = te.placeholder((LENGTH,), name="A"), te.placeholder((LENGTH,), name="B")
    k = te.reduce_axis((0, LENGTH), name="k")
    c = te.compute((3,), lambda i: te.sum(a[k] * b[k], axis=k), name="C")
    s = create_schedule(c.op)
    for tensor in (a, b):
        copy = s.cache_read(tensor, "global", [c])
        s[copy].transform_layout(lambda i: [i // GROUP, i % GROUP], pad_value=0.0)
    s[c].split(s[c].op.reduce_axis[0], factor=8)  # 10 in eights is 16, in fours 12
    assert guards(s, [a, b, c]) == 1
    assert_schedule_correct(s, [a, b, c])


def test_copies_that_are_computed_in_the_loop_reach_as_far() -> None:
    s, args = grouped()
    c = args[-1]
    outer, _ = (axis for axis in s[c].leaf_iter_vars if axis.name.startswith("k"))
    for stage in s.stages:
        if stage.op.name.endswith("global"):
            stage.compute_at(s[c], outer)
    assert guards(s, args) == 0
    assert_schedule_correct(s, args)
