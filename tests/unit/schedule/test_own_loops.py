"""bind_loops: the loops of an extern as kernels, with memory of each thread's own; as JSON, in Python, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule.steps import BindLoops, step_from_json
from tensorexpr.testing.ptx import emulator


def reversed_rows(rows: int, size: int, first: int = 0) -> list[Any]:
    """Rows turned round by way of a thread's own memory; behind them a fill, and a count that only one thread can make."""

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        a, b, c = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, rows, "r", kind="parallel") as r:
            kept = ib.allocate("float32", (size,), "kept")
            with ib.for_range(0, size, "i", kind="vectorize") as i:
                kept[i] = a[r, i]
            with ib.for_range(0, size, "i") as i:
                b[r, i] = kept[size - 1 - i]
        with ib.for_range(0, rows, "r") as r:
            c[r] = 0
        with ib.for_range(0, rows, "r") as r, ib.if_scope(a[r, first] > 0):
            c[0] = c[0] + 1
        return ib.get()

    a = te.placeholder((rows, size), "float32", "A")
    return [a, *te.extern([(rows, size), (rows,)], [a], body, name="turned", dtype=["float32", "int32"])]


@pytest.mark.parametrize("size", [3, 200])  # in registers, and in one array for all threads
def test_kernels_of_an_extern(size: int) -> None:
    args = reversed_rows(70, size)
    s = te.create_schedule(args[1].op)
    s[args[1]].bind_loops()
    text = str(tvm.lower(s, args))
    assert text.count('launch_thread("blockIdx.x"') == 3 and "parallel" not in text
    assert (f"T.allocate([{70 * size}]" in text) == (size == 200)
    x = np.random.default_rng(0).standard_normal((70, size)).astype("float32")
    for target, device in (("cuda -arch=sm_80", emulator()), ("llvm", tvm.cpu())):
        b, c = tvm.nd.empty((70, size), "float32", device), tvm.nd.empty((70,), "int32", device)
        tvm.build(s, args, target)(tvm.nd.array(x, device), b, c)
        np.testing.assert_array_equal(b.numpy(), x[:, ::-1])
        np.testing.assert_array_equal(c.numpy(), [(x[:, 0] > 0).sum(), *[0] * 69])


def test_the_step_travels() -> None:
    args = reversed_rows(4, 3)
    s = te.create_schedule(args[1].op)
    s[args[1]].bind_loops()
    (step,) = s.trace.steps
    assert step_from_json(step.to_json()) == step == BindLoops(s[args[1]].id)
    assert step.to_json() == ["bind_loops", s[args[1]].id]


def test_loops_of_a_computation_are_bound_by_bind() -> None:
    b = te.compute((4,), lambda i: i, name="B")
    s = te.create_schedule(b.op)
    with pytest.raises(ScheduleError, match="bind_loops is for externs, whose loops nothing else reaches; bind binds the loops of a stage"):
        s[b].bind_loops()
