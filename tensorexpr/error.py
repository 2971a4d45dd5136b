"""Errors by the names that programs of TVM catch them by; `errors` says what they mean.

`OpError` and what comes of it are for operators of graphs, and kept for programs that raise them themselves.
"""

from __future__ import annotations

from typing import Any

from .errors import DiagnosticError, RPCError, TensorExprError, TVMError

# TVM raises it for every check that fails, most of which are about what a user asked for; bugs of ours are `errors.InternalError`.
InternalError = TensorExprError


class RPCSessionTimeoutError(RPCError):
    """A session that took longer than it may."""


class OpError(TensorExprError):
    """An operator that can't be converted or computed."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator that is not known."""


class OpAttributeRequired(OpError, AttributeError):
    """An operator lacks an attribute that it needs."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator has a value that is none of its own."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator asks for what is not built."""


_REGISTERED: dict[str, type[BaseException]] = {}


def register_error(func_name: str | type[BaseException] | None = None, cls: type[BaseException] | None = None) -> Any:
    """Remember an error class by its name; as a decorator, by the name of the class.

    Returns:
        The class, or the decorator.
    """
    name = func_name if isinstance(func_name, str) else None
    given = func_name if isinstance(func_name, type) else cls

    def register(found: type[BaseException]) -> type[BaseException]:
        _REGISTERED[name or found.__name__] = found
        return found

    return register if given is None else register(given)


__all__ = [
    "DiagnosticError",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "RPCError",
    "RPCSessionTimeoutError",
    "TVMError",
    "register_error",
]
