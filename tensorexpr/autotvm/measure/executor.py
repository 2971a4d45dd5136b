"""The protocol of what runs functions elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Executor:
    """Base of executors that users write."""

    DEFAULT_TIMEOUT = 120

    def submit(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function and return a future of its result."""
        raise NotImplementedError
