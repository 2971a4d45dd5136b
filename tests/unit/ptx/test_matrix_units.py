"""Products on matrix units without a search: results and counters of the emulator, instructions of the loop, and planted faults."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.runtime.device_module import DeviceModule
from tensorexpr.schedule.trace import Trace
from tensorexpr.spaces.explain import explain_default
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.ptx import DataRace, UnfinishedCopy, UninitialisedRead, assembled, emulator, longest_loop
from tensorexpr.testing.ptx.memory import Counters
from tensorexpr.tir.arithmetic import as_int

from .running import needs_ptxas, with_text

Array = np.ndarray[Any, np.dtype[Any]]
TARGET = "cuda -arch=sm_80"


def product(a: Tensor, b: Tensor, out: str = "float32", columns: bool = False, rows: bool = False, **attrs: int) -> Tensor:
    """A B, where A stands by columns and B by rows of its transpose if asked."""
    k = te.reduce_axis((0, a.shape[0 if columns else 1]), name="k")
    shape = (a.shape[1 if columns else 0], b.shape[0 if rows else 1])

    def term(i: Any, j: Any) -> Any:
        return (a[k, i] if columns else a[i, k]).astype(out) * (b[j, k] if rows else b[k, j]).astype(out)

    made: Tensor = te.compute(shape, lambda i, j: te.sum(term(i, j), axis=k), name="C", attrs=attrs)
    return made


@dataclass(frozen=True)
class Case:
    """An operator on inputs of one dtype, and what it should give."""

    dtype: str
    shapes: Sequence[tuple[int, ...]]
    define: Callable[..., Tensor]
    reference: Callable[..., Array]
    tolerance: float = 1e-6

    def program(self) -> list[Tensor]:
        """Inputs and output."""
        inputs = [te.placeholder(shape, self.dtype, name="ABD"[n]) for n, shape in enumerate(self.shapes)]
        return [*inputs, self.define(*inputs)]

    def inputs(self) -> list[Array]:
        """Values that are always the same."""
        rng = np.random.default_rng(5)
        if "int" in self.dtype:
            return [rng.integers(0 if self.dtype[0] == "u" else -9, 9, shape).astype(self.dtype) for shape in self.shapes]
        kind = ml_dtypes.bfloat16 if self.dtype == "bfloat16" else self.dtype
        return [rng.standard_normal(shape).astype(kind) for shape in self.shapes]

    def build(self, target: str = TARGET) -> DeviceModule:
        """The module of the schedule without trials."""
        tensors = self.program()
        module: Any = tvm.build(topi.schedules.default_schedule(tensors, target), tensors, target=target)
        assert isinstance(module, DeviceModule)
        return module

    def run(self, module: DeviceModule) -> tuple[Array, Counters]:
        """What its kernels compute, and the counters of the last one."""
        device, output = emulator(), self.program()[-1]
        out = tvm.nd.empty(tuple(as_int(extent) or 0 for extent in output.shape), output.dtype, device)
        module(*(tvm.nd.array(value, device) for value in self.inputs()), out)
        return np.asarray(out.numpy()), device.counters

    def is_right(self, found: Array) -> bool:
        """Whether a result is the reference's, within rounding."""
        wanted = self.reference(*(value.astype("float64") for value in self.inputs()))
        return bool(np.abs(found.astype("float64") - wanted).max() <= self.tolerance * max(1.0, np.abs(wanted).max()))


def _convolution(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::2, ::2]
    return np.asarray(np.einsum("nyxchw,hwcf->nyxf", windows, w))


def _biased(a: Tensor, b: Tensor, c: Tensor) -> Any:
    return topi.cast(topi.nn.relu(topi.add(product(a, b, rows=True), topi.cast(c, "float32"))), "bfloat16")


CASES = {
    "halves": Case("float16", [(32, 48), (48, 64)], product, np.matmul),
    "many parts of a sum": Case("float16", [(16, 256), (256, 32)], product, np.matmul),
    "sizes that no tile divides": Case("float16", [(35, 52), (52, 37)], product, np.matmul),
    "odd rows": Case("float16", [(31, 31), (31, 29)], product, np.matmul),
    "by columns": Case("bfloat16", [(40, 48), (32, 40)], lambda a, b: product(a, b, columns=True, rows=True), lambda a, b: a.T @ b.T),
    "dense, bias, relu": Case("bfloat16", [(32, 64), (48, 64), (48,)], _biased, lambda a, b, c: np.maximum(a @ b.T + c, 0), tolerance=4e-3),
    "sums in halves": Case("float16", [(32, 32), (32, 32)], topi.matmul, np.matmul, tolerance=4e-3),
    "bytes": Case("int8", [(32, 96), (40, 96)], lambda a, b: product(a, b, "int32", rows=True), lambda a, b: a @ b.T),
    "bytes by columns": Case("uint8", [(32, 64), (64, 32)], lambda a, b: product(a, b, "int32"), np.matmul),
    "tf32": Case("float32", [(32, 24), (24, 32)], lambda a, b: product(a, b, allow_tf32=1), np.matmul, tolerance=4e-3),
    "batches": Case(
        "float16",
        [(3, 17, 32), (3, 32, 32)],
        lambda a, b: topi.nn.batch_matmul(a, b, out_dtype="float32"),
        lambda a, b: a @ b.transpose(0, 2, 1),
    ),
    "strided convolution": Case(
        "float16", [(1, 9, 9, 16), (3, 3, 16, 32)], lambda x, w: topi.nn.conv2d_nhwc(x, w, 2, 1, 1, out_dtype="float32"), _convolution
    ),
}


