"""Primitives that need something of the caller's: intrinsics, and his word on what a block touches. They keep what is computed."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.script import from_source
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tests import loop_programs as programs
from tests.effort import share_of

TILES = st.integers(1, 3)


def check(sch: tir.Schedule, arrays: list[np.ndarray], expected: np.ndarray) -> None:
    """The function writes what is expected to its last array, after the phases, and is read back from its text."""
    assert structural_equal(from_source(sch.mod.script()), sch.mod)
    for phase in (0, 2):
        result = np.zeros_like(expected)
        interpret(tensorexpr.lower(sch.mod, upto=phase)["main"], [*arrays, result])
        np.testing.assert_allclose(result, expected, rtol=1e-5, err_msg=f"phase {phase}")


@given(
    tiles=st.tuples(TILES, TILES, TILES), factors=st.tuples(*[st.sampled_from([2, 4, 4, 4, 8])] * 3), extra=st.integers(0, 2),
    order=st.permutations(range(3)), inner=st.permutations(range(3)), at=st.integers(0, 3), started=st.booleans(),
)  # fmt: skip
@example(tiles=(2, 1, 3), factors=(4, 4, 4), extra=0, order=[0, 1, 2], inner=[0, 1, 2], at=0, started=True)
@settings(max_examples=share_of(40), deadline=None, derandomize=True)
def test_tensorize(
    tiles: tuple[int, int, int], factors: tuple[int, int, int], extra: int, order: list[int], inner: list[int], at: int, started: bool
) -> None:
    """Tiles of any size, some of them cut off, in any order: the intrinsic stands in only for its own 4 x 4 x 4 products."""
    n, m, depth = (4 * count + extra * (count == 1) for count in tiles)
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    sch = tir.Schedule(te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]))
    pairs = [sch.split(loop, [None, factor]) for loop, factor in zip(sch.get_loops("C"), factors, strict=True)]
    sch.reorder(*(pairs[one][0] for one in order), *(pairs[one][1] for one in inner))
    if started:
        sch.decompose_reduction("C", sch.get_loops("C")[min(order.index(2), at)])
    block = "C_update" if started else "C"
    try:
        sch.tensorize(sch.get_loops(block)[at + 2 if at else 3], programs.register_dot())
        done = True
    except ScheduleError:
        done = False
    whole = factors == (4, 4, 4) and not extra and inner == [0, 1, 2] and at == 0
    assert done or not (whole and started)
    values = [np.arange(n * depth, dtype="float32").reshape(n, depth) % 5, np.arange(depth * m, dtype="float32").reshape(depth, m) % 7]
    check(sch, values, values[0] @ values[1])


@given(n=st.integers(2, 9), low=st.integers(0, 3), high=st.integers(0, 3), factor=st.integers(1, 5), shift=st.integers(0, 2))
@settings(max_examples=share_of(30), deadline=None, derandomize=True)
def test_annotate_buffer_access(n: int, low: int, high: int, factor: int, shift: int) -> None:
    """Who says that more is read gets more computed, and the same result."""
    a = te.placeholder((n + shift,), "int32", name="A")
    b = te.compute((n + shift,), lambda i: a[i] * 2, name="B")
    sch = tir.Schedule(te.create_prim_func([a, te.compute((n,), lambda i: b[i + shift] + 1, name="C")]))
    block = sch.get_block("C")
    sch.annotate_buffer_access(block, 0, "read", lambda i: [(i + shift - low, i + shift + high + 1)])
    (region,) = sch.get(block).reads
    assert region.buffer.name == "B"
    outer, _ = sch.split(sch.get_loops(block)[0], [None, factor])
    try:
        sch.compute_at("B", outer)
    except ScheduleError as error:
        assert "B" in str(error)
    data = np.arange(n + shift, dtype="int32")
    check(sch, [data], data[shift:] * 2 + 1)


@given(
    axis=st.integers(0, 1), factor=st.sampled_from([1, 4, 8, 32]), offset=st.integers(0, 5), scope=st.sampled_from(["global", "local"]),
    inside=st.booleans(), rows=st.integers(1, 5),
)  # fmt: skip
@settings(max_examples=share_of(25), deadline=None, derandomize=True)
def test_storage(axis: int, factor: int, offset: int, scope: str, inside: bool, rows: int) -> None:
    """Strides and memory of an intermediate buffer, whole or of a tile."""
    a = te.placeholder((rows, 6), "int32", name="A")
    b = te.compute((rows, 6), lambda i, j: a[i, j] * 2, name="B")
    sch = tir.Schedule(te.create_prim_func([a, te.compute((rows, 6), lambda i, j: b[i, 5 - j] + 1, name="C")]))
    if inside:
        sch.compute_at("B", sch.get_loops("C")[0])
    sch.storage_align("B", 0, axis, factor, offset % factor)
    sch.set_scope("B", 0, scope)
    stored = sch.get(sch.get_block("B"))
    assert stored.writes[0].buffer.scope() == scope
    assert "buffer_dim_align" in stored.annotations
    data = np.arange(rows * 6, dtype="int32").reshape(rows, 6)
    check(sch, [data], data[:, ::-1] * 2 + 1)
