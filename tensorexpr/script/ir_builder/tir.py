"""The words of functions for a builder, as T: those of scripts, and those that a script says with its own syntax."""

from __future__ import annotations

from typing import Any

from ...errors import DeclarationError
from ...tir.buffer import Buffer as _Buffer
from ...tir.expr import Var as _Var
from ..parser import TIR
from ..parser.functions import add_parameter, type_of
from . import frame
from .builder import IRBuilder
from .frame import PrimFuncFrame


def prim_func(is_private: bool = False) -> PrimFuncFrame:
    """The frame of a function."""
    return PrimFuncFrame(IRBuilder.current(), is_private)


def func_name(name: str) -> None:
    """Name the function, which is its "global_symbol" unless it is private."""
    IRBuilder.current().context.owner().name = name


def func_ret(ret_type: Any) -> Any:
    """Say what the function returns: a type, or None."""
    IRBuilder.current().context.owner().ret_type = type_of(ret_type)
    return ret_type


def arg(name: str, obj: Any) -> Any:
    """Add a parameter: a variable, or a buffer, which comes by a handle; the thing itself.

    Raises:
        DeclarationError: for what is neither.
    """
    if not isinstance(obj, (_Var, _Buffer)):
        raise DeclarationError(f"a parameter is a variable or a buffer, such as T.handle() or T.Buffer((16,)), not {obj!r}")
    return add_parameter(name, IRBuilder.name(name, obj), IRBuilder.current().context.owner())


__getattr__ = TIR.__getattr__


def __dir__() -> list[str]:
    return sorted({"arg", "frame", "func_name", "func_ret", "prim_func", *TIR.entries})


__all__ = ["arg", "frame", "func_name", "func_ret", "prim_func"]
