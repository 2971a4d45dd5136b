"""Input arrays to measure with: what the user gives, else random values that suit the dtype; always the same for a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype, to_numpy
from ...tir.expr import IntImm

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ValueRange:
    """Ranges that random floats, signed and unsigned integers are drawn from."""

    floats: tuple[float, float]
    signed: tuple[int, int]
    unsigned: tuple[int, int]


# Zero-mean values show a missing or doubled term best. Logarithms and roots need positive ones, integers may be indices:
# each next range suits more computations than the one before.
RANGES = (
    ValueRange((-1.0, 1.0), (-8, 8), (0, 8)),
    ValueRange((0.1, 1.0), (0, 8), (0, 8)),
    ValueRange((0.1, 1.0), (0, 1), (0, 1)),
    ValueRange((0.1, 1.0), (0, 0), (0, 0)),
)


def random_inputs(placeholders: Sequence[Tensor], given: Mapping[Tensor, Array], seed: int, values: ValueRange) -> dict[Tensor, Array]:
    """An array for every placeholder: the given one, or random values of a range.

    Args:
        placeholders: with constant shapes.
        given: arrays of the user.
        seed: same seed, same arrays.
        values: where random values come from.
    """
    arrays: dict[Tensor, Array] = {}
    for position, tensor in enumerate(placeholders):
        # one for each: an array that the user gives leaves the others as they were
        generator = np.random.default_rng([seed, position])
        arrays[tensor] = given[tensor] if tensor in given else _random(constant_shape(tensor), tensor.dtype, generator, values)
    return arrays


def constant_shape(tensor: Tensor) -> tuple[int, ...]:
    """The extents of a tensor without symbolic ones.

    Raises:
        ValueError: if there is a symbolic one.
    """
    symbolic = [str(extent) for extent in tensor.shape if not isinstance(extent, IntImm)]
    if symbolic:
        raise ValueError(f"{tensor.name} has symbolic extents: {', '.join(symbolic)}")
    return tuple(extent.value for extent in tensor.shape if isinstance(extent, IntImm))


def _random(shape: Sequence[int], dtype: str, generator: np.random.Generator, values: ValueRange) -> Array:
    kind = parse_dtype(dtype)
    if kind.is_float:
        made: Array = generator.random(shape, np.float32) * np.float32(values.floats[1] - values.floats[0]) + np.float32(values.floats[0])
    elif kind.is_int:
        low, high = values.signed if kind.is_signed else values.unsigned
        made = generator.integers(low, high, shape, endpoint=True)
    else:
        made = generator.integers(0, 2, shape)
    return np.asarray(made, dtype=to_numpy(dtype))
