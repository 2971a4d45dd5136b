"""Whether the user insists on a step that can't be shown to be right: `PassContext(config={"tir.unsafe": True})`.

Lowering, which knows contexts, stands above schedules and says here how to ask.
"""

from __future__ import annotations

from collections.abc import Callable

_asked: list[Callable[[], bool]] = []


def insisted() -> bool:
    """True where the user takes the blame: what the program then computes is not promised."""
    return any(ask() for ask in _asked)


def ask_with(ask: Callable[[], bool]) -> None:
    """Let `insisted` ask a function."""
    _asked.append(ask)
