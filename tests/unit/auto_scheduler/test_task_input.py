"""Arrays that a task is measured with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import te, topi
from tensorexpr.auto_scheduler import SearchTask, _ffi_api, register_task_input_check_func, task_input
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


def test_the_parts_of_a_sparse_weight_have_names_of_their_own() -> None:
    X, D = te.placeholder((4, 16)), te.placeholder((10, 4, 2))
    J, S = te.placeholder((10,), "int32"), te.placeholder((7,), "int32")
    Y = topi.nn.relu(topi.nn.sparse_dense(X, D, J, S))
    starts = np.array([0, 2, 2, 5, 6, 9, 10], np.int32)
    found = task_input.inputs_of_task("", [X, D, J, S, Y], [])
    assert not found
    register_task_input_buffer("", "sparse_dense_bsr_24_16_4_2_10_7_W_indptr", starts)
    assert task_input.inputs_of_task("", [X, D, J, S, Y], ["sparse_dense_bsr_24_16_4_2_10_7_W_indptr"]) == {S: starts}


def test_a_function_may_name_an_array() -> None:
    register_task_input_check_func("of_any_task", lambda tensors: {tensors[0]: "rows"})
    register_task_input_buffer(KEY, "rows", ARRAY)
    task = SearchTask(func="v06_row_min", args=(2, 3), target="llvm", task_inputs=["rows"])
    assert list(measure_task(task, 0).inputs.values()) == [ARRAY]


def test_rules_ask_who_reads_a_stage() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, "B")
    C = te.compute((4,), lambda i: B[i] * 2.0, "C")
    D = te.compute((3,), lambda i: C[i + 1], "D")
    task = SearchTask(compute_dag=[A, D], target="llvm")
    state = task.compute_dag.init_state
    assert _ffi_api.SearchPolicyUtilsGetConsumers(task, state.state_object, 1).items()[0][0] == 2
    assert _ffi_api.SearchPolicyUtilsIsElementwiseMatch(task, state.state_object, 1, 2)
    assert not _ffi_api.SearchPolicyUtilsIsElementwiseMatch(task, state.state_object, 2, 3)
    state.compute_inline(C)
    assert list(_ffi_api.SearchPolicyUtilsGetConsumers(task, state.state_object, 1)) == [3]
