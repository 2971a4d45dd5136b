"""Workloads by name: functions that declare a computation, and keys that say which one with which arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, overload

from ..errors import WorkloadError
from ..te.tensor import Tensor
from .utils import serialize_args

Workload = Callable[..., Sequence[Tensor]]
_F = TypeVar("_F", bound=Callable[..., Any])
# Name -> the function that declares a computation, or key -> its tensors.
WORKLOAD_FUNC_REGISTRY: dict[str, Workload | list[Tensor]] = {}


@overload
def register_workload(func_name: _F, f: None = None, override: bool = False) -> _F: ...
@overload
def register_workload(func_name: str, f: None = None, override: bool = False) -> Callable[[_F], _F]: ...
@overload
def register_workload(func_name: str, f: _F, override: bool = False) -> _F: ...
def register_workload(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a function that returns the tensors of a computation, inputs and outputs.

        @auto_scheduler.register_workload
        def matmul(n): ...

    Args:
        func_name: the function, or the name to register under (then `f` follows, or this is a decorator).
        override: replace a function that is registered under that name already. A function that is defined again, by the same
            name in the same module, replaces itself: a notebook's cell may run twice.

    Raises:
        WorkloadError: if the name is taken by another function.
    """
    if callable(func_name):
        return _register(func_name.__name__, func_name, override)
    if not isinstance(func_name, str):
        raise WorkloadError(f"register_workload takes a function or a name, not {func_name!r}")
    if f is not None:
        return _register(func_name, f, override)
    return lambda func: _register(func_name, func, override)


def _register(name: str, func: Workload, override: bool) -> Workload:
    known = WORKLOAD_FUNC_REGISTRY.get(name, func)
    if known is not func and not override and _place(known) != _place(func):
        raise WorkloadError(f"workload {name!r} is registered already; pass override=True to replace it, or register under another name")
    WORKLOAD_FUNC_REGISTRY[name] = func
    return func


def _place(function: Any) -> tuple[Any, Any]:
    """Where a function is defined: its module and its name; nothing tells two anonymous ones apart, so they are themselves."""
    name = getattr(function, "__name__", "<lambda>")
    return (function, None) if name == "<lambda>" else (function.__module__, name)


def workload_name(func: str | Workload) -> str:
    """The name a function is registered under.

    Raises:
        WorkloadError: if it isn't registered; the message lists what is.
    """
    if isinstance(func, str):
        if func not in WORKLOAD_FUNC_REGISTRY:
            raise WorkloadError(_unknown(func))
        return func
    for name, registered in WORKLOAD_FUNC_REGISTRY.items():
        if registered is func:
            return name
    raise WorkloadError(_unknown(getattr(func, "__name__", repr(func))))


def _unknown(name: str) -> str:
    listed = ", ".join(sorted(WORKLOAD_FUNC_REGISTRY)) or "none"
    close = get_close_matches(name, WORKLOAD_FUNC_REGISTRY, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"workload {name!r} is not registered; {hint}decorate its function with @auto_scheduler.register_workload; registered: {listed}"


def make_workload_key(func: str | Workload, args: Any) -> str:
    """The key of a registered workload with arguments: JSON of the name followed by the arguments.

    Raises:
        WorkloadError: if the workload isn't registered, or an argument has no place in JSON.
    """
    return json.dumps((workload_name(func), *serialize_args(args)))


def workload_key_to_tensors(workload_key: str) -> list[Tensor]:
    """The tensors that a key's workload declares, or that were registered under the key.

    Raises:
        WorkloadError: for a key that can't be read, an unknown workload, or one that doesn't return tensors.
    """
    # Tensors under the whole key come before the function that its first word names; such a key needn't be JSON.
    if isinstance(known := WORKLOAD_FUNC_REGISTRY.get(workload_key), list):
        return known
    try:
        data = json.loads(workload_key)
    except ValueError as error:
        raise WorkloadError(f"{workload_key!r} is no workload key: {error}") from error
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        raise WorkloadError(f"{workload_key!r} is no workload key: a list that starts with the workload's name")
    func = WORKLOAD_FUNC_REGISTRY[workload_name(data[0])]
    if isinstance(func, list):
        raise WorkloadError(f"{workload_key!r} is no workload key: {data[0]!r} is a key of tensors, no function's name")
    try:
        made = func(*data[1:])
    except TypeError as error:
        raise WorkloadError(f"workload {data[0]!r} does not take the arguments {data[1:]}: {error}") from error
    listed = list(made) if isinstance(made, (list, tuple)) else [made]
    tensors = [tensor for tensor in listed if isinstance(tensor, Tensor)]
    if not tensors or len(tensors) != len(listed):
        raise WorkloadError(f"workload {data[0]!r} returns {made!r}; it must return the list of its tensors, inputs and outputs")
    return tensors


def register_workload_tensors(workload_key: str, tensors: Sequence[Tensor], override: bool = True) -> str:
    """Keep the tensors of a computation under a key, for computations that no function declares.

    Args:
        workload_key: such as `ComputeDAG.workload_key()`.
        tensors: inputs and outputs.
        override: replace what is registered under that key.

    Returns:
        the key.

    Raises:
        WorkloadError: if the key is taken.
    """
    if workload_key in WORKLOAD_FUNC_REGISTRY and not override:
        raise WorkloadError(f"workload {workload_key[:200]!r} is registered already; pass override=True to replace it")
    WORKLOAD_FUNC_REGISTRY[workload_key] = list(tensors)
    return workload_key


def is_registered(workload_key: str) -> bool:
    """Whether `workload_key_to_tensors` knows the key, or the function that it names."""
    try:
        data = json.loads(workload_key)
    except ValueError:
        return workload_key in WORKLOAD_FUNC_REGISTRY
    if workload_key in WORKLOAD_FUNC_REGISTRY:
        return True
    name = data[0] if isinstance(data, list) and data else None
    return isinstance(name, str) and callable(WORKLOAD_FUNC_REGISTRY.get(name))
