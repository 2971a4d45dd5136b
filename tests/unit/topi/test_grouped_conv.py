"""Convolutions of int8 and bfloat16 in blocks of channels: what they compute, and that the dot product is used."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.target import Target
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

VNNI = "llvm -mcpu=cascadelake"
BF16 = "llvm -mcpu=cooperlake"
HOST = Target("llvm").features


def convolution(
    dtype: str, channels: int = 8, blocks: int = 2, size: int = 6, kernel: int = 3, stride: int = 1, pad: int = 1
) -> list[te.Tensor]:
    group, weight, out = (2, "bfloat16", "float32") if dtype == "bfloat16" else (4, "int8", "int32")
    data = te.placeholder((1, channels // group, size, size, group), dtype, "data")
    filters = te.placeholder((blocks, channels // group, kernel, kernel, 16, group), weight, "kernel")
    return [data, filters, topi.nn.conv2d_NCHWc_int8(data, filters, stride, pad, 1, out_dtype=out)]


@pytest.mark.parametrize("kernel, stride, pad, size, blocks", [(3, 1, 1, 6, 2), (1, 1, 0, 5, 3), (3, 2, 1, 7, 1)])
@pytest.mark.parametrize("dtype, feature", [("uint8", "avx512vnni"), ("bfloat16", "avx512bf16")])
def test_the_instruction_computes_the_convolution(
    dtype: str, feature: str, kernel: int, stride: int, pad: int, size: int, blocks: int
) -> None:
    args = convolution(dtype, 8, blocks, size, kernel, stride, pad)
    target = VNNI if dtype == "uint8" else BF16
    s = default_schedule(args, target)
    with Target(target):
        text = tvm.lower(s, args).script()
    assert ("vpdpbusd" if dtype == "uint8" else "dpbf16ps") in text
    assert_schedule_correct(s, args, compiled=feature in HOST)


def test_the_accumulators_stay_in_registers() -> None:
    args = convolution("uint8", 64, 2, 16, 3)
    with Target(VNNI):
        text = tvm.lower(default_schedule(args, VNNI), args).script()
    assert 'T.allocate([16], "int32x16", "register")' in text, "8 pixels by 2 vectors"


@pytest.mark.parametrize(
    "dtype, target, intrinsic",
    [("uint8", "llvm -mcpu=haswell", "dot_8x2_int16_int8"), ("int8", VNNI, "dot_16x2_int16_int8"), ("bfloat16", VNNI, None)],
)
def test_blocks_of_another_size_than_the_instruction_are_packed_anew(dtype: str, target: str, intrinsic: str | None) -> None:
    args = convolution(dtype)
    s = default_schedule(args, target)
    assert (intrinsic in s.as_python()) if intrinsic else ("tensorize" not in s.as_python())
    assert_schedule_correct(s, args, phases=(0,), compiled=False)


def test_blocks_that_do_not_fit_are_refused() -> None:
    data, filters = te.placeholder((1, 2, 6, 6, 4), "uint8"), te.placeholder((2, 2, 3, 3, 16, 2), "int8")
    with pytest.raises(DeclarationError, match="blocks of 4 bytes: 4 channels of int8 or uint8, 2 of bfloat16"):
        topi.nn.conv2d_NCHWc_int8(data, filters, 1, 1, 1)


@pytest.mark.skipif("avx512vnni" not in HOST, reason="the kernel is executed, and this CPU has no AVX512-VNNI")
def test_the_whole_kernel_is_exact() -> None:
    args = convolution("uint8", 16, 2, 9, 3, 2, 1)
    func = tvm.build(default_schedule(args), args)
    random = np.random.default_rng(0)
    data, filters = random.integers(0, 256, (1, 4, 9, 9, 4)).astype("uint8"), random.integers(-128, 128, (2, 4, 3, 3, 16, 4)).astype("int8")
    out = np.empty((1, 2, 5, 5, 16), "int32")
    func(data, filters, out)
    padded = np.pad(data.astype("int64"), ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = np.zeros(out.shape, "int64")
    for y in range(3):
        for x in range(3):
            wanted += np.einsum("ncyxb,ocib->noyxi", padded[:, :, y : y + 9 : 2, x : x + 9 : 2], filters[:, :, y, x].astype("int64"))
    np.testing.assert_array_equal(out, wanted)
