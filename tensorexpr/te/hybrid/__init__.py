"""`te.hybrid`: tensors that functions in Python's syntax compute. What is here lives in `tensorexpr.script.hybrid`, a higher row."""

from __future__ import annotations

import importlib
from typing import Any

_HIGHER = ("HybridModule", "build", "parse", "script", "source_to_op")
__all__ = ["HybridModule", "build", "parse", "script", "source_to_op"]


def __getattr__(name: str) -> Any:
    if name not in _HIGHER:
        raise AttributeError(f"module 'tensorexpr.te.hybrid' has no attribute {name!r}")
    value = getattr(importlib.import_module("tensorexpr.script.hybrid"), name)
    globals()[name] = value
    return value
