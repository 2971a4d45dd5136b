"""What is said about a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from .model import TVMCResult


def get_top_results(result: TVMCResult, max_results: int) -> np.ndarray[Any, Any]:
    """The largest elements of the first output: a row of their places and one of their values."""
    flat = next(iter(result.outputs.values())).reshape(-1)
    places = np.argsort(-flat, kind="stable")[:max_results]
    return np.array([places, flat[places]])
