"""Kernels: parameters, threads and memory of a device. Everything else of a kernel is written as for a CPU.

Pointers are generic; LLVM infers their address spaces from where they come from: parameters of kernels are global memory, `alloca` is
local, and shared memory is a global variable of the module.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import CodegenError
from ..lower.device.tensor_maps import is_map
from ..lower.pragmas import MIN_BLOCKS
from ..target.chips import BULK_COPIES, STATIC_SHARED, capability, chip_of
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import IntImm, IterVar, Range, Var
from ..tir.function import PrimFunc
from ..tir.stmt import Allocate, AttrStmt, For, ForKind, Stmt
from ..tir.thread import HARDWARE_TAGS, bound_tag
from . import control, registers
from .builder import flatten
from .context import FunctionContext, ModuleContext
from .control import statement, unsupported_loop
from .parallel import emit_for as emit_host_for
from .signature import Signature, describe
from .storage import emit_allocate as emit_host_allocate
from .types import VALUE_TYPE, identifier, size_in_bytes

POINTER_ALIGNMENT = 16
"""Bytes that every array of a kernel starts at a multiple of: the widest access of a thread."""
_MAP_BYTES = 128  # of a tensor map
_REGISTERS = {"blockIdx": "ctaid", "threadIdx": "tid"}
_LOCAL_ALIGNMENT = 16
_SHARED_ALIGNMENT, _SWIZZLED_ALIGNMENT = 128, 1024
_LOCAL_LIMIT = 512 << 10  # bytes of local memory that a thread may have


def emit_kernel(module: ModuleContext, name: str, func: PrimFunc) -> Signature:
    """Write a function of pointers and numbers as a kernel.

    Raises:
        CodegenError: for names that PTX doesn't take, and functions that start no threads.
    """
    if not all(c.isascii() and (c.isalnum() or c in "_$") for c in name) or not name:
        raise CodegenError(f"a kernel can't be called {name!r}: PTX takes letters, digits, _ and $; set another global_symbol")
    ctx = FunctionContext(module, name, noalias=bool(func.attrs.get("tir.noalias", False)))
    names = [f"%{ctx.text.fresh(identifier(var.name))}" for var in func.params]
    for var, argument in zip(func.params, names, strict=True):
        ctx.bind(var, argument)
        if var.dtype == "handle":
            ctx.alignments[var] = POINTER_ALIGNMENT
    statement(ctx, func.body)
    arguments = [f"{_parameter(ctx, var)} {argument}" for var, argument in zip(func.params, names, strict=True)]
    threads = ctx.module.launches.get(name, {})
    sizes = [threads.get(f"threadIdx.{axis}", 1) for axis in "xyz"]
    fixed = f' "nvvm.reqntid"="{",".join(map(str, sizes))}"' if None not in sizes else ""
    if ctx.min_blocks:
        fixed += f' "nvvm.minctasm"="{ctx.min_blocks}"'
    head = f"define ptx_kernel void {'@' + name}({', '.join(arguments)}) #0{fixed} {{"
    lines = [head, "entry:", *ctx.text.entry, "  br label %start", "start:", *flatten(ctx.text.lines), "  ret void", "}"]  # type: ignore[arg-type]
    module.text.functions.append("\n".join(lines))
    return replace(describe(name, func, ctx.read_through, ctx.written_through), errors=tuple(ctx.errors))


def _parameter(ctx: FunctionContext, var: Var) -> str:
    if var.dtype != "handle":
        return VALUE_TYPE[var.dtype]
    if is_map(var):
        return f'ptr byval([{_MAP_BYTES} x i8]) align 64 "nvvm.grid_constant"'
    words = ["noalias"] if ctx.noalias else []
    if var not in ctx.written_through:
        words.append("readonly")
    return " ".join(["ptr", *words, f"align {POINTER_ALIGNMENT}"])


# Threads


def emit_for(ctx: FunctionContext, stmt: Stmt) -> None:
    """For: a loop over threads is what each of them does; one that runs in parallel within a thread is serial."""
    assert isinstance(stmt, For)
    tag = bound_tag(stmt)
    ctx.min_blocks = max(ctx.min_blocks, as_int(stmt.annotations.get(MIN_BLOCKS, 0)) or 0)
    if tag is None:
        emit_host_for(ctx, replace(stmt, kind=ForKind.SERIAL) if stmt.kind is ForKind.PARALLEL else stmt)
        return
    if tag not in HARDWARE_TAGS or as_int(stmt.min) != 0:
        raise unsupported_loop(ctx, stmt)
    _bind_thread(ctx, stmt.loop_var, tag, as_int(stmt.extent))
    with ctx.ranged(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent)):
        statement(ctx, stmt.body)


def emit_attr(ctx: FunctionContext, stmt: Stmt) -> None:
    """AttrStmt: threads start; other attributes have said what they had to say."""
    assert isinstance(stmt, AttrStmt)
    if stmt.attr_key == MIN_BLOCKS:
        ctx.min_blocks = max(ctx.min_blocks, as_int(stmt.value) or 0)
    if stmt.attr_key != "thread_extent" or not isinstance(stmt.node, IterVar):
        control.emit_body(ctx, stmt)
        return
    _bind_thread(ctx, stmt.node.var, stmt.node.thread_tag, as_int(stmt.value))
    with ctx.ranged(stmt.node.var, Range.from_min_extent(IntImm(stmt.value.dtype, 0), stmt.value)):
        statement(ctx, stmt.body)


def _bind_thread(ctx: FunctionContext, var: Var, tag: str, extent: int | None) -> None:
    launch = ctx.module.launches.setdefault(ctx.name, {})
    if launch.setdefault(tag, extent) != extent:
        raise CodegenError(f"In {ctx.name}: {tag} is bound with extent {launch[tag]} and with {extent}; a kernel has one number of threads")
    kind, axis = tag.split(".")
    limits = "" if extent is None else f"range(i32 0, {extent}) "
    name = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[kind]}.{axis}"
    ctx.module.text.declare(name, "i32")
    value = ctx.once(("thread", tag), lambda: ctx.text.value(f"call {limits}i32 @{name}()"))
    wide = ctx.index_type(var)
    ctx.wide[var] = value if wide == "i32" else ctx.text.value(f"zext i32 {value} to {wide}")
    ctx.levels[var] = len(ctx.loops)


# Memory


def emit_allocate(ctx: FunctionContext, stmt: Stmt) -> None:
    """Allocate: shared memory is a variable of the module, all other memory is the thread's own."""
    assert isinstance(stmt, Allocate)
    annotation = stmt.buffer_var.type_annotation
    scope = annotation.storage_scope if annotation is not None else ""
    if scope == registers.SCOPE:
        emit_host_allocate(ctx, stmt)
        return
    size = _constant_bytes(ctx, stmt, scope)
    if scope == "shared":
        _shared(ctx, stmt.buffer_var, size)
    elif scope == "shared.dyn":
        _dynamic_shared(ctx, stmt.buffer_var, size)
    else:
        _local(ctx, stmt.buffer_var, size)
    ctx.levels[stmt.buffer_var] = 0
    statement(ctx, stmt.body)


