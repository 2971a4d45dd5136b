"""Values of Python in a script: functions, classes, lists and objects of the program around, and what may be done with them.

A script under a decorator belongs to the program around it and may call that program's functions. A script that is text
knows T, I and what it is given, so there the data alone has methods, and none of them reaches further than the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.expr import IntImm
from .values import Builder, Loops, Namespace

LONGEST = 1 << 16  # of what is made while a script is read
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({"upper", "lower", "startswith", "endswith", "strip", "split", "find", "count", "index"}),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    int: frozenset({"bit_length", "real"}),
    float: frozenset({"is_integer", "real"}),
}
_MAPPING = frozenset({"get", "keys", "values", "items"})
_FORMAT = re.compile(r"[<>^]?0?\d{0,3}(\.\d{1,2})?[a-zA-Z%]?")


def attribute(owner: Any, name: str) -> Any:
    """An attribute of an object that is no part of the language.

    Raises:
        DeclarationError: for names that begin with an underscore, and for those that the object lacks.
    """
    if isinstance(owner, Mapping) and name in _MAPPING:
        return getattr(owner, name)
    allowed = next((names for kind, names in _METHODS.items() if isinstance(owner, kind)), None)
    # `f.__globals__` and the like lead from any object to all of the interpreter.
    if name.startswith("_") or (allowed is not None and name not in allowed):
        raise DeclarationError(f"{name!r} of a {type(owner).__name__} can't be read in a script")
    try:
        return getattr(owner, name)
    except AttributeError:
        raise DeclarationError(f"a {type(owner).__name__} has no {name!r}") from None


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of the program around the script.

    Raises:
        DeclarationError: for what can't be called, and for whatever the function raises.
    """
    if isinstance(function, Namespace) or not callable(function):
        raise DeclarationError(f"a {type(function).__name__} can't be called")
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise DeclarationError(f"{getattr(function, '__name__', function)}: {error}") from error


def element(owner: Any, index: Any) -> Any:
    """``owner[index]`` of a list, a mapping or another object of Python."""
    place = index.value if isinstance(index, IntImm) else index
    if isinstance(place, slice):
        place = slice(*(part.value if isinstance(part, IntImm) else part for part in (place.start, place.stop, place.step)))
    return owner[place]


def items_of(value: Any) -> list[Any]:
    """What a comprehension runs over.

    Raises:
        DeclarationError: for what has no elements, or more than a script may make.
    """
    if isinstance(value, Loops):
        spec = value.specs[0]
        if len(value.specs) != 1 or not (isinstance(spec.min, IntImm) and isinstance(spec.extent, IntImm)):
            raise DeclarationError("a comprehension runs over a range of constants, a list or a tuple")
        value = range(spec.min.value, spec.min.value + spec.extent.value)
    if isinstance(value, (Builder, Namespace)) or not isinstance(value, (Iterable, np.ndarray)):
        raise DeclarationError(f"a {type(value).__name__} has no elements")
    found: list[Any] = []
    for item in value:
        found.append(item)
        # While it runs, not by len(): an iterator may have no end.
        if len(found) > LONGEST:
            raise DeclarationError(f"more than {LONGEST} elements are too many for a script")
    return found


def formatted(value: Any, form: str) -> str:
    """One part of an f-string."""
    if not _FORMAT.fullmatch(form):
        raise DeclarationError(f"the format {form!r} is none of a script")
    return format(value, form)


def _zipped(*sequences: Any) -> list[Any]:
    return list(zip(*map(items_of, sequences), strict=False))


def _enumerated(sequence: Any, start: int = 0) -> list[Any]:
    return list(enumerate(items_of(sequence), start))


def _total(sequence: Any, start: Any = 0) -> Any:
    return sum(items_of(sequence), start)


BUILTINS: Mapping[str, tuple[Any, Callable[..., Any]]] = {
    "int": (int, lambda value=0: int(value)),
    "float": (float, lambda value=0.0: float(value)),
    "bool": (bool, lambda value=False: bool(value)),
    "str": (str, lambda value="": str(value)),
    "len": (len, lambda value: len(value)),
    "list": (list, lambda value=(): items_of(value)),
    "tuple": (tuple, lambda value=(): tuple(items_of(value))),
    "zip": (zip, _zipped),
    "enumerate": (enumerate, _enumerated),
    "sum": (sum, _total),
    "reversed": (reversed, lambda value: items_of(value)[::-1]),
    "sorted": (sorted, lambda value: sorted(items_of(value))),
    "all": (all, lambda value: all(items_of(value))),
    "any": (any, lambda value: any(items_of(value))),
}
