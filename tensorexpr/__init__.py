"""tensorexpr: declare tensor computations, schedule them, compile them to machine code, and tune them.

The house, from top to bottom; every row imports only from the rows above it:

    errors, target, log, config, processor
    tir/             the language: expressions, loop statements, buffers, functions, printer, interpreter
    ir/              what all programs share, by its customary names: modules, structural equality
    arith/           index algebra: bounds, congruences, affine forms, proofs
    te/              1 DECLARE   placeholder, compute, reduce_axis; the DAG; what it means
    schedule/        2 SCHEDULE  steps, traces, the immutable tree, te.Schedule; tir.Schedule
    lower/           3 LOWER     the numbered phases, PassContext
    codegen/         4 EMIT      LLVM IR
    runtime/         5 RUN       arrays, modules, calls, threads, timing
    contrib/         compilers, archives and temporary folders
    rpc/             sessions that run functions for other processes
    early            names of the releases up to 0.6
    support          what this installation is made of
    tune/            6 SEARCH    spaces, populations, features, cost models, measuring, records
    auto_scheduler/  a front door on tune/
    meta_schedule/   another one, for functions of blocks
    autotvm/         and one for templates with knobs
    topi/            operators on te, and their default schedules
    workloads/       standard operator suites
    script/          TVMScript, as decorators and as text
    relax/           graphs: functions of calls, passes on them, what runs them
    dlight/          schedules of graphs' functions without a search, by TVM's names
    driver/          the command line: bench, report
    testing/         strategies and checks for users' own tests (needs hypothesis)

Importing it is cheap: everything is loaded on first use, so that a program which only runs an exported network loads no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from .errors import TensorExprError, TVMError
from .later import later

if TYPE_CHECKING:
    from . import (
        auto_scheduler,
        autotvm,
        contrib,
        driver,
        ir,
        meta_schedule,
        relax,
        rpc,
        runtime,
        schedule,
        script,
        support,
        target,
        te,
        testing,
        tir,
        topi,
        workloads,
    )
    from .driver.build import build
    from .driver.compile import compile
    from .ir import container
    from .ir.registration import register_extension, register_object
    from .lower import instruments as instrument
    from .lower import transform
    from .lower.pipeline import lower
    from .runtime import ndarray as nd
    from .runtime.device import cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, mtl, opencl, rocm, vpi, vulkan, webgpu
    from .runtime.object import DataType, DataTypeCode, Object
    from .runtime.registry import get_global_func, register_func
    from .target import Target
    from .tir.function import IRModule

__version__ = "0.1.0"

_HOMES = {
    "tensorexpr.driver.build": "build",
    "tensorexpr.driver.compile": "compile",
    "tensorexpr.ir.container": "container=.",
    "tensorexpr.ir.registration": "register_extension register_object",
    "tensorexpr.lower.instruments": "instrument=.",
    "tensorexpr.lower.pipeline": "lower",
    "tensorexpr.lower.transform": "transform=.",
    "tensorexpr.runtime": "convert",
    "tensorexpr.runtime.device": "cl context=device cpu cuda device ext_dev gpu hexagon metal mtl opencl rocm vpi vulkan webgpu",
    "tensorexpr.runtime.module": "module=.",
    "tensorexpr.runtime.ndarray": "nd=. ndarray=.",
    "tensorexpr.runtime.object": "DataType DataTypeCode",
    "tensorexpr.runtime.registry": "get_global_func register_func register_global_func=register_func",
    "tensorexpr.target": "Target",
    "tensorexpr.tir.function": "IRModule",
    "tensorexpr.tir.node": "Object",
    # Names that programs of the releases up to 0.6 use at the top level.
    "tensorexpr.early": "build_config register_intrin_rule",
    "tensorexpr.early.ir_pass": "ir_pass=.",
    "tensorexpr.early.make": "make=.",
    "tensorexpr.te": """all any comm_reducer compute const create_schedule decl_tensor_intrin div exp extern floor gradient indexdiv
        indexmod max max_value min min_value placeholder power reduce_axis scan sigmoid size_var sqrt sum tag_scope tanh thread_axis var""",
    "tensorexpr.te.hybrid": "hybrid=.",
    "tensorexpr.te.tensor_intrin": "tensor_intrin=.",
    "tensorexpr.tir": """abs call_extern call_intrin call_llvm_intrin=call_llvm_pure_intrin call_packed call_pure_extern
        call_pure_intrin=call_intrin ceil decl_buffer expr=. if_then_else popcount round select=Select stmt=. trunc""",
    "tensorexpr.tir.ir_builder": "ir_builder=.",
    "tensorexpr.topi.operators": "generic=.",
}
_MODULES = """_ffi auto_scheduler autotvm contrib dlight driver error ir log meta_schedule relax relay rpc runtime schedule script support
    target te testing tir topi workloads"""
_defined_elsewhere, _ = later(__name__, _HOMES, _MODULES)
_PLANNED = ("micro",)
_EARLY_DTYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

__all__ = [
    "DataType",
    "DataTypeCode",
    "IRModule",
    "Object",
    "TVMError",
    "Target",
    "TensorExprError",
    "__version__",
    "auto_scheduler",
    "autotvm",
    "build",
    "cl",
    "compile",
    "container",
    "contrib",
    "cpu",
    "cuda",
    "device",
    "driver",
    "error",
    "errors",
    "ext_dev",
    "get_global_func",
    "gpu",
    "hexagon",
    "instrument",
    "ir",
    "lower",
    "meta_schedule",
    "metal",
    "mtl",
    "nd",
    "opencl",
    "register_extension",
    "register_func",
    "register_object",
    "relax",
    "rocm",
    "rpc",
    "runtime",
    "schedule",
    "script",
    "support",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
    "vpi",
    "vulkan",
    "webgpu",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name in _EARLY_DTYPES:
        return name
    if name in _PLANNED:
        raise AttributeError(f"module 'tensorexpr' has no attribute {name!r}; it is planned, see docs/roadmap.md")
    return _defined_elsewhere(name)


def __dir__() -> list[str]:
    return list(__all__)
