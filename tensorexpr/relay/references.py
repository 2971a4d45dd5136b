"""What Relay's programs have no word for here, and what says the same: each name is an error that tells."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import DeclarationError


def _refused(name: str, instead: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise DeclarationError(f"relay.{name} isn't there: {instead}")

    refuse.__name__ = name
    refuse.__doc__ = f"Refused: {instead}.\n\n    Raises:\n        DeclarationError: always.\n    "
    return refuse


_VALUES = "programs are graphs, whose operators have no effects; return the new value, and pass it on as an argument"
RefCreate, RefRead, RefWrite = (_refused(name, _VALUES) for name in ("RefCreate", "RefRead", "RefWrite"))
RefType = _refused("RefType", _VALUES)
TypeRelation = _refused("TypeRelation", "what an operator returns follows from its row; relay.op.get(name) finds it, checked_type asks it")

__all__ = ["RefCreate", "RefRead", "RefType", "RefWrite", "TypeRelation"]
