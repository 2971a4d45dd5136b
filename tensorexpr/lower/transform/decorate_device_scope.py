"""The whole function as device code."""

from __future__ import annotations

from ...tir.expr import IntImm
from ...tir.stmt import AttrStmt
from ..passes import Pass


def DecorateDeviceScope() -> Pass:
    """The attribute "device_scope" around the body of every function."""
    zero = IntImm("int32", 0)
    return Pass("tir.DecorateDeviceScope", lambda func, ctx: func.with_body(AttrStmt(zero, "device_scope", zero, func.body)))
