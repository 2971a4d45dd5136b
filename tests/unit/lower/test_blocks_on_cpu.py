"""Kernels of blocks and threads as loops of a CPU, beside the interpreter that runs the threads of a block together."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import LoweringError
from tensorexpr.lower.device.on_cpu import with_barriers
from tensorexpr.lower.pipeline import lower_for_cpu
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.script import from_source
from tensorexpr.tir import IRModule, PrimFunc
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tensorexpr.tir.stmt import For, ForKind
from tests.gpu_blocks import product

DATA = np.random.default_rng(0).random(64, np.float32)
HEAD = 'def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):'


def parsed(*lines: str) -> PrimFunc:
    """A function on A and B of 64 floats."""
    func = from_source("\n    ".join(["@T.prim_func\n" + HEAD, *lines]))
    assert isinstance(func, PrimFunc)
    return func


GRID = ('bx = T.launch_thread("blockIdx.x", 2)', 'tx = T.launch_thread("threadIdx.x", 32)')
SHARED = ('S_data = T.allocate([32], "float32", "shared")', 'S = T.Buffer((32,), data=S_data, scope="shared")')
LOCAL = ('L_data = T.allocate([1], "float32", "local")', 'L = T.Buffer((1,), data=L_data, scope="local")')
BARRIER = 'T.tvm_storage_sync("shared")'
ALL = "T.tvm_warp_activemask()"


def both(func: PrimFunc) -> np.ndarray:
    """B by the compiled code, which the interpreter agrees with."""
    seen, made = np.full(64, 113, np.float32), np.full(64, 113, np.float32)
    interpret(func, [DATA.copy(), seen])
    tvm.build(func, target="llvm")(DATA.copy(), made)
    np.testing.assert_allclose(made, seen, rtol=1e-5)
    return made


def halves(values: np.ndarray) -> np.ndarray:
    return values.reshape(2, 32)


def test_barriers_split_the_threads() -> None:
    func = parsed(
        *GRID, *SHARED, *LOCAL, "L[0] = 0.0", "for k in range(3):",
        '    S[tx] = A[bx * 32 + tx] * T.Cast("float32", k)', f"    {BARRIER}", "    L[0] = L[0] + S[31 - tx]", f"    {BARRIER}",
        "B[bx * 32 + tx] = L[0]",
    )  # fmt: skip
    np.testing.assert_allclose(both(func), (3 * halves(DATA)[:, ::-1]).reshape(-1), rtol=1e-6)
    loops = [stmt for stmt in walk_statements(lower_for_cpu(func)["main"].body) if isinstance(stmt, For)]
    assert loops[0].kind is ForKind.PARALLEL
    assert not any(loop.kind is ForKind.THREAD_BINDING for loop in loops)


def test_what_a_thread_keeps_while_a_loop_around_barriers_runs_on() -> None:
    """Each thread counts its rounds in one piece of the loop."""
    func = parsed(
        *GRID, *SHARED, *LOCAL, "for k in range(4):", "    S[tx] = A[bx * 32 + tx]", f"    {BARRIER}", "    if k == 0:",
        "        L[0] = S[(tx + 1) % 32]", "    else:", "        L[0] = L[0] + S[(tx + 1) % 32]", f"    {BARRIER}",
        "B[bx * 32 + tx] = L[0]",
    )  # fmt: skip
    np.testing.assert_allclose(both(func), (4 * np.roll(halves(DATA), -1, 1)).reshape(-1), rtol=1e-6)


def test_barriers_under_what_threads_agree_on() -> None:
    func = parsed(
        *GRID, *SHARED, "S[tx] = A[bx * 32 + tx]", "if bx == 0:", f"    {BARRIER}", "    B[bx * 32 + tx] = S[31 - tx]", "else:",
        "    B[bx * 32 + tx] = S[tx]",
    )  # fmt: skip
    np.testing.assert_array_equal(both(func), np.concatenate([DATA[31::-1], DATA[32:]]))


def test_shuffles_exchange_values_within_a_warp() -> None:
    steps = [f"L[0] = L[0] + T.tvm_warp_shuffle_down({ALL}, L[0], {n}, 32, 32)" for n in (16, 8, 4, 2, 1)]
    func = parsed(*GRID, *LOCAL, "L[0] = A[bx * 32 + tx]", *steps, f"B[bx * 32 + tx] = T.tvm_warp_shuffle({ALL}, L[0], 0, 32, 32)")
    np.testing.assert_allclose(both(func), np.repeat(halves(DATA).sum(1), 32), rtol=1e-5)
    up = parsed(*GRID, f"B[bx * 32 + tx] = T.tvm_warp_shuffle_up({ALL}, A[bx * 32 + tx], 3, 8, 32)")
    rows = DATA.reshape(8, 8)
    np.testing.assert_array_equal(both(up), np.concatenate([rows[:, :3], rows[:, :5]], 1).reshape(-1))


def test_a_branch_that_some_threads_of_a_warp_take() -> None:
    func = parsed(*GRID, *LOCAL, "L[0] = A[bx * 32 + tx]", "if tx < 8:", f"    L[0] = L[0] + T.tvm_warp_shuffle({ALL}, L[0], 7, 32, 32)",
                  "B[bx * 32 + tx] = L[0]")  # fmt: skip
    wanted = halves(DATA).copy()
    wanted[:, :8] += wanted[:, 7:8]
    np.testing.assert_allclose(both(func), wanted.reshape(-1), rtol=1e-6)


def test_memory_of_a_warp_is_its_own() -> None:
    func = parsed(
        'ty = T.launch_thread("threadIdx.y", 2)', 'tx = T.launch_thread("threadIdx.x", 32)', 'W_data = T.allocate([32], "float32", "warp")',
        'W = T.Buffer((32,), data=W_data, scope="warp")', "W[tx] = A[ty * 32 + tx]", 'T.tvm_storage_sync("warp")',
        "B[ty * 32 + tx] = W[(tx + 3) % 32]",
    )  # fmt: skip
    np.testing.assert_array_equal(both(func), np.roll(halves(DATA), -3, 1).reshape(-1))


RACY = parsed(*GRID, *SHARED, "S[tx] = A[bx * 32 + tx]", "B[bx * 32 + tx] = S[31 - tx]")


def test_barriers_are_planned_where_threads_would_race() -> None:
    made = np.zeros(64, np.float32)
    tvm.build(RACY, target="llvm")(DATA.copy(), made)
    np.testing.assert_array_equal(made, halves(DATA)[:, ::-1].reshape(-1))
    planned = with_barriers(tvm.lower(RACY, upto=1))["main"]
    assert "tvm_storage_sync" in planned.script()
    interpret(planned, [DATA.copy(), made])
    np.testing.assert_array_equal(made, halves(DATA)[:, ::-1].reshape(-1))


def test_a_missing_barrier_names_both_accesses() -> None:
    func = parsed(*GRID, *SHARED, "S[tx] = A[bx * 32 + tx]", "B[bx * 32 + tx] = S[31 - tx]", BARRIER)
    message = (
        r"race on S_data\[16\] between two barriers: thread threadIdx\.x 15 reads it in `S\[31 - tx\]`, "
        r"thread threadIdx\.x 16 writes it in `S\[tx\] = A\[bx \* 32 \+ tx\]`; a tvm_storage_sync"
    )
    with pytest.raises(InterpreterError, match=message):
        interpret(func, [DATA.copy(), np.zeros(64, np.float32)])


def test_threads_may_write_the_same_value() -> None:
    func = parsed(*GRID, *SHARED, "S[0] = A[bx]", BARRIER, "B[bx * 32 + tx] = S[0]")
    np.testing.assert_array_equal(both(func), np.repeat(DATA[:2], 32))
    other = parsed(*GRID, *SHARED, "S[0] = A[bx * 32 + tx]", BARRIER, "B[bx * 32 + tx] = S[0]")
    with pytest.raises(InterpreterError, match=r"race on S_data\[0\] between two barriers: thread threadIdx.x 0 writes it"):
        interpret(other, [DATA.copy(), np.zeros(64, np.float32)])


def test_what_nobody_writes_is_no_race() -> None:
    func = parsed(*GRID, *SHARED, "if tx < 8:", "    S[tx] = A[tx]", BARRIER, "B[bx * 32 + tx] = S[tx]")
    with pytest.raises(InterpreterError, match=r"S_data\[8\] is read, but nothing was written there"):
        interpret(func, [DATA.copy(), np.zeros(64, np.float32)])


DIVERGENT = {
    "branch": (["if tx < 16:", f"    {BARRIER}"], "stands under `tx < 16`, on which the threads of a block don't agree: it depends on"),
    "loop": (["for i in range(tx):", f"    {BARRIER}"], "stands in the loop i, which runs `"),
    "own memory": ([*LOCAL, "L[0] = A[tx]", "if L[0] < 0.5:", f"    {BARRIER}"], "it depends on L, which each thread has for itself"),
}


@pytest.mark.parametrize("name", DIVERGENT)
def test_a_barrier_that_not_all_threads_reach(name: str) -> None:
    lines, wanted = DIVERGENT[name]
    func = parsed(*GRID, *lines, "B[bx * 32 + tx] = 1.0")
    with pytest.raises(LoweringError, match=r"T\.tvm_storage_sync\(\"shared\"\)") as caught:
        tvm.build(func, target="llvm")
    assert wanted in re.sub("threadIdx_x", "tx", str(caught.value))
    with pytest.raises(InterpreterError, match=r"forever"):
        interpret(func, [DATA.copy(), np.zeros(64, np.float32)])


def test_blocks_do_not_wait_for_each_other() -> None:
    with pytest.raises(LoweringError, match=r"lets blocks wait for each other; a CPU runs them one after the other"):
        tvm.build(parsed(*GRID, 'T.tvm_storage_sync("global")', "B[bx * 32 + tx] = 1.0"), target="llvm")


def test_schedules_of_blocks() -> None:
    n = 16
    func, rng = product(n)[0], np.random.default_rng(1)
    x, y, z, seen = (rng.random((n, n), np.float32) for _ in range(4))
    tvm.build(func, target="llvm")(x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-5)
    interpret(with_barriers(tvm.lower(func, upto=1))["main"], [x, y, seen])
    np.testing.assert_allclose(seen, x @ y, rtol=1e-5)


def test_blocks_share_reductions_over_threads() -> None:
    a, k = te.placeholder((4, 24), name="A"), te.reduce_axis((0, 24), name="k")
    sums = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="S")
    sch = tir.Schedule(te.create_prim_func([a, sums]))
    i, reduced = sch.get_loops(sch.get_block("S"))
    outer, inner = sch.split(reduced, [None, 8])
    sch.reorder(i, outer, inner)
    sch.bind(i, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    x, y = np.random.default_rng(2).random((4, 24), np.float32), np.zeros(4, np.float32)
    tvm.build(sch.mod, target="llvm")(x, y)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5)


def test_a_module_without_threads_is_lowered_as_ever() -> None:
    mod = IRModule({"main": parsed("for i in range(64):", "    B[i] = A[i]")})
    lowered = tvm.lower(mod)
    assert lower_for_cpu(lowered) is lowered
