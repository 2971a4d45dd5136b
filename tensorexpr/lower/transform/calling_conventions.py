"""What the passes that change how functions are called share: which functions, for which host."""

from __future__ import annotations

from dataclasses import replace

from ...errors import LoweringError
from ...target import Target
from ...tir.expr import Call, IntImm, PrimExpr, PrimType, StringImm
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, Evaluate, Stmt

C_PACKED_FUNC = 1


def host_of(func: PrimFunc, name: str) -> Target | None:
    """The host that a function is to be called on; None for one that is private, has its convention already, or has no host.

    Raises:
        LoweringError: for a function without target.
    """
    if func.attrs.get("global_symbol") is None or int(func.attrs.get("calling_conv", 0)):
        return None
    return target_of(func, name).host


def target_of(func: PrimFunc, name: str) -> Target:
    """A function's target.

    Raises:
        LoweringError: if it has none.
    """
    target = func.attrs.get("target")
    if not isinstance(target, Target):
        raise LoweringError(f"{name}: function {func.attrs.get('global_symbol')!s} has no target; bind one with tir.transform.BindTarget")
    return target


def for_host(func: PrimFunc, host: Target, **attrs: object) -> PrimFunc:
    """The function for `host` alone, giving back an error code."""
    return replace(func, ret_type=PrimType("int32")).with_attr({"target": Target(host.export()), **attrs})


def device_attribute(key: str, value: PrimExpr, body: Stmt) -> Stmt:
    """`device_id` or `device_type` of all that `body` allocates and calls."""
    return AttrStmt(StringImm("default"), key, value, body)


def success() -> Stmt:
    """Return 0: no error."""
    return Evaluate(Call("int32", "tir.ret", (IntImm("int32", 0),)))
