"""Where blocks stand, and their dependences: in a higher row, loaded when it is first asked for."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("tensorexpr.schedule.blocks.block_scope"), name)
