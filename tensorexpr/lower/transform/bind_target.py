"""Functions told what they are compiled for."""

from __future__ import annotations

from ...target import Target
from ...tir.function import IRModule, PrimFunc
from ..context import PassContext
from ..passes import ModulePass, Pass
from .annotate_device_regions import without_host
from .decorators import unused

_IS_HOST = "tir.is_host_func"


def BindTarget(target: Target) -> Pass:
    """The attribute "target" on every function that has none.

    A function that is seen from outside (it has a `global_symbol`) also gets the host of `target`, by which its arguments are
    unpacked; an internal one runs on the device and gets the target alone. One marked `tir.is_host_func` gets the host, as
    its own host too.
    """

    def bind(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule(
            {var: _bound(func, target) if isinstance(func, PrimFunc) else func for var, func in mod.functions_items()}, mod.attrs
        )

    return ModulePass("tir.BindTarget", unused, module_func=bind, by_user=False)


def _bound(func: PrimFunc, target: Target) -> PrimFunc:
    own = func.attrs.get("target")
    external = "global_symbol" in func.attrs
    if target.host is not None and func.attrs.get(_IS_HOST):
        return func.without_attr(_IS_HOST).with_attr("target", Target(target.host, target.host))
    if isinstance(own, Target):
        return func.with_attr("target", Target(own, target.host)) if external and own.host is None and target.host is not None else func
    return func.with_attr("target", target if external else without_host(target))
