"""Kernels built for cuda: right on the emulator, of the instructions that they should be made of, and refused with the reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ArgumentError, CodegenError, LoweringError, TargetError, TensorExprError
from tensorexpr.runtime import load_module
from tensorexpr.script import from_source
from tensorexpr.testing.ptx import emulator
from tests.effort import share_of

from . import programs
from .running import CASES, TARGET


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_right(name: str) -> None:
    case = CASES[name]
    module, device = case.build(), emulator()
    assert case.is_right(case.run(module, device))
    assert device.counters.instructions > 0 and "call" not in device.counters.by_name


@pytest.mark.parametrize(
    ("lanes", "dtype", "access"),
    [
        (2, "float32", "v2.b32"),
        (4, "float32", "v4.b32"),
        (8, "float16", "v4.b32"),
        (4, "float16", "v2.b32"),
        (2, "float64", "v2.b64"),
        (4, "int8", "b32"),
    ],
)
def test_vectors_are_one_access(lanes: int, dtype: str, access: str) -> None:
    inputs, args = programs.copies(lanes, dtype)
    text = tvm.build(inputs, args, target=TARGET).imported_modules[0].get_source("ptx")
    assert re.findall(r"ld\.global\.nc\.(\S+)", text) == [access] and re.findall(r"st\.global\.(\S+)", text) == [access]


def test_shared_memory_of_a_tile_is_read_in_vectors() -> None:
    module, device = CASES["gemm"].build(), emulator()
    CASES["gemm"].run(module, device)
    counters = device.counters
    assert ".shared .align 128 .b8 gemm_kernel_sa" in module.get_source() and "ld.shared.v4.b32" in module.get_source()
    assert counters.barriers > 0
    assert counters.by_name["fma"] == 64 * 64 * 64 // 32


def test_exponentials_are_within_their_ulps() -> None:
    x = np.concatenate([np.linspace(-103, 88.7, 900), [0.0, -0.0, np.inf, -np.inf, np.nan], np.linspace(-1, 1, 95)]).astype("float32")
    inputs, args = programs.elementwise()
    device = emulator()
    out = tvm.nd.empty((1000,), "float32", device)
    tvm.build(inputs, args, target=TARGET)(tvm.nd.array(x, device), out)
    with np.errstate(over="ignore"):
        want = (np.exp(x.astype("float64")) * 2).astype("float32")
        usual = np.isfinite(want) & (want > 1e-37)
        np.testing.assert_allclose(out.numpy()[usual], want[usual], rtol=3 * 2**-23)
        np.testing.assert_allclose(out.numpy()[~usual], want[~usual], rtol=1e-5, atol=3e-45)


@settings(max_examples=share_of(15), deadline=None)
@given(size=st.integers(1, 400), threads=st.sampled_from([1, 7, 32, 96]), lanes=st.sampled_from([1, 2, 4]))
def test_any_size_by_any_threads(size: int, threads: int, lanes: int) -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 3.0 + te.if_then_else(i > 5, a[i - 5], 1.0), name="B")
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=threads * lanes)
    tx, v = s[b].split(tx, factor=lanes)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    s[b].unroll(v)
    x = np.random.default_rng(size).standard_normal(size).astype("float32")
    device = emulator()
    out = tvm.nd.empty((size,), "float32", device)
    tvm.build(s, [a, b], target=TARGET)(tvm.nd.array(x, device), out)
    shifted = np.where(np.arange(size) > 5, np.roll(x, 5), np.float32(1))
    np.testing.assert_allclose(out.numpy(), x * np.float32(3) + shifted, rtol=1e-6, atol=1e-6)


def test_several_kernels_share_memory_of_the_host() -> None:
    a = te.placeholder((256,), name="A")
    b = te.compute((256,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((256,), lambda i: b[255 - i] * 2.0, name="C")
    s = te.create_schedule(c.op)
    for stage in (b, c):
        bx, tx = s[stage].split(stage.op.axis[0], factor=64)
        s[stage].bind(bx, te.thread_axis("blockIdx.x"))
        s[stage].bind(tx, te.thread_axis("threadIdx.x"))
    module: Any = tvm.build(s, [a, c], target=TARGET, name="twice")
    assert re.findall(r"\.entry (\w+)", module.get_source()) == ["twice_kernel", "twice_kernel_1"]
    device, x = emulator(), np.arange(256, dtype="float32")
    out = tvm.nd.empty((256,), "float32", device)
    module["twice"](tvm.nd.array(x, device), out)
    np.testing.assert_array_equal(out.numpy(), (x[::-1] + 1) * 2)


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_of_two_kernels_is_global(scope: str) -> None:
    """It would end with the first of them."""
    module, device = tvm.build(_script(_HANDED_ON.replace("warp", scope)), target=TARGET), emulator()
    assert module.get_source().count(".entry") == 2 and f".{scope}" not in module.get_source()
    x, out = np.arange(1024, dtype="float32"), tvm.nd.array(np.zeros(1024, "float32"), device)
    module(tvm.nd.array(x, device), out)
    np.testing.assert_array_equal(out.numpy()[:32], x[31::-1])


def _script(body: str) -> Any:
    head = "from tensorexpr.script import tir as T\n@T.prim_func\n"
    return from_source(head + 'def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):\n' + body)


_TOO_MANY = '    for tx in T.thread_binding(2048, "threadIdx.x"):\n        B[tx % 1024] = A[0]\n'
_TOO_MUCH = (
    '    for bx in T.thread_binding(1, "blockIdx.x"):\n        S = T.allocate([20000], "float32", "shared")\n'
    '        for tx in T.thread_binding(32, "threadIdx.x"):\n            Sb = T.Buffer((20000,), "float32", data=S, scope="shared")\n'
    "            Sb[tx] = A[tx]\n            B[tx] = Sb[tx]\n"
)
_CALL = '    for tx in T.thread_binding(32, "threadIdx.x"):\n        B[tx] = T.call_extern("float32", "sinfonia", A[tx])\n'
_HOST = "    B[0] = A[0]\n"
_GROWING = (
    '    for bx in T.thread_binding(4, "blockIdx.x"):\n        for i in range(3):\n'
    '            for tx in T.thread_binding(i + 1, "threadIdx.x"):\n                B[tx] = A[bx]\n'
)
_HANDED_ON = (
    '    S = T.allocate([32], "float32", "warp")\n    Sb = T.Buffer((32,), "float32", data=S, scope="warp")\n'
    '    for tx in T.thread_binding(32, "threadIdx.x"):\n        Sb[tx] = A[tx]\n'
    '    for tx in T.thread_binding(32, "threadIdx.x"):\n        B[tx] = Sb[31 - tx]\n'
)
_TWO = (
    '    for tx in T.thread_binding(32, "threadIdx.x"):\n        for ty in T.thread_binding(16, "threadIdx.x"):\n'
    "            B[tx] = A[ty]\n"
)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (_TOO_MANY, LoweringError, "threadIdx.x has extent 2048, at most 1024"),
        (
            _TOO_MUCH,
            CodegenError,
            'makes 80000 bytes of static shared memory, and a block has 49152; use scope "shared.dyn',
        ),
        (_CALL, CodegenError, "call_extern sinfonia: a kernel can call no function of the host"),
        (_HOST, LoweringError, "nothing of it is bound to threads|a statement that is in no kernel"),
        (_GROWING, LoweringError, "the extent of threadIdx.x depends on i, which is known in its kernel only"),
        (_HANDED_ON, LoweringError, "S of scope 'warp' is used by several kernels, or outside of them"),
        (_TWO, LoweringError, "threadIdx.x is bound with extent 32 and with 16"),
    ],
)
def test_what_a_device_can_not_do_is_refused(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tvm.build(_script(body), target=TARGET)


def test_a_chip_that_is_not_there() -> None:
    inputs, args = programs.elementwise()
    with pytest.raises(TargetError, match="no code is generated for -arch=sm_99; there are sm_50"):
        tvm.build(inputs, args, target="cuda -arch=sm_99")


def test_arrays_of_the_host_are_refused() -> None:
    module = CASES["elementwise"].build()
    x = np.zeros(1000, "float32")
    with pytest.raises(ArgumentError, match=r"argument A lives in memory of ndarray.*tvm.cuda\(0\), or of tensorexpr.testing.ptx.emulator"):
        module(x, x)
    with pytest.raises(ArgumentError, match=r"argument A lives on cpu\(0\)"):
        module(tvm.nd.array(x), tvm.nd.array(x))
    with pytest.raises(ArgumentError, match="no source format 'cubin'"):
        module.get_source("cubin")


def test_a_module_is_written_and_read(tmp_path: Path) -> None:
    case = CASES["softmax"]  # its threads reduce together
    case.build().export_library(tmp_path / "sums.ptx")
    read = load_module(tmp_path / "sums.ptx")
    assert case.is_right(case.run(read)) and read.get_source() == (tmp_path / "sums.ptx").read_text()
    with (tmp_path / "sums.ptx").open("a") as file:
        file.write("// changed")
    with pytest.raises(TensorExprError, match="the text is not the one that its description was written for"):
        load_module(tmp_path / "sums.ptx")
