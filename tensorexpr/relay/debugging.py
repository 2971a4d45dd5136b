"""`op.debug`: a value of a network as a function of Python sees it while the network runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from ..errors import DeclarationError
from ..relax.ops.calls import call_pure_packed
from ..relax.struct_info import TensorStructInfo, TupleStructInfo
from ..runtime.registry import register_func
from .lets import known_info

_PREFIX = "relay.debug."
_numbers = count()


def debug(expr: Any, debug_func: Callable[[Any], Any] | None = None) -> Any:
    """A value, which a function is shown whenever it is computed.

    Args:
        expr: the value; its type has to follow from those of the variables.
        debug_func: gets the array, or a tuple of them; what it returns is dropped. By default it is printed.

    Raises:
        DeclarationError: for a value whose type isn't known.
    """
    info = known_info(expr)
    if not isinstance(info, (TensorStructInfo, TupleStructInfo)):
        raise DeclarationError("debug shows values of known types; state those of the variables: relay.var(name, shape=..., dtype=...)")
    name, shown = f"{_PREFIX}{next(_numbers)}", debug_func or print

    def passed_on(value: Any) -> Any:
        shown(value)
        return value

    register_func(name, passed_on)
    return call_pure_packed(name, expr, sinfo_args=info)
