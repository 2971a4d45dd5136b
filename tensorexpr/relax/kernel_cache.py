"""The kernels of a graph in machine code, found on disk where an earlier build of the same tensor functions made them.

Found is the object file of all kernels, with the layouts in which they take constants and where their schedules come from: neither
schedules nor lowering nor LLVM run again. What they depend on is the computations of the tensor functions, their names, which arguments
are constants, options, target and sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..arith.index_map import IndexMap
from ..arith.index_map_graph import index_map_from_json
from ..errors import DeclarationError, RecordError, TensorExprError
from ..runtime import sidecar, store
from ..runtime.build import build as build_functions
from ..runtime.code import CompiledCode
from ..runtime.module import Module
from ..runtime.program_key import key_of
from ..target import Target
from ..te.serialize import dag_to_json
from ..tir.function import IRModule, PrimFunc
from .kernels import constant_arguments, kernels_of
from .tensor_function import plain_tensors


@dataclass(frozen=True)
class BuiltKernels:
    """Kernels in machine code.

    Args:
        module: of all.
        origins: where the schedule of each comes from.
        layouts: for each the arguments that are passed packed.
    """

    module: Module
    origins: Mapping[str, str]
    layouts: Mapping[str, Mapping[int, IndexMap]]


def built_kernels(mod: IRModule, target: Target) -> BuiltKernels | None:
    """The kernels of a module; None if it has no tensor functions.

    Raises:
        LoweringError, CodegenError: from the steps.
    """
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)}
    if not functions:
        return None
    key = _key(functions, constant_arguments(mod), target)
    found = None if key is None else _fetched(key, target)
    if found is not None:
        return found
    kernels = kernels_of(mod, target)
    made = build_functions(IRModule({name: kernel.func for name, kernel in kernels.items()}), target=target)
    built = BuiltKernels(
        made, {name: kernel.origin for name, kernel in kernels.items()}, {name: kernel.layouts for name, kernel in kernels.items()}
    )
    if key is not None:
        _keep(key, built)
    return built


def _key(functions: Mapping[str, PrimFunc], constants: Mapping[str, Any], target: Target) -> bytes | None:
    described: dict[str, Any] = {}
    for name, func in functions.items():
        try:
            tensors = plain_tensors(func)
            outputs = [tensor for tensor in tensors if tensor.op.input_tensors]
            described[name] = [dag_to_json([*outputs, *tensors]), list(constants.get(name, ()))]
        except (DeclarationError, RecordError, RecursionError):
            described[name] = [func.script(), list(constants.get(name, ()))]
    return key_of("kernels", {"kernels": described}, target)


def _fetched(key: bytes, target: Target) -> BuiltKernels | None:
    parts = store.fetch(key)
    if parts is None or len(parts) != 3:
        return None
    try:
        said = json.loads(parts[0])
        layouts = {name: {int(n): index_map_from_json(text) for n, text in wanted.items()} for name, wanted in said["layouts"].items()}
        code = CompiledCode(parts[1].decode(), parts[2], sidecar.signatures_from_json(said["functions"]), target, said["level"])
        return BuiltKernels(Module(code), said["origins"], layouts)
    except (ValueError, KeyError, TypeError, AttributeError, TensorExprError):
        return None  # an entry that can't be read is made anew


def _keep(key: bytes, built: BuiltKernels) -> None:
    code = built.module._source()
    said = {
        "functions": sidecar.signatures_to_json(code.signatures),
        "level": code.opt_level,
        "origins": dict(built.origins),
        "layouts": {name: {str(n): one.to_json() for n, one in wanted.items()} for name, wanted in built.layouts.items()},
    }
    store.keep(key, (json.dumps(said).encode(), code.text.encode(), code.data))
