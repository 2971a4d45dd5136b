"""Properties 23 and 29: extents whose products pass 2^31 or 2^63, and huge loops to write out: right, or refused at once."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import CodegenError, LoweringError, ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime.build import build
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import ceildiv, const
from tensorexpr.tir.dtype import int_limits
from tensorexpr.tir.expr import BufferLoad, IntImm, Var
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import AssertStmt, BufferStore, For, Stmt
from tests.effort import share_of

from .index_expressions import lane

INT32, INT64 = int_limits("int32")[1], int_limits("int64")[1]
NEAR = st.integers(-3, 3)


def copied(shape: tuple[int, ...], dtype: str = "int8") -> tuple[Schedule, list[Tensor]]:
    """B = A reversed along its last axis; never run, as nothing holds it."""
    a = te.placeholder(shape, dtype, name="A")
    b = te.compute(shape, lambda *i: a(*i[:-1], shape[-1] - 1 - i[-1]), name="B")
    return create_schedule(b.op), [a, b]


def loops_and_store(stmt: Stmt) -> tuple[list[For], BufferStore]:
    """The only nest of a function."""
    nodes = list(walk(stmt))
    (store,) = [node for node in nodes if isinstance(node, BufferStore)]
    return [node for node in reversed(nodes) if isinstance(node, For)], store


def value(extent: object) -> int:
    assert isinstance(extent, IntImm)
    return extent.value


def check_addresses(schedule: Schedule, args: list[Tensor], shape: tuple[int, ...], seed: int) -> None:
    """At corners and random points the flat indices are what integers without end give."""
    total = 1
    for extent in shape:
        total *= extent
    loops, store = loops_and_store(lower(schedule, args)["main"].body)
    (load,) = [node for node in walk(store.value) if isinstance(node, BufferLoad)]
    covered = 1
    for loop in loops:
        covered *= value(loop.extent)
    assert covered == total
    rng = random.Random(seed)
    last: dict[Var, int] = {loop.loop_var: value(loop.extent) - 1 for loop in loops}
    points = [dict.fromkeys(last, 0), last, *({var: rng.randint(0, most) for var, most in last.items()} for _ in range(20))]
    assert lane(store.indices[0], points[0]) == 0
    assert lane(store.indices[0], points[1]) == total - 1
    for point in points:
        to, source = lane(store.indices[0], point), lane(load.indices[0], point)
        row, column = divmod(to, shape[-1])
        assert source == row * shape[-1] + shape[-1] - 1 - column


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.sampled_from((31, 32, 33, 40, 62)), st.integers(1, 3), NEAR, st.integers(0, 99))
@example(bits=62, dims=3, off=0, seed=0)
@example(bits=31, dims=2, off=-1, seed=0)
def test_23_addresses_beyond_int32(bits: int, dims: int, off: int, seed: int) -> None:
    share = bits // dims
    shape = (*(1 << share for _ in range(dims - 1)), (1 << min(30, bits - share * (dims - 1))) + (off if bits < 62 else 0))
    check_addresses(*copied(shape), shape, seed)


@pytest.mark.parametrize("extent", [INT32 - 1, INT32, INT32 + 1, 1 << 40])
def test_23_one_extent_near_the_end_of_int32(extent: int) -> None:
    check_addresses(*copied((extent,)), (extent,), 1)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.integers(28, 34), st.integers(1, 3), NEAR)
@example(bits=31, dims=2, off=0)
@example(bits=32, dims=2, off=0)
def test_23_fused_loops_count_as_far_as_their_dtype_or_are_refused(bits: int, dims: int, off: int) -> None:
    shape = (*(1 << bits // (dims + 1) for _ in range(dims)), (1 << (bits - dims * (bits // (dims + 1)))) + off)
    total = 1
    for extent in shape:
        total *= extent
    s, args = copied(shape)
    s[args[1]].fuse(*args[1].op.axis)
    if total > INT32:
        with pytest.raises(ScheduleError, match=f"would count to {total}, beyond int32's {INT32}; split it by other factors, or fuse"):
            lower(s, args)
    else:
        check_addresses(s, args, shape, 2)


def test_23_fused_loops_of_symbolic_extents_are_checked_by_each_call() -> None:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int8", name="A")
    b = te.compute((n, m), lambda i, j: a[i, m - 1 - j], name="B")
    s = create_schedule(b.op)
    s[b].parallel(s[b].fuse(*b.op.axis))
    for phase in (0, 3):
        (check,) = [node for node in walk(lower(s, [a, b], upto=phase)["main"].body) if isinstance(node, AssertStmt)]
        assert "B: the loop i.j.fused over n * m is longer than int32 counts" in str(check.message)
        sizes = [(1 << 16, 1 << 15), (1 << 16, 1 << 16), (INT32, 2), (INT32, 1), (1 << 15, (1 << 16) - 1), (0, 5)]
        assert [bool(lane(check.condition, {n: x, m: y})) for x, y in sizes] == [False, False, False, True, True, True]
    assert_schedule_correct(s, [a, b], sizes=[{n: 3, m: 4}, {n: 0, m: 2}])


@pytest.mark.parametrize("distance", [0, 1, 999, 1000, 5000])
@pytest.mark.parametrize("factor", [1, 2, 16, 1000, 1 << 20])
@pytest.mark.parametrize("by_parts", [False, True])
def test_23_tiles_near_the_end_of_int32(distance: int, factor: int, by_parts: bool) -> None:
    """The last tile may reach past 2^31 - 1, where an index would turn negative and pass its guard."""
    extent = INT32 - distance
    s, args = copied((extent,))
    parts = s[args[1]].split(args[1].op.axis[0], nparts=factor) if by_parts else s[args[1]].split(args[1].op.axis[0], factor=factor)
    assert len(parts) == 2
    covered = -(-extent // factor) * factor
    if covered > INT32 + 1:
        with pytest.raises(ScheduleError, match=f"loops over 'i0?' would count to {covered - 1}, beyond int32's {INT32}"):
            lower(s, args)
    else:
        loops, _ = loops_and_store(lower(s, args, upto=0)["main"].body)
        extents = [factor, covered // factor] if by_parts else [covered // factor, factor]
        assert [value(loop.extent) for loop in loops] == [extent for extent in extents if extent > 1]


def test_23_factors_whose_product_passes_the_end() -> None:
    s, args = copied((64,))
    outer, _ = s[args[1]].split(args[1].op.axis[0], factor=1 << 20)
    s[args[1]].split(outer, factor=1 << 20)
    with pytest.raises(ScheduleError, match=f"would count to {(1 << 40) - 1}"):
        lower(s, args)


@pytest.mark.parametrize("shape", [(1 << 21, 1 << 21, 1 << 21), (1 << 32, 1 << 31), (1 << 20,) * 4, (3 << 30, 3 << 30, 3 << 30)])
def test_23_more_elements_than_int64_counts(shape: tuple[int, ...]) -> None:
    with pytest.raises(LoweringError, match=r"has 2\*\*63 elements or more"):
        lower(*copied(shape))


@settings(max_examples=share_of(100), deadline=None, derandomize=True)
@given(st.sampled_from(("int32", "int64")), st.integers(0, 2000), st.integers(1, 3000))
def test_23_quotients_rounded_up_near_the_largest_number(dtype: str, below: int, divisor: int) -> None:
    number = int_limits(dtype)[1] - below
    assert value(ceildiv(const(number, dtype), const(divisor, dtype))) == -(-number // divisor)


def huge(kind: str, extent: int) -> tuple[Schedule, list[Tensor]]:
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    getattr(s[b], kind)(b.op.axis[0])
    return s, [a, b]


@pytest.mark.parametrize("extent", [1 << 15, 1 << 24, 1 << 30, INT32])
def test_29_unrolling_a_huge_extent_names_the_limit(extent: int) -> None:
    """It is refused before a single statement is written: these tests would never end otherwise."""
    with pytest.raises(
        LoweringError, match=rf"unrolling the loop i of extent {extent} makes {extent} statements; the limit is explicit_max_step=16384"
    ):
        lower(*huge("unroll", extent))


def test_29_loops_that_are_huge_together() -> None:
    a = te.placeholder((1 << 10, 1 << 10, 1 << 10), name="A")
    b = te.compute(a.shape, lambda *i: a(*i) + 1.0, name="B")
    s = create_schedule(b.op)
    for axis in b.op.axis:
        s[b].unroll(axis)
    with pytest.raises(LoweringError, match="the limit is explicit_max_step=16384"):
        lower(s, [a, b])


@pytest.mark.parametrize("extent", [1 << 15, 1 << 24])
def test_29_a_huge_vector_is_a_loop_or_is_refused(extent: int) -> None:
    """Vectors are cut in whole registers; the machine code stays small."""
    try:
        module = build(*huge("vectorize", extent))
    except (LoweringError, CodegenError, ScheduleError) as error:
        assert "limit" in str(error)
        return
    assert len(module.get_source("ll")) < 100_000


@pytest.mark.parametrize("extent", [1 << 15, 1 << 24])
def test_29_a_huge_number_of_virtual_threads_is_a_loop_or_is_refused(extent: int) -> None:
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("vthread"))
    assert sum(1 for _ in walk(lower(s, [a, b])["main"].body)) < 1000
