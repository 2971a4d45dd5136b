"""Schedules for GPUs run on a CPU: what their threads share, when they wait, and what they add up together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import LoweringError, ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.testing.check import assert_schedule_correct
from tests.gpu_programs import Program, convolution, normalised, product, row_sums

PROGRAMS: dict[str, Callable[[], Program]] = {
    "product": product,
    "eight threads": lambda: product(16, 16, 8, 8),
    "scalar fetch": lambda: product(vector=False),
    "double buffers": lambda: product(double=True),
    "tiles that don't fit": lambda: product(14, 8, 2, 4, vector=False),
    "convolution": convolution,
    "factored sum": row_sums,
    "sum": lambda: row_sums(factored=False),
    "everybody stores": lambda: row_sums(factored=False, one_stores=False),
    "sum without rest": lambda: row_sums(8, 16, 16),
    "normalised": normalised,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_of_courses(name: str) -> None:
    assert_schedule_correct(*PROGRAMS[name](), phases=(1, 3))


def test_a_lowered_program_is_built_too() -> None:
    s, (a, b, c) = product()
    module = tvm.build(tvm.lower(s, [a, b, c]), target="llvm")
    x, y, z = (np.random.default_rng(n).random((16, 16), np.float32) for n in range(3))
    module(x, y, z)
    np.testing.assert_allclose(z, x.T @ y, rtol=1e-5)


def test_stages_live_near_their_threads() -> None:
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((8, 8), lambda i, j: b[i, j] * 2.0, name="C")
    s = create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    s[c].bind(c.op.axis[1], te.thread_axis("threadIdx.x"))
    for axis, wanted in ((0, 'T.allocate([8], "float32", "shared")'), (1, 'T.allocate([1], "float32", "local")')):
        s[b].compute_at(s[c], c.op.axis[axis])
        assert wanted in tvm.lower(s, [a, c], upto=1).script()
        assert_schedule_correct(s, [a, c], phases=(0, 1))
    s[b].set_scope("shared")  # of what all threads share each computes all
    assert 'T.allocate([8], "float32", "shared")' in tvm.lower(s, [a, c], upto=1).script()
    assert_schedule_correct(s, [a, c], phases=(0, 1))


def test_what_is_computed_before_a_kernel_is_handed_on_to_it() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    s.cache_read(a, "local", [b])
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    assert_schedule_correct(s, [a, b], phases=(1,))


def test_explain_says_what_threads_share() -> None:
    text = product()[0].explain()
    shared = text[: text.index("A.shared.local: ")]
    assert "storage: shared by the threads of the loop j.inner.inner.outer of C, which wait for each other" in shared
    assert "storage: private to each block of the loop j.outer of C" in shared and "compute the same" not in shared
    assert "storage: private to each thread of the loop j.inner.inner.outer of C" in text[len(shared) :]
    assert "\n  threads: 4 in a block\n" in text


def test_explain_names_work_that_all_threads_repeat_and_too_many_threads() -> None:
    a = te.placeholder((2, 2048), name="A")
    b = te.compute((2, 2048), lambda i, j: a[i, j] + 1.0, name="B")
    s = create_schedule(b.op)
    copy = s.cache_read(a, "shared", [b])
    s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(b.op.axis[1], te.thread_axis("threadIdx.x"))
    s[copy].compute_at(s[b], b.op.axis[1])
    text = s.explain()
    assert "threads: all along threadIdx.x compute the same; bind loops of A.shared to them" in text
    assert "threads: 2048 in a block, and a GPU has at most 1024: bind smaller parts of the loops" in text


def test_blocks_do_not_add_up() -> None:
    a = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((), lambda: te.sum(a[k], axis=k), name="B")
    s = create_schedule(b.op)
    s[b].bind(k, te.thread_axis("blockIdx.x"))
    with pytest.raises(ScheduleError, match=r"'k' is bound to blockIdx.x, and blocks don't meet to add up"):
        tvm.lower(s, [a, b])


def test_a_spatial_axis_inside_a_shared_reduction() -> None:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    outer, inner = s[b].split(k, factor=4)
    s[b].reorder(inner, outer, b.op.axis[0])
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError, match=r"its axis 'i' stands inside the reduction 'k.outer'"):
        tvm.lower(s, [a, b])


def test_a_predicate_needs_its_threads() -> None:
    _, args = row_sums(factored=False, one_stores=False)
    other = te.thread_axis("threadIdx.z")
    elsewhere = te.compute((4,), lambda i: 1.0, name="D")
    s2 = create_schedule([elsewhere.op, args[1].op])
    s2[elsewhere].bind(elsewhere.op.axis[0], other)
    s2[args[1]].set_store_predicate(other.var.equal(0))
    with pytest.raises(ScheduleError, match=r"speaks of threadIdx.z, to which no loop around it is bound"):
        tvm.lower(s2, [*args, elsewhere])


def test_more_threads_than_a_block_has() -> None:
    a = te.placeholder((2048,), name="A")
    b = te.compute((2048,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(LoweringError, match="a block has 2048 threads; GPUs have at most 1024"):
        tvm.build(s, [a, b], target="llvm")


def test_more_memory_than_a_block_has() -> None:
    a = te.placeholder((4, 1 << 16), name="A")
    b = te.compute((4, 1 << 16), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 1 << 16), name="k")
    c = te.compute((4,), lambda i: te.sum(b[i, k], axis=k), name="C")
    s = create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].compute_at(s[c], c.op.axis[0])
    with pytest.raises(LoweringError, match=r"share 262144 bytes \(B 262144\); GPUs have at most 232448"):
        tvm.build(s, [a, c], target="llvm")
