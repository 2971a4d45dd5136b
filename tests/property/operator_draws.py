"""Random operands of one operator, and the table of who draws those of which: shapes with extents from 0, numbers or symbols, any dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tensorexpr.relax import ObjectStructInfo, TensorStructInfo, Var, op
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.expr import Var as Symbol

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int32", "int64", "int8", "int16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS[:2], *INTEGERS)
ALL = (*NUMBERS, "bool")


class Values:
    """Numbers, shapes and arrays, drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 1000)))

    def of(self, values: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(values))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def coin(self) -> bool:
        return self.draw(st.booleans())

    def shape(self, low: int = 0, high: int = 3, least: int = 0) -> tuple[int, ...]:
        return tuple(self.draw(st.lists(st.sampled_from([n for n in (3, 1, 2, 4, 0) if n >= least]), min_size=low, max_size=high)))

    def axis(self, ndim: int) -> int:
        return self.number(-ndim, ndim - 1)

    def values(self, shape: Sequence[int], dtype: str, low: float = -3, high: float = 3, special: bool = True) -> Any:
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if "float" not in dtype:
            info = np.iinfo(dtype)
            return self.rng.integers(max(int(low), info.min), int(high) + 1, shape).astype(dtype)
        made = np.asarray(self.rng.uniform(low, high, shape)).astype(to_numpy(dtype))
        if special and made.size and self.coin():
            made.flat[self.number(0, made.size - 1)] = self.of([np.nan, np.inf, -np.inf, 0.0, -0.5, 2.5])
        return made

    def pair(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with another one."""
        kept = shape[self.number(0, len(shape)) :]
        return tuple(1 if self.number(0, 3) == 0 else n for n in kept)


class Draw(Values):
    """Operands of one call: arrays, and what is known of them before it runs."""

    def __init__(self, draw: st.DrawFn, name: str) -> None:
        super().__init__(draw)
        self.name = name
        self.op = attrgetter(name)(op)
        self.arrays: list[Any] = []
        self.params: list[Var] = []
        self._symbolic = draw(st.sets(st.integers(0, 5), max_size=2)) - {1}
        self._symbols: dict[int, Symbol] = {}

    def given(self, array: Any, static: bool = False) -> Var:
        """A parameter whose value the array is; `static` ones have no symbols."""
        extents = [n if static or n not in self._symbolic else self._symbols.setdefault(n, Symbol(f"n{n}", "int64")) for n in array.shape]
        self.arrays.append(array)
        info = ObjectStructInfo() if array.dtype == object else TensorStructInfo(extents, str(array.dtype))
        self.params.append(Var(f"p{len(self.params)}", info))
        return self.params[-1]

    def tensor(self, dtypes: Sequence[str] = NUMBERS, shape: Sequence[int] | None = None, static: bool = False, **kinds: Any) -> Var:
        return self.given(self.values(self.shape() if shape is None else shape, self.of(dtypes), **kinds), static)


Case = Callable[[Draw], Any]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def register(function: Case) -> Case:
        CASES[name] = function
        return function

    return register


def unary(names: str, dtypes: Sequence[str], low: float = -3, high: float = 3) -> None:
    def make(d: Draw, name: str) -> Any:
        return getattr(op, name)(d.tensor(dtypes, low=low, high=high))

    for name in names.split():
        CASES[name] = partial(make, name=name)


def binary(names: str, dtypes: Sequence[str], low: float = -3, high: float = 3, second: tuple[float, float] | None = None) -> None:
    def make(d: Draw, name: str) -> Any:
        dtype, shape = d.of(dtypes), d.shape()
        other = second or (low, high)
        a, b = d.tensor((dtype,), shape, low=low, high=high), d.tensor((dtype,), d.pair(shape), low=other[0], high=other[1])
        return getattr(op, name)(a, b) if second or d.coin() else getattr(op, name)(b, a)

    for name in names.split():
        CASES[name] = partial(make, name=name)


def reduction(names: str, dtypes: Sequence[str], least: int = 0) -> None:
    def make(d: Draw, name: str) -> Any:
        shape = d.shape(1, least=least)
        axes = d.draw(st.none() | st.sets(st.integers(0, len(shape) - 1), min_size=1).map(sorted))
        return getattr(op, name)(d.tensor(dtypes, shape, special=False), axes, d.coin())

    for name in names.split():
        CASES[name] = partial(make, name=name)
