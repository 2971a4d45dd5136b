"""Tuning a network: what is chosen, what is kept, and what is refused. Times are those of a stand-in, as no test may depend on load."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, relax
from tensorexpr.auto_scheduler.workers import measure_task
from tensorexpr.errors import DeclarationError, TuningError
from tensorexpr.relax import op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.network_tasks import fused_graph, tasks_of_graph
from tensorexpr.relax.tuning import comparing
from tensorexpr.relax.tuning import network as tuning
from tensorexpr.relax.tuning.outcome import NetworkTuning, TaskOutcome
from tensorexpr.relax.tuning.searching import as_in_a_network
from tensorexpr.relax.tuning.timing import difference, inputs_of
from tensorexpr.tune.measure import compiling
from tensorexpr.tune.measure.kernel_compiling import make_compiler

from .test_network_tasks import TARGET, network, tiled
from .test_simplify import graph, weights


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A search that finds one program for each task, and times as a table says them: by the origin of each kernel."""
    said: dict[str, Any] = {"record": 0.5, "network": 0.5, "interrupt": False, "tasks": []}

    def search(chosen: Any, seconds: float, recorder: Any, watch: Any, builder: Any, runner: Any, by: Any) -> list[str]:
        said["tasks"], said["runner"], said["seconds"] = [one.task.kernels[0] for one in chosen], runner, seconds
        for number, one in enumerate(one.task for one in chosen if not one.task.is_simple):
            made, result = tiled(one.task, 8 if number else 4)
            result = replace(result, policy={"swept_bytes": said.get("swept_bytes", runner.swept_bytes)})
            recorder.callback(None, [made], [result])
            watch.callback(None, [made], [result])
            if said["interrupt"]:
                raise KeyboardInterrupt
        return []

    def kernel_times(executables: Any, *_: Any) -> Any:
        return [{n: (1e-3 * (said["record"] if o == "record" else 1.0), 1) for n, o in one.origins.items()} for one in executables]

    def in_turn(executables: Any, *_: Any) -> Any:
        return [3e-3 * (said["network"] if "record" in one.origins.values() else 1.0) for one in executables]

    monkeypatch.setattr(tuning, "search", search)
    for module in (tuning, comparing):
        monkeypatch.setattr(module, "kernel_times", kernel_times)
        monkeypatch.setattr(module, "timed_in_turn", in_turn)
    return said


def test_the_network_runs_what_was_found(searched: dict[str, Any], tmp_path: Path) -> None:
    mod, seen = network(), list[Any]()
    found = relax.tune_network(mod, None, TARGET, budget_s=60, records=tmp_path / "log.json", progress=seen.append)
    assert found.speedup == 2 and sorted(found.executable.origins.values()) == ["record", "record", "rule"]
    assert {one.name: one.origin for one in found.tasks} == dict(found.executable.origins) and not found.is_interrupted
    assert "2.00x; 2 programs measured in" in str(found) and len(seen) == 2
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
    np.testing.assert_allclose(relax.VirtualMachine(found.executable)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-4)
    with found.best():
        assert relax.build(mod, TARGET).origins == found.executable.origins
    found.executable.export_library(str(tmp_path / "net.so"))
    np.save(tmp_path / "x.npy", x)
    script = "import sys, numpy, tensorexpr.runtime as r; print(r.load(sys.argv[1])(numpy.load(sys.argv[2]))[0].tobytes().hex())"
    words = [sys.executable, "-c", script, str(tmp_path / "net.so"), str(tmp_path / "x.npy")]
    elsewhere = subprocess.run(words, capture_output=True, text=True, check=True, timeout=100)
    assert bytes.fromhex(elsewhere.stdout) == relax.VirtualMachine(found.executable)["main"](x).numpy().tobytes()


