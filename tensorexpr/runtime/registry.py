"""Python functions known by name: what `call_packed` style calls and preparations of a measurement look up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..errors import ArgumentError

_F = TypeVar("_F", bound=Callable[..., Any])
_functions: dict[str, Callable[..., Any]] = {}


@overload
def register_func(func_name: _F) -> _F: ...
@overload
def register_func(func_name: str, f: _F, override: bool = False) -> _F: ...
@overload
def register_func(func_name: str, f: None = None, override: bool = False) -> Callable[[_F], _F]: ...
def register_func(func_name: str | Callable[..., Any], f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Register a function under a name; as `@register_func("name")`, or as `@register_func` under its own name.

    Raises:
        ArgumentError: for what is no function, or if the name is taken and `override` is False.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    if not (isinstance(func_name, str) and callable(f)):
        raise ArgumentError(f"register_func takes a name and a function, not {func_name!r} and {f!r}")
    if func_name in _functions and not override:
        raise ArgumentError(f"a function {func_name!r} is registered already; pass override=True to replace it")
    _functions[func_name] = f
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The function registered under a name; None if there is none and `allow_missing`.

    Raises:
        ArgumentError: if there is none; the message lists those that are there.
    """
    if name not in _functions and not allow_missing:
        raise ArgumentError(f"no function {name!r} is registered; registered: {', '.join(sorted(_functions)) or 'none'}")
    return _functions.get(name)


def list_global_func_names() -> list[str]:
    """The names of all registered functions."""
    return sorted(_functions)


def remove_global_func(name: str) -> None:
    """Forget a registered function; nothing happens if there is none."""
    _functions.pop(name, None)
