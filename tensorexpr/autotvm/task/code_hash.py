"""Hashes of templates' texts: a log's configurations are for the text that they were found with."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from ...errors import TuningError


def attach_code_hash(s: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: when the function was called, the schedule `s` carries a hash of the function's text."""
    return _attaching(lambda args, kwargs: s)


def attach_code_hash_to_arg(arg_idx: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the argument at a place, a schedule, carries a hash of the function's text after a call."""

    def chosen(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if arg_idx >= len(args):
            raise TuningError(f"the schedule is argument {arg_idx}, and there are {len(args)}; pass it by place")
        return args[arg_idx]

    return _attaching(chosen)


def _attaching(chosen: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            chosen(args, kwargs).code_hash = hash_of(func)
            return func(*args, **kwargs)

        return wrapper

    return decorate


def hash_of(func: Callable[..., Any]) -> str:
    """The hash of a function's text."""
    return hashlib.md5(inspect.getsource(func).encode(), usedforsecurity=False).hexdigest()
