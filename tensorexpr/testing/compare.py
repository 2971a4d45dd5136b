"""Comparing arrays, under the name that programs use."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Fail unless `|actual - desired| <= atol + rtol * |desired|` everywhere and the shapes agree.

    Args:
        actual, desired: NumPy arrays, those of `nd`, or numbers.

    Raises:
        AssertionError: with the number of elements that differ and the worst one.
    """
    first, second = (np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in (actual, desired))
    np.testing.assert_allclose(first, second, rtol=rtol, atol=atol, verbose=True)
    if first.shape != second.shape:
        raise AssertionError(f"shapes {first.shape} and {second.shape} differ")
