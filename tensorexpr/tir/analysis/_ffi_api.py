"""Analyses by the private names that some programs call them by."""

from __future__ import annotations

import importlib
from typing import Any

from ..stmt import Stmt


def _identify_memcpy(stmt: Stmt) -> list[Any]:
    """As `analysis.identify_memcpy`."""
    found: list[Any] = importlib.import_module("tensorexpr.arith.memory_copy").identify_memcpy(stmt)
    return found
