"""Builders and runners: what they accept, refuse, and say of programs that fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.builder import Builder, BuilderInput, LocalBuilder
from tensorexpr.meta_schedule.runner import EvaluatorConfig, LocalRunner, Runner, RunnerInput
from tensorexpr.schedule.blocks import Schedule
from tensorexpr.tir.serialize.module_graph import module_to_graph
from tensorexpr.tune.measure import module_reference_worker as reference_worker
from tests.meta_schedule_programs import matmul, scaled, tiles

TARGET = tvm.Target("llvm -num-cores=1")
SHORT = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)


@pytest.fixture(scope="module")
def builder() -> Iterator[LocalBuilder]:
    made = LocalBuilder(max_workers=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def runner() -> Iterator[LocalRunner]:
    made = LocalRunner(evaluator_config=SHORT)
    yield made
    made.close()


def scheduled(mod: tvm.IRModule) -> tvm.IRModule:
    sch = Schedule(mod, seed=1)
    tiles(sch)
    return sch.mod


def run(runner: LocalRunner, path: str | None, mod: tvm.IRModule, workload: tvm.IRModule | None) -> Any:
    assert path is not None
    return runner.run([RunnerInput(path, "llvm", ms.ArgInfo.from_entry_func(mod), workload)])[0].result()


def test_programs_are_built_in_workers_and_run_in_another_process(builder: LocalBuilder, runner: LocalRunner) -> None:
    mod = matmul()
    built = builder.build([BuilderInput(scheduled(mod), TARGET), BuilderInput(mod, TARGET)])
    assert [result.error_msg for result in built] == [None, None]
    results = [run(runner, result.artifact_path, mod, mod) for result in built]
    assert all(result.is_success and len(result.run_secs) == 2 and min(result.run_secs) > 0 for result in results), results


def test_a_program_that_computes_something_else_fails(builder: LocalBuilder, runner: LocalRunner) -> None:
    a = te.placeholder((32,), name="A")
    other = tvm.IRModule({"main": te.create_prim_func([a, te.compute((32,), lambda i: a[i] * 3.0, name="B")])})
    (built,) = builder.build([BuilderInput(other, TARGET)])
    result = run(runner, built.artifact_path, other, scaled())
    assert not result.is_success and "WrongAnswer" in result.error_msg and "differs at" in result.error_msg
    assert run(runner, built.artifact_path, other, None).is_success  # nothing to compare with


def test_what_programs_are_compared_with_does_not_come_from_our_own_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the oracle asks the compiler that it is there to check")

    monkeypatch.setattr(reference_worker, "build", broken)
    for size in (4, 32):  # interpreted, and evaluated from the tensors that it computes
        func = matmul(size)["main"]
        header = {"module": module_to_graph(tvm.IRModule({"main": func})), "target": "llvm"}
        program = reference_worker._program(header)
        a, b = (np.random.default_rng(seed).standard_normal((size, size), np.float32) for seed in range(2))
        c = np.full((size, size), np.nan, np.float32)
        program.run([a, b, c])
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_a_program_without_code_says_why_and_harms_no_other(builder: LocalBuilder) -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    symbolic = tvm.IRModule({"main": te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 3.0, name="B")])})
    bad, good = builder.build([BuilderInput(symbolic, TARGET), BuilderInput(scaled(), TARGET)])
    assert bad.artifact_path is None and "constant shape" in str(bad.error_msg) and good.error_msg is None


def test_outputs_that_are_read_first_can_not_be_compared(
    builder: LocalBuilder, runner: LocalRunner, caplog: pytest.LogCaptureFixture
) -> None:
    buffer = tir.decl_buffer((8,), name="A")
    i, handle = tir.Var("i", "int32"), tir.Var("a", "handle")
    axis = tir.IterVar(tir.Range.from_min_extent(tir.const(0), tir.const(8)), tir.Var("vi", "int32"))
    region = tir.BufferRegion.from_point(buffer, [axis.var])
    body = tir.BufferStore(buffer, buffer[axis.var] + 1.0, (axis.var,))
    block = tir.Block((axis,), (region,), (region,), "B", body)
    loop = tir.For(i, tir.const(0), tir.const(8), tir.ForKind.SERIAL, tir.BlockRealize((i,), tir.const(True), block))
    mod = tvm.IRModule({"main": tir.PrimFunc((handle,), loop, None, {handle: buffer})})
    (built,) = builder.build([BuilderInput(mod, TARGET)])
    assert run(runner, built.artifact_path, mod, mod).is_success
    assert "reads what A holds before it writes it" in caplog.text


def test_functions_of_the_caller_run_here(tmp_path: Path) -> None:
    calls: list[str] = []

    def build(mod: tvm.IRModule, target: tvm.Target, params: Any) -> Any:
        calls.append("build")
        return tvm.build(mod, target=target)

    def evaluate(rt_mod: Any, device: Any, config: EvaluatorConfig, repeated: Any) -> list[float]:
        calls.append(f"run {os.getpid()} {config.number} {len(repeated)}")
        rt_mod(*repeated[0])
        return [0.5]

    builder = LocalBuilder(f_build=build, initializer=lambda: calls.append("first"))
    runner = LocalRunner(evaluator_config=SHORT, alloc_repeat=2, f_run_evaluator=evaluate, f_cleanup=lambda: calls.append("clean"))
    (built,) = builder.build([BuilderInput(scaled(), TARGET)])
    result = run(runner, built.artifact_path, scaled(), None)
    assert result.run_secs == [0.5], result.error_msg
    assert calls == ["first", "build", f"run {os.getpid()} 1 2", "clean"]
    exported = LocalBuilder(f_build=build, f_export=lambda mod: str(tmp_path / "mine")).build([BuilderInput(scaled(), TARGET)])
    assert exported[0].artifact_path == str(tmp_path / "mine")
    builder.close()


def test_the_default_evaluator_times_programs_here() -> None:
    builder, cleaned = LocalBuilder(f_build=lambda mod, target, params: tvm.build(mod, target=target)), list[int]()
    runner = LocalRunner(evaluator_config=SHORT, f_cleanup=lambda: cleaned.append(1))
    (built,) = builder.build([BuilderInput(scaled(), TARGET)])
    result = run(runner, built.artifact_path, scaled(), None)
    assert len(result.run_secs) == 2 and cleaned == [1]
    builder.close()


def test_errors_of_the_callers_functions_are_results() -> None:
    def fails(*args: Any) -> Any:
        raise ValueError("out of luck")

    (built,) = LocalBuilder(f_build=fails).build([BuilderInput(scaled(), TARGET)])
    assert built.artifact_path is None and "out of luck" in str(built.error_msg)
    (odd,) = LocalBuilder(f_build=lambda *args: 1).build([BuilderInput(scaled(), TARGET)])
    assert "pass f_export too" in str(odd.error_msg)


def test_a_file_that_is_no_program_is_a_result(runner: LocalRunner, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"TXM1 and then nonsense")
    result = run(runner, str(tmp_path / "odd"), scaled(), None)
    assert "is no program that LocalBuilder built" in result.error_msg
    assert "is no program" in run(runner, str(tmp_path / "missing"), scaled(), None).error_msg


def test_what_is_refused() -> None:
    with pytest.raises(TuningError, match="at least once"):
        LocalRunner(evaluator_config=EvaluatorConfig(number=0))
    with pytest.raises(TuningError, match="no builder is called 'rpc'"):
        Builder.create("rpc")
    with pytest.raises(TuningError, match="no runner is called 'cloud'"):
        Runner.create("cloud")


def test_the_defaults_are_known() -> None:
    assert EvaluatorConfig() == (3, 1, 100, False)
    assert LocalBuilder().timeout_sec == 30 and LocalRunner().timeout_sec == 30


def test_an_output_without_dimensions_is_verified() -> None:
    a, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), "k")
    func = te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], axis=k), name="B")])
    infos = ms.arg_info.shapes_of(ms.arg_info.ArgInfo.from_prim_func(func))
    program = reference_worker._Program(func, TARGET, infos, ["A", "B"], frozenset({1}))
    (x, y), reason = reference_worker._evaluated(program, 0)
    assert reason == "" and y.shape == () and np.allclose(y, x.sum(), rtol=1e-5)
