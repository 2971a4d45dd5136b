"""Registered functions and errors, where programs of TVM import them from."""

from ..runtime.registry import get_global_func, register_func
from . import base

__all__ = ["base", "get_global_func", "register_func"]
