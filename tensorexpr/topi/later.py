"""Names that a module shows and a module above it defines: found when they are first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any


def later(module: str, homes: Mapping[str, str], name: str) -> Any:
    """The object `name`, for a module's `__getattr__`.

    Args:
        module: which module was asked.
        homes: the module of topi that defines each name.
        name: what it was asked for.

    Raises:
        AttributeError: for a name that isn't in `homes`.
    """
    if name not in homes:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensorexpr.topi.{homes[name]}"), name)
