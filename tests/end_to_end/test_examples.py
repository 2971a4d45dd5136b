"""The examples and lessons run, and print what they are for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# In processes of their own they run as a user's do: without the checks of every pass, which the tests of their parts have.
AS_USERS = {name: value for name, value in os.environ.items() if name != "TENSOREXPR_VERIFY"}

# Example -> what its output must say.
EXAMPLES = {
    "01_matmul_add.py": ("x NumPy",),
    "02_test_your_pass.py": ("T.shift_right(A[i], 3)", "reduce_strength: right in", "reduce_strength_carelessly: wrong", "Trace.from_json"),
    "03_random_search.py": ("sch.sample_perfect_tile(loop=l1", "best of 3 at random"),
    "04_tune_tir.py": ("Total trials: 3", "the best after another search", "sch.vectorize("),
    "05_custom_schedule_rule.py": ("sch.get_block(", "from PostOrderApply"),
    "06_custom_search_strategy.py": ("sch.parallel(", "hill climbing: "),
    "07_tune_one_layer.py": ("linear0: ", "the tuned network computes the same"),
    "08_network.py": ("by rules: ", "'fused_linear0_relu': 'rule'", "both networks compute what NumPy does"),
    "09_onnx_model.py": ("5 kernels", "all together 1.000", "it computes the same: True"),
    "11_graph_pass.py": ("calls: matmul, tanh, nn.silu", "both compute what NumPy does"),
    "12_three_styles.py": ("template", "stochastic", "the union's best program is of "),
    "10_torch_module.py": ("operators: nn.conv2d, nn.batch_norm", "the graph and the compiled module compute what PyTorch does"),
}
# What the others don't need, and what they import.
NEEDS = {"10_torch_module.py": "torch"}


@pytest.mark.parametrize("example", sorted(EXAMPLES))
def test_examples_run(example: str) -> None:
    if example in NEEDS:
        pytest.importorskip(NEEDS[example], reason=f"the example shows {NEEDS[example]}")
    searches = ["--trials", "3"] if example < "09" or example > "12" else []
    command = [sys.executable, str(ROOT / "examples" / example), "--size", "64", *searches]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=AS_USERS)
    assert done.returncode == 0, done.stderr
    assert [text for text in EXAMPLES[example] if text not in done.stdout] == []


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


# Programs in the style of TVM's, one per theme -> what their output must say.
FROM_TVM = {
    "auto_schedule.py": ("the best of 8 trials computes what NumPy does",),
    "auto_tvm.py": ("the best of 6 configurations", "3 tasks: conv2d_NCHWc.x86, dense_nopack.x86, dense_pack.x86"),
    "custom_pass.py": ("* T.float32(0.5)", "passes ran"),
    "extern_op.py": ("the largest of the first rows",),
    "get_started.py": ("a GPU is here: False", "def main("),
    "gpu_gemm.py": ("by blocks and threads: what NumPy computes",),
    "index_algebra.py": ("i * 8 + j lies in 0..127",),
    "intrin_math.py": ("cube roots of a logistic curve",),
    "operators.py": ("most likely classes",),
    "opt_gemm.py": ("plain", "in_blocks", "packed", "GFLOPS"),
    "pictures.py": ('digraph "data flow"',),
    "reduction.py": ("furthest from zero",),
    "graph_network.py": ("200 nodes, 1386 entries: probabilities of 7 classes agree with NumPy",),
    "relay_functions.py": (
        "operators left: {'multiply': 3, 'tanh': 3, 'divide': 1}",
        "['main', 'repeat', 'repeat_cps']",
        "derivatives agree with differences",
    ),
    "relay_quick_start.py": ("2 timings", "batch norms: 2 before, 0 after"),
    "release_0_6.py": ("T.float32(2.0)",),
    "scan.py": ("after two years",),
    "schedule_primitives.py": ("== tiled", "vectorize", "parallel"),
    "sessions.py": ("LocalSession: 256 squares on cpu(0)", "RPCSession: 256 squares on remote:cpu(0)"),
    "sparse.py": ("sparse_dense_sp_rhs_bsrmm_block", "weights are stored"),
    "tensor_ir.py": ("sch.compute_at(", "T.vectorized("),
    "tensorize.py": ("c_1[i * 40 + j_outer * 8:i * 40 + j_outer * 8 + 8] =",),
    "tune_network.py": ("sketches: 3 tasks", "a database of", "a template and rules in one search: True"),
    "tuple_inputs.py": ("places of the maxima", "products"),
    "tvmc_python.py": ("Execution time summary", "the same when it is loaded again"),
}
_SMALLER = {"opt_gemm.py": ("--size", "64"), "gpu_gemm.py": ("--size", "64"), "tune_network.py": ("--budget", "3", "--trials", "3")}


@pytest.mark.parametrize("example", sorted(FROM_TVM))
def test_programs_in_the_style_of_tvm_run(example: str) -> None:
    command = [sys.executable, str(ROOT / "examples/from_tvm" / example), *_SMALLER.get(example, ())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, check=False, env=AS_USERS)
    assert done.returncode == 0, done.stderr
    assert [text for text in FROM_TVM[example] if text not in done.stdout] == []


def test_every_program_in_the_style_of_tvm_is_run() -> None:
    assert {path.name for path in (ROOT / "examples/from_tvm").glob("*.py")} == set(FROM_TVM)


def test_the_lesson_in_steps_runs_and_its_page_names_every_step() -> None:
    folder = ROOT / "examples/gemm_steps"
    command = [sys.executable, str(folder / "run_all.py"), "--size", "48", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=AS_USERS)
    assert done.returncode == 0, done.stderr
    steps = {path.stem for path in folder.glob("[0-9][0-9]_*.py")}
    for page in (done.stdout + "".join(steps) * done.stdout.count("isn't measured"), (folder / "README.md").read_text()):
        assert [step for step in sorted(steps) if step not in page] == []


def test_a_step_of_the_lesson_runs_alone() -> None:
    command = [sys.executable, str(ROOT / "examples/gemm_steps/04_register_tile.py"), "--size", "33", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=AS_USERS)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"04_register_tile, 33\^3: \d+\.\d GFLOPS, \d+\.\d\d x NumPy\n", done.stdout)


@pytest.mark.parametrize("step", ["02_shared_memory", "05_asynchronous", "07_matrix_units"])
def test_a_step_of_the_lesson_on_gpus_counts_what_its_page_says(step: str) -> None:
    folder = ROOT / "examples/gpu_steps"
    command = [sys.executable, str(folder / f"{step}.py"), "--size", "64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=AS_USERS)
    assert done.returncode == 0, done.stderr
    said = re.fullmatch(
        rf"{step}, 64\^3, for each 1024 multiply-adds: ([\d.]+) instructions of warps, .* 0\.0 for conflicts\n", done.stdout
    )
    assert said is not None, done.stdout
    rows = [line.split("|") for line in (folder / "README.md").read_text().splitlines() if line.startswith("| [")]
    assert [row[1].split("]")[0].strip(" [") for row in rows] == sorted(path.stem for path in folder.glob("[0-9][0-9]_*.py"))
    counted = {row[1].split("]")[0].strip(" ["): float(row[3]) for row in rows}
    # A smaller square has more around its loop for each of its multiply-adds.
    assert counted[step] <= float(said[1]) <= 2 * counted[step]
