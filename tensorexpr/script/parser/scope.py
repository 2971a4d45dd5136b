"""Which names mean what, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NOTHING: Any = object()


class Scope:
    """Names of the program, innermost block first, then those that it captured from around it."""

    def __init__(self, captured: Mapping[str, Any]) -> None:
        self._captured = captured
        self._frames: list[dict[str, Any]] = [{}]

    def push(self) -> None:
        """Enter a block."""
        self._frames.append({})

    def pop(self) -> dict[str, Any]:
        """Leave a block: what was defined in it, which is gone."""
        return self._frames.pop()

    def define(self, name: str, value: Any) -> None:
        """Let `name` mean `value` from here to the end of the block."""
        self._frames[-1][name] = value

    def find(self, name: str) -> tuple[bool, Any]:
        """Whether `name` means anything, and what."""
        for frame in reversed(self._frames):
            if name in frame:
                return True, frame[name]
        # A captured name may mean None.
        found = self._captured.get(name, _NOTHING)
        return (False, None) if found is _NOTHING else (True, found)

    def is_here(self, name: str) -> bool:
        """True for a name that the innermost block defines."""
        return name in self._frames[-1]

    def is_outer(self, name: str) -> bool:
        """True for a name that a block around this one defines."""
        return name not in self._frames[-1] and any(name in frame for frame in self._frames)

    def names(self) -> Iterator[str]:
        """The names that the program itself defines, to suggest."""
        for frame in self._frames:
            yield from frame
