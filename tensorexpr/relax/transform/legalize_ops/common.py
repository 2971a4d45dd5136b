"""`register_legalize`."""

from __future__ import annotations

from typing import Any

from ....tir.op_registry import register_op_attr
from ..legalize import LEGALIZE, Legalization


def register_legalize(op_name: str, legal_func: Legalization | None = None) -> Any:
    """Say what `LegalizeOps` makes of an operator: a function of a BlockBuilder and the call that returns an expression.

    Args:
        op_name: such as "relax.add".
        legal_func: the function; as a decorator without it.

    Returns:
        the function.
    """
    return register_op_attr(op_name, LEGALIZE, legal_func)
