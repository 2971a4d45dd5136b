"""A check that functions fit into the tightly coupled memory of a vector unit (VTCM)."""

from __future__ import annotations

from ...errors import LoweringError
from ...target import Target
from ...tir.analysis import calculate_allocated_bytes
from ...tir.function import PrimFunc
from ..context import PassContext
from ..passes import Pass

_SCOPE = "global.vtcm"


def VerifyVTCMLimit(limit: Target | int | None = None) -> Pass:
    """The functions as they are, if none has more memory of scope "global.vtcm" at once than there is.

    Args:
        limit: the bytes that there are, or the target that says so; None for each function's own target. 0 is no limit.

    Raises:
        LoweringError: when it runs, for a function that needs more.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        most = _capacity(func.attrs.get("target")) if limit is None else _capacity(limit)
        needed = sum(scopes.get(_SCOPE, 0) for scopes in calculate_allocated_bytes(func).values()) if most else 0
        if needed > most:
            raise LoweringError(f"the function needs {needed} bytes of {_SCOPE}, and there are {most}; use smaller tiles")
        return func

    return Pass("tir.VerifyVTCMLimit", run)


def _capacity(limit: object) -> int:
    if isinstance(limit, Target):
        return limit.vtcm_capacity
    return limit if isinstance(limit, int) else 0
