"""Faults that are planted into kernels are found: as an error that names them, or by a wrong result."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.script import from_source
from tensorexpr.testing.ptx import (
    DataRace,
    DivergentBarrier,
    MisalignedAccess,
    OutOfBounds,
    Trapped,
    UnfinishedCopy,
    UninitialisedRead,
    UnknownInstruction,
    alu,
    emulator,
)

from .running import CASES, TARGET, with_text

_BARRIER = r"\n[^\n]*bar(?:rier)?\.(?:cta\.)?sync[^\n]*"


def _planted(text: str, pattern: str, replacement: str, number: int) -> str:
    """The text with one occurrence of a pattern replaced."""
    found = list(re.finditer(pattern, text))[number]
    changed = text[: found.start()] + found.expand(replacement) + text[found.end() :]
    assert changed != text
    return changed


@pytest.mark.parametrize(
    ("case", "pattern", "replacement", "number", "fault"),
    [
        pytest.param("reverse", _BARRIER, "", 0, DataRace, id="dropped barrier"),
        pytest.param("reduction", _BARRIER, "", 0, DataRace, id="dropped barrier before a loop"),
        pytest.param("reduction", _BARRIER, "", 1, DataRace, id="dropped barrier in a loop"),
        pytest.param("gemm", _BARRIER, "", 0, DataRace, id="tile overwritten while it is read"),
        pytest.param("gemm", _BARRIER, "", 1, DataRace, id="tile read before it is there"),
        pytest.param("tensor_cores", _BARRIER, "", 0, DataRace, id="copies of other threads, no barrier"),
        pytest.param("elementwise", r"(setp\.gt\.\w+ .*, )999;", r"\g<1>1000;", 0, OutOfBounds, id="guard off by one"),
        pytest.param("elementwise", r"\n\s*@%p1 bra[^\n]*", "", 0, OutOfBounds, id="no guard"),
        pytest.param("reverse", r"st\.shared", "st.global", 0, (OutOfBounds, MisalignedAccess), id="wrong space of a store"),
        pytest.param("reverse", r"\n[^\n]*st\.shared[^\n]*", "", 0, UninitialisedRead, id="shared memory that nobody wrote"),
        pytest.param("reverse", r"(st\.shared\S*\s+\[%\w+)\]", r"\1+512]", 0, OutOfBounds, id="beyond shared memory"),
        pytest.param("softmax", r"(ld\.global\S*\s+\{.*\}, \[%\w+)\]", r"\1+4]", 0, MisalignedAccess, id="vector at an odd place"),
        pytest.param("tensor_cores", r"wait_group\s+1", "wait_group 2", 0, UnfinishedCopy, id="wrong count of a wait"),
        pytest.param("tensor_cores", r"\n[^\n]*wait_group[^\n]*", "", 0, UnfinishedCopy, id="dropped wait"),
        pytest.param("tensor_cores", r"\n[^\n]*commit_group[^\n]*", "", 0, UnfinishedCopy, id="dropped commit"),
        pytest.param("reverse", r"bar\.sync\s+0;", "bar.warp.sync -1;", 0, DataRace, id="barrier of a warp instead of the block"),
        pytest.param("tensor_cores", _BARRIER, "", 1, DataRace, id="stage refilled while it is read"),
        pytest.param("tensor_cores", r"(cp\.async\.ca.*\], )8;", r"\g<1>4;", 0, UninitialisedRead, id="bytes of a copy"),
        pytest.param("tensor_cores", r"(ldmatrix.*x4.*\[%\w+)\]", r"\1+512]", 0, UnfinishedCopy, id="wrong stage"),
        pytest.param("tensor_cores", r"(ldmatrix.*x4.*\[%\w+)\]", r"\1+8]", 0, MisalignedAccess, id="row of a matrix at an odd place"),
        pytest.param("tensor_cores", r"(cp\.async\.cg.*\+)96\]", r"\g<1>2048]", 0, OutOfBounds, id="tile beyond the array"),
        pytest.param(
            "reduction", r"(setp\.ge\.u32.*, )(%r1), (%r\d+);", r"\1\3, \2;", 0, (OutOfBounds, DataRace), id="wrong half of a tree"
        ),
        pytest.param("reduction", r"(mov\.b32 .*, )64;", r"\g<1>65;", 0, OutOfBounds, id="a thread too many in a tree"),
        pytest.param("gemm", r"(setp\.ne\.b32 .*, )16384;", r"\g<1>20480;", 0, OutOfBounds, id="an iteration too many"),
        pytest.param("gemm", r"fma\.rn\.f32", "fma.rp.f99", 0, UnknownInstruction, id="no instruction"),
    ],
)
def test_a_fault_is_named(case: str, pattern: str, replacement: str, number: int, fault: Any) -> None:
    module = CASES[case].build()
    with pytest.raises(fault, match=rf"{case}_kernel|function_kernel"):
        CASES[case].run(with_text(module, _planted(module.get_source(), pattern, replacement, number)))


@pytest.mark.parametrize(
    ("case", "pattern", "replacement", "number"),
    [
        pytest.param("tensor_cores", r"\.trans", "", 0, id="matrix not transposed"),
        pytest.param("tensor_cores", r"(mma\.sync[^{]*\{[^}]*\},\s*\{)(%r\d+), (%r\d+)", r"\1\3, \2", 0, id="swapped fragment of A"),
        pytest.param(
            "tensor_cores", r"(mma\.sync[^{]*\{[^}]*\},\s*\{[^}]*\},\s*\{)(%r\d+), (%r\d+)", r"\1\3, \2", 0, id="swapped fragment of B"
        ),
        pytest.param("softmax", r"(shfl\.sync\.down\.b32\s+.*, )8(, 31)", r"\g<1>4\2", 1, id="distance of an exchange"),
        pytest.param("softmax", r"(shfl\.sync\.idx\.b32\s+.*, )0(, 31)", r"\g<1>1\2", 1, id="lane of a broadcast"),
        pytest.param("tensor_cores", r"\{%r24, %r25, (%r26, %r27)\};", r"{%r25, %r24, \1};", 0, id="swapped accumulators"),
        pytest.param("reduction", r"(setp\.ne\.b32 .*, )7;", r"\g<1>6;", 0, id="an iteration too few"),
        pytest.param("elementwise", r"shl\.b32(\s+.*), 7;", r"shl.b32\1, 6;", 0, id="stride of blocks"),
        pytest.param("gemm", r"(ld\.shared\.v4\S+\s+\{)(%r\d+), (%r\d+)", r"\1\3, \2", 0, id="swapped lanes"),
    ],
)
def test_a_wrong_result_is_seen(case: str, pattern: str, replacement: str, number: int) -> None:
    module = CASES[case].build()
    text = _planted(module.get_source(), pattern, replacement, number)
    try:
        found = CASES[case].run(with_text(module, text))
    except OutOfBounds:
        return
    assert not CASES[case].is_right(found)


def _module(lines: list[str]) -> Any:
    body = "\n".join(f"            {line}" for line in lines)
    script = (
        'from tensorexpr.script import tir as T\n@T.prim_func\ndef main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):\n'
        '    for bx in T.thread_binding(1, "blockIdx.x"):\n        for tx in T.thread_binding(64, "threadIdx.x"):\n' + body
    )
    return tvm.build(from_source(script), target=TARGET)


def _run(lines: list[str]) -> None:
    device = emulator()
    _module(lines)(*(tvm.nd.array(np.arange(64, dtype="float32"), device) for _ in "AB"))


def test_a_barrier_that_not_all_reach() -> None:
    with pytest.raises(DivergentBarrier, match="don't meet at one barrier: 3 threads at line"):
        _run(["if A[tx] < T.float32(3):", '    T.evaluate(T.tvm_storage_sync("shared"))', "B[tx] = A[tx]"])


_COPY = 'T.evaluate(T.ptx_cp_async("float32", S, tx, A.data, tx, 4))'
_COPIED = ['S = T.allocate([64], "float32", "shared")', 'S_1 = T.Buffer((64,), data=S, scope="shared")', _COPY]


@pytest.mark.parametrize("second", [pytest.param("S_1[tx] = A[tx]", id="a store"), pytest.param(_COPY, id="a copy")])
def test_a_place_that_is_being_copied_to(second: str) -> None:
    """Nobody knows which of the two comes last."""
    rest = ["T.evaluate(T.ptx_commit_group())", "T.evaluate(T.ptx_wait_group(0))", "B[tx] = S_1[tx]"]
    with pytest.raises(UnfinishedCopy, match=r"line \d+ .* thread 0 writes byte 0 .* copy of thread 0 at line \d+ is under way"):
        _run([*_COPIED, second, *rest])
    _run([*_COPIED, *rest[:2], second, *rest])


def test_an_exchange_that_not_all_reach() -> None:
    moved = "T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), A[tx], 0, 32, 32)"
    with pytest.raises(DivergentBarrier, match="wait for the rest of their warp"):
        _run(["if A[tx] < T.float32(3):", f"    B[tx] = {moved}"])


def test_an_exchange_that_threads_reach_by_two_ways() -> None:
    """Those that come later jump back to where the others of their warp wait."""
    module, device = _module(["B[tx] = A[tx]"]), emulator()
    around = """
    setp.gt.u32 %p1, %r1, 24;
    @%p1 bra $FAR;
