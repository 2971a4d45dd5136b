"""Kernels compiled for eight CPUs: hot loops without spills, strided loads, guards or microcoded stores, with enough multiply-adds.

Nothing runs, so no CPU but the compiler is needed. Shapes are small; the loops are those of large ones.
`examples/benchmarks/machine_code.py` looks at all suites.
"""

from __future__ import annotations

import pytest

from tensorexpr.target import Target
from tensorexpr.testing.machine_code import HotLoop, assembly, hot_loop
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.workloads import Case

X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -num-cores=2 -mcpu="
ARM = "llvm -mtriple=aarch64-unknown-linux-gnu -num-cores=2 -mcpu="
CPUS = {
    **{cpu: X86 + cpu for cpu in ("x86-64-v2", "haswell", "znver3", "alderlake", "skylake-avx512", "znver5")},
    **{cpu: ARM + cpu for cpu in ("neoverse-n1", "apple-m1")},
}
# Products, with the least cycles of multiply-adds for each cycle of loads: 1.25 keeps a tile clear of the load pipes.
PRODUCTS = {
    "product": (Case("product", "suite.gemm", (96, 96, 64)), 1.25),
    "transposed operand": (Case("transposed operand", "suite.batch_gemm", (4, 64, 64, 64, True)), 1.25),
    "1x1 convolution": (Case("1x1 convolution", "suite.conv2d_bias_relu", (1, 64, 28, 28, 64, 1, 1, 0), (1, 2)), 1.25),
    # So many rows that a copy of the weights is worth starting threads; of few, narrower tiles are faster (13 x 13 pixels: 1.8 times).
    "3x3 convolution": (Case("3x3 convolution", "suite.conv2d_bias_relu", (1, 8, 84, 28, 32, 3, 1, 1), (1, 2)), 1.25),
    # So few that one core does them before a second one has begun: no tile is chosen for making work for two.
    "3x3 convolution of three rows": (
        Case("3x3 convolution of three rows", "suite.conv2d_bias_relu", (1, 8, 3, 28, 32, 3, 1, 1), (1, 2)),
        1.25,
    ),
    "bytes": (Case("bytes", "suite.gemm_low", (64, 64, 64, "int8", "int8", "int32"), (1,)), 1.25),
    # A line of 14 pixels is a tile by itself where a step of two vectors waits for latency: 15 loads beside 14 multiply-adds.
    "channels last": (Case("channels last", "suite.conv2d", (1, 14, 14, 32, 64, 3, 1, 1), (1,)), 0.9),
}
# Others, with the spills that are accepted: the exponential has more constants than 16 registers hold. Where its arguments are near the
# ends of the range, a detour is made for the vector operation, in a block behind the loop.
OTHERS = {
    "softmax": (Case("softmax", "suite.softmax", (16, 256)), 12),
    "layer norm": (Case("layer norm", "suite.layer_norm", (16, 256)), 0),
    "sum of rows": (Case("sum of rows", "suite.reduce", (64, 1024, 1)), 0),
    "sum of columns": (Case("sum of columns", "suite.reduce", (64, 1024, 0)), 0),
    "transpose": (Case("transpose", "suite.transpose", (64, 64)), 0),
    "elementwise": (Case("elementwise", "suite.elementwise", (1 << 12,)), 0),
    "matrix by vector": (Case("matrix by vector", "suite.matvec", (64, 256)), 0),
}


def loop_of(case: Case, target: Target) -> HotLoop:
    tensors = case.tensors()
    found = hot_loop(assembly(default_schedule(tensors, target), tensors, target))
    assert found is not None, "no loop on vectors"
    return found


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_bound_by_their_multiply_adds(name: str, cpu: str) -> None:
    (case, balance), target = PRODUCTS[name], Target(CPUS[cpu])
    machine, loop = target.machine, loop_of(case, target)
    assert loop.problems(machine, balance) == [], loop.text
    assert loop.multiply_adds >= machine.fma_per_cycle * machine.fma_latency or loop.multiply_adds >= machine.tile_rows(1), loop.text


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_use_whole_vectors_without_branches(name: str, cpu: str) -> None:
    (case, spills), target = OTHERS[name], Target(CPUS[cpu])
    loop = loop_of(case, target)
    detours = int(name == "softmax" and not target.machine.mask_registers)
    assert loop.problems(target.machine, spills=spills, detours=detours) == [], loop.text
