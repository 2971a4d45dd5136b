"""What holds for all of AutoTVM: whether a search is under way, and whether it stays silent."""

from __future__ import annotations

from typing import ClassVar


class AutotvmGlobalScope:
    """Two switches. `in_tuning` holds while configurations are measured; `silent` keeps fallback configurations from being reported."""

    current: ClassVar[AutotvmGlobalScope | None] = None

    def __init__(self) -> None:
        self._old = AutotvmGlobalScope.current
        AutotvmGlobalScope.current = self
        self.in_tuning = False
        self.silent = False

    def deep_copy(self, global_scope: AutotvmGlobalScope) -> None:
        """Take the switches of another scope."""
        self.in_tuning, self.silent = global_scope.in_tuning, global_scope.silent


GLOBAL_SCOPE = AutotvmGlobalScope()


def reset_global_scope(global_scope: AutotvmGlobalScope) -> None:
    """Set the switches as another scope has them."""
    GLOBAL_SCOPE.deep_copy(global_scope)
    AutotvmGlobalScope.current = GLOBAL_SCOPE
