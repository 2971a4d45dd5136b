"""Passes on single functions, by the module that programs of the TE era look for them in."""

from ..passes import PrimFuncPass
from .decorators import prim_func_pass

__all__ = ["PrimFuncPass", "prim_func_pass"]
