"""Constants of equal content are one array."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...runtime.ndarray import NDArray, wrapped
from ...tir.function import IRModule
from ..expr import Constant, Function
from ..visitor import Mutator, walk

_SAMPLED = 64  # elements


def bytes_of(array: NDArray) -> Any:
    """The bytes of an array, without a copy of one that is compact."""
    return np.ascontiguousarray(array._array).reshape(-1).view(np.uint8)


def _constants(functions: Iterable[Function]) -> list[NDArray]:
    """The arrays of functions, each once."""
    found = {id(n.data): n.data for f in functions for n in walk(f.body) if isinstance(n, Constant) and isinstance(n.data, NDArray)}
    return list(found.values())


def _sample(array: NDArray) -> bytes:
    """Some bytes of an array, in which weights differ: layers of a network have equal shapes, and all of them would be hashed."""
    flat = array._array.reshape(-1)
    return bytes(bytes_of(wrapped(flat[:: max(1, flat.size // _SAMPLED)], array.dtype)))


class _Sharing(Mutator):
    """Constants on other arrays."""

    def __init__(self, one_of: dict[int, NDArray]) -> None:
        super().__init__()
        self._one_of = one_of

    def rewrite(self, expr: Any) -> Any:
        """A constant on the array that stands for all of its content."""
        chosen = self._one_of.get(id(expr.data)) if isinstance(expr, Constant) else None
        return expr if chosen is None else Constant(chosen, expr.stated)


def with_shared_constants(mod: IRModule) -> IRModule:
    """A module whose constants of equal dtype, shape and bytes are one array each; itself if they are already.

    Only arrays that could be equal are hashed (SHA-256).
    """
    functions: list[tuple[Any, Any]] = [(var, func) for var, func in mod.functions_items() if isinstance(func, Function)]
    alike: dict[Any, list[NDArray]] = {}
    for array in _constants(func for _, func in functions):
        alike.setdefault((array.dtype, array.shape, _sample(array)), []).append(array)
    one_of: dict[int, NDArray] = {}
    for group in alike.values():
        first: dict[bytes, NDArray] = {}
        for array in group if len(group) > 1 else ():
            # By bytes, not by values: -0.0 isn't 0.0, and a NaN equals itself.
            chosen = first.setdefault(hashlib.sha256(bytes_of(array)).digest(), array)
            if chosen is not array:
                one_of[id(array)] = chosen
    return on_arrays(mod, one_of)


def on_arrays(mod: IRModule, one_of: dict[int, NDArray]) -> IRModule:
    """A module whose constants are on other arrays; itself without any.

    Args:
        mod: the module.
        one_of: arrays by the identities of those that they stand for.
    """
    if not one_of:
        return mod
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, Function):
            made.update_func(var, _Sharing(one_of).function(func))
    return made
