"""Numerical derivatives, to compare `te.gradient` with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorexpr.te import Tensor
from tensorexpr.te.reference import evaluate

Array = Any  # np.ndarray of any dtype


def jacobian(output: Tensor, wanted: Tensor, arrays: Mapping[Tensor, Array], step: float = 1e-6) -> Array:
    """The derivatives of `output` with respect to `wanted`, a placeholder, by central differences."""
    base = np.array(arrays[wanted], np.float64)
    (value,) = evaluate([output], arrays)
    result = np.zeros(value.shape + base.shape)
    for point in np.ndindex(*base.shape):
        sides = []
        for change in (step, -step):
            moved = base.copy()
            moved[point] += change
            sides.append(evaluate([output], {**arrays, wanted: moved.astype(np.asarray(arrays[wanted]).dtype)})[0].astype(np.float64))
        at = (Ellipsis, *point)
        result[at] = (sides[0] - sides[1]) / (2 * step)
    return result


def contracted(head: Array, full: Array, output_ndim: int) -> Array:
    """The product of a head and a Jacobian."""
    return np.tensordot(head, full, axes=output_ndim)
