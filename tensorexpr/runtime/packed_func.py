"""Functions that are called by value, by the name that programs ask for them. Any callable of Python is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .function import Function as PackedFunc

PackedFuncBase = PackedFunc
string_types = (str,)


def convert_to_tvm_func(pyfunc: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python as one that compiled code and the registry take: itself.

    Raises:
        TypeError: for what can't be called.
    """
    if not callable(pyfunc):
        raise TypeError(f"{pyfunc!r} ({type(pyfunc).__name__}) can't be called")
    return pyfunc


__all__ = ["PackedFunc", "PackedFuncBase", "convert_to_tvm_func", "string_types"]
