"""The copy engine and its mbarriers: what kernels compute with them, and what the emulator finds wrong with planted faults."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import CodegenError, LoweringError
from tensorexpr.runtime.device_module import DeviceModule
from tensorexpr.script import tir as T
from tensorexpr.spaces.gpu import block
from tensorexpr.target.chips import Rates
from tensorexpr.testing.ptx import (
    BarrierMisuse,
    DataRace,
    Deadlock,
    MisalignedAccess,
    OutOfBounds,
    PtxFault,
    UnfinishedCopy,
    UnfinishedProduct,
    assembled,
    emulator,
    longest_loop,
)

from .running import needs_ptxas, with_text
from .test_matrix_units import Case, product

HOPPER = "cuda -arch=sm_90a"
_WAIT = r"\{ \.reg \.pred %done; wait_\d+:[^}]*\}"
_EXPECT = r"(mbarrier\.arrive\.expect_tx[^;]*, )(%r\d+);"


@T.prim_func
def runs(A: T.Buffer((8, 128), "float32"), B: T.Buffer((8, 128), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Rows turned round, each copied in one run."""
    bx = T.launch_thread("blockIdx.x", 8)
    tx = T.launch_thread("threadIdx.x", 128)
    S = T.allocate([128], "float32", "shared")
    Sb = T.Buffer((128,), "float32", data=S, scope="shared")
    T.evaluate(T.create_barriers(2))
    if tx == 0:
        T.evaluate(T.ptx_init_barrier_thread_count(1, 1))
    T.evaluate(T.tvm_storage_sync("shared"))
    if tx == 0:
        T.evaluate(T.ptx_arrive_barrier_expect_tx(1, 512))
        T.evaluate(T.ptx_cp_async_bulk("float32", S, 0, A.data, bx * 128, 512, 1))
    T.evaluate(T.ptx_wait_barrier(1))
    B[bx, tx] = Sb[127 - tx]


