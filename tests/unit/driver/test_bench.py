"""The benchmark's parts: peers agree with the reference, rows survive JSON, table and page show what was measured."""

from __future__ import annotations

import argparse
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorexpr import processor
from tensorexpr.driver.bench import isa, priority
from tensorexpr.driver.bench.command import measure_case
from tensorexpr.driver.bench.isa import held_target, is_held
from tensorexpr.driver.bench.networks.contenders import is_chosen
from tensorexpr.driver.bench.ours import default_kernel, empty_outputs, random_inputs
from tensorexpr.driver.bench.page import page
from tensorexpr.driver.bench.peers import installed, numpy_peer
from tensorexpr.driver.bench.peers.base import Peer, Unsupported
from tensorexpr.driver.bench.probes import Limits, Probes, measure_limits
from tensorexpr.driver.bench.rows import Results, Row, geometric_mean, read
from tensorexpr.driver.bench.table import ratio_to_best_peer, table
from tensorexpr.driver.bench.timing import Contender, Rules, interleaved
from tensorexpr.driver.cli import main
from tensorexpr.errors import RecordError, TensorExprError
from tensorexpr.target import Target
from tensorexpr.te.reference import evaluate
from tensorexpr.workloads import Case

SMALL = [
    Case("gemm", "suite.gemm", (5, 6, 7)),
    Case("batch", "suite.batch_gemm", (2, 3, 4, 5, True)),
    Case("dense", "suite.dense", (3, 4, 5, "relu"), (1, 2)),
    Case("conv", "suite.conv2d_bias_relu", (1, 3, 8, 8, 4, 3, 2, 1), (1, 2)),
    Case("conv packed", "suite.conv2d_bias_relu_packed", (1, 3, 8, 8, 4, 3, 2, 1, 8), (1, 2)),
    Case("conv1d", "suite.conv1d", (1, 8, 4, 6, 3, 2, 1), (1,)),
    Case("conv2d", "suite.conv2d", (1, 8, 8, 4, 6, 3, 1, 1, 2, 2), (1,)),
    Case("conv3d", "suite.conv3d", (1, 4, 5, 6, 2, 3, 3, 1, 1), (1,)),
    Case("layer", "suite.conv_layer", (1, 8, 8, 3, 4, 3, 1, 1), (1,)),
    Case("depthwise", "suite.depthwise", (1, 8, 8, 4, 3, 2, 1), (1,)),
    Case("depthwise_nchw", "suite.depthwise_nchw", (1, 4, 8, 8, 3, 1, 1, True), (1, 2)),
    Case("transposed", "suite.conv2d_transpose", (1, 4, 4, 3, 2, 4, 2, 1), (1,)),
    Case("scores", "suite.transpose_batch_gemm", (1, 4, 2, 3)),
    Case("attention", "suite.attention_scores", (2, 4, 3)),
    Case("softmax", "suite.softmax", (3, 17)),
    Case("norm", "suite.layer_norm", (3, 16)),
    Case("rows", "suite.reduce", (5, 33, 1)),
    Case("columns", "suite.reduce", (5, 33, 0)),
    Case("transpose", "suite.transpose", (5, 7)),
    Case("fma", "suite.elementwise", (100,)),
    Case("chain", "suite.elementwise_chain", (100,)),
    Case("squares", "suite.norm", (2, 5, 6)),
]
QUICK = ("--rounds", "1", "--patience", "0", "--priority", "normal")


@pytest.fixture(scope="module")
def peers() -> Any:
    found, _ = installed(["numpy", "torch", "onnxruntime"], Target("llvm -num-cores=2"))
    yield found
    for peer in found:
        peer.close()


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_contender_computes_the_case(case: Case, peers: list[Peer]) -> None:
    arrays = random_inputs(case)
    tensors = case.tensors()
    wanted = evaluate(tensors[-1:], dict(zip(tensors, arrays, strict=False)))[0]
    outputs = empty_outputs(case)
    default_kernel(case, Target("llvm")).function(*arrays, *outputs)
    np.testing.assert_allclose(outputs[0], wanted, rtol=1e-4, atol=1e-4)
    for peer in peers:
        try:
            call = peer.prepare(case, arrays)
        except Unsupported:
            continue
        np.testing.assert_allclose(peer.result(call()), wanted, rtol=1e-3, atol=1e-3, err_msg=peer.name)


