"""Small things that programs of AutoTVM call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TuningError
from ..tir.arithmetic import as_int

# Powers of a thousand from 10^-24 on.
SI_PREFIXES = "yzafpn\xb5m kMGTPEZY"
YOCTO_EXP10 = -24


class EmptyContext:
    """A context that does nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def format_si_prefix(x: float, si_prefix: str) -> float:
    """A number in units of an SI prefix: 1.5e9 with "G" is 1.5.

    Raises:
        TuningError: for what is no such prefix; it is a ValueError too.
    """
    if len(si_prefix) != 1 or si_prefix not in SI_PREFIXES:
        raise UnknownPrefixError(f"{si_prefix!r} is no SI prefix; prefixes: {SI_PREFIXES}")
    return float(x) / float(10 ** (YOCTO_EXP10 + 3 * SI_PREFIXES.index(si_prefix)))


class UnknownPrefixError(TuningError, ValueError):
    """A letter that is no SI prefix."""


def get_rank(values: Sequence[float]) -> Any:
    """The rank of each number, 0 for the largest."""
    order = np.argsort(-np.asarray(values, float), kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def get_func_name(func: Callable[..., Any]) -> str:
    """The name under which a function registers a task."""
    return str(getattr(func, "func_name", getattr(func, "__qualname__", type(func).__name__)))


def get_const_int(exp: Any) -> int:
    """The value of a constant expression.

    Raises:
        TuningError: if it isn't constant.
    """
    found = as_int(exp)
    if found is None:
        raise TuningError(f"a constant is expected, not {exp!r}")
    return found


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """The values of expressions; variables stay as they are."""
    return tuple(item if as_int(item) is None else as_int(item) for item in in_tuple)
