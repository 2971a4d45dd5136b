"""Random arrays, as stages of a tensor computation: new numbers at every call, by NumPy's generator.

The stages call Python functions, so that a module with one can't be exported. The function "tvm.contrib.random.seed" of
`get_global_func` makes what follows repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DeclarationError
from ..runtime.registry import register_func
from ..te.extern import extern
from ..te.tensor import Tensor
from ..tir.dtype import parse_dtype
from ..tir.foreign import call_packed

_generator = np.random.default_rng()
_PREFIX = "tvm.contrib.random."


def _seed(number: int) -> None:
    global _generator
    _generator = np.random.default_rng(number)


def _drawn(draw: Callable[..., Any]) -> Callable[[Any, Any, Any], None]:
    def fill(first: Any, second: Any, out: Any) -> None:
        # a view: what is written here is written to the output
        array = np.from_dlpack(out)
        array[...] = draw(first, second, array)

    return fill


register_func(_PREFIX + "seed", _seed, override=True)
register_func(_PREFIX + "uniform", _drawn(lambda low, high, out: _generator.uniform(low, high, out.shape)), override=True)
register_func(_PREFIX + "normal", _drawn(lambda loc, scale, out: _generator.normal(loc, scale, out.shape)), override=True)
register_func(_PREFIX + "randint", _drawn(lambda low, high, out: _generator.integers(low, high, out.shape, out.dtype)), override=True)


def _stage(name: str, first: Any, second: Any, size: Sequence[Any], dtype: str) -> Tensor:
    made = extern(tuple(size), [], lambda ins, outs: call_packed(_PREFIX + name, first, second, outs[0]), name=name, dtype=dtype)
    assert isinstance(made, Tensor)
    return made


def uniform(low: float, high: float, size: Sequence[Any]) -> Tensor:
    """float32 of the shape `size`, evenly from [low, high).

    Raises:
        DeclarationError: if `high` is below `low`.
    """
    if high < low:
        raise DeclarationError(f"uniform: numbers from [{low}, {high}), which is empty; low comes first")
    return _stage("uniform", float(low), float(high), size, "float32")


def normal(loc: float, scale: float, size: Sequence[Any]) -> Tensor:
    """float32 of the shape `size`, from the normal distribution about `loc` with the standard deviation `scale`.

    Raises:
        DeclarationError: for a negative `scale`.
    """
    if scale < 0:
        raise DeclarationError(f"normal: the standard deviation is {scale}, and can't be negative")
    return _stage("normal", float(loc), float(scale), size, "float32")


def randint(low: int, high: int, size: Sequence[Any], dtype: str = "int32") -> Tensor:
    """Integers of the shape `size`, evenly from [low, high).

    Raises:
        DeclarationError: if the range is empty, or doesn't fit the dtype, which has to be of integers.
    """
    kind = parse_dtype(dtype)
    if kind.code not in ("int", "uint"):
        raise DeclarationError(f"randint: integers of dtype {dtype}; take int32 or another dtype of integers")
    limits = np.iinfo(dtype)
    if not limits.min <= low < high <= int(limits.max) + 1:
        raise DeclarationError(f"randint: numbers from [{low}, {high}) of {dtype}, which holds {limits.min} to {limits.max}")
    return _stage("randint", int(low), int(high), size, dtype)
