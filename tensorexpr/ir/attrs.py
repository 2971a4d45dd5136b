"""Attributes: mappings whose keys also read as fields."""

from __future__ import annotations

from typing import Any

from ..tir.attrs import FrozenMap


class Attrs(FrozenMap):
    """The attributes of an operator: ``attrs.axis`` is ``attrs["axis"]``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._items:
            raise AttributeError(f"no attribute {name!r}; there are {', '.join(self._items) or 'none'}")
        return self._items[name]

    def list_field_info(self) -> list[Any]:
        """What is known of the fields beforehand: nothing, as any name may be one."""
        return []

    def get_int(self, key: str) -> int:
        """An integer attribute."""
        return int(self[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """An attribute of several integers."""
        return tuple(int(item) for item in self[key])

    def get_str(self, key: str) -> str:
        """A text attribute."""
        return str(self[key])

    def get_attr(self, key: str) -> Any:
        """Any attribute, or None."""
        return self.get(key)


class DictAttrs(Attrs):
    """The attributes of a function or module."""

    __slots__ = ()


def make_node(type_key: str, **kwargs: Any) -> Any:
    """As `ir.make_node`."""
    from .base import make_node as make

    return make(type_key, **kwargs)
