"""Registered functions and errors, where programs of TVM import them from."""

from ..later import stand_for
from ..runtime import registry
from ..runtime.registry import get_global_func, list_global_func_names, register_func
from . import base

stand_for(__name__, "registry=..runtime.registry")
__all__ = ["base", "get_global_func", "list_global_func_names", "register_func", "registry"]
