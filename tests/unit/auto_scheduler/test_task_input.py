"""Arrays that a task is measured with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import SearchTask, register_task_input_check_func, task_input
from tensorexpr.auto_scheduler.measure import measure_task
from tensorexpr.auto_scheduler.search_task import get_task_input_buffer, register_task_input_buffer
from tensorexpr.errors import TuningError, WorkloadError
from tensorexpr.te.tensor import Tensor

KEY = '["v06_row_min", 2, 3]'
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing registered, and files in a folder of their own."""
    monkeypatch.setattr(task_input, "TASK_INPUT_BUFFER_TABLE", {})
    monkeypatch.setattr(task_input, "TASK_INPUT_CHECK_FUNC_REGISTRY", {})
    monkeypatch.chdir(tmp_path)
    yield


def test_a_task_is_measured_with_the_arrays_it_is_given() -> None:
    task = SearchTask(func="v06_row_min", args=(2, 3), target="llvm", task_inputs={"A": ARRAY})
    (array,) = measure_task(task, 0).inputs.values()
    assert array is ARRAY
    assert not measure_task(SearchTask(func="v06_row_min", args=(2, 3), target="llvm"), 0).inputs


def test_names_of_arrays_registered_before_will_do() -> None:
    register_task_input_buffer(KEY, "A", ARRAY)
    task = SearchTask(func="v06_row_min", args=(2, 3), target="llvm", task_inputs=["A"])
    assert list(measure_task(task, 0).inputs.values()) == [ARRAY]
    assert get_task_input_buffer(KEY, "A") is ARRAY


def test_what_is_registered_stays_unless_it_is_to_be_replaced() -> None:
    register_task_input_buffer(KEY, "A", ARRAY)
    assert register_task_input_buffer(KEY, "A", ARRAY + 1) is ARRAY
    register_task_input_buffer(KEY, "A", ARRAY + 1, overwrite=True)
    assert get_task_input_buffer(KEY, "A")[0, 0] == 1


def test_saved_arrays_are_found_again_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    register_task_input_buffer(KEY, "A", ARRAY, save_to_file=True)
    assert Path("A.2x3_float32.npy").is_file()
    monkeypatch.setattr(task_input, "TASK_INPUT_BUFFER_TABLE", {})
    assert np.array_equal(register_task_input_buffer(KEY, "A", ARRAY * 0, save_to_file=True), ARRAY)


def test_a_file_that_holds_no_array_is_named() -> None:
    Path("A.2x3_float32.npy").write_bytes(b"not an array")
    with pytest.raises(TuningError, match=r"the task input file A\.2x3_float32\.npy can't be read"):
        register_task_input_buffer(KEY, "A", ARRAY, save_to_file=True)


def test_a_function_of_the_workload_makes_arrays() -> None:
    @register_task_input_check_func("v06_row_min")
    def inputs(tensors: Sequence[Tensor]) -> dict[Tensor, np.ndarray]:
        return {tensors[0]: ARRAY}

    task = SearchTask(func="v06_row_min", args=(2, 3), target="llvm")
    assert list(measure_task(task, 0).inputs.values()) == [ARRAY]
    with pytest.raises(WorkloadError, match="task inputs of 'v06_row_min' have a function already; pass override=True"):
        register_task_input_check_func("v06_row_min", lambda tensors: {})
    register_task_input_check_func("v06_row_min", lambda tensors: {}, override=True)
    assert not measure_task(task, 0).inputs


def test_messages() -> None:
    with pytest.raises(TuningError, match=r"no task input 'B' is registered for .*; registered: none"):
        get_task_input_buffer(KEY, "B")
    with pytest.raises(TuningError, match="the task input 'A' is an array or has numpy"):
        register_task_input_buffer(KEY, "A", [1.0])
    task = SearchTask(func="v06_row_min", args=(2, 3), target="llvm", task_inputs={"Z": ARRAY})
    with pytest.raises(TuningError, match="task_inputs has an array for 'Z'; the placeholders are A"):
        measure_task(task, 0)
    task = SearchTask(func="v06_row_min", args=(2, 3), target="llvm", task_inputs={"A": ARRAY[:1]})
    with pytest.raises(TuningError, match=r"the array given for A is float32\[1, 3\]; it needs float32\[2, 3\]"):
        measure_task(task, 0)
