"""From the statement that `ScheduleOps` makes to a function, for programs that lower by hand. Names as TE has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import LoweringError
from ...te.tensor import Tensor
from ...te.tensor_form import bound_tensors, mentioned, realized, with_buffers
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import BufferLoad, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import BufferStore, Stmt
from ..rebuild import Copier


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
        extern_buffer: the buffers to use for tensors; by default compact ones.

    Raises:
        LoweringError: if the statement reads or writes a tensor that it doesn't realize and that is no argument.
    """
    buffers, body = bound_tensors(stmt)
    wanted = dict(extern_buffer or {})
    by_buffer = {buffer: tensor for tensor, buffer in wanted.items()}
    scopes = mentioned(body)
    params: dict[Var, Buffer | None] = {}
    moved: dict[Buffer, Buffer] = {}
    given: list[Tensor] = []
    for position, arg in enumerate(arg_list):
        if isinstance(arg, Var):
            params[arg] = None
            continue
        tensor = by_buffer.get(arg) if isinstance(arg, Buffer) else arg
        if not isinstance(tensor, Tensor):
            raise LoweringError(f"argument {position} is {arg!r}; arg_list takes tensors, scalar variables and buffers of extern_buffer")
        own = buffers.get(tensor) or wanted.get(tensor) or decl_buffer(tensor.shape, tensor.dtype, tensor.name)
        buffers[tensor], buffer = own, wanted.get(tensor, own)
        moved[own] = params[Var(buffer.name, "handle")] = buffer
        given.append(tensor)
    missing = [tensor.name for tensor in dict.fromkeys([*buffers, *scopes]) if tensor not in given and tensor not in realized(body)]
    if missing:
        raise LoweringError(f"the statement accesses {', '.join(missing)}, which is missing from arg_list; add its tensor")
    for tensor, scope in scopes.items():
        buffers.setdefault(tensor, decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=scope))
    body = with_buffers(body, buffers, given)
    elsewhere = {old: new for old, new in moved.items() if old is not new}  # what the statement took the address of
    if elsewhere:
        body = Copier({old.data: new.data for old, new in elsewhere.items()}, elsewhere).stmt(body)
    attrs = FrozenMap({"global_symbol": "main", "from_legacy_te_schedule": True, "tir.noalias": True})
    return PrimFunc(tuple(params), body, None, {var: b for var, b in params.items() if b is not None}, attrs)


def _accessed(stmt: Stmt) -> dict[Buffer, None]:
    return dict.fromkeys(node.buffer for node in walk(stmt) if isinstance(node, (BufferLoad, BufferStore)))
