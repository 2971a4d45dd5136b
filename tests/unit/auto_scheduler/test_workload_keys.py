"""Keys of workloads: any string under which tensors are kept, or a function's name and its arguments as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tensorexpr import te
from tensorexpr.auto_scheduler.workload import WORKLOAD_FUNC_REGISTRY, is_registered, register_workload_tensors, workload_key_to_tensors
from tensorexpr.errors import WorkloadError
from tensorexpr.te.tensor import Tensor


@pytest.fixture
def kept() -> Iterator[list[Tensor]]:
    a = te.placeholder((4,), name="A")
    tensors = [a, te.compute((4,), lambda i: a[i] + 1.0, name="B")]
    register_workload_tensors("kept tensors", tensors)
    yield tensors
    del WORKLOAD_FUNC_REGISTRY["kept tensors"]


def test_tensors_are_found_under_a_key_that_is_no_json(kept: list[Tensor]) -> None:
    assert is_registered("kept tensors")
    assert workload_key_to_tensors("kept tensors") == kept


def test_a_key_of_tensors_is_no_function(kept: list[Tensor]) -> None:
    assert not is_registered('["kept tensors"]')
    with pytest.raises(WorkloadError, match="a key of tensors, no function's name"):
        workload_key_to_tensors('["kept tensors"]')


@pytest.mark.parametrize("key", ["[[1]]", "[{}]", "[]", "1"])
def test_a_key_without_a_name_is_not_registered(key: str) -> None:
    assert not is_registered(key)