def _constant_bytes(ctx: FunctionContext, stmt: Allocate, scope: str) -> int:
    count = stmt.constant_size()
    if count is not None and count >= 0:
        lanes = parse_dtype(stmt.dtype).lanes
        return max(1, count) * max(1, size_in_bytes(stmt.dtype)) if lanes else 0
    raise CodegenError(
        f"In {ctx.name}: the allocation of {stmt.buffer_var.name} ({scope or 'local'}) has no constant size; memory inside a kernel needs "
        "one: allocate the most that is ever used"
    )


def _local(ctx: FunctionContext, var: Var, size: int) -> None:
    ctx.stack_bytes += size
    if ctx.stack_bytes > _LOCAL_LIMIT:
        raise CodegenError(f"In {ctx.name}: {var.name} makes {ctx.stack_bytes} bytes of local memory, and a thread has {_LOCAL_LIMIT}")
    name = f"%{ctx.text.fresh(identifier(var.name))}"
    ctx.text.entry.append(f"  {name} = alloca [{size} x i8], align {_LOCAL_ALIGNMENT}")
    ctx.bind(var, name)
    ctx.alignments[var] = _LOCAL_ALIGNMENT


def _shared(ctx: FunctionContext, var: Var, size: int) -> None:
    used = ctx.module.shared.get(ctx.name, 0)
    used = -(-used // _SHARED_ALIGNMENT) * _SHARED_ALIGNMENT + size
    if used > STATIC_SHARED:
        raise CodegenError(
            f"In {ctx.name}: {var.name} makes {used} bytes of static shared memory, and a block has {STATIC_SHARED}; use scope "
            f'"shared.dyn", of which {ctx.module.target.arch} has {chip_of(ctx.module.target.arch).shared_bytes}'
        )
    ctx.module.shared[ctx.name] = used
    name = f"@{ctx.name}_{''.join(c if c.isalnum() else '_' for c in var.name)}_{len(ctx.module.text.constants)}"
    ctx.module.text.constants.append(f"{name} = internal addrspace(3) global [{size} x i8] undef, align {_SHARED_ALIGNMENT}")
    ctx.bind(var, f"addrspacecast (ptr addrspace(3) {name} to ptr)")
    ctx.alignments[var] = _SHARED_ALIGNMENT


def _dynamic_shared(ctx: FunctionContext, var: Var, size: int) -> None:
    limit = chip_of(ctx.module.target.arch).shared_bytes
    if ctx.name in ctx.module.dynamic:
        raise CodegenError(f"In {ctx.name}: {var.name} is a second allocation of dynamic shared memory; run MergeSharedMemoryAllocations")
    if size + ctx.module.shared.get(ctx.name, 0) > limit:
        arch = ctx.module.target.arch
        raise CodegenError(f"In {ctx.name}: {var.name} takes {size} bytes of shared memory, and a block of {arch} has {limit}")
    ctx.module.dynamic[ctx.name] = size
    name = f"@{ctx.name}_dynamic"
    ctx.module.text.constants.append(f"{name} = external addrspace(3) global [0 x i8], align {_dynamic_alignment(ctx)}")
    ctx.bind(var, f"addrspacecast (ptr addrspace(3) {name} to ptr)")
    ctx.alignments[var] = _SHARED_ALIGNMENT


def _dynamic_alignment(ctx: FunctionContext) -> int:
    """Swizzled rows lie in groups of eight, which begin at multiples of their 1024 bytes."""
    return _SWIZZLED_ALIGNMENT if capability(ctx.module.target.arch) >= BULK_COPIES else _SHARED_ALIGNMENT