def test_kernels_that_the_cpu_cannot_run_are_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_peer, "host_features", lambda: frozenset({"avx2", "fma", "avx512f", "avx512vl"}))
    found, missing = installed(["numpy"], Target("llvm -num-cores=1"))
    assert [peer.name for peer in found] == ["numpy"]
    assert missing[0].startswith("openblas-avx512: not measured: this CPU lacks avx512bw, avx512cd, avx512dq; NumPy chooses")


def test_a_peer_that_is_not_installed_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSOREXPR_TVM_PYTHON", raising=False)
    found, missing = installed(["tvm"], Target("llvm"))
    assert found == [] and missing == ["tvm: not measured: TENSOREXPR_TVM_PYTHON doesn't name an interpreter that has TVM"]
    with pytest.raises(TensorExprError, match="there is no peer 'mkl'; peers: numpy, torch"):
        installed(["mkl"], Target("llvm"))


def limits() -> Limits:
    return Limits(500.0, 50.0, 40.0, 100.0, 90.0, 2)


def results() -> Results:
    nan = float("nan")
    rows = (
        Row("gemm", "a", "torch", 2e-3, 1.9e-3, 2.1e-3, nan, 1e9, 1e6),
        Row("gemm", "a", "tensorexpr", 1e-3, 0.9e-3, 1.1e-3, 2e-3, 1e9, 1e6),
        Row("gemm", "b", "tensorexpr", nan, nan, nan, nan, 1e9, 1e6, "failed: <no>"),
        Row("gemm", "b", "torch", 3e-3, 3e-3, 3e-3, nan, 1e9, 1e6),
    )
    return Results(rows, limits().to_json(), {"date": "2026-01-01", "versions": {"torch": "2"}})


def test_rows_survive_json(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results().write(path)
    again = read(path)
    assert again.limits == results().limits and again.machine == results().machine
    assert [row.case for row in again.rows] == [row.case for row in results().rows]
    assert math.isnan(again.rows[0].cold) and again.rows[1].gflops == pytest.approx(1e9 / 0.9e-3 / 1e9)
    path.write_text(path.read_text().replace('"version": 1', '"version": 7'))
    with pytest.raises(RecordError, match="holds no results of version 1"):
        read(path)


def test_the_table_says_what_was_measured() -> None:
    text = table(results())
    assert "2.11x" in text and "b, tensorexpr: failed: <no>" in text and "500 GFLOPS" in text
    assert ratio_to_best_peer(results(), "a") == pytest.approx(1.9 / 0.9) and math.isnan(ratio_to_best_peer(results(), "b"))
    assert geometric_mean([1, 4]) == pytest.approx(2) and math.isnan(geometric_mean([]))


def test_who_computes_something_else_is_no_peers_best() -> None:
    """A peer's wrong result is noted, and its time shown; ours is compared with the fastest that is right."""
    nan, good = float("nan"), results()
    fast = Row("gemm", "a", "saturating", 1e-4, 1e-4, 1e-4, nan, 1e9, 1e6, "wrong: off by 0.5 of the largest value")
    both = Results((*good.rows, fast), good.limits, good.machine)
    assert ratio_to_best_peer(both, "a") == ratio_to_best_peer(good, "a")
    assert "0.1000" in table(both) and "a, saturating: wrong: off by 0.5" in table(both)


def test_the_page_is_one_file_and_shows_text_as_text() -> None:
    text = page(results(), "gemm <&>")
    assert "gemm &lt;&amp;&gt;" in text and "failed: &lt;no&gt;" in text and "<no>" not in text
    assert "http" not in text and text.count("<rect") == 2


def test_contenders_take_turns() -> None:
    calls: list[str] = []
    contenders = [Contender(name, lambda name=name: calls.append(name)) for name in "ab"]  # type: ignore[misc]
    rules = Rules(rounds=2, pause=0.0, batch=0.0, cold_rounds=0)
    samples = interleaved([*contenders, Contender("c", lambda: None, timer=lambda count: 0.5)], rules)
    assert "".join(calls).endswith("aabbaabb")
    assert samples["c"].median == 0.5 and set(samples) == {"a", "b", "c"}


def test_limits_are_positive() -> None:
    found = measure_limits(Target("llvm"), rounds=1)
    assert all(value > 0 for value in found.to_json().values())


def test_the_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / name) for name in ("r.json", "r.html")]
    case = ["--suite", "awkward", "--case", "7x1000x1", "--vs", "numpy", *QUICK]
    code = main(["bench", *case, "--json", files[0], "--html", files[1]])
    assert code == 0
    assert "gemm-7x1000x1" in capsys.readouterr().out
    assert {row.contender for row in read(Path(files[0])).rows} >= {"tensorexpr", "numpy"}
    assert Path(files[1]).read_text().startswith("<!doctype html>")


