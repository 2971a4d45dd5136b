"""The kernels of a graph in machine code, each found on disk where an earlier build of any graph made it.

Found is the object file of a kernel, with the layouts in which it takes constants and where its schedule comes from: neither schedules
nor lowering nor LLVM run again. What it depends on is the computation of its tensor function, which arguments are constants, options,
target and sources. The numbers in its name count functions of a module, and count for nothing here: a network of which one
layer is changed has one new kernel.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..arith.index_map import IndexMap
from ..dataclass import dataclass
from ..errors import DeclarationError, RecordError, TensorExprError
from ..runtime import store
from ..runtime.linked_code import LinkedCode
from ..runtime.module import Module
from ..runtime.program_key import key_of
from ..target import Target
from ..target.kinds import DEVICE_KINDS, SOURCE_KINDS
from ..te.serialize import dag_to_json
from ..tir.function import IRModule, PrimFunc
from .build_progress import Watch
from .kernels import BuiltKernel, Wanted, constant_arguments, recorded_of
from .regions import regions_of, regions_to_json
from .tensor_function import plain_tensors

_HASH_DIGITS = 12
_NUMBER = re.compile(r"_?\d+(?=_|$)")  # fused_matmul3_relu_1 is the fourth product of a module, and the second that is fused with a ReLU


@dataclass(frozen=True)
class BuiltKernels:
    """Kernels in machine code.

    Args:
        module: of all.
        origins: where the schedule of each comes from.
        layouts: for each the arguments that are passed packed.
        found: those that an earlier build made.
    """

    module: Module
    origins: Mapping[str, str]
    layouts: Mapping[str, Mapping[int, IndexMap]]
    found: frozenset[str] = frozenset()


def built_kernels(mod: IRModule, target: Target, watch: Watch) -> BuiltKernels | None:
    """The kernels of a module; None if it has no tensor functions.

    Args:
        mod: the module.
        target: what to build for.
        watch: is told of each kernel that is there.

    Raises:
        LoweringError, CodegenError: from the steps.
    """
    functions = {var.name_hint: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)}
    if not functions:
        return None
    if target.kind in (*DEVICE_KINDS, *SOURCE_KINDS):
        from .joint_kernels import joint_kernels  # schedules and lowering: nothing is kept of these

        return joint_kernels(functions, target, watch)
    target.check_built()
    constants = constant_arguments(mod)
    wanted: dict[str, Wanted] = {}
    keys: dict[str, bytes | None] = {}
    built: dict[str, BuiltKernel] = {}
    for name, func in functions.items():
        one, keys[name] = _described(name, func, constants.get(name, ()), target)
        found = _fetched(keys[name], one.symbol, target)
        if found is None:
            wanted[name] = one
        else:
            built[name] = found
    kept = frozenset(built)
    watch.begin(len(functions), len(built))
    if wanted:
        from .kernel_builds import made_kernels  # schedules and lowering, which a build that finds all of its kernels doesn't load

        for name, kernel in made_kernels(wanted, target):
            built[name] = kernel
            # At once: a build that is broken off keeps what it has made.
            _keep(keys[name], kernel)
            watch.made(name)
    parts = {name: (built[name].code, built[name].symbol) for name in functions}
    origins = {name: built[name].origin for name in functions}
    return BuiltKernels(Module(LinkedCode(parts, target)), origins, {name: built[name].layouts for name in functions}, kept)


def _described(name: str, func: PrimFunc, constants: Sequence[int], target: Target) -> tuple[Wanted, bytes | None]:
    """A kernel that is to be there, and under which key it may be found; none if nothing may be kept."""
    base = _NUMBER.sub("", name).strip("_") or "kernel"
    computation = recorded = None
    try:
        if func.attrs.get("tir.is_scheduled"):
            raise DeclarationError("its loops are given")
        computation = dag_to_json(plain_tensors(func))
        # The names of arguments are those of variables of the graph.
        ops = [{**one, "name": ""} if one["kind"] == "placeholder" else one for one in computation["ops"]]
        recorded = recorded_of(func, constants, target)
        said: Any = [base, {**computation, "ops": ops}, list(constants), *([] if recorded is None else [recorded.to_json()])]
        said += [{"regions": regions_to_json(regions)}] if (regions := regions_of(func)) else []
    except (DeclarationError, RecordError, RecursionError):
        said = [base, func.script(), list(constants), str(func.attrs.get("schedule.origin", ""))]
    key = key_of("kernel", {"kernel": said}, target)
    # The symbol tells what is computed, not where in a module: object files of any two graphs can be linked.
    digest = hashlib.sha256(key or json.dumps([name, said]).encode()).hexdigest()[:_HASH_DIGITS]
    return Wanted(f"{base}_{digest}", func, tuple(constants), computation, recorded), key


def _fetched(key: bytes | None, symbol: str, target: Target) -> BuiltKernel | None:
    parts = None if key is None else store.fetch(key)
    if parts is None or len(parts) != 3:
        return None
    try:
        return BuiltKernel.of_parts(symbol, target, json.loads(parts[0]), parts[1:])
    except (ValueError, KeyError, TypeError, AttributeError, TensorExprError):
        return None  # an entry that can't be read is made anew


def _keep(key: bytes | None, kernel: BuiltKernel) -> None:
    if key is not None:
        said, blobs = kernel.to_parts()
        store.keep(key, (json.dumps(said).encode(), *blobs))
