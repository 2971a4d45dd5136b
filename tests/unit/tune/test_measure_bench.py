"""Candidates on the arrays of a task, in this process: only code that is known to behave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tensorexpr.errors import TuningError
from tensorexpr.runtime import engine
from tensorexpr.target import Target
from tensorexpr.tune.measure import MeasureTask, TimingPolicy
from tensorexpr.tune.measure.arrays import StoredArray, save_array
from tensorexpr.tune.measure.bench import Bench, Kernel, WrongAnswer
from tensorexpr.tune.measure.compiling import make_compiler
from tensorexpr.tune.measure.native import Probe, cycles_per_second, drop_from_caches
from tensorexpr.tune.measure.timing import calls_per_repeat

from .programs import elementwise, matmul, tiled

POLICY = TimingPolicy(min_repeat_ms=0.05, racing_factor=0.0, repeat_factor=0.0, patience_s=0.0)


def bench_of(folder: Path, expected: float | None = 3.0, policy: TimingPolicy = POLICY) -> Bench:
    """A bench for C = A + 1 on 1000 twos."""
    save_array(folder / "a.bin", np.full(1000, 2.0, np.float32))
    output = StoredArray("C", "float32", (1000,), True, "", 1e-6, 1e-6)
    if expected is not None:
        save_array(folder / "c.bin", np.full(1000, expected, np.float32))
        output = replace(output, file="c.bin")
    return Bench([StoredArray("A", "float32", (1000,), False, "a.bin"), output], folder, policy, 1)


def kernel_on(bench: Bench, entry: str = "main__packed") -> Kernel:
    """The unscheduled C = A + 1, loaded."""
    compiled = make_compiler(MeasureTask(elementwise(), Target("llvm")).to_json())([], 0)
    return bench.load(compiled.object_code, entry, compiled.errors)


def test_a_right_candidate_is_verified_and_timed(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    result = bench.measure(kernel_on(bench), float("inf"))
    assert result.verified
    assert len(result.timing.costs) == POLICY.repeat
    assert all(cost > 0 for cost in result.timing.costs)
    assert set(result.seconds) == {"verify", "time"}


def test_without_expected_results_nothing_is_verified(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, expected=None)
    assert not bench.measure(kernel_on(bench), float("inf")).verified


def test_a_wrong_candidate_is_not_timed(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, expected=4.0)
    with pytest.raises(WrongAnswer, match=r"C differs at 1000 of 1000 elements; worst at \[0\]: 3.0, expected 4.0"):
        bench.measure(kernel_on(bench), float("inf"))


def test_code_without_the_entry_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="other__packed"):
        kernel_on(bench_of(tmp_path), "other__packed")


def test_cold_measurements_run(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, policy=replace(POLICY, flush_caches=True))
    result = bench.measure(kernel_on(bench), float("inf"))
    assert result.timing.number == 1
    assert len(result.timing.costs) == POLICY.repeat


def test_calls_behind_a_sweep_are_verified_and_timed_one_by_one(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, policy=replace(POLICY, swept_bytes=1 << 16))
    result = bench.measure(kernel_on(bench), float("inf"))
    assert result.verified and len(result.timing.costs) == POLICY.repeat and all(cost > 0 for cost in result.timing.costs)


def test_a_core_makes_cycles() -> None:
    assert 1e7 < cycles_per_second() < 1e11


def test_dropping_memory_from_caches_leaves_it_as_it_is() -> None:
    array = np.arange(100_000)
    drop_from_caches([(array.ctypes.data, array.nbytes)])
    drop_from_caches([])
    np.testing.assert_array_equal(array, np.arange(100_000))


def test_a_probe_gives_seconds() -> None:
    probe = Probe(2)
    assert all(probe() > 0 for _ in range(3))


def test_a_scheduled_matmul_is_compiled_with_its_numbers() -> None:
    args = matmul(64)
    compiler = make_compiler(MeasureTask(args, Target("llvm")).to_json())
    compiled = compiler(tiled(args[2], 4, 16).to_json(), 0)
    assert [(a.name, a.dtype, a.shape) for a in compiled.arguments] == [(name, "float32", (64, 64)) for name in "ABC"]
    assert compiled.ir_lines > 20
    assert {"replay", "lower", "emit", "codegen"} <= set(compiled.timings)
    assert compiled.object_code[:4] == b"\x7fELF"


def test_policies_that_fill_time_agree_with_the_bench() -> None:
    assert calls_per_repeat(1e-4, TimingPolicy(min_repeat_ms=10.0)) == 100


def test_an_error_code_is_told_by_its_message(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    kernel = kernel_on(bench)
    text = "define i32 @main__packed(ptr %words) {\n  ret i32 1\n}\n"
    data = engine.compile_text(text, Target("llvm"), 0).data
    with pytest.raises(TuningError, match="an assertion failed"):
        bench.run(bench.load(data, "main__packed", ("an assertion failed",)), 1)
    assert bench.run(kernel, 2) > 0
