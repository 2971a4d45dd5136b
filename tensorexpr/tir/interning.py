"""Hash consing: building a node that exists returns the one that exists.

Structural equality of expressions is therefore identity, and memoising a rewrite by identity
finds every repeated subexpression. Nodes die with their last user (the table holds weak references).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast
from weakref import KeyedRef, ref

_Node = TypeVar("_Node")
_table: dict[tuple[Any, ...], ref[Any]] = {}
_layouts: dict[type, _Layout] = {}


class _Layout:
    """What building a node of one class needs to know: field names, defaults and how its key is made."""

    __slots__ = ("count", "defaults", "key")

    def __init__(self, cls: type) -> None:
        own = [f for f in fields(cast(Any, cls)) if f.init]
        self.defaults = tuple((f.name, f.default) for f in own)
        self.count = len(own)
        self.key: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = getattr(cls, "_intern_key", None)

    def positional(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All field values in order, so that equal nodes have equal keys however they were written."""
        rest = [kwargs.pop(name, default) for name, default in self.defaults[len(args) :]]
        if kwargs or len(args) > self.count or any(value is MISSING for value in rest):
            raise TypeError(f"{cls.__name__} takes {', '.join(name for name, _ in self.defaults)}")
        return args + tuple(rest)


def _forget(dead: ref[Any]) -> None:
    """Drop a dead node's entry, unless an equal node has taken its place already."""
    key = cast("KeyedRef[Any, Any]", dead).key
    if _table.get(key) is dead:
        del _table[key]


class Interned(type):
    """Metaclass of nodes that are unique by class and field values. Fields must be hashable (tuples, not lists).

    A class with `_unique = True` opts out: each call makes a new object (variables).
    """

    def __call__(cls: type[_Node], *args: Any, **kwargs: Any) -> _Node:
        """The unique node of these field values."""
        layout = _layouts.get(cls)
        if layout is None:
            if getattr(cls, "_unique", False):
                return cast(_Node, type.__call__(cls, *args, **kwargs))
            layout = _layouts[cls] = _Layout(cls)
        if kwargs or len(args) != layout.count:
            args = layout.positional(cls, args, kwargs)
        key = (cls, layout.key(args) if layout.key else args)
        entry = _table.get(key)
        found = entry() if entry is not None else None
        if found is None:
            made = type.__call__(cls, *args)
            entry = _table.setdefault(key, KeyedRef(made, _forget, key))
            found = entry()
            if found is None:  # the dead node's entry was still there
                found, _table[key] = made, KeyedRef(made, _forget, key)
        return cast(_Node, found)
