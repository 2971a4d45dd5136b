"""Code generators of others by name, which take a part of a network where `--target "mine, llvm"` names one before the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...relay.expr import Function
from ...relay.from_graph import from_graph
from ...relay.op.contrib import get_pattern_table
from ...relay.transform import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph
from ...runtime.registry import get_global_func
from ...tir.function import IRModule
from .model import TVMCException

_PREFIX = "relay.ext."

# name -> {"pass_pipeline": f(module, parameters, mod_name=..., **options) -> module}. Programs add their own.
REGISTERED_CODEGEN: dict[str, dict[str, Any]] = {}


def _annotated(name: str) -> Callable[..., IRModule]:
    """The pipeline of a generator that says by its table of patterns, or by attributes of operators, what it takes."""

    def pass_pipeline(mod: IRModule, params: Any, mod_name: str = "default", **options: Any) -> IRModule:
        if options:
            raise TVMCException(f"--target {name}: the code generator takes no options, such as {next(iter(options))}")
        table = get_pattern_table(name)
        composed = [] if table is None else [MergeComposite(table)]
        for one in (*composed, AnnotateTarget(name), MergeCompilerRegions(), PartitionGraph(mod_name)):
            mod = one(mod)
        return mod

    return pass_pipeline


def get_codegen_names() -> list[str]:
    """The generators that programs added."""
    return list(REGISTERED_CODEGEN)


def get_codegen_by_target(name: str) -> dict[str, Any]:
    """How a generator takes its part: as it was added, else by patterns and attributes `target.NAME` if relay.ext.NAME is registered.

    Raises:
        TVMCException: if it is neither.
    """
    if name in REGISTERED_CODEGEN:
        return REGISTERED_CODEGEN[name]
    if get_global_func(_PREFIX + name, allow_missing=True) is None:
        known = ", ".join(get_codegen_names()) or "none"
        raise TVMCException(
            f"no code generator {name!r}: there are {known}; a program adds one by registering {_PREFIX}{name}, and to "
            "composite_target.REGISTERED_CODEGEN, if it finds its part by itself"
        )
    return {"pass_pipeline": _annotated(name)}


def partitioned(mod: Any, params: Any, generators: Sequence[Mapping[str, Any]], mod_name: str = "default") -> Any:
    """A module in which generators have taken their parts, in the order in which a target names them.

    Args:
        mod: of Relay or of graphs.
        params: values of parameters.
        generators: of `target.target_from_cli`: {"name": "mine", "opts": {}}.
        mod_name: what names of their functions begin with.

    Raises:
        TVMCException: for a generator that there isn't.
    """
    pipelines = [(get_codegen_by_target(one["name"])["pass_pipeline"], one["opts"]) for one in generators]
    if pipelines and not any(isinstance(func, Function) for func in mod.functions.values()):
        mod = from_graph(mod)
    for pipeline, options in pipelines:
        mod = pipeline(mod, params, mod_name=mod_name, **options)
    return mod
