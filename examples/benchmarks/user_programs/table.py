"""The table of programs, and what they are declared by."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorexpr import te, tir
from tensorexpr.te.tensor import Tensor


@dataclass(frozen=True)
class Program:
    """Inputs, results, and PyTorch's function from the same inputs to the same results."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    peer: Callable[..., Any]


class Draw:
    """Sizes at random: half of them are multiples of a power of two."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def __call__(self, low: int, high: int) -> int:
        value = round(math.exp(self._random.uniform(math.log(low), math.log(high))))
        if self._random.random() < 0.5:
            value = next((value // part * part for part in (64, 32, 16, 8, 4) if value >= 2 * part), value)
        return max(low, min(high, value))

    def one_of(self, *values: Any) -> Any:
        """One of some values."""
        return self._random.choice(values)


PROGRAMS: dict[str, Callable[[Draw], Program]] = {}


def program(make: Callable[[Draw], Program]) -> Callable[[Draw], Program]:
    """Put into the table."""
    name = make.__name__.strip("_")
    if name in PROGRAMS:
        raise ValueError(f"there is a program {name} already, which this one would hide")
    PROGRAMS[name] = make
    return make


def placed(name: str, *shape: int, dtype: str = "float32") -> Any:
    """An input."""
    return te.placeholder(shape, dtype, name=name)


def over(extent: int) -> Any:
    """An axis of a sum."""
    return te.reduce_axis((0, extent), "k")


def product(a: Any, b: Any) -> Any:
    """A @ B."""
    k = over(a.shape[1])
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))


def normal(x: Any, axes: int, divisor: int) -> tuple[Any, Any]:
    """Mean and variance over all axes behind some."""

    def mean(of: Callable[..., Any]) -> Any:
        ks = [over(extent) for extent in x.shape[axes:]]
        return te.compute(x.shape[:axes], lambda *i: te.sum(of(x(*i, *ks), i) / divisor, axis=ks))

    first = mean(lambda value, i: value)
    return first, mean(lambda value, i: (value - first(*i)) * (value - first(*i)))


def number(value: float) -> Any:
    """A constant of float32."""
    return tir.const(value, "float32")
