"""Products of four warps together: results, and the fences and waits without which they are wrong on hardware."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.errors import CodegenError
from tensorexpr.runtime.device_module import DeviceModule
from tensorexpr.script import from_source
from tensorexpr.spaces.gpu import block
from tensorexpr.target.chips import Rates
from tensorexpr.testing.ptx import DataRace, MissingFence, UnfinishedCopy, UnfinishedProduct, UninitialisedRead, assembled, longest_loop

from .running import needs_ptxas, with_text
from .test_matrix_units import TARGET, Case, product

HOPPER = "cuda -arch=sm_90a"
GROUPS = {
    "rows": Case("bfloat16", [(64, 128), (64, 128)], lambda a, b: product(a, b, rows=True), lambda a, b: a @ b.T),
    "columns": Case("float16", [(64, 64), (64, 64)], lambda a, b: product(a, b, columns=True), lambda a, b: a.T @ b),
    "two groups": Case("float16", [(128, 64), (64, 140)], product, np.matmul),
    "stages used again": Case("float16", [(64, 268), (268, 64)], product, np.matmul),
}
_WGMMA_WAIT, _WGMMA_COMMIT = r"wgmma\.wait_group\.sync\.aligned\s+0;", r"wgmma\.commit_group\.sync\.aligned\s*;"
_FENCE = r"fence\.proxy\.async\.shared::cta;"


@functools.cache
def built(name: str) -> DeviceModule:
    """The module of a case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block, "rates_of", lambda arch: Rates(1, 128, 1692, 50))  # large tiles of little: one block keeps the chip busy
        return GROUPS[name].build(HOPPER)


@pytest.mark.parametrize("name", GROUPS)
def test_four_warps_multiply_together(name: str) -> None:
    module = built(name)
    assert "wgmma.mma_async" in module.code.assembly and "ldmatrix" not in module.code.assembly
    found, counters = GROUPS[name].run(module)
    assert GROUPS[name].is_right(found)
    assert counters.bank_conflicts == 0


@pytest.mark.parametrize(
    "name, pattern, replacement, fault, message",
    [
        pytest.param("rows", _WGMMA_WAIT, "", UnfinishedProduct, "accesses %r.*the product at line", id="no wait for products"),
        pytest.param("rows", _WGMMA_WAIT, "wgmma.wait_group.sync.aligned 1;", UnfinishedProduct, "accesses %r", id="count of a wait"),
        pytest.param("rows", _WGMMA_COMMIT, "", UnfinishedProduct, "T.ptx_wgmma_commit_group", id="no group of products"),
        pytest.param("rows", r"wgmma\.fence\.sync\.aligned\s*;", "", MissingFence, "T.ptx_wgmma_fence", id="no fence of registers"),
        pytest.param("rows", _FENCE, "", MissingFence, "which thread .* wrote at line .*fence_proxy_async", id="no fence of copies"),
        pytest.param("columns", _FENCE, "", MissingFence, "which thread .* wrote at line .*fence_proxy_async", id="no fence of stores"),
        pytest.param(
            "rows", r"(cp\.async\.wait_group[^;]*;)([^;]*)(fence[^;]*;)", r"\3\2\1", MissingFence, "the matrix units", id="fence too early"
        ),
        pytest.param("rows", r"cp\.async\.wait_group\s+\d;", "", (UnfinishedCopy, UninitialisedRead), ".", id="no wait for copies"),
        pytest.param("rows", r"bar\.sync\s+0;", "", (DataRace, UnfinishedCopy, UninitialisedRead), ".", id="no barrier"),
    ],
)
def test_a_fault_of_four_warps_is_named(name: str, pattern: str, replacement: str, fault: Any, message: str) -> None:
    text, count = re.subn(pattern, replacement, built(name).code.assembly)
    assert count
    with pytest.raises(fault, match=message):
        GROUPS[name].run(with_text(built(name), text))


def test_a_fence_behind_the_barrier_will_do() -> None:
    """It shows the units what its thread sees, other threads' writes among it."""
    text, count = re.subn(rf"({_FENCE})([^b]*// end inline asm\s*)(bar\.sync\s+0;)", r"\2\3 \1", built("rows").code.assembly)
    assert count == 1
    assert GROUPS["rows"].is_right(GROUPS["rows"].run(with_text(built("rows"), text))[0])


def test_an_operand_that_is_still_read_is_not_overwritten() -> None:
    """Products may be left under way while others begin, but not while their stage is filled again."""
    text, count = re.subn(r"wgmma\.wait_group\.sync\.aligned\s+\d;", "", built("stages used again").code.assembly)
    assert count
    text = re.sub(r"(\n[^\n]*st\.global)", r"\n wgmma.wait_group.sync.aligned 0;\1", text, count=1)
    with pytest.raises(
        UnfinishedProduct, match=r"line \d+ \(st\.shared.* writes byte \d+ of shared memory, which the product at line \d+ still"
    ):
        GROUPS["stages used again"].run(with_text(built("stages used again"), text))


def test_a_turned_operand_that_is_taken_for_a_plain_one() -> None:
    case = GROUPS["stages used again"]
    text, count = re.subn(r"(wgmma\.mma_async[^;]*1, 1, 1, )0, 1;", r"\g<1>0, 0;", built("stages used again").code.assembly)
    assert count and not case.is_right(case.run(with_text(built("stages used again"), text))[0])


@needs_ptxas
def test_the_assembler_puts_no_waits_between_large_products() -> None:
    module = Case("bfloat16", [(4096, 4096), (4096, 4096)], product, np.matmul).build(HOPPER)
    loop = longest_loop(module.code.assembly)
    assert loop["wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"] == 4 and loop["bar.sync"] == 1
    used = assembled(module.code.assembly, "sm_90a")
    assert used.registers <= 168 and used.spilled == 0
    assert "serialized" not in used.words


def test_groups_of_warps_are_of_one_chip() -> None:
    script = """@T.prim_func
def main(A: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    T.ptx_wgmma_fence()
    A[tx] = T.float32(0)
"""
    with pytest.raises(CodegenError, match="wgmma is of sm_90a alone, and the target is sm_80; use ptx_mma"):
        tvm.build(from_source(script), target=TARGET)
