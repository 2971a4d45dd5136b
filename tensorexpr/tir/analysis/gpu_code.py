"""Whether kernels keep within the limits of a device, and whether host code leaves a device's memory alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import DeclarationError
from ..block import Block
from ..dtype import parse_dtype
from ..expr import BufferLoad, IntImm, IterVar, PrimExpr
from ..function import PrimFunc
from ..rewriting import walk
from ..scopes import parts
from ..stmt import Allocate, AttrStmt, BufferRealize, BufferStore, For, Stmt
from ..thread import bound_tag

_LIMITS = (
    "max_local_memory_per_block", "max_shared_memory_per_block", "max_threads_per_block", "max_thread_x", "max_thread_y",
    "max_thread_z", "max_vthread", "max_vector_bytes", "max_kernels",
)  # fmt: skip
_GPU_KINDS = ("cuda", "rocm", "opencl", "metal", "vulkan", "nvptx")


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, Any]) -> bool:
    """Whether every kernel of a function keeps within limits.

    Args:
        constraints: max_threads_per_block, max_thread_x, _y, _z, max_vthread, max_shared_memory_per_block and
            max_local_memory_per_block (bytes), max_vector_bytes, max_kernels -> the limit; those left out don't count.

    Raises:
        DeclarationError: for another limit.
    """
    unknown = [key for key in constraints if key not in _LIMITS]
    if unknown:
        raise DeclarationError(f"verify_gpu_code knows no limit {unknown[0]!r}; there are {', '.join(_LIMITS)}")
    limits = {key: int(value) for key, value in constraints.items()}
    kernels = list(_kernels(func.body))
    if len(kernels) > limits.get("max_kernels", len(kernels)):
        return False
    return all(_fits(kernel, limits) for kernel in kernels)


def _tag(stmt: Stmt) -> tuple[str, PrimExpr] | None:
    """The thread axis that a statement opens, and how many threads it has."""
    if isinstance(stmt, AttrStmt) and isinstance(stmt.node, IterVar) and stmt.attr_key in ("thread_extent", "virtual_thread"):
        return stmt.node.thread_tag, stmt.value
    tag = bound_tag(stmt)
    return None if tag is None or not isinstance(stmt, For) else (tag, stmt.extent)


def _kernels(stmt: Stmt) -> Iterator[Stmt]:
    """The outermost statements that open threads."""
    stack = [stmt]
    while stack:
        now = stack.pop()
        if _tag(now) is not None:
            yield now
        else:
            stack.extend(parts(now).bodies)


def _fits(kernel: Stmt, limits: Mapping[str, int]) -> bool:
    """Whether one kernel keeps within the limits; a size that is no constant does not count as within."""
    threads: dict[str, int] = {}
    used = {"shared": 0, "local": 0}
    for node in walk(kernel):
        if isinstance(node, Stmt) and (opened := _tag(node)) is not None:
            count = opened[1].value if isinstance(opened[1], IntImm) else None
            # An axis that is opened twice is one dimension of the launch: both must have as many threads.
            if count is None or threads.setdefault(opened[0], count) != count:
                return False
        for scope, size in _memory(node):
            used[scope] = used.get(scope, 0) + size
        if isinstance(node, (BufferLoad, BufferStore)):
            kind = parse_dtype(node.dtype if isinstance(node, BufferLoad) else node.value.dtype)
            # No limit given: larger than any vector.
            if kind.lanes > 1 and kind.lanes * kind.itemsize > limits.get("max_vector_bytes", 1 << 62):
                return False
    total = 1
    for axis in "xyz":
        extent = threads.get(f"threadIdx.{axis}", 1)
        total *= extent
        if extent > limits.get(f"max_thread_{axis}", extent):
            return False
    virtual = max((count for tag, count in threads.items() if tag.startswith("vthread")), default=1)
    found = {
        "max_threads_per_block": total, "max_vthread": virtual,
        "max_shared_memory_per_block": used["shared"], "max_local_memory_per_block": used["local"],
    }  # fmt: skip
    return all(value <= limits.get(key, value) for key, value in found.items())


def _memory(node: Any) -> Iterator[tuple[str, int]]:
    """The scope and bytes of what a statement allocates."""
    allocated: list[tuple[Any, str, tuple[PrimExpr, ...]]] = []
    if isinstance(node, Allocate):
        allocated = [(node.buffer_var, node.dtype, node.extents)]
    elif isinstance(node, BufferRealize):
        allocated = [(node.buffer.data, node.buffer.dtype, tuple(r.extent for r in node.bounds))]
    elif isinstance(node, Block):
        allocated = [(buffer.data, buffer.dtype, buffer.shape) for buffer in node.alloc_buffers]
    for var, dtype, extents in allocated:
        kind = parse_dtype(dtype)
        size = kind.itemsize * kind.lanes
        for extent in extents:
            size *= extent.value if isinstance(extent, IntImm) else 1
        yield (var.type_annotation.storage_scope if var.type_annotation else "global").split(".")[0], size


def verify_memory(func: PrimFunc) -> bool:
    """Whether no code of the host touches the memory of a device: on GPUs, all accesses stand in kernels.

    The function's attribute "target" says what it is for; on a CPU, and without one, everything is the host's own.
    """
    # a Target has a kind, a text such as "cuda -arch=sm_80" begins with it
    kind = str(getattr(func.attrs.get("target"), "kind", func.attrs.get("target", "llvm"))).split()[0]
    if kind not in _GPU_KINDS:
        return True
    stack: list[Stmt] = [func.body]
    while stack:
        now = stack.pop()
        if _tag(now) is not None:
            # A kernel: what stands inside is the device's.
            continue
        own = parts(now)
        if isinstance(now, BufferStore) or any(isinstance(node, BufferLoad) for expr in own.exprs for node in walk(expr)):
            return False
        stack.extend(own.bodies)
    return True
