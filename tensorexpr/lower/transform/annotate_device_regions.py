"""What runs on the device, marked with the device's target."""

from __future__ import annotations

from ...target import Target
from ...tir.expr import IntImm
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt

_REGIONS = ("thread_extent", "pipeline_exec_scope", "device_scope")


def AnnotateDeviceRegions() -> Pass:
    """The attribute "target" around threads and device scopes, in functions whose target has a host."""

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        target = func.attrs.get("target")
        if not isinstance(target, Target) or target.host is None:
            return func
        device = without_host(target)

        def rule(stmt: Stmt) -> Stmt:
            if isinstance(stmt, AttrStmt) and stmt.attr_key == "target":
                return stmt
            if isinstance(stmt, AttrStmt) and stmt.attr_key in _REGIONS:
                return AttrStmt(device, "target", IntImm("int32", 0), stmt)
            return map_stmt(stmt, rule)

        return func.with_body(rule(func.body))

    return Pass("tir.AnnotateDeviceRegions", run)


def without_host(target: Target) -> Target:
    """The device alone."""
    if target.host is None:
        return target
    config = target.export()
    config.pop("host", None)
    return Target(config)
