"""`build` for a device: kernels as text of the device's assembly, and what the host does to run them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.signature import Signature, describe
from ..errors import ArgumentError
from ..lower.context import PassContext
from ..lower.device.split_host_device import split_host_device
from ..target import Target
from ..tir.expr import BufferLoad
from ..tir.function import IRModule, PrimFunc
from ..tir.rewriting import walk
from ..tir.stmt import BufferStore
from . import engine
from .build import symbol_of
from .device_module import DeviceCode, DeviceFunctionCode, DeviceModule, KernelInfo

_LLVM_LEVEL = 3


def build_for_device(
    inputs: Any, args: Sequence[Any] | None, target: Target, name: str | None, binds: Mapping[Any, Any] | None
) -> DeviceModule:
    """Compile to kernels; arguments and errors as for `build`."""
    from ..lower.pipeline import lower  # not loaded by programs that only run what was built

    symbol = symbol_of(inputs, name)
    start = time.perf_counter()
    with target:
        module = lower(inputs, args, symbol, binds)
    functions = {str(var.name_hint): func for var, func in module.functions_items() if isinstance(func, PrimFunc)}
    if not functions:
        raise ArgumentError("build: the module holds no function to compile")
    hosts, kernels = hosts_of(module, target)
    finished = _finished(IRModule({name: func for name, func in kernels.items()}))
    lowered_at = time.perf_counter()
    code = _emit(finished, target)
    code.timings.update(lower=lowered_at - start)
    return DeviceModule(code, hosts, target, module)


def hosts_of(lowered: IRModule, target: Target) -> tuple[dict[str, DeviceFunctionCode], dict[str, PrimFunc]]:
    """The host's part of each function of a lowered module, and the kernels of all, by name."""
    hosts: dict[str, DeviceFunctionCode] = {}
    kernels: dict[str, PrimFunc] = {}
    for var, func in lowered.functions_items():
        name = str(var.name_hint)
        if isinstance(func, PrimFunc):
            host, made = split_host_device(name, func, target)
            hosts[name] = DeviceFunctionCode(_signature(name, func), host, _pointers(func))
            kernels.update(made)
    return hosts, kernels


def _finished(kernels: IRModule) -> IRModule:
    """Kernels with barriers, reductions over threads and memory of warps as code generation takes them."""
    from ..lower import transform
    from ..lower.device.async_queues import LowerAsyncQueues
    from ..lower.device.bulk_copies import LowerBulkCopies
    from ..lower.device.lone_units import LoneUnits
    from ..lower.device.proxy_fences import ProxyFences

    # Merged before barriers are put: what shares a place needs one between.
    for one in (
        LoneUnits(),  # on memory of warps: what a thread fills or stores of it is known from its places
        transform.LowerWarpMemory(),
        transform.MergeSharedMemoryAllocations(),
        transform.ThreadSync("shared"),
        transform.ThreadSync("shared.dyn"),
        transform.ThreadSync("warp"),
        transform.InjectPTXAsyncCopy(proved=True),  # behind barriers, which look at stores
        LowerAsyncQueues(),
        LowerBulkCopies(),
        ProxyFences(),  # behind the waits for copies
        transform.LowerThreadAllreduce(),
    ):
        kernels = one(kernels)
    return kernels


def _emit(kernels: IRModule, target: Target) -> DeviceCode:
    from ..codegen.emit import emit_module

    functions = {str(var.name_hint): func for var, func in kernels.functions_items() if isinstance(func, PrimFunc)}
    start = time.perf_counter()
    emitted = emit_module(functions, target, debug=bool(PassContext.current().config.get("tir.enable_debug")))
    emitted_at = time.perf_counter()
    assembly = engine.emit_assembly(emitted.text, target, _LLVM_LEVEL)
    infos = {
        name: KernelInfo(tuple(param.dtype for param in func.params), emitted.shared.get(name, 0), emitted.dynamic.get(name, 0))
        for name, func in functions.items()
    }
    timings = {"emit": emitted_at - start, "codegen": time.perf_counter() - emitted_at}
    return DeviceCode(emitted.text, assembly, infos, target, timings)


def _signature(name: str, func: PrimFunc) -> Signature:
    """How the host's function is called."""
    reads = {node.buffer.data for node in walk(func.body) if isinstance(node, BufferLoad)}
    writes = {node.buffer.data for node in walk(func.body) if isinstance(node, BufferStore)}
    handed = {buffer.data for buffer in func.buffer_map.values()} - reads - writes  # an instruction reads or writes through it
    return describe(name, func, reads | handed, writes | handed)


def _pointers(func: PrimFunc) -> tuple[Any, ...]:
    return tuple(func.buffer_map[param].data if param in func.buffer_map else param for param in func.params)
