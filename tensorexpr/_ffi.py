"""Registered functions, where programs of TVM import them from."""

from .runtime.registry import get_global_func, register_func

__all__ = ["get_global_func", "register_func"]
