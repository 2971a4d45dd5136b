"""Random arrays for tests, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..te.dag import given_placeholders, post_dfs_order
from ..te.evaluation import compile_program
from ..te.tensor import Tensor
from ..tir.dtype import int_limits, parse_dtype, to_numpy
from ..tir.expr import Var

Array = Any  # np.ndarray of any dtype


def random_array(shape: Sequence[int], dtype: str, seed: int | np.random.Generator = 0, special: bool = False) -> Array:
    """An array of `dtype`.

    Floats are uniform in [-1, 1), integers small (up to 100 in absolute value), so that products and sums stay exact
    enough to compare.

    Args:
        shape: extents.
        dtype: any scalar dtype.
        seed: a number, or a generator that goes on.
        special: mix in the values where programs break: NaN, infinities, zeros of both signs, denormals, extremes.
    """
    generator = np.random.default_rng(seed)
    parsed = parse_dtype(dtype)
    if parsed.code == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if parsed.is_float:
        values: Array = generator.uniform(-1.0, 1.0, shape)
    else:
        low, high = int_limits(dtype)
        values = generator.integers(max(low, -100), min(high, 100), shape, endpoint=True)
    array = np.asarray(values).astype(to_numpy(dtype))
    if special and array.size:
        choices = special_values(dtype)
        where = generator.random(shape) < 0.3
        array = np.where(where, choices[generator.integers(0, len(choices), shape)], array)
    return array


def special_values(dtype: str) -> Array:
    """The values of a dtype at which programs tend to break."""
    parsed = parse_dtype(dtype)
    kind = to_numpy(dtype)
    if not parsed.is_float:
        low, high = int_limits(dtype)
        return np.asarray(sorted({low, high, 0, 1, max(low, -1)}), kind)
    finite = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    return np.asarray([*finite, _largest(dtype), -_largest(dtype), _denormal(dtype)], np.float64).astype(kind)


def _largest(dtype: str) -> float:
    # np.finfo doesn't know bfloat16, whose largest number is (2 - 2**-7) * 2**127
    return 3.3895313892515355e38 if dtype == "bfloat16" else float(np.finfo(dtype).max)


def _denormal(dtype: str) -> float:
    return 1e-39 if dtype == "bfloat16" else float(np.finfo(dtype).smallest_subnormal)


def random_inputs(
    tensors: Sequence[Tensor], seed: int = 0, symbols: Mapping[Var, int] | None = None, special: bool = False
) -> dict[Tensor, Array]:
    """A random array for every placeholder below `tensors`; `symbols` gives values to symbolic extents."""
    generator = np.random.default_rng(seed)
    arrays: dict[Tensor, Array] = {}
    for op in given_placeholders(post_dfs_order([tensor.op for tensor in tensors])):
        shape = [int(extent) for extent in compile_program(op.shape).run(dict(symbols or {}))]
        arrays[op.output(0)] = random_array(shape, op.dtype, generator, special)
    return arrays
