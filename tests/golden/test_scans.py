"""Recurrences under schedules: the loops as drawn, as explained, as Python lines, and as phase 0 makes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr as tvm
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tests.conftest import Golden
from tests.scan_programs import cumulative_sum, followed, lstm, rnn

Program = tuple[Schedule, list[Tensor]]


def plain() -> Program:
    """Nothing scheduled."""
    args = list(cumulative_sum())
    return create_schedule(args[-1].op), args


def cell() -> Program:
    """The product inside of a loop of the update, over a local copy of the state; rows in parallel, columns as vectors."""
    args = list(rnn(5, 4, 8))
    update = args[-1].op.update[0]
    product = update.op.input_tensors[0]
    s = create_schedule(args[-1].op)
    _, b, i = update.op.axis
    outer, inner = s[update].split(i, factor=4)
    s[update].parallel(b)
    s[update].vectorize(inner)
    copied = s.cache_read(args[-1].op.state_placeholder[0], "local", [product])
    s[copied].compute_at(s[update], b)
    s[product].compute_at(s[update], outer)
    s[args[-1].op.init[0]].compute_inline()
    return s, args


def gates() -> Program:
    """A cell whose input products are computed at each step, with the elementwise stages inlined."""
    args = list(lstm())
    op = args[-1].op
    s = create_schedule(op)
    stages = {stage.op.name: stage for stage in s.stages}
    stages["projected"].compute_at(s[args[-1]], op.scan_axis)
    stages["gates"].compute_inline()
    stages["inputs"].compute_inline()
    return s, args


def read() -> Program:
    """Time written out, and a reader of the result."""
    x, doubled = followed()
    s = create_schedule(doubled.op)
    sums = doubled.op.input_tensors[0]
    s[sums].unroll(sums.op.scan_axis)
    s[doubled].vectorize(doubled.op.axis[1])
    return s, [x, doubled]


PROGRAMS: dict[str, Callable[[], Program]] = {"plain": plain, "cell": cell, "gates": gates, "read": read}


@pytest.mark.parametrize("name", PROGRAMS)
def test_scans(name: str, golden: Golden) -> None:
    s, args = PROGRAMS[name]()
    golden(f"scans/{name}.txt", f"{s}\n\n{s.explain()}\n\n{s.as_python()}\n")
    golden(f"scans/{name}.phase0.py", tvm.lower(s, args, upto=0).script())
