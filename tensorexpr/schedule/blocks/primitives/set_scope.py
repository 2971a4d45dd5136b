"""Set scope: the kind of memory that a buffer of the program lives in.

B = T.alloc_buffer((128,))   -- set_scope(B, 0, "local") ->   B_local = T.alloc_buffer((128,), scope="local")
"""

from __future__ import annotations

from ..buffers import check_scope, exchanged, in_scope, own_buffer
from ..instruction import BlockPrimitive
from ..program import BlockProgram


def set_scope(program: BlockProgram, name: str, index: int, scope: str) -> BlockProgram:
    """The program with the buffer of a number among those that a block writes in memory of another scope."""
    realize = program.realize(name)
    buffer = own_buffer(program, realize, index, "set_scope")
    check_scope(scope)
    if buffer.scope() == scope:
        return program
    return exchanged(program, buffer, in_scope(buffer, scope), lambda view: in_scope(view, scope))


class SetScope(BlockPrimitive):
    """The instruction."""

    kind, method, attrs = "SetScope", "set_scope", ("buffer_index", "storage_scope")
    change = staticmethod(set_scope)
