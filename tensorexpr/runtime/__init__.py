"""5 RUN: arrays, modules of machine code, argument checks, threads, timing, export.

build.py       schedule or loop IR -> Module            module.py    Module: call, time, save
engine.py      LLVM text -> object -> addresses         openmp.py    the threads of parallel loops
function.py    a call: fastcall.py, else arguments.py   ndarray.py   nd.array, DLPack
timing.py      time_evaluator                           export.py    .so, .o, C header, load_module
object.py, container.py      Python values as nodes, dtypes, texts, tuples      profiling.py    measurements with units, reports
registry.py    Python functions by name                 packed.py    calls of them from compiled code
cache.py       what is found on disk, not made again    store.py     entries on disk; program_key.py: equal programs
binding.py     shapes and strides that bind variables   device.py    where arrays live; dlpack.py: DLPack both ways
network.py     exported networks without the compiler: load
sidecar.py     the description beside a saved library   elf.py       which symbols an object needs
layout.py, python_api.py, fastcall_ir.py    what native calls know of NumPy and the interpreter
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import TensorExprError
from ..later import later
from ..processor import usable_cores
from .device import Device, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, mtl, opencl, rocm, vpi, vulkan, webgpu
from .network import load

if TYPE_CHECKING:
    from . import container, packed
    from .function import Function as PackedFunc
    from .module import Module
    from .ndarray import NDArray, array
    from .ndarray import NDArray as Tensor
    from .ndarray import array as tensor
    from .object import (
        DataType,
        DataTypeCode,
        Object,
        ObjectGeneric,
        ObjectPath,
        ObjectPathPair,
        ObjectTypes,
        Scriptable,
        ShapeTuple,
        String,
        const,
        convert,
        convert_to_object,
    )
    from .params import load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file
    from .registry import get_global_func, list_global_func_names, register_func, remove_global_func
    from .timing import BenchmarkResult

# Running an exported network needs none of these, and they load the language of the compiler.
_HOMES = {
    ".function": "PackedFunc=Function",
    ".module": "Executable=Module Module",  # the former as releases from 0.20 on call what `compile` gives
    ".ndarray": "NDArray array from_dlpack Tensor=NDArray tensor=array",  # the latter two as releases from 0.20 on call them
    ".object": """DataType DataTypeCode Object ObjectGeneric ObjectPath ObjectPathPair ObjectTypes Scriptable ShapeTuple String const
        convert convert_to_object""",
    ".params": "load_param_dict load_param_dict_from_file save_param_dict save_param_dict_to_file",
    ".registry": "get_global_func list_global_func_names register_func remove_global_func",
    ".timing": "BenchmarkResult",
}
__getattr__, __dir__ = later(__name__, _HOMES, "container packed vm")

__all__ = [
    "BenchmarkResult",
    "DataType",
    "DataTypeCode",
    "Device",
    "Module",
    "NDArray",
    "Object",
    "ObjectGeneric",
    "ObjectPath",
    "ObjectPathPair",
    "ObjectTypes",
    "PackedFunc",
    "Scriptable",
    "ShapeTuple",
    "String",
    "Tensor",
    "array",
    "cl",
    "const",
    "container",
    "convert",
    "convert_to_object",
    "cpu",
    "cuda",
    "device",
    "enabled",
    "ext_dev",
    "get_global_func",
    "gpu",
    "hexagon",
    "list_global_func_names",
    "load",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "load_static_library",
    "metal",
    "mtl",
    "num_threads",
    "opencl",
    "packed",
    "register_func",
    "remove_global_func",
    "rocm",
    "save_param_dict",
    "save_param_dict_to_file",
    "system_lib",
    "tensor",
    "vpi",
    "vulkan",
    "webgpu",
]


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Any:
    """The module in a file that `export_library` or `save` wrote; of a graph, the executable, which goes into a virtual machine.

    Loading runs its code: load only what you trust.

    Raises:
        TensorExprError: if the file or its description (`path` + ".json") is missing or they don't belong together.
        TargetError: if it was built for a CPU with features that this machine lacks.
    """
    from .export import load_module as load_code

    name = os.fspath(path)
    kind = fmt or os.path.splitext(name)[1][1:]
    if kind in ("so", "dylib", "tar") and not os.path.exists(f"{name}.json") and os.path.exists(name):
        library = importlib.import_module("tensorexpr.relax.runtime.library")  # a higher row of the house
        graph = library.load_archived(name) if kind == "tar" else library.load_executable(name)
        if graph is not None:
            return graph
    if (fmt or os.path.splitext(name)[1][1:]) == "ptx":
        return importlib.import_module(".device_export", __name__).read(Path(name))
    from .module import Module

    return Module(load_code(path, fmt))


def load_static_library(path: str, func_names: Sequence[str]) -> Module:
    """An object file or archive that `export_library` is to link; its code can't be called from Python.

    Raises:
        TensorExprError: always; it says what to do.
    """
    raise TensorExprError(f"{path} can't be a module here; name it in `addons` of export_library, which links it")


def enabled(target: str) -> bool:
    """Whether code can be built and run for a kind of target, or a device is there: "llvm", "c" and "cpu"."""
    from ..target.kinds import BUILT_KINDS, SOURCE_KINDS

    name = str(target).split(" ")[0]
    return name in (*BUILT_KINDS, *SOURCE_KINDS, "cpu")


def num_threads() -> int:
    """The threads that parallel loops use by default."""
    return usable_cores()


def system_lib(symbol_prefix: str = "") -> Module:
    """Programs linked with compiled functions register them in one library; Python programs have none.

    Raises:
        TensorExprError: always; it says what to do.
    """
    raise TensorExprError(
        "there is no system library: functions are not linked into the interpreter; export_library and load_module a file"
    )
