"""Of several vectorised loops of a stage the innermost one is: the others stay loops, and that is said."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te


@pytest.mark.parametrize("outer_first", [False, True])
def test_the_innermost_of_two_vectorised_loops_has_the_lanes(outer_first: bool, caplog: pytest.LogCaptureFixture) -> None:
    a = te.placeholder((4, 8), name="a")
    b = te.compute((4, 8), lambda i, j: a[i, j] * 2.0, name=f"b{outer_first}")  # the warning comes once for each text
    s = te.create_schedule(b.op)
    i, j = b.op.axis
    with caplog.at_level(logging.WARNING):
        for axis in (i, j) if outer_first else (j, i):
            s[b].vectorize(axis)
    assert "'i' stays a loop, as 'j' inside of it is vectorised" in caplog.text
    text = tvm.lower(s, [a, b]).script()
    assert "for i in range(4)" in text and "i * 8:i * 8 + 8" in text
    x, y = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    tvm.build(s, [a, b])(x, y)
    assert (y == x * 2).all()
