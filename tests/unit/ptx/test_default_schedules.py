"""Schedules without a search for GPUs: what they compute, on the emulator and on a CPU, and what its counters and ptxas say of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.runtime.device_module import DeviceModule
from tensorexpr.spaces.default import default_schedule
from tensorexpr.spaces.explain import explain_default
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.ptx import assembled, emulator, longest_loop
from tensorexpr.testing.ptx.memory import Counters

from .running import needs_ptxas

Array = np.ndarray[Any, np.dtype[Any]]
TARGET = "cuda -arch=sm_80"


@dataclass(frozen=True)
class Case:
    """An operator on inputs of some shapes, and what it should give."""

    shapes: Sequence[tuple[int, ...]]
    define: Callable[..., Tensor]
    reference: Callable[..., Array]

    def program(self) -> list[Tensor]:
        """Inputs and output."""
        inputs = [te.placeholder(shape, name="ABC"[n]) for n, shape in enumerate(self.shapes)]
        return [*inputs, self.define(*inputs)]

    def inputs(self) -> list[Array]:
        """Values that are always the same."""
        rng = np.random.default_rng(3)
        return [rng.standard_normal(shape).astype("float32") for shape in self.shapes]


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _layer_norm(x: Array, scale: Array, offset: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale + offset)


def _convolution(x: Array, w: Array, stride: int = 1) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    return np.asarray(np.einsum("ncyxhw,fchw->nfyx", windows, w))


CASES = {
    "vectors": Case([(8, 64), (64,)], lambda a, b: topi.nn.relu(topi.add(a, b)), lambda a, b: np.maximum(a + b, 0)),
    "prime": Case([(1009,)], topi.exp, np.exp),
    "transpose": Case([(7, 17)], topi.transpose, np.transpose),
    "transpose of a tile and more": Case(
        [(36, 44)], lambda a: topi.nn.relu(topi.transpose(topi.add(a, 1.0))), lambda a: np.maximum(a.T + 1, 0)
    ),
    "transpose of rows": Case([(32, 2, 40)], lambda a: topi.transpose(a, (2, 1, 0)), lambda a: a.transpose(2, 1, 0)),
    "border": Case([(7, 17)], lambda a: topi.nn.pad(a, [1, 2], [0, 1]), lambda a: np.pad(a, ((1, 0), (2, 1)))),
    "sums of rows": Case([(7, 1009)], lambda a: topi.sum(a, 1), lambda a: a.sum(1)),
    "sums of vectors": Case([(4, 1024)], lambda a: topi.sum(a, 1), lambda a: a.sum(1)),
    "sums of columns": Case([(17, 130)], lambda a: topi.sum(a, 0), lambda a: a.sum(0)),
    "sums of columns of vectors": Case([(1, 70, 256)], lambda a: topi.sum(a, 1), lambda a: a.sum(1)),
    "sums of long columns": Case([(600, 36)], lambda a: topi.max(a, 0), lambda a: a.max(0)),
    "sum of all": Case([(48, 1024)], topi.sum, np.sum),
    "mean": Case([(7, 100)], lambda a: topi.divide(topi.sum(a, 1), 100.0), lambda a: a.mean(1)),
    "argmax": Case([(7, 17)], lambda a: topi.argmax(a, 1), lambda a: a.argmax(1)),
    "softmax": Case([(3, 1009)], topi.nn.softmax, _softmax),
    "softmax of vectors": Case([(2, 512)], topi.nn.softmax, _softmax),
    "layer norm": Case([(3, 64), (64,), (64,)], lambda a, b, c: topi.nn.layer_norm(a, b, c, [1]), _layer_norm),
    "product": Case([(32, 48), (48, 64)], topi.matmul, np.matmul),
    "product of columns": Case([(16, 32), (16, 36)], lambda a, b: topi.matmul(a, b, True, False), lambda a, b: a.T @ b),
    "product of odd sizes": Case([(7, 67), (67, 17)], topi.matmul, np.matmul),
    "dense": Case(
        [(16, 20), (36, 20), (36,)], lambda a, b, c: topi.nn.relu(topi.nn.dense(a, b, c)), lambda a, b, c: np.maximum(a @ b.T + c, 0)
    ),
    "dense of one row": Case([(1, 128), (7, 128)], topi.nn.dense, lambda a, b: a @ b.T),
    "batches": Case([(3, 7, 20), (3, 17, 20)], topi.nn.batch_matmul, lambda a, b: a @ b.transpose(0, 2, 1)),
    "convolution": Case([(1, 4, 8, 8), (8, 4, 3, 3)], lambda a, b: topi.nn.conv2d_nchw(a, b, 1, 1, 1), _convolution),
    "strided": Case(
        [(2, 3, 7, 7), (7, 3, 3, 3)],
        lambda a, b: topi.nn.relu(topi.nn.conv2d_nchw(a, b, 2, 1, 1)),
        lambda a, b: np.maximum(_convolution(a, b, 2), 0),
    ),
    "depthwise": Case(
        [(1, 4, 7, 7), (4, 1, 3, 3)],
        lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, 1, 1, 1),
        lambda a, b: np.concatenate([_convolution(a[:, c : c + 1], b[c : c + 1]) for c in range(4)], axis=1),
    ),
}


def scheduled(tensors: Sequence[Tensor]) -> Any:
    return topi.schedules.default_schedule(tensors, TARGET)


def run(case: Case) -> tuple[Array, Counters]:
    """What the kernels compute, and the counters of the last one."""
    tensors, device = case.program(), emulator()
    module: Any = tvm.build(scheduled(tensors), tensors, target=TARGET)
    out = tvm.nd.empty(np.shape(case.reference(*case.inputs())), tensors[-1].dtype, device)
    module(*(tvm.nd.array(value, device) for value in case.inputs()), out)
    return np.asarray(out.numpy()), device.counters


@pytest.mark.parametrize("name", CASES)
def test_kernels_compute_what_is_defined(name: str) -> None:
    case = CASES[name]
    wanted = case.reference(*(value.astype("float64") for value in case.inputs()))
    found, _ = run(case)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 if "softmax" not in name else 1e-7)


@pytest.mark.parametrize("name", ["border", "sums of rows", "softmax of vectors", "layer norm", "product", "dense", "batches", "strided"])
def test_a_cpu_runs_them_too(name: str) -> None:
    case, tensors = CASES[name], CASES[name].program()
    wanted = case.reference(*(value.astype("float64") for value in case.inputs()))
    out = tvm.nd.empty(np.shape(wanted), tensors[-1].dtype)
    tvm.build(scheduled(tensors), tensors, target="llvm")(*map(tvm.nd.array, case.inputs()), out)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-4 if "softmax" not in name else 1e-7)


def test_elementwise_accesses_are_whole_vectors() -> None:
    case = CASES["vectors"]
    _, counters = run(case)
    # 128 threads with a vector each, of two operands and the result; each of the four warps reads the row of 64 once, for two rows.
    assert counters.global_requests == 3 * 4
    assert counters.global_transactions == 2 * 512 * 4 // 32 + 4 * 64 * 4 // 32


@pytest.mark.parametrize("name", ["sums of vectors", "softmax of vectors"])
def test_rows_are_read_in_whole_sectors(name: str) -> None:
    case = CASES[name]
    rows, length = case.shapes[0]
    _, counters = run(case)
    sectors = rows * length * 4 // 32
    # a softmax reads its rows for the largest element and for the powers, and writes one
    assert counters.global_transactions == (sectors + rows if "sums" in name else 3 * sectors)
    assert counters.bank_conflicts == 0


def test_columns_are_read_by_vectors() -> None:
    case = CASES["sums of columns of vectors"]
    _, counters = run(case)
    # 64 vectors of each row for 4 rows of threads, and 256 results
    assert counters.global_requests == 70 * 256 // 4 // 32 + 256 // 32
    assert counters.global_transactions == (70 + 1) * 256 * 4 // 32
    assert counters.bank_conflicts == 0 and counters.barriers == 1


@pytest.mark.parametrize("dtype, shape", [("float32", (64, 96)), ("float16", (64, 128)), ("int8", (64, 128))])
def test_transposes_read_and_store_vectors_without_conflicts(dtype: str, shape: tuple[int, int]) -> None:
    a, device = te.placeholder(shape, dtype, name="A"), emulator()
    tensors = [a, topi.transpose(a)]
    module: Any = tvm.build(scheduled(tensors), tensors, target=TARGET)
    value = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
    out = tvm.nd.empty(shape[::-1], dtype, device)
    module(tvm.nd.array(value, device), out)
    assert np.array_equal(out.numpy(), value.T)
    assert device.counters.global_transactions == 2 * value.nbytes // 32
    assert device.counters.global_requests == 2 * value.nbytes // 16 // 32
    assert device.counters.bank_conflicts == 0


@pytest.mark.parametrize(
    "count, define", [(1, topi.nn.softmax), (3, lambda a, b, c: topi.nn.layer_norm(a, b, c, [1])), (1, lambda a: topi.sum(a, 1))]
)
def test_rows_of_halves_are_read_by_vectors(count: int, define: Callable[..., Tensor]) -> None:
    inputs = [te.placeholder(shape, "float16", name="ABC"[n]) for n, shape in enumerate([(64, 4096), (4096,), (4096,)][:count])]
    tensors = [*inputs, define(*inputs)]
    text = tvm.build(scheduled(tensors), tensors, target=TARGET).imported_modules[0].get_source("ptx")
    loads = re.findall(r"ld\.global\.nc\.(\S+)", text)
    # but for the value that a norm subtracts before it sums squares
    assert loads.count("v4.b32") >= max(1, len(loads) - 1)


def test_operands_along_memory_meet_no_bank_conflicts() -> None:
    assert run(CASES["product of columns"])[1].bank_conflicts == 0
    _, counters = run(CASES["product"])
    # Rows of 16 floats that are 20 apart: neighbouring rows of four vectors each share some banks when they are stored.
    assert counters.bank_conflicts <= counters.shared_requests // 30


LARGE: dict[str, Callable[..., Tensor]] = {
    "product": topi.matmul,
    "of rows": topi.nn.dense,
    "of columns": lambda a, b: topi.matmul(a, b, True, False),
}


@functools.cache
def large_product(name: str) -> DeviceModule:
    a, b = te.placeholder((4096, 4096), name="A"), te.placeholder((4096, 4096), name="B")
    tensors = [a, b, LARGE[name](a, b)]
    module: Any = tvm.build(scheduled(tensors), tensors, target=TARGET)
    assert isinstance(module, DeviceModule)
    return module


@pytest.mark.parametrize("name", LARGE)
def test_a_large_product_multiplies_and_adds(name: str) -> None:
    text = large_product(name).code.assembly
    loop = longest_loop(text)
    assert loop["fma.rn.f32"] == 1024
    assert loop["fma.rn.f32"] >= 0.88 * loop.total()
    assert loop["bar.sync"] == 1
    assert ".minnctapersm 2" in text


@needs_ptxas
@pytest.mark.parametrize("name", LARGE)
def test_a_large_product_has_room_for_two_blocks(name: str) -> None:
    used = assembled(large_product(name).code.assembly, "sm_80")
    assert used.registers <= 128
    assert used.spilled == 0


def test_without_asynchronous_copies_two_barriers_do() -> None:
    a, b = te.placeholder((1024, 1024), name="A"), te.placeholder((1024, 1024), name="B")
    tensors = [a, b, topi.matmul(a, b)]
    old = "cuda -arch=sm_75"
    text = tvm.build(topi.schedules.default_schedule(tensors, old), tensors, target=old).imported_modules[0].get_source("ptx")
    assert longest_loop(text)["bar.sync"] == 2


def test_reasons_are_told() -> None:
    text = explain_default(CASES["product"].program(), TARGET)
    assert "256 threads compute tiles of 16 x 16" in text
    assert "the threads of a block share each result" in explain_default(CASES["sums of rows"].program(), TARGET)
    assert "a thread for each result" in explain_default(CASES["sums of columns"].program(), TARGET)


def test_threads_of_a_smaller_target_are_fewer() -> None:
    tensors = CASES["product"].program()
    schedule = topi.schedules.default_schedule(tensors, "opencl -max_threads_per_block=64")
    assert "(0, 64) threadIdx.x" in str(schedule)


def test_names_of_operators_for_gpus_hand_over() -> None:
    x, w = te.placeholder((1, 4, 8, 8), name="A"), te.placeholder((8, 4, 3, 3), name="B")
    with tvm.target.Target(TARGET):
        out = topi.cuda.conv2d_nchw(data=x, kernel=w, strides=1, padding=1, dilation=1, out_dtype="float32")
        assert topi.cuda.schedule_conv2d_nchw([out]).trace == scheduled([x, w, out]).trace
        assert topi.generic.schedule_conv2d_nchw([out]).trace == scheduled([x, w, out]).trace
    # without a target they are for CUDA all the same
    assert "blockIdx.x" in str(topi.cuda.schedule_injective(topi.exp(x)))
    powers = topi.exp(x)
    schedule = te.create_schedule(powers.op)
    with tvm.target.Target(TARGET):
        assert "threadIdx.x" in str(topi.cuda.schedule_injective_from_existing(schedule, powers))
    with tvm.target.Target("llvm"):
        assert "blockIdx" not in str(topi.cuda.schedule_injective(topi.exp(x)))


def test_schedules_without_trials_are_those_of_rules() -> None:
    x, w = te.placeholder((1, 4, 5, 5), name="X"), te.placeholder((8, 4, 3, 3), name="W")
    out = topi.nn.relu(topi.nn.conv2d(x, w, 1, 1, 1))
    text = tvm.build([x, w, out], target=TARGET, schedule="auto").imported_modules[0].get_source("ptx")
    assert text == tvm.build(default_schedule([x, w, out], TARGET), [x, w, out], target=TARGET).imported_modules[0].get_source("ptx")
