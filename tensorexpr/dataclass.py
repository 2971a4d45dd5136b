"""`dataclass`, whose methods are made when they are first needed.

The standard library's decorator compiles up to six methods of each class when its module is imported, about a millisecond every time that
a program starts. The build of a network imports 247 such classes and uses 107 of them. Here the fields are looked at when somebody asks
for them or a method is called; then the standard library makes `__init__` alone, and the others read the fields. All else is as there:
`fields`, `replace`, `match`, subclasses, slots.
"""

from __future__ import annotations

import dataclasses
import inspect
import threading
from collections.abc import Callable, Iterable
from dataclasses import MISSING, InitVar, asdict, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["InitVar", "asdict", "dataclass", "field", "fields", "replace"]

_PSEUDO = ("ClassVar", "typing.ClassVar", "InitVar", "dataclasses.InitVar")
_FIELDS, _PARAMS, _SIGNATURE = "__dataclass_fields__", "__dataclass_params__", "__signature__"
_lock = threading.RLock()


class _Unmade:
    """What the methods of a class are made of, until somebody needs them."""

    def __init__(self, cls: type, options: dict[str, bool]) -> None:
        self.cls = cls
        annotations = inspect.get_annotations(cls)
        self.own = [name for name, said in annotations.items() if not said.startswith(_PSEUDO)]
        # Defaults may stand in a base that has a field of the same name.
        self._namespace = {"__annotations__": annotations, **{name: getattr(cls, name) for name in annotations if hasattr(cls, name)}}
        self._options = options
        self._made: dict[str, Any] = {}
        body = vars(cls)
        wanted = [f"__{name}__" for name in ("init", "repr", "eq") if options[name] and f"__{name}__" not in body]
        # Python gives a class that says what equal is, and no hash, None for its hash.
        says_hash = "__hash__" in body and not (body["__hash__"] is None and "__eq__" in body)
        if options["eq"] and options["frozen"] and not says_hash:
            wanted.append("__hash__")
        self.stubs: dict[str, Any] = {name: _method(self, name) for name in wanted}
        facts = (_FIELDS, _PARAMS, "__match_args__", _SIGNATURE)
        self.stubs.update((name, _Fact(self, name)) for name in facts if name not in body)
        if options["eq"] and not options["frozen"] and not says_hash:
            self.stubs["__hash__"] = None
        self.stubs["__replace__"] = _replaced
        if options["frozen"]:
            self.stubs.update(__setattr__=_refusal(self, "__setattr__"), __delattr__=_refusal(self, "__delattr__"))

    def names(self) -> list[str]:
        """The names of all fields, those of bases first."""
        found: list[str] = []
        for base in self.cls.__mro__[:0:-1]:
            fact = vars(base).get(_FIELDS, ())
            found += fact.unmade.own if isinstance(fact, _Fact) else [f.name for f in fields(base)] if fact else []
        return list(dict.fromkeys([*found, *self.own]))

    def made(self) -> dict[str, Any]:
        """The methods and facts by name; they stand in the class from now on."""
        with _lock:
            if not self._made:
                self._made = self._methods()
                of = {id(stub): name for name, stub in self.stubs.items() if hasattr(stub, "unmade")}
                # Wherever a stub is: nodes take what fills them from `__init__`, and call it by another name.
                for place, value in list(vars(self.cls).items()):
                    if id(value) in of and place != _SIGNATURE:
                        setattr(self.cls, place, self._made[of[id(value)]])
                if _SIGNATURE in self.stubs:  # of `__init__`, as of any class
                    delattr(self.cls, _SIGNATURE)
        return self._made

    def _methods(self) -> dict[str, Any]:
        seen = self._seen()
        found = {_FIELDS: getattr(seen, _FIELDS), _PARAMS: getattr(seen, _PARAMS), "__match_args__": vars(seen)["__match_args__"]}
        for name, value in self._options.items():
            setattr(found[_PARAMS], name, value)
        compared = _values(f.name for f in fields(seen) if f.compare)
        hashed = _values(f.name for f in fields(seen) if (f.compare if f.hash is None else f.hash))
        shown = [f.name for f in fields(seen) if f.repr]
        found.update(__eq__=_equality(compared), __hash__=lambda self: hash(hashed(self)), __repr__=_shown(shown))
        for name in ("__eq__", "__hash__", "__repr__"):
            found[name].__qualname__, found[name].__name__ = f"{self.cls.__qualname__}.{name}", name
        if "__init__" in self.stubs:
            found["__init__"] = vars(seen)["__init__"]
        return found

    def _seen(self) -> type:
        """A class as the standard library makes it. It hasn't the bases, which may keep a list of what inherits them, but their fields."""
        bases = [base for base in self.cls.__mro__[:0:-1] if _FIELDS in vars(base)]
        above: dict[str, Any] = {"__post_init__": None} if hasattr(self.cls, "__post_init__") else {}
        if bases:
            above[_FIELDS] = {name: f for base in bases for name, f in getattr(base, _FIELDS).items()}
            above[_PARAMS] = getattr(bases[-1], _PARAMS)
        names = {
            "__module__": self.cls.__module__,
            "__qualname__": self.cls.__qualname__,
            "__doc__": "-",
        }  # else one is made of the signature
        hidden = type(self.cls.__name__, (type("_", (), above),), {**self._namespace, **names})
        return dataclasses.dataclass(init="__init__" in self.stubs, repr=False, eq=False, frozen=self._options["frozen"])(hidden)


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of fields as a tuple."""
    wanted = tuple(names)
    if len(wanted) > 1:
        return attrgetter(*wanted)
    return (lambda self: (getattr(self, wanted[0]),)) if wanted else (lambda self: ())


def _equality(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _shown(names: list[str]) -> Callable[[Any], str]:
    def show(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return recursive_repr()(show)


class _Fact:
    """An attribute of a class that is found out when somebody asks."""

    def __init__(self, unmade: _Unmade, name: str) -> None:
        self.unmade = unmade
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.unmade.made().get(self._name)


def _method(unmade: _Unmade, name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return unmade.made()[name](self, *args, **kwargs)

    method.unmade = unmade  # type: ignore[attr-defined]
    return method


def _refusal(unmade: _Unmade, name: str) -> Any:
    """`__setattr__` and `__delattr__` of a frozen class, which need not be made: fields stay, and so does all that it holds itself."""

    def refuse(self: Any, attribute: str, *value: Any) -> None:
        if type(self) is unmade.cls or attribute in unmade.names():
            raise dataclasses.FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {attribute!r}")
        getattr(super(unmade.cls, self), name)(attribute, *value)

    return refuse


def _replaced(self: Any, /, **changes: Any) -> Any:  # for `copy.replace`
    return replace(self, **changes)


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _with_slots(unmade: _Unmade, is_frozen: bool) -> type:
    """The class anew, with slots: Python takes them when it makes a class."""
    cls = unmade.cls
    names = unmade.names()
    above = {name for base in cls.__mro__[1:-1] for name in _listed(vars(base).get("__slots__", ()))}
    namespace = {name: value for name, value in vars(cls).items() if name not in {*names, "__dict__", "__weakref__"}}
    namespace |= {**unmade.stubs, "__slots__": tuple(name for name in names if name not in above)}
    if is_frozen:  # copying and pickling would assign
        namespace = {"__getstate__": _state, "__setstate__": _set_state, **namespace}
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _listed(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _dataclass(
    cls: type | None = None, /, *, init: bool = True, repr: bool = True, eq: bool = True, frozen: bool = False, slots: bool = False
) -> type | Callable[[type], type]:
    """As `dataclasses.dataclass` with these options, of a class whose annotations are text (`from __future__ import annotations`)."""

    def decorated(cls: type) -> type:
        unmade = _Unmade(cls, {"init": init, "repr": repr, "eq": eq, "frozen": frozen})
        if slots:
            unmade.cls = _with_slots(unmade, frozen)
            return unmade.cls
        for name in unmade.own:
            default = vars(cls).get(name)
            if isinstance(default, dataclasses.Field):
                if default.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, default.default)
        for name, stub in unmade.stubs.items():
            setattr(cls, name, stub)
        return cls

    return decorated if cls is None else decorated(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
