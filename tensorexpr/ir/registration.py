"""Classes that programs register for nodes of their own."""

from __future__ import annotations

from typing import Any

_CLASSES: dict[str, type] = {}


def register_object(type_key: str | type | None = None) -> Any:
    """Remember a class of nodes under a key, by default its name; as a decorator.

    Returns:
        The class, or the decorator.
    """
    if isinstance(type_key, type):
        _CLASSES[type_key.__name__] = type_key
        return type_key

    def register(cls: type) -> type:
        _CLASSES[type_key or cls.__name__] = cls
        return cls

    return register


def register_extension(cls: type, fcreate: Any = None) -> type:
    """Remember a class whose objects functions take as arguments; all Python objects are taken here."""
    _CLASSES[cls.__name__] = cls
    return cls
