"""Pointers into buffers as addresses of elements: `tvm_access_ptr(type, data, offset, extent, mask)` -> `address_of(data[offset])`."""

from __future__ import annotations

from ...tir.arithmetic import const
from ...tir.buffer import decl_buffer
from ...tir.expr import BufferLoad, Call, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, walk
from ..context import PassContext
from ..passes import Pass

_ACCESS_PTR = "tir.tvm_access_ptr"


def LowerDeviceStorageAccessInfo() -> Pass:
    """Access pointers as addresses; what they may be used for is known to nobody from here on."""

    def rule(node: Node) -> Node | None:
        return _address(node) if isinstance(node, Call) and node.op == _ACCESS_PTR else None

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        found = any(isinstance(node, Call) and node.op == _ACCESS_PTR for node in walk(func.body))
        return func.with_body(post_order_rewrite(func.body, rule)) if found else func

    return Pass("tir.LowerDeviceStorageAccessInfo", run)


def _address(call: Call) -> PrimExpr | None:
    kind, data, offset = call.args[:3]
    if not isinstance(data, Var):
        return None
    buffer = decl_buffer((offset + const(1, offset.dtype),), kind.dtype, data.name, data)
    return Call("handle", "tir.address_of", (BufferLoad(buffer, (offset,)),))
