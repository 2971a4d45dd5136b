"""The names of `testing`, as programs that import them from here spell it, and the hook of their documentation's builds."""

from __future__ import annotations

import importlib
from typing import Any


def install_request_hook(depth: int) -> None:
    """Where downloads of a documentation build are redirected; outside such a build they go where they ask to, so this does nothing.

    Args:
        depth: how far above the caller its repository begins.
    """


def __getattr__(name: str) -> Any:
    package = importlib.import_module(__name__.rpartition(".")[0])
    if name not in package.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(package, name)