def test_tuned_cases_say_so_and_are_not_tuned_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(1.0, 1.0, 1.0, 1.0, 1.0, 1)  # another test measures them
    monkeypatch.setattr("tensorexpr.driver.bench.command.measure_limits", lambda *_, **__: limits)
    file, log = tmp_path / "r.json", tmp_path / "records.json"
    case = [
        "--suite",
        "awkward",
        "--case",
        "7x1000x1",
        "--vs",
        "",
        "--rounds",
        "1",
        "--patience",
        "0",
        "--priority",
        "normal",
        "--json",
        str(file),
    ]
    assert main(["bench", *case, "--tune", "3", "--tune-log", str(log)]) == 0
    (row,) = read(file).rows
    assert (row.contender, row.schedule, row.trials) == ("tensorexpr-tuned", "auto_scheduler", 3) and row.tuning
    assert "tuned with 3 trials in" in capsys.readouterr().out
    size = log.stat().st_size
    assert main(["bench", *case, "--tune", "3", "--tune-log", str(log)]) == 0
    (row,) = read(file).rows
    assert row.trials == 3 and row.tuning is None and log.stat().st_size == size


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--suite", "gemm", "--case", "nothing", "--vs", ""]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1] == "error: no case of gemm is called 'nothing', or has it in its name"


@pytest.mark.parametrize("case", [Case("gemm", "suite.gemm", (5, 6, 7)), Case("softmax", "suite.softmax", (3, 5))])
def test_arrays_start_at_cache_lines_as_peers_allocate_theirs(case: Case) -> None:
    for array in (*random_inputs(case), *empty_outputs(case)):
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous and array.flags.writeable


def test_cases_by_a_part_of_their_name_or_by_a_pattern() -> None:
    assert is_chosen("C2D-1-b16", "b16") and is_chosen("C2D-1-b16", "-b1") and is_chosen("C2D-1-b16", "")
    assert is_chosen("C2D-1-b1", "*-b1") and not is_chosen("C2D-1-b16", "*-b1") and is_chosen("C3D-2-b1", "C[23]D-?-b1")


def test_integers_are_checked_by_the_definition_and_not_by_a_peer_that_saturates() -> None:
    class Saturates(Peer):
        name = "saturates"

        def prepare(self, case: Case, arrays: Any) -> Any:
            exact = arrays[0].astype(np.int64) @ arrays[1].astype(np.int64)
            return lambda: np.clip(exact, -(1 << 15), (1 << 15) - 1).astype(np.int32)

        def result(self, value: Any) -> Any:
            return value

    case = Case("int8", "suite.gemm_low", (8, 64, 16, "uint8", "int8", "int32"), (1,))
    options = argparse.Namespace(tune=0, trials=0, log=None, budget=None, rounds=1, patience=0.0)
    rows, _ = measure_case("gemm", case, Target("llvm"), [Saturates(Target("llvm"))], options, Probes(Target("llvm")))
    notes = {row.contender: row.note for row in rows if row.note}
    assert "wrong" in notes["saturates"] and "wrong" not in notes.get("tensorexpr", "")
    assert any(row.contender == "tensorexpr" and row.median > 0 for row in rows)


AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver5"


