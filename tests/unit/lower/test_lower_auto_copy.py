"""Copies by `read_at` and `write_at`, shared out to the threads of a block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.lower.device.on_cpu import with_barriers
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc, transform
from tensorexpr.tir.interpreter import interpret


def copying(rows: int, columns: int, threads: tuple[int, int], more: str = "", store: str = "A[i, j]", scope: str = "shared") -> PrimFunc:
    """B = A + 1 by way of shared memory, in one block."""
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer(({rows}, {columns}), "float32"), B: T.Buffer(({rows}, {columns}), "float32")):
    S = T.alloc_buffer(({rows}, {columns}), scope="{scope}")
    for ty in T.thread_binding({threads[0]}, thread="threadIdx.y"):
        for tx in T.thread_binding({threads[1]}, thread="threadIdx.x"):
            with T.block("copy"):
                T.reads(A[0:{rows}, 0:{columns}])
                T.writes(S[0:{rows}, 0:{columns}])
                T.block_attr({{"auto_copy": 1{more}}})
                for i, j in T.grid({rows}, {columns}):
                    S[i, j] = {store}
            for k in range({-(-rows * columns // (threads[0] * threads[1]))}):
                with T.block("B"):
                    at = T.axis.spatial({rows * columns}, (k * {threads[0]} + ty) * {threads[1]} + tx)
                    T.where((k * {threads[0]} + ty) * {threads[1]} + tx < {rows * columns})
                    B[at // {columns}, at % {columns}] = S[at // {columns}, at % {columns}] + 1.0
""")
    assert isinstance(func, PrimFunc)
    return func


def shared_out(func: PrimFunc) -> str:
    made = transform.LowerAutoCopy()(IRModule({"main": func}))["main"]
    assert isinstance(made, PrimFunc)
    return made.script()


@settings(max_examples=8, deadline=None)
@given(
    rows=st.integers(1, 7),
    columns=st.integers(1, 9),
    threads=st.tuples(st.integers(1, 3), st.integers(1, 8)),
    width=st.sampled_from(["", ', "vector_bytes": 8', ', "vector_bytes": 16']),
)
def test_every_element_is_copied_whatever_threads_there_are(rows: int, columns: int, threads: tuple[int, int], width: str) -> None:
    func = copying(rows, columns, threads, width)
    x, y, z = np.random.default_rng(0).random((rows, columns), np.float32), *np.zeros((2, rows, columns), np.float32)
    interpret(with_barriers(tvm.lower(func, upto=1))["main"], [x, y])
    tvm.build(func, target="llvm")(x, z)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(z, x + 1)


def test_neighbours_in_memory_go_to_neighbouring_threads_as_vectors() -> None:
    text = [line.strip() for line in shared_out(copying(16, 64, (2, 32), ', "vector_bytes": 16')).splitlines()]
    at = text.index("for i_j_fused_0 in range(4):")
    assert text[at + 1 : at + 4] == [
        'for i_j_fused_1 in T.thread_binding(2, thread="threadIdx.y"):', 'for i_j_fused_2 in T.thread_binding(32, thread="threadIdx.x"):',
        "for i_j_fused_3 in T.vectorized(4):",
    ]  # fmt: skip
    lowered = tvm.lower(copying(16, 64, (2, 32), ', "vector_bytes": 16')).script()
    assert "S_1[i_j_fused_0 * 256 + threadIdx_y * 128 + threadIdx_x * 4:" in lowered


def test_threads_too_many_for_the_last_turn_and_rows_that_no_vector_fits() -> None:
    assert "if (i_j_fused_0 * 3 + i_j_fused_1) * 8 + i_j_fused_2 < 35:" in shared_out(copying(5, 7, (3, 8), ', "vector_bytes": 16'))


@pytest.mark.parametrize(
    "func",
    [
        copying(4, 4, (2, 2), store="A[i, j] * 2.0"),
        copying(4, 4, (2, 2), scope="local"),
        copying(4, 4, (2, 2)).with_attr("from_legacy_te_schedule", True),
    ],
    ids=["computes", "memory of a thread", "no blocks"],
)
def test_what_is_no_plain_copy_of_shared_memory_stays(func: PrimFunc) -> None:
    assert "for i, j in T.grid(4, 4):" in shared_out(func)


def test_copies_that_not_all_threads_reach_stay() -> None:
    text = copying(4, 4, (2, 2)).script()
    for line, changed in (
        ('with T.block("copy"):', 'with T.block("copy"):\n                T.where(tx < 1)'),
        ("for tx in", "for tx in"),
    ):
        func = from_source(text.replace(line, changed))
        assert isinstance(func, PrimFunc)
        assert ("T.grid(4, 4)" in shared_out(func)) is (line != changed)


def test_tiles_that_are_read_and_written_at_loops_are_moved_by_all_threads() -> None:
    n = 32
    a, b, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_block("C")
    i, j, reduced = sch.get_loops(block)
    i, ii = sch.split(i, [None, 8])
    j, ji = sch.split(j, [None, 8])
    outer, inner = sch.split(reduced, [None, 16])
    sch.reorder(i, j, ii, ji, outer, inner)
    grid = sch.fuse(i, j)
    for loop, tag in ((grid, "blockIdx.x"), (ii, "threadIdx.y"), (ji, "threadIdx.x")):
        sch.bind(loop, tag)
    sch.write_at(grid, block, 0, "shared")
    for number in range(2):
        sch.annotate(sch.read_at(outer, block, number, "shared"), "vector_bytes", 16)
    text = tvm.lower(sch.mod).script()
    # 8 x 16 and 16 x 8 elements, half of the threads with four each.
    assert text.count("if threadIdx_y < 4:") == 2 and text.count('T.allocate([128], "float32", "shared")') == 2
    assert "range(8)" not in text  # nothing is copied by each thread alone
    x, y, z = np.random.default_rng(0).random((n, n), np.float32), np.random.default_rng(1).random((n, n), np.float32), np.zeros((n, n))
    made = z.astype(np.float32)
    tvm.build(sch.mod, target="llvm")(x, y, made)
    np.testing.assert_allclose(made, x @ y, rtol=1e-5)
