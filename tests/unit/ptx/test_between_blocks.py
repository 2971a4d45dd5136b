"""Blocks of a launch that access the same elements of global memory: found, with both accesses named, unless atomics order them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.script import tir as T
from tensorexpr.testing.ptx import DataRace, emulator

from .running import CASES

TARGET = "cuda -arch=sm_80"


@T.prim_func
def overlapping(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Blocks of 32 elements whose last one is the next one's first."""
    for bx in T.thread_binding(4, "blockIdx.x"):
        for tx in T.thread_binding(33, "threadIdx.x"):
            if bx * 32 + tx < 128:
                B[bx * 32 + tx] = A[bx * 32 + tx] + T.Cast("float32", bx)


@T.prim_func
def neighbours(A: T.Buffer((128,), "float32"), B: T.Buffer((160,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Blocks that read what the one before them wrote."""
    for bx in T.thread_binding(4, "blockIdx.x"):
        for tx in T.thread_binding(32, "threadIdx.x"):
            B[bx * 32 + 32 + tx] = A[bx * 32 + tx] + B[bx * 32 + tx]


@T.prim_func
def later(A: T.Buffer((128,), "float32"), B: T.Buffer((160,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Blocks that write what all before them have read."""
    for bx in T.thread_binding(4, "blockIdx.x"):
        for tx in T.thread_binding(32, "threadIdx.x"):
            B[32 * bx + tx] = A[bx * 32 + tx] + B[96 + tx]


@T.prim_func
def same(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """As `overlapping`, but what is written twice is the same."""
    for bx in T.thread_binding(4, "blockIdx.x"):
        for tx in T.thread_binding(33, "threadIdx.x"):
            if bx * 32 + tx < 128:
                B[bx * 32 + tx] = A[bx * 32 + tx] * T.float32(3)


def run(program: Any) -> np.ndarray[Any, Any]:
    """What a program makes of ones and zeros."""
    module, device = tvm.build(program, target=TARGET), emulator()
    sizes = [int(program.buffer_map[param].shape[0]) for param in program.params]
    a, b = tvm.nd.array(np.ones(sizes[0], "float32"), device), tvm.nd.array(np.zeros(sizes[1], "float32"), device)
    module(a, b)
    return np.asarray(b.numpy())


def test_two_blocks_write_one_element() -> None:
    with pytest.raises(
        DataRace, match=r"block \(1, 0, 0\), line \d+ \(st\.global.*thread 0 writes byte 128 .*block \(0, 0, 0\) wrote at line \d+"
    ):
        run(overlapping)


def test_a_block_reads_what_another_one_writes() -> None:
    with pytest.raises(
        DataRace, match=r"block \(1, 0, 0\), line \d+ \(ld\.global.*thread 0 reads byte 128 .*block \(0, 0, 0\) wrote at line \d+"
    ):
        run(neighbours)


def test_a_block_writes_what_others_have_read() -> None:
    with pytest.raises(DataRace, match=r"block \(3, 0, 0\), line \d+ \(st\.global.*writes byte 384 .*block \(2, 0, 0\) read at line \d+"):
        run(later)


def test_what_changes_nothing_disturbs_nobody() -> None:
    assert (run(same) == 3).all()


_COUNTED = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 counter, .param .u64 values, .param .u64 out)
{
	.reg .pred %p<3>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [counter];
	ld.param.u64 %rd2, [values];
	ld.param.u64 %rd3, [out];
	mov.u32 %r1, %ctaid.x;
	mul.wide.u32 %rd4, %r1, 4;
	add.s64 %rd5, %rd2, %rd4;
	st.global.b32 [%rd5], %r1;
	membar.gl;
	mov.b32 %r2, 1;
	ATOM
	setp.ne.b32 %p1, %r3, 2;
	@%p1 bra DONE;
	ld.global.b32 %r4, [%rd2];
	ld.global.b32 %r5, [%rd2+4];
	add.s32 %r6, %r4, %r5;
	st.global.b32 [%rd3], %r6;
DONE:
	ret;
}
"""


@pytest.mark.parametrize("atomic", [True, False])
def test_the_last_block_reads_what_all_have_written(atomic: bool) -> None:
    """Behind an atomic count of the blocks that are done; without it, it races."""
    counted = "atom.global.add.u32 %r3, [%rd1], %r2;" if atomic else "mov.u32 %r3, %r1;"
    counter, values, out = np.zeros(1, np.uint32), np.zeros(3, np.uint32), np.zeros(1, np.uint32)
    arrays = [counter, values, out]
    arguments = [np.uint64(one.ctypes.data) for one in arrays]
    memory = [(one.ctypes.data, one.nbytes) for one in arrays]
    text = _COUNTED.replace("ATOM", counted)
    if atomic:
        emulator().run_text(text, "last", (3, 1, 1), (1, 1, 1), arguments, memory)
        assert out[0] == 1 and counter[0] == 3
    else:
        with pytest.raises(DataRace, match=r"block .2, 0, 0.*reads byte 0 .*block .0, 0, 0. wrote"):
            emulator().run_text(text, "last", (3, 1, 1), (1, 1, 1), arguments, memory)


@T.prim_func
def staircase(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Block n turns its 32 elements round n + 1 times, with barriers."""
    for bx in T.thread_binding(8, "blockIdx.x"):
        S = T.allocate([32], "float32", "shared")
        for tx in T.thread_binding(32, "threadIdx.x"):
            Sb = T.Buffer((32,), "float32", data=S, scope="shared")
            value = T.allocate([1], "float32", "local")
            V = T.Buffer((1,), "float32", data=value, scope="local")
            V[0] = A[bx * 32 + tx]
            for _ in range(bx + 1):
                T.evaluate(T.tvm_storage_sync("shared"))
                Sb[tx] = V[0]
                T.evaluate(T.tvm_storage_sync("shared"))
                V[0] = Sb[31 - tx]
            B[bx * 32 + tx] = V[0]


def _turned() -> tuple[np.ndarray[Any, Any], Any]:
    module, device = tvm.build(staircase, target=TARGET), emulator()
    a, b = tvm.nd.array(np.arange(256, dtype="float32"), device), tvm.nd.empty((256,), "float32", device)
    module(a, b)
    return np.asarray(b.numpy()), device.counters


def test_blocks_that_go_ways_of_their_own() -> None:
    found, counters = _turned()
    rows = np.arange(256).reshape(8, 32)
    assert np.array_equal(found.reshape(8, 32), [row[::-1] if number % 2 == 0 else row for number, row in enumerate(rows)])
    assert counters.barriers == 2 * sum(range(1, 9))


def test_blocks_side_by_side_count_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["gemm"]
    module, devices = case.build(), [emulator(), emulator()]
    together = case.run(module, devices[0])
    monkeypatch.setattr(sys.modules["tensorexpr.testing.ptx.emulator"], "_SIDE_BY_SIDE", 0)
    assert np.array_equal(together, case.run(module, devices[1])) and case.is_right(together)
    assert devices[0].counters == devices[1].counters
