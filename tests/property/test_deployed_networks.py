"""Random networks with random programs of their kernels, as files: another process computes the same bits."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import auto_scheduler, relax, relay
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay.from_graph import from_graph
from tensorexpr.target import Target
from tests.effort import share_of

from .test_graphs import graphs

# Reads folders, and writes to each what its library computes: by the runtime alone, and, without its parameters, by a graph executor.
PROCESS = """
import sys, numpy, pathlib
import tensorexpr as tvm
from tensorexpr.contrib.graph_executor import GraphModule

for line in sys.stdin:
    folder = pathlib.Path(line.strip())
    x, y = (numpy.load(folder / f"{name}.npy") for name in "xy")
    whole = GraphModule(tvm.runtime.load_module(str(folder / "net.so"))["default"](tvm.cpu()))
    bare = GraphModule(tvm.runtime.load_module(str(folder / "bare.so"))["default"](tvm.cpu()))
    bare.load_params((folder / "params").read_bytes())
    found = []
    for module in (whole, bare):
        inputs = {"x": x, "y": y}
        module.run(**{name: inputs[name] for name in module.get_input_info()[0]})
        found.append(module.get_output(0).numpy())
    try:
        found.append(tvm.runtime.load(folder / "net.so")(x=x, y=y)[0])
    except tvm.error.TensorExprError as error:
        assert "virtual machine" in str(error), error
    numpy.savez(folder / "out.npz", *found)
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as made:
        yield made
        assert made.stdin is not None
        made.stdin.close()


def records(mod: Any, target: Target, seed: int) -> list[Any]:
    """A random program for each kernel that is searched, as a log has it."""
    made = []
    for task in auto_scheduler.extract_tasks(mod, None, target)[0]:
        policy = auto_scheduler.SketchPolicy(task, seed=seed, params={"sample_init_min_population": 1}, verbose=0)
        states = policy.sample_initial_population()
        result = auto_scheduler.MeasureResult((1e-6,), auto_scheduler.MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True)
        made.append((auto_scheduler.MeasureInput(task, states[seed % len(states)]), result))
    return made


@settings(deadline=None, derandomize=True, max_examples=share_of(6))
@given(case=graphs(), seed=st.integers(0, 1000))
def test_another_process_computes_the_same_bits(elsewhere: subprocess.Popen[str], case: tuple[Any, int], seed: int) -> None:
    mod, rows = case
    target, rng = Target("llvm"), np.random.default_rng(seed)
    data = [rng.uniform(-1, 1, (rows, 4)).astype("float32") for _ in "xy"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log.json"
        found = records(mod, target, seed)
        log.touch()
        auto_scheduler.save_records(log, [inp for inp, _ in found], [res for _, res in found])
        with auto_scheduler.ApplyHistoryBest(str(log)):
            built = relay.build(from_graph(mod), target)
        machine = relax.VirtualMachine(built.module, tvm.cpu())
        names = built.module.get_function_params("main")
        here = machine["main"](*(one for key, one in zip("xy", data, strict=True) if key in names)).numpy()
        np.testing.assert_allclose(here, Evaluator(mod)("main", *data), rtol=2e-4, atol=2e-5)
        built.export_library(folder / "net.so")
        built["remove_params"]().export_library(folder / "bare.so")
        (folder / "params").write_bytes(relay.save_param_dict(built.get_params()))
        for key, one in zip("xy", data, strict=True):
            np.save(folder / f"{key}.npy", one)
        assert elsewhere.stdin is not None and elsewhere.stdout is not None
        print(folder, file=elsewhere.stdin, flush=True)
        assert elsewhere.stdout.readline() == "done\n"
        for one in np.load(folder / "out.npz").values():
            np.testing.assert_array_equal(one.view("uint8"), here.view("uint8"))
