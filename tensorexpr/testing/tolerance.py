"""How far results may differ, and the assertion that uses it."""

from __future__ import annotations

from typing import Any

from ..te.tolerance import EPSILON, Tolerance, reduction_length, tolerance, tolerance_of


def assert_close(actual: Any, expected: Any, allowed: Tolerance, name: str = "result") -> None:
    """Compare arrays element by element.

    Raises:
        AssertionError: if shape or dtype differ or an element is too far off; it shows the worst one.
    """
    message = allowed.mismatch(actual, expected)
    if message:
        raise AssertionError(f"{name} {message}")


__all__ = ["EPSILON", "Tolerance", "assert_close", "reduction_length", "tolerance", "tolerance_of"]
