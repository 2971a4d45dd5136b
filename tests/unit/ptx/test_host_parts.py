"""What the host does around kernels: loops, conditions, values and memory, on the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import LoweringError
from tensorexpr.runtime import load_module
from tensorexpr.script import from_source
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.ptx import emulator
from tests import scan_programs

from .running import TARGET

_HEAD = "from tensorexpr.script import tir as T\n@T.prim_func\ndef main(a: T.handle, n: T.int32):\n    A = T.match_buffer(a, (64,))\n"
# The kernels of a step depend on its number, by their threads, by what they compute, and by which of them run.
_STEPS = """
    for step in range(n):
        half = T.allocate([32], "float32", "global")
        H = T.Buffer((32,), data=half)
        low: T.int32 = step // 2
        for tx in T.thread_binding(32, "threadIdx.x"):
            H[tx] = A[tx] + T.Cast("float32", low)
        if step % 2 == 0:
            for bx in T.thread_binding(step + 1, "blockIdx.x"):
                for tx in T.thread_binding(8, "threadIdx.x"):
                    if bx * 8 + tx < 32:
                        A[bx * 8 + tx] = H[31 - bx * 8 - tx]
        else:
            for tx in T.thread_binding(64, "threadIdx.x"):
                A[tx] = A[tx] - H[tx % 32]
"""


def _reference(a: Any, n: int) -> Any:
    a = a.copy()
    for step in range(n):
        half = a[:32] + np.float32(step // 2)
        if step % 2 == 0:
            first = min(32, 8 * (step + 1))
            a[:first] = half[::-1][:first]
        else:
            a -= np.tile(half, 2)
    return a


def test_launches_in_loops_and_under_conditions(tmp_path: Path) -> None:
    module: Any = tvm.build(from_source(_HEAD + _STEPS), target=TARGET)
    module.export_library(tmp_path / "steps.ptx")
    x = np.arange(64, dtype="float32")
    for made in (module, load_module(tmp_path / "steps.ptx")):
        for n in (0, 1, 4, 7):
            array = tvm.nd.array(x, emulator())
            made(array, n)
            np.testing.assert_array_equal(array.numpy(), _reference(x, n))


_ON_THREADS = '        for tx in T.thread_binding(32, "threadIdx.x"):\n            A[tx] = A[tx] + T.float32(1)\n'


@pytest.mark.parametrize(
    "body, message",
    [
        ("    if A[0] < T.float32(3):\n", r"IfThenElse around kernels depends on A\[0\], which the host doesn't know"),
        ("    while A[0] < T.float32(3):\n", r"a statement around kernels \(While\) can't be run by the host"),
        (
            '    for i in range(n):\n        w = T.allocate([i + 32], "float32", "global")\n        W = T.Buffer((32,), data=w)\n'
            + _ON_THREADS.replace("A[tx] +", "W[tx] +").replace("A[tx] = W[tx]", "W[tx] = A[tx]"),
            "the size of w depends on i, a loop of the host around kernels",
        ),
        ("    for i in range(3):\n        A[i + 1] = A[i]\n    for i in range(1):\n", r"a statement that is in no kernel \(For\)"),
        ("    for i in range(3):\n        A[i // 2] = T.float32(1)\n    for i in range(1):\n", r"a statement that is in no kernel \(For\)"),
    ],
)
def test_what_the_host_can_not_know_is_refused(body: str, message: str) -> None:
    script = _HEAD + body + ("" if "threadIdx" in body else _ON_THREADS)
    with pytest.raises(LoweringError, match=message):
        tvm.build(from_source(script), target=TARGET)


@pytest.mark.parametrize("name", ["cumulative_sum", "rnn"])
def test_a_scan_launches_its_steps(name: str) -> None:
    tensors = getattr(scan_programs, name)()
    s = te.create_schedule(tensors[-1].op)
    for stage in s.stages:
        if isinstance(stage.op, te.ComputeOp):
            axes = list(stage.op.axis)[1:]
            bx, tx = stage.split(axes[0] if len(axes) == 1 else stage.fuse(*axes), factor=4)
            stage.bind(bx, te.thread_axis("blockIdx.x"))
            stage.bind(tx, te.thread_axis("threadIdx.x"))
    assert_schedule_correct(s, list(tensors), phases=(), compiled=False, emulator=True)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.lists(st.integers(0, 3), min_size=3, max_size=3), st.randoms())
def test_stores_outside_of_kernels_are_each_made_once(extents: list[int], gaps: list[int], random: Any) -> None:
    """Loops in any order of their steps, which leave gaps."""
    order, steps, span = list(range(len(extents))), [0] * len(extents), 1
    random.shuffle(order)
    for at in order:
        steps[at] = span + gaps[at]
        span = steps[at] * extents[at]
    loops = ", ".join(f"range({extent})" for extent in extents)
    names = "ijk"[: len(extents)]
    place = " + ".join(f"{name} * {step}" for name, step in zip(names, steps, strict=True))
    lines = [f"{'    ' * number}for {name} in {one}:\n" for number, (name, one) in enumerate(zip(names, loops.split(", "), strict=True), 1)]
    store = f"{'    ' * (len(names) + 1)}A[{place}] = T.Cast('float32', {place})\n"
    head = _HEAD.replace("(64,)", f"({max(span, 32)},)")
    module: Any = tvm.build(from_source(head + "".join(lines) + store + _ON_THREADS.replace("        ", "    ", 1)), target=TARGET)
    array = tvm.nd.array(np.full(max(span, 32), -1, "float32"), emulator())
    module(array, 0)
    wanted = np.full(max(span, 32), -1, "float32")
    for values in np.ndindex(*extents):
        at = int(np.dot(values, steps))
        wanted[at] = at
    wanted[:32] += 1
    np.testing.assert_array_equal(array.numpy(), wanted)
