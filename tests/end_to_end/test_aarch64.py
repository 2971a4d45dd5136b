"""Kernels for AArch64 run under an emulator and give what the reference gives: of every suite in reduced sizes, and of a model's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler.default import rank
from tensorexpr.driver.bench.ours import empty_outputs, random_inputs
from tensorexpr.runtime.build import build
from tensorexpr.schedule import Schedule
from tensorexpr.target import Target
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_close, tolerance_of
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.workloads import SUITES, Case, suite

from ..emulator import CPUS, Emulated, needs_emulator, run, target_of

Scheduled = Callable[[Sequence[Tensor], Target], Schedule]
CASES = [
    Case("C1D", "suite.conv1d", (1, 23, 6, 16, 3, 2, 1), (1,)),
    Case("C2D", "suite.conv2d", (1, 9, 11, 3, 16, 7, 2, 3), (1,)),
    Case("GRP", "suite.conv2d", (1, 7, 6, 8, 16, 3, 1, 1, 1, 4), (1,)),
    Case("DIL", "suite.conv2d", (1, 11, 9, 4, 8, 3, 1, 2, 2), (1,)),
    Case("C3D", "suite.conv3d", (1, 4, 5, 6, 3, 8, 3, 1, 1), (1,)),
    Case("DEP", "suite.depthwise", (1, 7, 9, 16, 3, 2, 1), (1,)),
    Case("T2D", "suite.conv2d_transpose", (1, 4, 4, 8, 8, 4, 2, 1), (1,)),
    Case("CAP", "suite.capsule", (1, 4, 4, 4, 4, 3, 1, 1), (1,)),
    Case("NRM", "suite.norm", (1, 17, 33)),
    Case("ConvLayer", "suite.conv_layer", (1, 8, 6, 3, 16, 3, 2, 1), (1,)),
    Case("TBG", "suite.transpose_batch_gemm", (1, 13, 4, 16), (1,)),
    Case("resnet50", "suite.conv2d_bias_relu", (1, 3, 4, 6, 9, 3, 1, 1), (1, 2)),
    Case("resnet50_packed", "suite.conv2d_bias_relu_packed", (1, 8, 5, 7, 32, 3, 1, 1, 16), (1, 2)),
    Case("mobilenet", "suite.depthwise_nchw", (1, 3, 9, 13, 3, 1, 1), (1,)),
    Case("bert", "suite.dense", (13, 32, 16, "gelu"), (1, 2)),
    Case("bert scores", "suite.attention_scores", (2, 13, 16)),
    Case("memory softmax", "suite.softmax", (3, 29)),
    Case("memory norm", "suite.layer_norm", (5, 37)),
    Case("memory elementwise", "suite.elementwise_chain", (1003,)),
    Case("memory columns", "suite.reduce", (37, 21, 0)),
    Case("memory rows", "suite.reduce", (21, 37, 1)),
    Case("memory transpose", "suite.transpose", (9, 14)),
    Case("memory vector", "suite.matvec", (19, 67)),
    Case("gemm", "suite.gemm", (13, 37, 21)),
    Case("gemm transposed", "suite.batch_gemm", (2, 9, 33, 17, True)),
    Case("gemm int8", "suite.gemm_low", (9, 32, 20, "uint8", "int8", "int32"), (1,)),
    Case("gemm signed bytes", "suite.gemm_low", (9, 32, 20, "int8", "int8", "int32"), (1,)),
    Case("gemm unsigned bytes", "suite.gemm_low", (9, 32, 19, "uint8", "uint8", "int32"), (1,)),
    Case("gemm bfloat16", "suite.gemm_low", (9, 32, 20, "bfloat16", "bfloat16", "float32"), (1,)),
    Case("awkward", "suite.gemm", (7, 101, 1)),
    Case("topi topk", "suite.topi", ("topk", (("float32", 5, 31),), 4)),
    Case("topi where", "suite.topi", ("where", (("bool", 77), ("float32", 77), ("float32", 77)))),
    Case("topi softmax", "suite.topi", ("nn.log_softmax", (("float32", 5, 37),))),
]


def check(cases: Sequence[Case], target: Target, scheduled: Scheduled, folder: Path) -> None:
    """Compile cases, run them in one process and compare what they give."""
    calls, objects = [], []
    for number, case in enumerate(cases):
        tensors = case.tensors()
        path = folder / f"k{number}.o"
        build(scheduled(tensors, target), tensors, target, name=f"k{number}").export_library(path)
        objects.append(path)
        arrays = [*random_inputs(case), *(np.zeros_like(output) for output in empty_outputs(case))]
        calls.append(Emulated(path.with_suffix(".h").read_text(), f"k{number}", arrays))
    for case, call, got in zip(cases, calls, run(calls, objects, folder, target.sve_bits), strict=True):
        tensors, count = case.tensors(), len(empty_outputs(case))
        outputs = tensors[-count:]
        wanted = evaluate(outputs, dict(zip(tensors[:-count], call.arrays, strict=False)))
        for tensor, have, want in zip(outputs, got[-count:], wanted, strict=True):
            assert_close(have, want, tolerance_of(tensor), case.name)


def test_the_cases_are_of_all_suites() -> None:
    assert {case.workload for name in SUITES for case in suite(name)} <= {case.workload for case in CASES} | {"suite.elementwise"}


@needs_emulator
@pytest.mark.parametrize("part", range(3))
def test_kernels_agree_with_the_reference(part: int, tmp_path: Path) -> None:
    check(CASES[part::3], target_of(CPUS[0]), default_schedule, tmp_path)


@needs_emulator
def test_kernels_for_another_core_agree_with_the_reference(tmp_path: Path) -> None:
    check(CASES[::6], target_of(CPUS[1], cores=1), default_schedule, tmp_path)


@needs_emulator
@pytest.mark.parametrize(("cpu", "bits", "first"), [("neoverse-v1", 256, 0), ("a64fx", 512, 3)])
def test_kernels_in_registers_of_sve_agree_with_the_reference(cpu: str, bits: int, first: int, tmp_path: Path) -> None:
    check(CASES[first::6], target_of(cpu, cores=1, bits=bits), default_schedule, tmp_path)


@needs_emulator
def test_a_product_that_the_analytic_model_chose_agrees_with_the_reference(tmp_path: Path) -> None:
    """No candidate runs: a search by the model alone, for a machine that isn't there."""
    case, target = Case("product", "suite.gemm", (48, 40, 36)), target_of(CPUS[0])
    dag = auto_scheduler.ComputeDAG(case.tensors())
    found = rank(dag, target, count=2)
    traces = [found.sketches[candidate.sketch].trace_of(candidate.row) for candidate in found.candidates]
    assert len({str(trace.to_json()) for trace in traces}) > 1
    calls, objects = [], []
    for number, trace in enumerate(traces[:4]):
        schedule, tensors = dag.schedule(trace)
        path = tmp_path / f"k{number}.o"
        build(schedule, tensors, target, name=f"k{number}").export_library(path)
        objects.append(path)
        arrays = [*random_inputs(case), np.zeros((48, 40), np.float32)]
        calls.append(Emulated(path.with_suffix(".h").read_text(), f"k{number}", arrays))
    for call, got in zip(calls, run(calls, objects, tmp_path), strict=True):
        np.testing.assert_allclose(got[-1], call.arrays[0] @ call.arrays[1], rtol=1e-5, atol=1e-5)


@needs_emulator
def test_libraries_are_linked_by_the_compiler_of_their_platform(tmp_path: Path) -> None:
    case = Case("product", "suite.gemm", (5, 17, 9))
    tensors, target = case.tensors(), target_of(CPUS[0])
    library = tmp_path / "libproduct.so"
    build(default_schedule(tensors, target), tensors, target, name="product").export_library(library)
    arrays = [*random_inputs(case), np.zeros((5, 17), np.float32)]
    call = Emulated('#include "libproduct.h"', "product", arrays)
    (got,) = run([call], [library], tmp_path)
    np.testing.assert_allclose(got[-1], arrays[0] @ arrays[1], rtol=1e-5, atol=1e-5)
