"""Inputs and expected results: values that suit the computation, tolerances that tell right from wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.te.tolerance import Tolerance
from tensorexpr.tune.measure import MeasureOptions, MeasureTask
from tensorexpr.tune.measure.arrays import Array, StoredArray, load_array, save_array
from tensorexpr.tune.measure.inputs import RANGES, random_inputs
from tensorexpr.tune.measure.protocol import Frame
from tensorexpr.tune.measure.reference import Reference
from tensorexpr.tune.measure.reference_worker import ReferenceService

from .programs import elementwise, matmul


def evaluated(
    args: Sequence[Tensor], folder: Path, given: Mapping[Tensor, Array] | None = None, seed: int = 0, verify: bool = True
) -> tuple[list[StoredArray], str]:
    """What the worker makes of a task, in this process."""
    task = MeasureTask(tuple(args), Target("llvm"), given or {}, seed)
    files = []
    for number, tensor in enumerate(args):
        if tensor in task.inputs:
            save_array(folder / f"given{number}.bin", task.inputs[tensor])
            files.append([number, f"given{number}.bin"])
    service = ReferenceService()
    service.task(Frame({"type": "task", "task": task.to_json()}))
    answer = service.evaluate(Frame({"type": "evaluate", "folder": str(folder), "seed": seed, "given": files, "verify": verify}))
    return [StoredArray.from_json(item) for item in answer.header["arrays"]], answer.header["reason"]


def test_a_matmul_is_evaluated(tmp_path: Path) -> None:
    stored, reason = evaluated(matmul(32), tmp_path)
    a, b, c = (array.load(tmp_path) for array in stored)
    assert not reason
    assert [array.is_output for array in stored] == [False, False, True]
    assert a.min() < -0.9
    assert a.max() > 0.9
    np.testing.assert_allclose(c, a @ b, atol=1e-4)


@pytest.mark.parametrize("size", [8, 64, 512])
def test_tolerances_let_reordering_pass_and_a_missing_term_not(size: int, tmp_path: Path) -> None:
    stored, _ = evaluated(matmul(size), tmp_path)
    a, b, c = (array.load(tmp_path) for array in stored)
    allowed = Tolerance(stored[2].rtol, stored[2].atol)
    serial = np.zeros_like(c)
    for k in range(size):
        serial += a[:, k : k + 1] * b[k]
    assert not allowed.mismatch(serial, c)
    short = serial - a[:, -1:] * b[-1]
    assert "elements; worst at" in allowed.mismatch(short, c)


def test_inputs_that_must_be_positive_are(tmp_path: Path) -> None:
    a = te.placeholder((100,), name="A")
    c = te.compute((100,), lambda i: te.log(a[i]) + te.sqrt(a[i]), name="C")
    stored, _ = evaluated((a, c), tmp_path)
    assert stored[0].load(tmp_path).min() >= 0.1
    assert np.isfinite(stored[1].load(tmp_path)).all()


def test_indices_stay_inside_what_they_index(tmp_path: Path) -> None:
    index = te.placeholder((50,), name="index", dtype="int32")
    table = te.placeholder((2, 3), name="table")
    c = te.compute((50, 3), lambda i, j: table[index[i], j], name="C")
    stored, reason = evaluated((index, table, c), tmp_path)
    assert not reason
    assert set(stored[0].load(tmp_path)) == {0, 1}


def test_given_arrays_are_used(tmp_path: Path) -> None:
    a, c = elementwise(8)
    given = np.linspace(0, 1, 8, dtype=np.float32)
    stored, _ = evaluated((a, c), tmp_path, {a: given})
    np.testing.assert_array_equal(stored[0].load(tmp_path), given)
    np.testing.assert_array_equal(stored[1].load(tmp_path), given + 1)


def test_a_definition_that_can_not_be_evaluated_says_why(tmp_path: Path) -> None:
    index = te.placeholder((5,), name="index", dtype="int32")
    table = te.placeholder((2,), name="table")
    c = te.compute((5,), lambda i: table[index[i] + 3], name="C")
    stored, reason = evaluated((index, table, c), tmp_path)
    assert "index 3 of dimension 0" in reason
    assert [array.file != "" for array in stored] == [True, True, False]


def test_without_verifying_there_are_inputs_only(tmp_path: Path) -> None:
    stored, _ = evaluated(matmul(8), tmp_path, verify=False)
    assert [array.file != "" for array in stored] == [True, True, False]


def test_infinite_results_are_expected_when_nothing_else_comes(tmp_path: Path) -> None:
    a = te.placeholder((4,), name="A")
    c = te.compute((4,), lambda i: te.log(a[i] * 0.0), name="C")
    stored, reason = evaluated((a, c), tmp_path)
    assert not reason
    assert np.isneginf(stored[1].load(tmp_path)).all()


def test_a_seed_gives_the_same_inputs_everywhere() -> None:
    a, b, _ = matmul(8)
    first, again, other = (random_inputs([a, b], {}, seed, RANGES[0]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[a], again[a])
    assert not np.array_equal(first[a], other[a])
    assert not np.array_equal(first[a], first[b])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool"])
def test_every_dtype_survives_its_file(dtype: str, tmp_path: Path) -> None:
    a = te.placeholder((7, 3), name="A", dtype=dtype)
    array = random_inputs([a], {}, 0, RANGES[0])[a]
    save_array(tmp_path / "a.bin", array)
    loaded = load_array(tmp_path / "a.bin", dtype, (7, 3))
    assert loaded.dtype == array.dtype
    np.testing.assert_array_equal(loaded.view(np.uint8), array.view(np.uint8))


class Impatient(Reference):
    """Has half a second to evaluate the definition, and for inputs alone as long as a busy machine takes."""

    def _spawn(self) -> None:
        self._limit_s = 0.5 if self._request["verify"] else 300.0
        super()._spawn()


def test_a_reference_that_takes_too_long_leaves_inputs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    a = te.placeholder((2000, 2000), name="A")
    k = te.reduce_axis((0, 2000), name="k")
    c = te.compute((2000, 2000), lambda i, j: te.max(te.exp(a[i, k]) * a[k, j], axis=k), name="C")
    reference = Impatient(MeasureTask((a, c), Target("llvm")), MeasureOptions(), tmp_path)
    reference.start()
    with caplog.at_level(logging.WARNING):
        arrays = reference.arrays()
    assert [array.file != "" for array in arrays] == [True, False]
    assert "can't be verified: evaluating the definition took longer than 0.5 s" in caplog.text
    assert reference.arrays() is arrays
    assert reference.pids == []
