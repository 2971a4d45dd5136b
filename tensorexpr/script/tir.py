"""The names of TVMScript, for ``from tensorexpr.script import tir as T``.

A function under `@T.prim_func` is read, not run, so in it these are words of a language: `T.grid`, `T.block`, `T.exp`.
Types and expressions also work in Python itself: `T.Buffer((16,), "float32")`, `T.float32(0)`.
"""

from __future__ import annotations

from .parser import TIR
from .read import macro, prim_func

inline = macro

__all__ = ["inline", "macro", "prim_func"]


__getattr__ = TIR.__getattr__


def __dir__() -> list[str]:
    return sorted({"macro", "prim_func", *TIR.entries})
