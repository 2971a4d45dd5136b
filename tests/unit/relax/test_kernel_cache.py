"""Kernels of a graph that an earlier build made: the same code, the same packed weights, and another key for what differs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import TypeMismatchError
from tensorexpr.relax import op
from tensorexpr.relax.build_progress import BuildProgress
from tensorexpr.relax.evaluator import Evaluator

X = np.random.default_rng(1).uniform(-1, 1, (16, 32)).astype("float32")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE", "1")
    monkeypatch.setenv("TENSOREXPR_VERIFY", "")  # programs that are checked after each pass are made anew
    monkeypatch.setenv("TENSOREXPR_CACHE_DIR", str(tmp_path))


def layers(columns: Sequence[int], last: Callable[[Any], Any] = op.nn.relu) -> Any:
    """Products one after the other, each with a ReLU, the last one with something else."""
    rng, width = np.random.default_rng(0), 32
    x = relax.Var("x", relax.TensorStructInfo((16, width), "float32"))
    value: Any = x
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            for n, count in enumerate(columns):
                w = relax.const(rng.uniform(-1, 1, (width, count)).astype("float32") / 8)
                value = bb.emit((last if n == len(columns) - 1 else op.nn.relu)(bb.emit(op.matmul(value, w))))
                width = count
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get()


def told(mod: Any, **options: Any) -> list[BuildProgress]:
    """What a build says, after a check of what it built."""
    said: list[BuildProgress] = []
    built = relax.build(mod, progress=said.append, **options)
    np.testing.assert_allclose(relax.VirtualMachine(built)["main"](X).numpy(), Evaluator(mod)("main", X), rtol=1e-4, atol=1e-4)
    return said


def test_kernels_are_found_again() -> None:
    for columns, found in ((48, 0), (48, 1), (40, 0)):
        said = told(layers([columns]))
        assert (said[0].done, said[0].found, said[0].total) == (found, found, 1)
        assert said[-1].done == 1 and said[-1].name == ("" if found else "fused_matmul_relu")


def test_one_changed_layer_is_one_new_kernel() -> None:
    told(layers([48, 40, 24, 56]))
    said = told(layers([48, 40, 24, 56], op.nn.gelu))
    assert said[0].found == 3 and [one.name for one in said] == ["", "fused_matmul3_gelu"]
    # Functions that come before change the numbers of the names of all that follow; kernels are found nevertheless.
    said = told(layers([32, 48, 40, 24, 56], op.nn.gelu))
    assert [(one.done, one.total) for one in said] == [(4, 5), (5, 5)]


def test_workers_build_the_same_kernels() -> None:
    mod = layers([48, 40, 24])
    code = []
    for processes in (1, 2):
        with tvm.transform.PassContext(config={"relax.build.processes": processes}), pytest.MonkeyPatch.context() as patch:
            patch.setenv("TENSOREXPR_CACHE", "0")
            built = relax.build(mod)
        parts = built.kernels._code.parts
        code.append({name: (own, one.text, one.data) for name, (one, own) in parts.items()})
    assert code[0] == code[1] and len(code[0]) == 3


def test_options_of_builds_are_in_no_key() -> None:
    told(layers([48]))
    with tvm.transform.PassContext(config={"relax.build.processes": 1, "relax.build.progress": 0}):
        assert told(layers([48]))[0].found == 1


def test_what_workers_cannot_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorexpr.relax.kernel_builds._MODULE", "tensorexpr.no_such_module")
    with tvm.transform.PassContext(config={"relax.build.processes": 2}):
        assert [one.done for one in told(layers([48, 40]))] == [0, 1, 2]


def test_progress_is_a_function_or_says_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeMismatchError, match="progress is a function"):
        relax.build(layers([48]), progress="yes")  # type: ignore[arg-type]
    relax.build(layers([48]))
    assert capsys.readouterr() == ("", ""), "without a terminal a build is silent"


def test_the_code_of_all_kernels_is_one_module_where_that_is_asked_for(tmp_path: Path) -> None:
    built = relax.build(layers([48, 40]))
    assert {name for name in built.origins if f"@{name}(" in built.kernels.get_source()} == set(built.origins)
    built.kernels.save(tmp_path / "kernels.o")
    loaded = tvm.runtime.load_module(str(tmp_path / "kernels.o"))
    assert sorted(loaded.function_names) == sorted(built.kernels.function_names)
    built.export_library(tmp_path / "network.so")
    found = relax.VirtualMachine(tvm.runtime.load_module(str(tmp_path / "network.so")))["main"](X).numpy()
    np.testing.assert_array_equal(found, relax.VirtualMachine(built)["main"](X).numpy())


FOUND = """
import sys
import numpy as np
from tensorexpr import relax
from tensorexpr.relax import op
x = relax.Var("x", relax.TensorStructInfo((16, 32), "float32"))
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    with bb.dataflow():
        out = bb.emit_output(bb.emit(op.matmul(x, relax.const(np.ones((32, 24), "float32")))))
    bb.emit_func_output(out)
built = relax.build(bb.get())
assert float(relax.VirtualMachine(built)["main"](np.ones((16, 32), "float32")).numpy()[0, 0]) == 32
print(*sorted(name for name in ("schedule", "spaces", "tune", "lower.pipeline", "te.compute_block") if f"tensorexpr.{name}" in sys.modules))
"""


def test_kernels_that_are_found_need_no_schedules() -> None:
    """Programs that build what they have built before start faster so."""
    said = [subprocess.run([sys.executable, "-c", FOUND], check=True, capture_output=True, text=True).stdout.split() for _ in range(2)]
    assert "schedule" in said[0]
    assert said[1] == []
