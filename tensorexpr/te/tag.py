"""Tags that all operations declared within a scope get."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar

from ..errors import DeclarationError


class TagScope(ContextDecorator):
    """Computes declared inside (a `with` block or a decorated function) get `tag`.

    Raises:
        DeclarationError: on entering, if scopes are nested.
    """

    _current: ClassVar[ContextVar[TagScope | None]] = ContextVar("tensorexpr_te_tag", default=None)

    def __init__(self, tag: str) -> None:
        self.tag = tag

    @classmethod
    def get_current(cls) -> TagScope | None:
        """The scope around the caller, None outside of any."""
        return cls._current.get()

    def __enter__(self) -> TagScope:
        outer = self.get_current()
        if outer is not None:
            raise DeclarationError(f"tag_scope({self.tag!r}) inside tag_scope({outer.tag!r}): scopes can't be nested")
        self._current.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._current.set(None)


def tag_scope(tag: str) -> TagScope:
    """A scope, for a `with` block or as the decorator of a function, whose computes get `tag`.

    Args:
        tag: a note for schedules, such as "injective".
    """
    return TagScope(tag)


def decorate(func: Callable[..., Any], fwrapped: Callable[..., Any]) -> Callable[..., Any]:
    """`func` called by way of `fwrapped(func, *args, **kwargs)`, with the name and the signature of `func`.

    Args:
        func: the function.
        fwrapped: what a call of the result does.
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fwrapped(func, *args, **kwargs)

    return call
