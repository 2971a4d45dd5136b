"""From the statement that `ScheduleOps` makes to a function, for programs that lower by hand. Names as TE has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import LoweringError
from ...te.tensor import Tensor
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, walk
from ...tir.stmt import BufferRealize, BufferStore, Stmt


def VerifyCompactBuffer(stmt: Stmt) -> bool:
    """True if all buffers that a statement accesses are compact: row after row without gaps, from their first element on."""
    return all(not buffer.strides for buffer in _accessed(stmt))


def SchedulePostProcToPrimFunc(
    arg_list: Sequence[Tensor | Var | Buffer], stmt: Stmt, extern_buffer: Mapping[Tensor, Buffer] | None = None
) -> PrimFunc:
    """The function of `arg_list` whose body is the statement of `ScheduleOps`.

    Args:
        arg_list: the tensors and scalars, in the order of the parameters; every input and output is among them.
        stmt: what `ScheduleOps` returned.
        extern_buffer: the buffers to use for tensors; by default those of the statement.

    Raises:
        LoweringError: if a tensor's buffer isn't in the statement, or the statement accesses one that is no argument.
    """
    wanted = dict(extern_buffer or {})
    by_buffer = {buffer: tensor for tensor, buffer in wanted.items()}
    free = _free_buffers(stmt)
    params: dict[Var, Buffer | None] = {}
    renamed: dict[Buffer, Buffer] = {}
    for position, arg in enumerate(arg_list):
        if isinstance(arg, Var):
            params[arg] = None
            continue
        tensor = by_buffer.get(arg) if isinstance(arg, Buffer) else arg
        if not isinstance(tensor, Tensor):
            raise LoweringError(f"argument {position} is {arg!r}; arg_list takes tensors, scalar variables and buffers of extern_buffer")
        own = _buffer_of(tensor, position, free)
        renamed[own] = wanted.get(tensor, own)
        params[Var(renamed[own].name, "handle")] = renamed[own]
    missing = [buffer.name for buffer in free if buffer not in renamed]
    if missing:
        raise LoweringError(f"the statement accesses {', '.join(missing)}, which is missing from arg_list; add its tensor")
    attrs = FrozenMap({"global_symbol": "main", "from_legacy_te_schedule": True, "tir.noalias": True})
    return PrimFunc(tuple(params), _with_buffers(stmt, renamed), None, {var: b for var, b in params.items() if b is not None}, attrs)


def _accessed(stmt: Stmt) -> dict[Buffer, None]:
    return dict.fromkeys(node.buffer for node in walk(stmt) if isinstance(node, (BufferLoad, BufferStore)))


def _free_buffers(stmt: Stmt) -> list[Buffer]:
    own = {node.buffer for node in walk(stmt) if isinstance(node, BufferRealize)}
    return [buffer for buffer in _accessed(stmt) if buffer not in own]


def _buffer_of(tensor: Tensor, position: int, free: Sequence[Buffer]) -> Buffer:
    """The buffer that `ScheduleOps` made for a tensor: the one of its name, dtype and shape."""
    key: Any = (tensor.name, tensor.dtype, tuple(map(str, tensor.shape)))
    fitting = [buffer for buffer in free if (buffer.name, buffer.dtype, tuple(map(str, buffer.shape))) == key]
    if len(fitting) != 1:
        found = "none" if not fitting else f"{len(fitting)}"
        raise LoweringError(
            f"argument {position}, {tensor.name}: the statement has {found} of that name, dtype and shape; "
            "give tensors names of their own, or lower the schedule as a whole with tensorexpr.lower"
        )
    return fitting[0]


def _with_buffers(stmt: Stmt, renamed: Mapping[Buffer, Buffer]) -> Stmt:
    if all(old is new for old, new in renamed.items()):
        return stmt

    def rule(node: Node) -> Node | None:
        match node:
            case BufferLoad(buffer=buffer, indices=indices) if buffer in renamed:
                return BufferLoad(renamed[buffer], indices)
            case BufferStore(buffer=buffer, value=value, indices=indices) if buffer in renamed:
                return BufferStore(renamed[buffer], value, indices)
        return None

    return post_order_rewrite(stmt, rule)