@functools.cache
def built(name: str) -> DeviceModule:
    """The module of a case."""
    return CASES[name].build()


@pytest.mark.parametrize("name", CASES)
def test_units_compute_what_is_defined_without_bank_conflicts(name: str) -> None:
    module = built(name)
    assert "mma.sync" in module.code.assembly and "ldmatrix" in module.code.assembly
    found, counters = CASES[name].run(module)
    assert CASES[name].is_right(found)
    assert counters.bank_conflicts == 0


@pytest.mark.parametrize("name", ["sizes that no tile divides", "bytes"])
def test_a_cpu_runs_them_too(name: str) -> None:
    case, tensors = CASES[name], CASES[name].program()
    run = tvm.build(topi.schedules.default_schedule(tensors, TARGET), tensors, target="llvm")
    out = tvm.nd.empty(tuple(as_int(extent) or 0 for extent in tensors[-1].shape), tensors[-1].dtype)
    run(*map(tvm.nd.array, case.inputs()), out)
    assert case.is_right(out.numpy())


def test_rounding_of_tf32_is_asked_for() -> None:
    tensors = Case("float32", [(64, 64), (64, 64)], product, np.matmul).program()
    assert "mma" not in str(topi.schedules.default_schedule(tensors, TARGET).trace.to_json())


@pytest.mark.parametrize("shapes", [[(4, 64), (64, 64)], [(64, 8), (8, 64)], [(64, 64), (64, 3)]])
def test_products_of_little_are_left_to_threads(shapes: list[tuple[int, ...]]) -> None:
    tensors = Case("float16", shapes, product, np.matmul).program()
    assert "mma" not in str(topi.schedules.default_schedule(tensors, TARGET).trace.to_json())


def test_other_chips_have_no_units() -> None:
    tensors = CASES["halves"].program()
    for target in ("cuda -arch=sm_75", "opencl"):
        assert "mma" not in str(topi.schedules.default_schedule(tensors, target).trace.to_json()), target


@functools.cache
def large() -> DeviceModule:
    """The product of square matrices."""
    return Case("bfloat16", [(4096, 4096), (4096, 4096)], product, np.matmul).build()


def test_a_large_product_is_instructions_of_the_units() -> None:
    loop = longest_loop(large().code.assembly)
    units = sum(count for name, count in loop.items() if name.startswith("mma.sync"))
    assert units == 64
    assert loop.total() <= 2.1 * units
    assert loop["bar.sync"] == 1
    assert loop["cp.async.cg.shared.global"] == 8 and not any(name.startswith(("ld.global", "st.shared")) for name in loop)


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_large_product_fits_registers(arch: str) -> None:
    used = assembled(large().code.assembly, arch)
    assert used.registers <= 232
    assert used.spilled == 0


@pytest.mark.parametrize(
    ("pattern", "replacement", "fault"),
    [
        pytest.param(r"cp\.async\.wait_group\s+2;", "cp.async.wait_group 3;", (UnfinishedCopy, UninitialisedRead), id="wait count"),
        pytest.param(r"cp\.async\.wait_group\s+2;", "", (UnfinishedCopy, UninitialisedRead), id="no wait"),
        pytest.param(r"bar\.sync\s+0;", "", (DataRace, UnfinishedCopy, UninitialisedRead), id="no barrier"),
        pytest.param(r"cp\.async\.commit_group;", "", (UnfinishedCopy, UninitialisedRead), id="no group"),
    ],
)
def test_a_fault_in_the_pipeline_is_named(pattern: str, replacement: str, fault: Any) -> None:
    case, module = CASES["many parts of a sum"], built("many parts of a sum")
    text, count = re.subn(pattern, replacement, module.code.assembly)
    assert count
    with pytest.raises(fault):
        case.run(with_text(module, text))


@pytest.mark.parametrize("pattern, replacement", [(r"\.trans\.", "."), (r"(ldmatrix.*\{%r\d+, )(%r\d+), (%r\d+)", r"\1\3, \2")])
def test_a_wrong_fragment_is_seen(pattern: str, replacement: str) -> None:
    case, module = CASES["halves"], built("halves")
    text, count = re.subn(pattern, replacement, module.code.assembly, count=1)
    assert count and not case.is_right(case.run(with_text(module, text))[0])


def test_a_trace_makes_the_same_kernel() -> None:
    tensors = CASES["halves"].program()
    schedule = topi.schedules.default_schedule(tensors, TARGET)
    again = te.create_schedule(tensors[-1].op)
    for step in Trace.from_json(schedule.trace.to_json()):
        again.apply_step(step)
    assert tvm.build(again, tensors, target=TARGET).imported_modules[0].get_source("ptx") == built("halves").code.assembly


def test_reasons_are_told() -> None:
    text = explain_default(CASES["halves"].program(), TARGET)
    assert "on matrix units of fp16" in text and "2 such parts" in text


def test_intrinsics_are_known_by_name() -> None:
    """As a record has them, in a process that has made no schedule yet."""
    names = ["mma_bf16_float32", "wgmma_fp16_64x32"]
    script = f"from tensorexpr.te.tensor_intrin import TensorIntrin; print(*(TensorIntrin.get(name).name for name in {names}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == names
