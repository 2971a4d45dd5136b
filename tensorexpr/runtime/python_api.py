"""Functions of the interpreter's C interface: for ctypes, and their addresses for native code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any


def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of the interpreter, called with the GIL held; an exception that it sets is raised."""
    found: Callable[..., Any] = ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))
    return found


def addresses(*names: str) -> dict[str, int]:
    """The addresses of functions of the interpreter, by name."""
    return {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names}