def test_a_slow_build_leaves_time_to_search(searched: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the budget, however long the network by rules took: nothing came of a first call before."""
    now, measured = [0.0], tuning._measured

    def slow(*given: Any) -> Any:
        now[0] += 100
        return measured(*given)

    monkeypatch.setattr(tuning, "_measured", slow)
    monkeypatch.setattr(tuning, "time", SimpleNamespace(monotonic=lambda: now[0]))
    seen = list[Any]()
    found = relax.tune_network(network(), None, TARGET, budget_s=30, records=tmp_path / "log.json", progress=seen.append)
    assert searched["seconds"] == 10 and found.trials == 2 and seen[0].budget_s == 100 + 10 + 7.5
    assert "of a budget of 30 s building and timing the network by rules took 100.0 s, and a third of it" in str(found)


def test_short_kernels_share_a_row() -> None:
    tasks = [TaskOutcome(f"k{n}", "", (f"k{n}",), 1, 1e-6, 1e-6, 0, "rule") for n in range(30)]
    tasks += [
        TaskOutcome("tuned", "key", ("tuned",), 1, 1e-6, 1e-6, 3, "rule"),
        TaskOutcome("long", "", ("long",), 1, 1e-3, 1e-3, 0, "rule"),
    ]
    lines = str(NetworkTuning(tuple(tasks), 1e-3, 1e-3, 1.0, 1.0, 3, False, Path("a"), Path("b"), None)).splitlines()  # type: ignore[arg-type]
    assert len(lines) == 5 and lines[-2].split() == [
        "0.030",
        "0.030",
        "-",
        "30",
        "0",
        "30",
        "kernels",
        "of",
        "less",
        "than",
        "0.5%",
        "of",
        "a",
        "run",
        "each",
    ]


def test_what_is_slower_within_the_network_is_not_chosen(searched: dict[str, Any], tmp_path: Path) -> None:
    searched["record"] = 1.0  # as fast alone as it may be
    found = relax.tune_network(network(), None, TARGET, records=tmp_path / "log.json", progress=False)
    assert set(found.executable.origins.values()) == {"rule"} and found.best_records.read_text() == "" and found.speedup == 1
    searched.update(record=0.5, network=1.1)  # each kernel is faster, and the whole isn't
    found = relax.tune_network(network(), None, TARGET, records=tmp_path / "log.json", progress=False)
    assert set(found.executable.origins.values()) == {"rule"} and found.speedup == 1


def test_what_an_interrupted_search_found_is_kept(searched: dict[str, Any], tmp_path: Path) -> None:
    searched["interrupt"] = True
    log = tmp_path / "log.json"
    found = relax.tune_network(network(), None, TARGET, records=log, tasks=["matmul1"], progress=False)
    assert found.is_interrupted and "1 programs measured, interrupted after" in str(found) and searched["tasks"] == ["matmul1"]
    assert found.executable.origins["matmul1"] == "record" and len(auto_scheduler.load_records(log)) == 1
    # Another log takes over what this one knows, once.
    for _ in range(2):
        again = relax.tune_network(network(), None, TARGET, records=tmp_path / "other.json", tasks=[2], prior_records=[log], progress=False)
    assert [one.trials for one in again.tasks if one.name == "matmul1"] in ([0], [1])


def test_what_was_timed_otherwise_is_not_chosen(searched: dict[str, Any], tmp_path: Path) -> None:
    """By calls in a row a program finds in the caches what it doesn't find within a network."""
    searched["swept_bytes"] = 0
    found = relax.tune_network(network(), None, TARGET, records=tmp_path / "log.json", progress=False)
    assert searched["runner"].swept_bytes >= TARGET.machine.caches[1].size and set(found.executable.origins.values()) == {"rule"}
    rpc = auto_scheduler.RPCRunner("key", "127.0.0.1", 9090, timeout=7, number=4)
    asked = as_in_a_network(rpc, TARGET)
    assert (asked.timeout, asked.number, asked.min_repeat_ms, asked.swept_bytes) == (7, 4, 100, searched["runner"].swept_bytes)


def test_the_faster_of_the_best_two_runs(searched: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, tried = tmp_path / "log.json", list[list[str]]()
    (one,) = (one for one in tasks_of_graph(fused_graph(network()), TARGET) if one.kernels == ("matmul1",))
    swept = as_in_a_network(auto_scheduler.LocalRunner(), TARGET).swept_bytes
    for factor, cost in ((4, 1.0e-6), (2, 1.05e-6), (8, 1.5e-6)):  # the last is too slow alone to be tried
        made, result = tiled(one.task, factor)
        auto_scheduler.save_records(log, [made], [replace(result, costs=(cost,), policy={"swept_bytes": swept})])

    def kernel_times(executables: Any, *_: Any) -> Any:
        tried.append([dict(built.origins)["matmul1"] for built in executables])
        # the second best alone is the best within the network
        return [{name: (1e-3 * (0.9, 0.8, 0.5)[n if name == "matmul1" else 0], 1) for name in b.origins} for n, b in enumerate(executables)]

    def in_turn(executables: Any, *_: Any) -> Any:
        return [3e-3, 2e-3][: len(executables)]

    monkeypatch.setattr(comparing, "kernel_times", kernel_times)
    monkeypatch.setattr(comparing, "timed_in_turn", in_turn)
    found = relax.tune_network(network(), None, TARGET, budget_s=0.01, records=log, progress=False)
    (kept,) = auto_scheduler.load_records(found.best_records)
    assert tried == [["rule", "record", "record"], ["rule", "record"]] and kept.trace == tiled(one.task, 2)[0].trace
    assert found.executable.origins["matmul1"] == "record" and found.trials == 0


def test_kernels_are_compiled_as_networks_have_them() -> None:
    """They ask ahead for the lines of large inputs, as the build lets them."""
    main: Any = graph(lambda x: op.matmul(x, weights(256, 64)), (64, 256))
    (one,) = tasks_of_graph(fused_graph(main), tvm.target.Target("llvm -l1d=1K/8 -l2=4K/8 -num-cores 2"))
    task = measure_task(one.task, 0).to_json()
    state = one.task.compute_dag.get_init_state()
    stage = next(number for number, found in enumerate(state.stages) if found.op.name == "matmul")
    state.split(stage, state[stage].iters[1], [16])
    i, outer, inner, k = state[stage].iters
    state.reorder(stage, [i, outer, k, inner])
    state.vectorize(stage, state[stage].iters[3])
    trace = state.trace
    network_code, plain = make_compiler(task)(trace.to_json(), 0), compiling.make_compiler(task)(trace.to_json(), 0)
    assert network_code.ir_lines > plain.ir_lines


def test_records_that_do_not_fit_say_what_is_another(searched: dict[str, Any], tmp_path: Path) -> None:
    log, other = tmp_path / "log.json", tmp_path / "other.json"
    relax.tune_network(network(), None, TARGET, records=log, progress=False)
    assert not relax.tune_network(network(), None, TARGET, records=log, progress=False).notes
    # Another network with a product of the same sizes, on another number of cores.
    elsewhere = tvm.target.Target("llvm -num-cores 1")
    made: Any = graph(lambda x: op.nn.relu(op.matmul(x, weights(16, 8))), (4, 16))
    (task,) = tasks_of_graph(fused_graph(made), TARGET)
    strange: Any = graph(lambda x: op.matmul(x, weights(5, 7)), (3, 5))
    (foreign,) = tasks_of_graph(fused_graph(strange), TARGET)
    (mine,) = (one for one in tasks_of_graph(fused_graph(network()), elsewhere) if one.kernels == ("matmul1",))
    for one in (task, foreign, mine):
        inp, result = tiled(one.task, 2)
        auto_scheduler.save_records(other, [inp], [result])
    notes = "\n".join(relax.tune_network(network(), None, TARGET, records=log, prior_records=[other], progress=False).notes)
    assert "of the sizes of matmul1, but another computation" in notes and "of another network: no kernel of this one has" in notes
    assert "of matmul1, but with another target option -num-cores: 1 there, 2 here" in notes and notes.count("1 of 3 records") == 3


def test_without_time_or_kernels_it_says_so(tmp_path: Path) -> None:
    found = relax.tune_network(network(), None, TARGET, budget_s=0.01, records=tmp_path / "log.json", progress=False)
    assert "nothing was searched: of a budget of 0.01 s" in str(found) and found.trials == 0
    mod: Any = graph(lambda x: op.reshape(x, (6,)), (2, 3))
    found = relax.tune_network(mod, None, TARGET, budget_s=1, records=tmp_path / "log.json", progress=False)
    assert "nothing to tune" in str(found) and found.speedup == 1


def test_without_room_what_the_log_has_is_compared(searched: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.json"
    written = auto_scheduler.callbacks.RecordToFile._write

    def write(recorder: Any) -> None:
        if log.read_text():
            raise OSError(28, "No space left on device")
        written(recorder)

    monkeypatch.setattr(auto_scheduler.callbacks.RecordToFile, "_write", write)
    found = relax.tune_network(network(), None, TARGET, records=log, progress=False)
    assert sorted(found.executable.origins.values()) == ["record", "rule", "rule"] and "No space left on device" in "".join(found.notes)


def test_refused(tmp_path: Path) -> None:
    mod, log = network(), tmp_path / "log.json"
    with pytest.raises(TuningError, match=r"can't be written: .*; nothing was measured"):
        relax.tune_network(mod, None, TARGET, records=tmp_path)
    (tmp_path / "log.best.json.tmp").mkdir()
    with pytest.raises(TuningError, match=r"log\.best\.json: Is a directory; the log has all that was measured"):
        relax.tune_network(mod, None, TARGET, budget_s=0.01, records=log, progress=False)
    with pytest.raises(TuningError, match="positive number of seconds"):
        relax.tune_network(mod, None, TARGET, budget_s=0, records=log)
    with pytest.raises(TuningError, match="one of 'auto_scheduler'"):
        relax.tune_network(mod, None, TARGET, by="luck", records=log)
    with pytest.raises(TuningError, match="no task 'conv'; there are 0 "):
        relax.tune_network(mod, None, TARGET, tasks=["conv"], records=log, budget_s=0.5)
    with pytest.raises(TuningError, match='"main"'):
        relax.tune_network(tvm.IRModule(), None, TARGET, records=log)
    n = tvm.tir.Var("n", "int64")
    main: Any = graph(lambda x: op.nn.relu(x), (n, 16))["main"]
    with pytest.raises(DeclarationError, match="inputs="):
        inputs_of(main)
    assert inputs_of(main, {"x0": np.zeros((2, 16), "float32")})[0].shape == (2, 16)
    with pytest.raises(DeclarationError, match="no input y; there are x0"):
        inputs_of(main, {"y": 1})


def test_another_result_is_noticed() -> None:
    built = [relax.build(graph(lambda x, f=factor: op.multiply(x, weights(4) * 0 + f), (2, 4)), TARGET) for factor in (1.0, 1.5)]
    (x,) = inputs_of(built[0].functions["main"])
    assert difference(built[0], built[0], [x]) == 0 and difference(built[0], built[1], [x]) == pytest.approx(0.5)
