"""Functions for tests of virtual machines, registered as "test.vm.add" and the like, and a check of saved calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.device import Device
from ...runtime.ndarray import NDArray, array
from ...runtime.registry import register_func
from ..runtime.machine import VirtualMachine


def check_saved_func(vm: VirtualMachine, func_name: str, *inputs: Any) -> Any:
    """The result of a call, which is the same as that of the call saved with its arguments.

    Args:
        vm: the machine.
        func_name: its function, which returns a tensor or several.
        inputs: the arguments.

    Raises:
        AssertionError: if the two differ.
    """
    result = vm[func_name](*inputs)
    vm.save_function(func_name, f"{func_name}_saved", *inputs, include_return=True)
    saved = vm[f"{func_name}_saved"]()
    pairs = zip(result, saved, strict=True) if isinstance(result, (tuple, list)) else [(result, saved)]
    for one, other in pairs:
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    return result


def _binary(ufunc: Any) -> Any:
    return lambda a, b: array(ufunc(a.numpy(), b.numpy()))


def _scalar_sum(a: Any, b: Any) -> Any:
    return a + b


def _fill(source: NDArray, target: NDArray) -> None:
    array(source).copyto(target)


def _tile(source: NDArray, target: NDArray) -> None:
    array(np.tile(source.numpy(), (1, 2))).copyto(target)


def _device_id(device: Device) -> int:
    return int(device.device_id)


_FUNCTIONS: dict[str, Any] = {
    "move": lambda value: value,
    "add": _binary(np.add),
    "mul": _binary(np.multiply),
    "less": lambda a, b: array(np.array(bool(a.numpy() < b.numpy()))),
    "equal_zero": lambda value: array(np.array(bool(value.numpy() == 0))),
    "subtract_one": lambda value: array(np.subtract(value.numpy(), 1)),
    "identity": _fill,
    "tile": _tile,
    "add_scalar": _scalar_sum,
    "get_device_id": _device_id,
    "check_if_defined": lambda value: value is not None,
}
for _name, _function in _FUNCTIONS.items():
    register_func(f"test.vm.{_name}", _function, override=True)

__all__ = ["check_saved_func"]
