"""What an executable says of itself: kernels, their schedules, packed weights, why they are several, and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax import op
from tensorexpr.relax.runtime.explain import schedule_of
from tensorexpr.relax.runtime.machine import Report

RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 64), np.float32)


# Which weights are packed depends on the target.
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -num-cores=2"


def built(make: Any, target: str = "llvm") -> relax.Executable:
    x = relax.Var("x", relax.TensorStructInfo((16, 64), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(make(bb.emit, x))
        bb.emit_func_output(out)
    executable: relax.Executable = relax.build(bb.get(), target)
    return executable


def weight(*shape: int) -> Any:
    return relax.const(RNG.standard_normal(shape, np.float32))


def said_of(executable: relax.Executable, kernel: str) -> list[str]:
    """The lines on a kernel."""
    lines = executable.explain().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{kernel},"))
    end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith(" ")), len(lines))
    return [line.strip() for line in lines[start:end]]


def test_kernels_come_in_the_order_of_calls_with_shapes_and_schedules() -> None:
    w, v = weight(64, 64), weight(64, 32)
    executable = built(lambda e, x: e(op.nn.softmax(e(op.matmul(e(op.nn.gelu(e(op.matmul(e(op.matmul(x, w)), w)))), v)))), AVX512)
    heads = [line for line in executable.explain().splitlines() if not line.startswith(" ")]
    assert [head.split(",")[0] for head in heads[:3]] == ["matmul", "fused_matmul_gelu", "matmul1"]
    assert heads[0] == "matmul, once: (16, 64), (64, 64) -> (16, 64)"
    assert said_of(executable, "matmul")[1].startswith("schedule: by rule, matmul: a contraction: rows i0, columns i1")
    assert said_of(executable, "matmul")[-1].startswith("not with fused_matmul_gelu, which reads its result: both sum")
    assert heads[-1].startswith("native function 0: 4 calls of kernels; intermediate results of 10.2 kB take 8.19 kB")


def test_why_kernels_are_several() -> None:
    w = weight(64, 64)

    def twice(e: Any, x: Any) -> Any:
        first = e(op.matmul(x, w))
        return e(op.matmul(e(op.permute_dims(e(op.nn.softmax(first)))), first))

    said = said_of(built(twice), "matmul")
    assert any(line.startswith("not with what reads its result, which are 2 calls, of softmax") for line in said)
    reshaped = built(lambda e, x: e(op.nn.softmax(e(op.reshape(e(op.nn.softmax(x)), (32, 32))))))
    assert said_of(reshaped, "softmax")[-1] == "not with softmax1, which reads its result: they are read in another shape"


def test_packed_weights_and_calls_on_numpy() -> None:
    w = weight(40, 64, 3, 3)
    image = built(lambda e, x: e(op.nn.conv2d(e(op.reshape(x, (1, 64, 4, 4))), w, padding=1)))
    assert any(line.startswith("argument 1 is packed: [ax0, ax1, ax2, ax3] -> [") for line in said_of(image, "conv2d"))
    host = built(lambda e, x: e(op.nonzero(x)))
    assert "nonzero in main: on NumPy's arrays, as it has no tensor computation" in host.explain().splitlines()


def test_a_library_says_what_it_knows(tmp_path: Path) -> None:
    executable = built(lambda e, x: e(op.nn.softmax(x)))
    executable.export_library(tmp_path / "network.so")
    loaded = tvm.runtime.load_module(str(tmp_path / "network.so"))
    assert said_of(loaded, "softmax") == ["softmax, once: (16, 64) -> (16, 64)", "schedule: rule"]
    assert schedule_of(None, "a record of 3 ms", executable.target) == "a record of 3 ms"


def test_a_profile_has_the_schedules() -> None:
    machine = relax.VirtualMachine(built(lambda e, x: e(op.nn.softmax(x))), tvm.cpu(), profile=True)
    head, row, *_ = machine.profile("main", X).table().splitlines()
    assert head.split("  ")[-1].strip() == "Schedule"
    assert row.startswith("softmax") and "computed together, row by row" in row


def test_names_of_many_operators_leave_room_in_a_table() -> None:
    name = "fused_conv2d_" + "_".join(f"add{n}" for n in range(40)) + "_relu"
    _, row, *_ = Report([(name, 1e-3, "float32[8]")], 2e-3).table().splitlines()
    assert row.startswith("fused_conv2d_add0") and row.split()[0].endswith("add39_relu") and len(row) < 110


def test_views_are_no_part_of_a_profile() -> None:
    """Native code has them for nothing; a call of its own in a profile takes longer than a small kernel."""
    machine = relax.VirtualMachine(built(lambda e, x: op.reshape(e(op.nn.softmax(e(op.reshape(x, (2, 8, 64))))), (16, 64))), profile=True)
    assert [name for name, _, _ in machine.profile("main", X).calls] == ["softmax"]