@T.prim_func
def boxes(A: T.Buffer((20, 128), "float16"), B: T.Buffer((32, 128), "float16")):  # type: ignore[no-untyped-def,valid-type]
    """Boxes of 8 x 64, those past the last row filled with zeros."""
    bx = T.launch_thread("blockIdx.x", 8)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([512], "float16", "shared")
    Sb = T.Buffer((512,), "float16", data=S, scope="shared")
    T.evaluate(T.create_barriers(1))
    if tx == 0:
        T.evaluate(T.ptx_init_barrier_thread_count(0, 1))
    T.evaluate(T.tvm_storage_sync("shared"))
    if tx == 0:
        T.evaluate(T.ptx_arrive_barrier_expect_tx(0, 1024))
        T.evaluate(
            T.ptx_cp_async_bulk_tensor(
                "float16", S, 0, T.ptx_tensor_map(A.data, "float16", 0, 2, 20, 128, 128, 8, 64), 0, bx // 2 * 8, bx % 2 * 64
            )
        )
    T.evaluate(T.ptx_wait_barrier(0, 0))
    for i in range(8):
        B[bx // 2 * 8 + i, bx % 2 * 64 + tx] = Sb[i * 64 + tx]


@T.prim_func
def ring(A: T.Buffer((192,), "float32"), B: T.Buffer((192,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """A warp that copies and one that computes, with two places between them: barriers 0 and 1 say full, 2 and 3 empty."""
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([64], "float32", "shared")
    Sb = T.Buffer((64,), "float32", data=S, scope="shared")
    T.evaluate(T.create_barriers(4))
    if tx == 0:
        for i in range(2):
            T.evaluate(T.ptx_init_barrier_thread_count(i, 1))
            T.evaluate(T.ptx_init_barrier_thread_count(i + 2, 32))
    T.evaluate(T.tvm_storage_sync("shared"))
    if tx >= 32:
        if tx == 32:
            for k in range(6):
                if k >= 2:
                    T.evaluate(T.ptx_wait_barrier(2 + k % 2, (k // 2 + 1) % 2))
                T.evaluate(T.ptx_arrive_barrier_expect_tx(k % 2, 128))
                T.evaluate(T.ptx_cp_async_bulk("float32", S, k % 2 * 32, A.data, bx + k * 32, 128, k % 2))
    else:
        for k in range(6):
            T.evaluate(T.ptx_wait_barrier(k % 2, k // 2 % 2))
            B[k * 32 + tx] = Sb[k % 2 * 32 + tx] * T.float32(2)
            T.evaluate(T.ptx_arrive_barrier(2 + k % 2))


@T.prim_func
def groups(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Copies of threads that tell an mbarrier."""
    tx = T.launch_thread("threadIdx.x", 128)
    S = T.allocate([128], "float32", "shared")
    Sb = T.Buffer((128,), "float32", data=S, scope="shared")
    T.evaluate(T.create_barriers(1))
    if tx == 0:
        T.evaluate(T.ptx_init_barrier_thread_count(0, 128))
    T.evaluate(T.tvm_storage_sync("shared"))
    T.evaluate(T.ptx_cp_async("float32", S, tx, A.data, tx, 4))
    T.evaluate(T.ptx_cp_async_barrier(0))
    T.evaluate(T.ptx_arrive_barrier(0))
    T.evaluate(T.ptx_wait_barrier(0))
    B[tx] = Sb[127 - tx]


@T.prim_func
def halves(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Thread 0 waits for the first half, all others for the second one, and all read the first."""
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([128], "float32", "shared")
    Sb = T.Buffer((128,), "float32", data=S, scope="shared")
    T.evaluate(T.create_barriers(2))
    if tx == 0:
        T.evaluate(T.ptx_init_barrier_thread_count(0, 1))
        T.evaluate(T.ptx_init_barrier_thread_count(1, 1))
    T.evaluate(T.tvm_storage_sync("shared"))
    if tx == 0:
        for i in range(2):
            T.evaluate(T.ptx_arrive_barrier_expect_tx(i, 256))
            T.evaluate(T.ptx_cp_async_bulk("float32", S, i * 64, A.data, i * 64, 256, i))
        T.evaluate(T.ptx_wait_barrier(0))
    else:
        T.evaluate(T.ptx_wait_barrier(1))
    B[tx] = Sb[tx]


_SHAPES: dict[str, Any] = {
    "runs": ((8, 128), "float32"),
    "boxes": ((20, 128), "float16"),
    "ring": ((192,), "float32"),
    "groups": ((128,), "float32"),
}


@functools.cache
def built(name: str) -> DeviceModule:
    """The module of a program above."""
    made: Any = tvm.build(globals()[name], target=HOPPER)
    return made  # type: ignore[no-any-return]


def run(name: str, module: Any = None) -> tuple[Any, Any]:
    """What a program is given, and what it gives."""
    shape, dtype = _SHAPES[name]
    device, a = emulator(), np.random.default_rng(3).standard_normal(shape).astype(dtype)
    b = tvm.nd.empty((32, 128) if name == "boxes" else shape, dtype, device)
    (module or built(name))(tvm.nd.array(a, device), b)
    return a, b.numpy()


def test_what_is_copied_in_bulk() -> None:
    a, b = run("runs")
    assert np.array_equal(b, a[:, ::-1])
    a, b = run("boxes")
    assert np.array_equal(b[:20], a) and not b[20:24].any()
    a, b = run("ring")
    assert np.array_equal(b, 2 * a)
    a, b = run("groups")
    assert np.array_equal(b, a[::-1])


def test_who_waits_for_another_barrier_has_not_waited() -> None:
    module: Any = tvm.build(halves, target=HOPPER)
    device = emulator()
    with pytest.raises(DataRace, match=r"the copy in bulk at line .* wrote; the thread has to wait for its mbarrier"):
        module(tvm.nd.array(np.zeros(128, "float32"), device), tvm.nd.empty((128,), "float32", device))


@needs_ptxas
@pytest.mark.parametrize("name", _SHAPES)
@pytest.mark.parametrize("arch", ["sm_90", "sm_90a"])
def test_the_assembler_takes_it(name: str, arch: str) -> None:
    module: Any = tvm.build(globals()[name], target=f"cuda -arch={arch}")
    assert assembled(module.code.assembly, arch).spilled == 0


@pytest.mark.parametrize(
    "name, pattern, replacement, fault, message",
    [
        pytest.param("runs", _WAIT, "", UnfinishedCopy, "copy of thread 0 at line", id="no wait"),
        pytest.param(
            "runs", rf"({_WAIT})", r"@!%p1 bra LATE; bra SOON; LATE: \1\nSOON:", UnfinishedCopy, "is under way", id="others don't wait"
        ),
        pytest.param("runs", _EXPECT, r"\g<1>1024;", Deadlock, "1024 bytes were announced, of which 512 are missing", id="too many bytes"),
        pytest.param("runs", _EXPECT, r"\g<1>256;", Deadlock, "256 bytes were announced, and 256 came beyond", id="too few bytes"),
        pytest.param("runs", r"mbarrier\.init[^;]*;", "", BarrierMisuse, "T.ptx_init_barrier_thread_count", id="no barrier"),
        pytest.param("runs", r"(mbarrier\.init[^,]*), %r\d+;", r"\1, 2;", Deadlock, "1 of 2 arrivals are missing", id="count"),
        pytest.param(
            "runs",
            r"(ptx?cp\.async\.bulk|cp\.async\.bulk)([^\[]*)\[(%r\d+)\]",
            r"\1\2[\3+4]",
            MisalignedAccess,
            "multiple of 16",
            id="place",
        ),
        pytest.param("runs", r"(cp\.async\.bulk[^;]*), %r\d+, ", r"\1, 520, ", MisalignedAccess, "size 520", id="size"),
        pytest.param("runs", r"(cp\.async\.bulk[^;]*), %r\d+, ", r"\1, 1024, ", (OutOfBounds, Deadlock), "bytes", id="beyond"),
        pytest.param("ring", r"(mbarrier\.try_wait\.parity[^;]*), %r\d+;", r"\1, 1;", PtxFault, "shared memory", id="parity"),
        pytest.param("groups", r"cp\.async\.mbarrier[^;]*;", "", UnfinishedCopy, "is under way", id="copies aren't told"),
        pytest.param(
            "groups", r"\{ \.reg \.b64 %state; mbarrier\.arrive\.shared[^}]*\}", "", Deadlock, "arrivals are missing", id="nobody arrives"
        ),
    ],
)
def test_a_fault_is_named(name: str, pattern: str, replacement: str, fault: Any, message: str) -> None:
    text, count = re.subn(pattern, replacement, built(name).code.assembly)
    assert count
    with pytest.raises(fault, match=message):
        run(name, with_text(built(name), text))


def test_a_place_that_is_filled_while_it_is_read() -> None:
    """Without the wait for its readers: then the next phase begins before this one has ended, or a place is written while others read."""
    text = built("ring").code.assembly
    first = re.search(_WAIT, text)
    assert first is not None
    with pytest.raises(
        (DataRace, BarrierMisuse), match=r"writes byte .* of shared memory, which thread .* read at line|all of its 1 arrivals are"
    ):
        run("ring", with_text(built("ring"), text.replace(first[0], "", 1)))


def test_a_block_waits_for_its_copies() -> None:
    text, count = re.subn(rf"{_WAIT}|ld\.shared[^;]*;", "", built("runs").code.assembly)
    assert count
    text = re.sub(r"st\.global[^;]*;", "", text)
    with pytest.raises(UnfinishedCopy, match="the block ends while 1 copies"):
        run("runs", with_text(built("runs"), text))


PRODUCTS = {
    "rows": Case("bfloat16", [(64, 320), (64, 320)], lambda a, b: product(a, b, rows=True), lambda a, b: a @ b.T),
    "columns": Case("float16", [(272, 64), (272, 64)], lambda a, b: product(a, b, columns=True), lambda a, b: a.T @ b),
    "borders": Case("float16", [(128, 328), (328, 136)], product, np.matmul),
}


@functools.cache
def multiplied(name: str) -> DeviceModule:
    """The module of a product."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block, "rates_of", lambda arch: Rates(1, 128, 1692, 50))  # large tiles of little: one block keeps the chip busy
        return PRODUCTS[name].build(HOPPER)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_fed_in_bulk(name: str) -> None:
    module = multiplied(name)
    assert "cp.async.bulk.tensor.2d" in module.code.assembly and "cp.async.ca" not in module.code.assembly
    assert "ld.shared" not in module.code.assembly and "fence.proxy" not in module.code.assembly
    found, counters = PRODUCTS[name].run(module)
    assert PRODUCTS[name].is_right(found) and counters.bank_conflicts == 0


@pytest.mark.parametrize(
    "pattern, replacement, fault",
    [
        pytest.param(r"bar\.sync\s+0;(?![^$]*mbarrier\.init)", "", PtxFault, id="no barrier in the loop"),
        pytest.param(r"wgmma\.wait_group\.sync\.aligned\s+1;", "", UnfinishedProduct, id="no wait for the products before"),
        pytest.param(_WAIT, "", UnfinishedCopy, id="no wait for copies"),
        pytest.param(_EXPECT, r"\g<1>16368;", (Deadlock, UnfinishedCopy), id="bytes"),
    ],
)
def test_faults_of_a_product(pattern: str, replacement: str, fault: Any) -> None:
    text, count = re.subn(pattern, replacement, multiplied("rows").code.assembly)
    assert count
    with pytest.raises(fault):
        PRODUCTS["rows"].run(with_text(multiplied("rows"), text))


def test_rows_that_are_taken_for_plain_ones_give_another_product() -> None:
    module, case = multiplied("rows"), PRODUCTS["rows"]
    text, count = re.subn(r"(or\.b64 \s*%rd\d+, %rd\d+, )(46\d+);", lambda one: f"{one[1]}{int(one[2]) - (1 << 62)};", module.code.assembly)
    assert count
    try:
        found = case.run(with_text(module, text))[0]
    except UnfinishedCopy:  # the pieces that are read then belong to another part
        return
    assert not case.is_right(found)


@needs_ptxas
def test_large_products_wait_one_part_behind() -> None:
    module = Case("bfloat16", [(4096, 4096), (4096, 4096)], product, np.matmul).build(HOPPER)
    loop = longest_loop(module.code.assembly)
    assert loop["wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"] == 4 and loop["bar.sync"] == 1
    assert sum(loop.values()) <= 58 and re.search(r"wgmma\.wait_group\.sync\.aligned\s+1;", module.code.assembly)
    used = assembled(module.code.assembly, "sm_90a")
    assert used.registers <= 168 and used.spilled == 0 and "serialized" not in used.words


def test_engines_are_of_new_chips() -> None:
    with pytest.raises(CodegenError, match="sm_90 or later"):
        tvm.build(runs, target="cuda -arch=sm_80")


def _copied(pragma: int, multi: int, read: bool = True) -> Any:
    """B = 2 A by way of shared memory, a part of 64 columns at a time."""
    a = te.placeholder((200, 264), "float16", name="A")
    b = te.compute((200, 264), lambda i, j: a[i, j] * te.const(2, "float16"), name="B")
    s = te.create_schedule(b.op)
    c = s.cache_read(a, "shared.dyn", [b])
    s[c].transform_layout(lambda i, k: [k // 64, i // 128, i % 128, k % 64], pad_value=0)
    i, j = s[b].op.axis
    rows, row = s[b].split(i, factor=128)
    part, column = s[b].split(j, factor=64)
    s[b].reorder(rows, part, row, column)
    s[b].bind(rows, te.thread_axis("blockIdx.x"))
    s[b].bind(row, te.thread_axis("threadIdx.x"))
    s[c].compute_at(s[b], part)
    s[c].pragma(s[c].op.axis[0], "bulk_copy", pragma)
    if multi:
        s[c].multi_buffer(multi)
    return s, [a, b]


def test_a_stage_is_copied_in_bulk() -> None:
    s, args = _copied(1, 3)
    module = tvm.build(s, args, target=HOPPER)
    assert "cp.async.bulk.tensor.2d" in module.get_source("ptx")
    device, a = emulator(), np.random.default_rng(1).standard_normal((200, 264)).astype("float16")
    b = tvm.nd.empty((200, 264), "float16", device)
    module(tvm.nd.array(a, device), b)
    assert np.array_equal(b.numpy(), 2 * a)
    on_cpu = tvm.nd.empty((200, 264), "float16")
    tvm.build(s, args, target="llvm")(tvm.nd.array(a), on_cpu)  # loops do the same elsewhere
    assert np.array_equal(on_cpu.numpy(), 2 * a)
    assert "cp.async.bulk" not in tvm.build(s, args, target="cuda -arch=sm_80").get_source("ptx")


def test_what_is_no_copy_in_bulk() -> None:
    s, args = _copied(1, 0)
    with pytest.raises(LoweringError, match="say multi_buffer"):
        tvm.build(s, args, target=HOPPER)
    s, args = _copied(128, 3)
    with pytest.raises(LoweringError, match="is read by other instructions than matrix units"):
        tvm.build(s, args, target=HOPPER)
