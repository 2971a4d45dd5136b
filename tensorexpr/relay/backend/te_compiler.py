"""The compiler of single operators, by the name under which programs clear what it has made: `te_compiler.get().clear()`."""

from __future__ import annotations


class TECompiler:
    """Kernels belong to graphs; those on disk are found by their contents."""

    def clear(self) -> None:
        """Accepted: a kernel is never that of another operator, so that none has to be forgotten."""


def get() -> TECompiler:
    """The compiler."""
    return TECompiler()


__all__ = ["TECompiler", "get"]
