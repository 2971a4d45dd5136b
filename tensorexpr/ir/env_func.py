"""Registered functions as values of attributes."""

from __future__ import annotations

import importlib
from typing import Any

from ..dataclass import dataclass
from ..tir.node import Object


@dataclass(frozen=True, slots=True)
class EnvFunc(Object):
    """A function of the registry, known by its name: calls look it up."""

    name: str

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function registered as `name`.

        Raises:
            ValueError: if there is none.
        """
        _registered(name)
        return EnvFunc(name)

    @property
    def func(self) -> Any:
        """The function itself."""
        return _registered(self.name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)


def _registered(name: str) -> Any:
    return importlib.import_module("tensorexpr.runtime.registry").get_global_func(name)