def test_a_target_is_held_to_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert held_target("llvm -mcpu=haswell", "avx2") == Target("llvm -mcpu=haswell")
    with pytest.raises(TensorExprError, match=r"--isa avx2 contradicts --target 'llvm .*znver5', which has AVX-512"):
        held_target(AVX512, "avx2")
    monkeypatch.setattr(processor, "host_cpu", lambda: "skylake-avx512")
    monkeypatch.setattr(processor, "host_features", lambda: frozenset({"avx", "avx2", "fma", "avx512f", "avx512vl"}))
    held = held_target("llvm -num-cores=3", "avx2")
    assert (held.vector_bits, held.vector_registers, held.num_cores) == (256, 16, 3)
    assert held_target("llvm", "native") == Target("llvm")


def test_peers_are_held_by_what_they_read_when_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in isa.variables("avx2"):
        monkeypatch.delenv(name, raising=False)
    assert is_held("native") and not is_held("avx2")
    started: list[tuple[list[str], dict[str, str]]] = []

    def call(command: list[str], env: dict[str, str]) -> int:
        started.append((command, env))
        return 7

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setattr(processor, "host_features", lambda: frozenset({"avx", "avx2", "fma"}))
    arguments = ["bench", "--isa", "avx2", *QUICK]
    assert main(arguments) == 7  # the exit code of the process that has them
    ((command, environment),) = started
    assert command[1:] == ["-m", "tensorexpr", *arguments]
    assert (environment["ONEDNN_MAX_CPU_ISA"], environment["OPENBLAS_CORETYPE"]) == ("AVX2", "Haswell")
    for name, value in isa.variables("avx2").items():
        monkeypatch.setenv(name, value)
    assert is_held("avx2")
    found, missing = installed(["numpy", "onnxruntime"], Target("llvm"), isa.left_out("avx2"))
    assert [peer.name for peer in found] == ["numpy"]
    assert missing[1].startswith("onnxruntime: not measured: can't be held to avx2: it asks the CPU itself")


def test_the_loops_of_numpy_beyond_avx2_are_named() -> None:
    """By this NumPy's own names, of which it knows which it has."""
    assert all(name.startswith(("X86_V4", "AVX512")) for name in isa.variables("avx2").get("NPY_DISABLE_CPU_FEATURES", "").split())


def test_real_time_priority_is_taken_where_it_is_permitted_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(priority, "_set_all", lambda policy, parameter: taken.append(policy))
    monkeypatch.setattr(os, "sched_getscheduler", lambda number: os.SCHED_OTHER)
    with priority.raised("auto") as how:
        assert how == "real-time priority 5" and taken == [os.SCHED_FIFO]
    assert taken == [os.SCHED_FIFO, os.SCHED_OTHER]
    with priority.raised("normal") as how:
        assert how == "normal priority" and len(taken) == 2

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(priority, "_set_all", refuse)
    with priority.raised("auto") as how:
        assert how == "normal priority (real-time priority isn't permitted)"
    with pytest.raises(TensorExprError, match="--priority realtime: not permitted; `ulimit -r`"), priority.raised("realtime"):
        pass


def test_cores_that_are_not_ours_are_said() -> None:
    class Half(Probes):
        """Reaches 100 GFLOPS once, then 42."""

        def __init__(self) -> None:
            self.best_fma, self.found = 0.0, iter([100.0] + [42.0] * 99)

        def fma(self, milliseconds: float = 20.0) -> float:
            now = next(self.found)
            self.best_fma = max(self.best_fma, now)
            return now

    rules = Rules(rounds=2, pause=0.0, batch=0.0, cold_rounds=0, patience=0.0)
    sample = interleaved([Contender("a", lambda: None)], rules, Half())["a"]
    assert (sample.disturbed, sample.share) == (2, 0.42)
    how = {
        "isa": "avx2",
        "priority": "normal priority",
        "least_fma_share": 0.42,
        "left_out": ["onnxruntime: not measured: why"],
        "processor": "znver3",
    }
    text = table(Results(results().rows, limits().to_json(), how))
    assert "znver3, instructions: avx2, normal priority" in text and "onnxruntime: not measured: why" in text
    assert "WARNING: the FMA probe fell to 42% of its best" in text
    assert "WARNING" not in table(Results(results().rows, limits().to_json(), {**how, "least_fma_share": 0.97}))
