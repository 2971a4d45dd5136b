"""Functions whose meaning depends on the current target: one implementation per label, and one for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

from ..errors import TargetError
from .target import Target

_native: dict[str, GenericFunc] = {}


class GenericFunc:
    """Calls the implementation registered for the first label of the current target that has one, else the default.

    Args:
        fdefault: the default, which also names it.
        name: what messages call it.
    """

    def __init__(self, fdefault: Callable[..., Any] | None = None, name: str = "") -> None:
        self.fdefault = fdefault
        self.name = name or getattr(fdefault, "__name__", "generic_func")
        self.dispatch_dict: dict[str, Callable[..., Any]] = {}
        if fdefault is not None:
            update_wrapper(self, fdefault)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the implementation of the current target.

        Raises:
            TargetError: if there is none for it, and no default.
        """
        return self.get_packed_func()(*args, **kwargs)

    def get_packed_func(self) -> Callable[..., Any]:
        """The implementation for the current target."""
        target = Target.current()
        labels = () if target is None else (*target.keys, target.kind.name)
        found = next((self.dispatch_dict[label] for label in labels if label in self.dispatch_dict), self.fdefault)
        if found is None:
            known = ", ".join(self.dispatch_dict) or "none"
            raise TargetError(f"{self.name} has no implementation for target {target} and no default; registered for: {known}")
        return found

    def set_default(self, func: Callable[..., Any], allow_override: bool = False) -> None:
        """Set the default.

        Raises:
            TargetError: if there is one and it may not be replaced.
        """
        if self.fdefault is not None and not allow_override:
            raise TargetError(f"{self.name} has a default; allow_override=True replaces it")
        self.fdefault = func

    def register(self, func: Any, key_list: str | Iterable[str] | None = None, allow_override: bool = False) -> Any:
        """Register an implementation for some labels: `f.register(func, ["cuda"])`, or the decorator `@f.register(["cuda"])`.

        Raises:
            TargetError: if a label has one and it may not be replaced.
        """
        # As a decorator it gets the labels first and whether to override second.
        if key_list is None or not callable(func):
            labels, override = func, bool(key_list) or allow_override
            return lambda made: self.register(made, labels, override)
        labels = [key_list] if isinstance(key_list, str) else list(key_list)
        taken = [label for label in labels if label in self.dispatch_dict]
        if taken and not allow_override:
            raise TargetError(f"{self.name} is registered for {', '.join(taken)}; override=True replaces it")
        self.dispatch_dict.update(dict.fromkeys(labels, func))
        return func


def generic_func(fdefault: Callable[..., Any]) -> GenericFunc:
    """A decorator: the function becomes the default of one that depends on the target.

    Example::

        @generic_func
        def tile_size(): return 8

        @tile_size.register(["cuda", "gpu"])
        def _(): return 32
    """
    return GenericFunc(fdefault)


def get_native_generic_func(name: str) -> GenericFunc:
    """The function registered under a name; a new one without a default if there is none."""
    return _native.setdefault(name, GenericFunc(None, name))


def override_native_generic_func(func_name: str) -> Callable[[Callable[..., Any]], GenericFunc]:
    """A decorator: the function becomes the default of the one of this name, whatever was."""

    def decorate(fdefault: Callable[..., Any]) -> GenericFunc:
        found = get_native_generic_func(func_name)
        found.set_default(fdefault, allow_override=True)
        return found

    return decorate
