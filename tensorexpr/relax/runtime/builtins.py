"""Functions that every machine has, by the names that programs call them by: `R.call_packed("vm.builtin.copy", x)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...runtime.ndarray import NDArray, array
from ..evaluator import meaning
from ..ops.row import ROWS
from ..struct_info import ObjectStructInfo
from .host import array_of, value_of


def _by_operator(name: str) -> Callable[..., Any]:
    """An operator's meaning on NumPy's arrays, its arguments in order."""

    def run(*values: Any) -> Any:
        row = ROWS[f"relax.{name}"]
        return value_of(meaning(row, dict(zip(row.arguments, map(array_of, values), strict=True)), ObjectStructInfo()))

    return run


def _alloc_storage(state: Any, size: Sequence[int], *rest: Any) -> Any:
    return _by_operator("vm.alloc_storage")(size, *rest)


def _if_cond(value: Any) -> bool:
    return bool(value.numpy()) if isinstance(value, NDArray) else bool(value)


def _closure(func: Callable[..., Any], *bound: Any) -> Callable[..., Any]:
    return lambda *args: func(*bound, *args)


BUILTINS: Mapping[str, Callable[..., Any]] = {
    "vm.builtin.alloc_storage": _alloc_storage,
    "vm.builtin.alloc_tensor": _by_operator("vm.alloc_tensor"),
    "vm.builtin.copy": lambda value: array(value) if isinstance(value, NDArray) else value,
    "vm.builtin.invoke_closure": lambda state, closure, *args: closure(*args),
    "vm.builtin.make_closure": _closure,
    "vm.builtin.make_tuple": lambda *values: values,
    "vm.builtin.null_value": lambda: None,
    "vm.builtin.read_if_cond": _if_cond,
    "vm.builtin.reshape": _by_operator("reshape"),
    "vm.builtin.shape_of": lambda value: tuple(value.shape),
    "vm.builtin.tensor_to_shape": _by_operator("tensor_to_shape"),
    "vm.builtin.tuple_getitem": lambda values, index: values[index],
}
