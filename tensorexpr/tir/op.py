"""All that builds expressions, in the one place where programs look for it."""

from __future__ import annotations

import importlib
from typing import Any

from .op_registry import CallEffectKind, Op

__all__ = ["CallEffectKind", "Op"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("tensorexpr.tir"), name)
