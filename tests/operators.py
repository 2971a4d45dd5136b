"""Values for operators, and their results by the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorexpr import te
from tensorexpr.te.reference import evaluate

Array = NDArray[Any]
RNG = np.random.default_rng(7)


def values(*shape: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0) -> Array:
    if dtype.startswith("int"):
        return RNG.integers(int(low), int(high) + 1, shape).astype(dtype)
    return RNG.uniform(low, high, shape).astype(dtype)


def run(make: Any, *arrays: Array) -> Any:
    """The value of `make(placeholders)`, an array or a list of them."""
    tensors = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(arrays)]
    made = make(*tensors)
    outputs = made if isinstance(made, (list, tuple)) else [made]
    found = evaluate(outputs, dict(zip(tensors, arrays, strict=True)))
    return found if isinstance(made, (list, tuple)) else found[0]


def assert_same(found: Array, wanted: Array, tolerance: float = 1e-5) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), np.asarray(wanted).astype(np.float64), rtol=tolerance, atol=tolerance)
