"""How nodes are made: TVM's ways of writing arguments on one side, one object per distinct expression on the other.

All nodes take lists for sequences, Python numbers for constants, None for an empty sequence or mapping, and `span`
(accepted and dropped: texts are located by the parser). Which field takes what follows from its annotation, see
`ADAPTERS`; a value that is right already costs one `isinstance`.

Expressions are hash-consed: building a node that exists returns the one that exists. Structural equality is
therefore identity, and memoising a rewrite by identity finds every repeated subexpression. Nodes die with their
last user (the table holds weak references).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast
from weakref import KeyedRef, ref

if TYPE_CHECKING:
    from typing_extensions import Self

_table: dict[tuple[Any, ...], ref[Any]] = {}
_layouts: dict[type, _Layout] = {}

Adapter = tuple[type | tuple[type, ...], Callable[[Any], Any], type | None]
ADAPTERS: dict[str, Adapter] = {}
"""Annotation of a field -> the classes that fit as they are, what makes one of anything else, the class of a sequence's items.

The modules that define the classes fill it when they are imported.
"""


class _Layout:
    """What building a node of one class needs to know: field names, defaults, conversions and how its key is made."""

    __slots__ = ("adapters", "aliases", "count", "defaults", "key", "normal")

    def __init__(self, cls: type) -> None:
        own = [f for f in fields(cast(Any, cls)) if f.init]
        self.defaults = tuple((f.name, f.default, f.default_factory) for f in own)
        self.count = len(own)
        self.adapters = tuple((index, *ADAPTERS[str(f.type)]) for index, f in enumerate(own) if str(f.type) in ADAPTERS)
        self.aliases: dict[str, str] = getattr(cls, "_aliases", {})
        self.key: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = getattr(cls, "_intern_key", None)
        self.normal: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = getattr(cls, "_normal", None)

    def positional(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All field values in order, so that equal nodes have equal keys however they were written."""
        if "span" in kwargs:
            del kwargs["span"]
        # `span` by position is the last argument in TVM's signatures.
        elif len(args) == self.count + 1 and not kwargs:
            args = args[:-1]
        for alias, name in self.aliases.items():
            if alias in kwargs:
                kwargs[name] = kwargs.pop(alias)
        rest = [
            kwargs.pop(name) if name in kwargs else default if factory is MISSING else factory()
            for name, default, factory in self.defaults[len(args) :]
        ]
        if kwargs or len(args) > self.count or any(value is MISSING for value in rest):
            raise TypeError(f"{cls.__name__} takes {', '.join(name for name, *_ in self.defaults)}")
        return args + tuple(rest)

    def adapted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values as the fields hold them; `args` itself if all fit."""
        changed: list[Any] | None = None
        for index, classes, convert, items in self.adapters:
            value = args[index]
            if not isinstance(value, classes) or (items is not None and not _all_are(value, items)):
                fitting = convert(value)
                if fitting is not value:
                    changed = list(args) if changed is None else changed
                    changed[index] = fitting
        return args if changed is None else tuple(changed)


def _all_are(values: Any, cls: type) -> bool:
    for value in values:  # noqa: SIM110  # a generator costs more than the checks
        if not isinstance(value, cls):
            return False
    return True


def _layout_of(cls: type) -> _Layout:
    layout = _layouts.get(cls)
    if layout is None:
        layout = _layouts[cls] = _Layout(cls)
    return layout


def _forget(dead: ref[Any]) -> None:
    """Drop a dead node's entry, unless an equal node has taken its place already."""
    key = cast("KeyedRef[Any, Any]", dead).key
    if _table.get(key) is dead:
        del _table[key]


class Built:
    """Base of nodes that are distinct objects: statements, buffers, axes, functions.

    No metaclass: with one of its own, every `isinstance` that asks for a node, the commonest thing that passes do, takes
    Python's slow way (three times the time). So `__new__` makes and fills a node, and there is no `__init__`.
    """

    __slots__ = ()
    _fill: ClassVar[Callable[..., None]]

    def __init_subclass__(cls) -> None:
        """Take `__init__` for what fills a node; `dataclass(slots=True)` makes a class twice, the second time with it."""
        super().__init_subclass__()
        if "__dataclass_fields__" in vars(cls):
            cls._fill = vars(cls)["__init__"]
            del cls.__init__

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A new node of these field values."""
        layout = _layouts.get(cls) or _layout_of(cls)
        if kwargs or len(args) != layout.count:
            args = layout.positional(cls, args, kwargs)
        if layout.normal:
            args = layout.normal(args)
        made = object.__new__(cls)
        cls._fill(made, *layout.adapted(args))
        return made


class Interned(Built):
    """Base of nodes that are unique by class and field values."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """The unique node of these field values."""
        layout = _layouts.get(cls) or _layout_of(cls)
        if kwargs or len(args) != layout.count:
            args = layout.positional(cls, args, kwargs)
        if layout.normal:
            args = layout.normal(args)
        key = (cls, layout.key(args) if layout.key else args)
        try:
            entry = _table.get(key)
        except TypeError:  # a list where a tuple belongs
            return cls(*_hashable(cls, layout, args))
        found = entry() if entry is not None else None
        if found is None:
            fitting = layout.adapted(args)
            if fitting is not args:
                # Built anew: its key was made of raw values, and the node of the fitting ones may exist.
                return cls(*fitting)
            made = object.__new__(cls)
            cls._fill(made, *args)
            # `setdefault`: of two threads that build equal nodes, both get that of the first.
            entry = _table.setdefault(key, KeyedRef(made, _forget, key))
            found = entry()
            if found is None:  # the dead node's entry was still there
                found, _table[key] = made, KeyedRef(made, _forget, key)
        return cast("Self", found)


def _hashable(cls: type, layout: _Layout, args: tuple[Any, ...]) -> tuple[Any, ...]:
    fitting = layout.adapted(args)
    if fitting is args:
        raise TypeError(f"{cls.__name__} takes {', '.join(name for name, *_ in layout.defaults)}; not {args}")
    return fitting
