"""Fences in front of barriers, where matrix units of four warps read shared memory.

    s[tx] = ...                              s[tx] = ...
    T.tvm_storage_sync("shared")     ->      T.ptx_fence_proxy_async()
    T.ptx_wgmma(...)                         T.tvm_storage_sync("shared")
                                             T.ptx_wgmma(...)

The units read past the threads: a barrier lets other threads see what was written or copied, and the fence the units. What the copy engine
brings they see without one.
"""

from __future__ import annotations

from ...tir.device_intrin import device_call
from ...tir.expr import Call
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import BufferStore, Evaluate, SeqStmt, Stmt, seq
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, pointer_scope
from .barriers import barrier_scope

_FENCE = "tir.ptx_fence_proxy_async"


def ProxyFences() -> Pass:
    """`ptx_fence_proxy_async` in front of each barrier of a kernel with `ptx_wgmma`."""
    return Pass("tir.ProxyFences", _fenced)


def _fenced(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    nodes = list(walk(func.body))
    units = any(isinstance(node, Call) and node.op == "tir.ptx_wgmma" for node in nodes)
    return func.with_body(_stmt(func.body)) if units and any(map(_writes_shared, nodes)) else func


def _writes_shared(node: object) -> bool:
    """Whether threads write shared memory, or copy into it."""
    if isinstance(node, Call):
        return node.op == "tir.ptx_cp_async"
    return isinstance(node, BufferStore) and pointer_scope(node.buffer.data) in ("shared", "shared.dyn")


def _stmt(stmt: Stmt) -> Stmt:
    if barrier_scope(stmt) in ("shared", "shared.dyn"):
        return seq(Evaluate(device_call("ptx_fence_proxy_async")), stmt)
    result = map_stmt(stmt, _stmt)
    if not isinstance(result, SeqStmt):
        return result
    doubled = [_is_fence(part) and number > 0 and _is_fence(result.seq[number - 1]) for number, part in enumerate(result.seq)]
    return seq(*(part for part, twice in zip(result.seq, doubled, strict=True) if not twice)) if any(doubled) else result


def _is_fence(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == _FENCE
