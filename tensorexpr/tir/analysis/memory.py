"""How much memory a program allocates."""

from __future__ import annotations

from ..block import Block
from ..buffer import Buffer
from ..dtype import parse_dtype
from ..expr import IntImm, PrimExpr, Var
from ..function import IRModule, PrimFunc
from ..scopes import parts
from ..stmt import Allocate, BufferRealize, Stmt


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """By function and storage scope, the most bytes that are allocated at one time; sizes that aren't constant are left out."""
    if isinstance(func_or_mod, IRModule):
        return {var.name_hint: _peaks(func.body) for var, func in func_or_mod.functions_items()}
    return {str(func_or_mod.attrs.get("global_symbol", "main")): _peaks(func_or_mod.body)}


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The most bytes that a function allocates at one time, in all scopes, each allocation rounded up to the alignment."""
    return _Peak(max(1, int(workspace_byte_alignment))).of(func.body)


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """The bytes of the constants that a function holds: arrays are arguments here, so none."""
    return 0


class _Peak:
    """The most bytes at one time, with every allocation rounded up."""

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment

    def of(self, body: Stmt) -> int:
        """The peak of a statement: an allocation lives as long as its body runs."""
        now = peak = 0
        stack: list[Stmt | int] = [body]
        while stack:
            current = stack.pop()
            if isinstance(current, int):
                now -= current
                continue
            # Up to the next multiple of the alignment.
            sizes = [-(-size // self._alignment) * self._alignment for _, size in _allocations(current)]
            now += sum(sizes)
            peak = max(peak, now)
            # Under the bodies on the stack: what was allocated for them is given back when they are done.
            stack.append(sum(sizes))
            stack.extend(reversed(parts(current).bodies))
        return peak


def _peaks(body: Stmt) -> dict[str, int]:
    now: dict[str, int] = {}
    peak: dict[str, int] = {}
    stack: list[Stmt | tuple[str, int]] = [body]
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            now[current[0]] -= current[1]
            continue
        for scope, size in _allocations(current):
            now[scope] = now.get(scope, 0) + size
            peak[scope] = max(peak.get(scope, 0), now[scope])
            stack.append((scope, size))
        stack.extend(reversed(parts(current).bodies))
    return peak


def _allocations(stmt: Stmt) -> list[tuple[str, int]]:
    """Scope and bytes of each allocation that a statement makes."""
    match stmt:
        case Allocate():
            return [_allocation(stmt.buffer_var, stmt.dtype, stmt.extents)]
        case BufferRealize():
            return [_of_buffer(stmt.buffer, tuple(r.extent for r in stmt.bounds))]
        case Block():
            return [_of_buffer(buffer, buffer.shape) for buffer in stmt.alloc_buffers]
    return []


def _of_buffer(buffer: Buffer, extents: tuple[PrimExpr, ...]) -> tuple[str, int]:
    return _allocation(buffer.data, buffer.dtype, extents)


def _allocation(var: Var, dtype: str, extents: tuple[PrimExpr, ...]) -> tuple[str, int]:
    """Scope and bytes of one allocation."""
    parsed = parse_dtype(dtype)
    size = parsed.itemsize * parsed.lanes
    for extent in extents:
        size *= extent.value if isinstance(extent, IntImm) else 0
    return (var.type_annotation.storage_scope if var.type_annotation else "global"), size