$MEET:
    shfl.sync.idx.b32 %r2, %r2, 30, 31, -1;
    st.global.b32 [%rd7], %r2;
    ret;
$FAR:
    bra.uni $MEET;
"""
    text = module.imported_modules[0].get_source("ptx").replace("%r<3>;", "%r<3>;\n\t.reg .pred %p<2>;")
    text, found = re.subn(r"\n[^\n]*st\.global\.b32[^\n]*\n\s*ret;", lambda _: around, text)
    assert found == 1
    arrays = [tvm.nd.array(np.arange(64, dtype="float32"), device) for _ in "AB"]
    with_text(module, text)(*arrays)
    assert arrays[1].numpy().tolist() == [30.0] * 32 + [62.0] * 32


@pytest.mark.parametrize("kind, dtype", [("u64", "uint64"), ("s64", "int64"), ("u32", "uint32"), ("s32", "int32")])
def test_the_upper_half_of_a_product(kind: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, 3, info.max // 3], dtype)
    found = alu.binary("mul", ("mul", "hi", kind), kind, values, values[::-1].copy())
    assert found.tolist() == [int(x) * int(y) >> info.bits for x, y in zip(values, values[::-1], strict=True)]


def test_an_assertion_that_fails() -> None:
    with pytest.raises(Trapped, match="an assertion failed in thread"):
        _run(['assert A[tx] < T.float32(3), "too large"', "B[tx] = A[tx]"])


def test_threads_that_agree_on_a_value_do_not_race() -> None:
    _run(['S = T.allocate([1], "float32", "shared")', 'S_1 = T.Buffer((1,), data=S, scope="shared")', "S_1[0] = A[0]", "B[tx] = S_1[0]"])
