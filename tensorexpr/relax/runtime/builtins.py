"""Functions that every machine has, by the names that programs call them by: `R.call_packed("vm.builtin.copy", x)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MissingFunctionError
from ...runtime.ndarray import NDArray, array
from ...runtime.registry import get_global_func, register_func
from ..evaluator import meaning, said
from ..ops.row import ROWS
from ..struct_info import ObjectStructInfo
from . import kv_cache
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


def _debug_print(place: str, value: Any) -> None:
    print(f"{place}: {said([value], '')}")


def _invoke_debug_func(state: Any, name: str, place: str, *args: Any) -> Any:
    """Call a registered function with the place in the program and values; the state of the effect goes on."""
    func = get_global_func(name, allow_missing=True) or BUILTINS.get(name)
    if func is None:
        raise MissingFunctionError(f"{place}: no function {name!r} is registered; register_func({name!r}, f) does it")
    func(place, *args)
    return state


def _reset(values: Any, index: int) -> tuple[()]:
    """Take an element out of a list, that of the caller; a tuple keeps it."""
    if isinstance(values, list):
        values[index] = None
    return ()


BUILTINS: Mapping[str, Callable[..., Any]] = {
    "vm.builtin.alloc_storage": _alloc_storage,
    "vm.builtin.attention_kv_cache_append": kv_cache.append,
    "vm.builtin.attention_kv_cache_create": kv_cache.create,
    "vm.builtin.attention_kv_cache_view": kv_cache.view,
    "vm.builtin.alloc_tensor": _by_operator("vm.alloc_tensor"),
    "vm.builtin.copy": lambda value: array(value) if isinstance(value, NDArray) else value,
    "vm.builtin.debug_print": _debug_print,
    "vm.builtin.invoke_closure": lambda state, closure, *args: closure(*args),
    "vm.builtin.invoke_debug_func": _invoke_debug_func,
    "vm.builtin.make_closure": _closure,
    "vm.builtin.make_tuple": lambda *values: values,
    "vm.builtin.null_value": lambda: None,
    "vm.builtin.read_if_cond": _if_cond,
    "vm.builtin.reshape": _by_operator("reshape"),
    "vm.builtin.shape_of": lambda value: tuple(value.shape),
    "vm.builtin.tensor_to_shape": _by_operator("tensor_to_shape"),
    "vm.builtin.tuple_getitem": lambda values, index: values[index],
    "vm.builtin.tuple_reset_item": _reset,
}
# Programs ask for them by name, too, as for the caches that they hand to a graph.
for _name, _function in BUILTINS.items():
    if get_global_func(_name, allow_missing=True) is None:
        register_func(_name, _function)
