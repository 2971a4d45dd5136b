"""Operators on what the processes of a group have: each has a tensor, and gets what all of them make of theirs.

There is one process here, so no operator has a meaning of its own: graphs with them are read, checked, transformed and printed, and
whoever has a group gives `LegalizeOps` the functions that talk to it. A build without names the operators.
"""

from __future__ import annotations

from ...errors import DeclarationError
from ...tir.arithmetic import as_int, floordiv
from ..extents import simplified
from ..struct_info import StructInfo
from .row import Expr, operator, tensor

_REDUCTIONS = ("sum", "prod", "min", "max", "avg")


def _workers(num_workers: int, name: str) -> int:
    if num_workers < 1:
        raise DeclarationError(f"relax.op.ccl.{name}: a group has at least one worker, not {num_workers}")
    return num_workers


@operator("ccl.allreduce")
def allreduce(x: Expr, op_type: str = "sum", in_group: bool = True) -> StructInfo:
    """The sum ("sum"), product ("prod"), least ("min"), greatest ("max") or mean ("avg") of all workers' tensors; of a group, or of all."""
    if op_type not in _REDUCTIONS:
        raise DeclarationError(f"relax.op.ccl.allreduce: no reduction {op_type!r}; there are {', '.join(_REDUCTIONS)}")
    return tensor(x, "x").info


@operator("ccl.allgather")
def allgather(x: Expr, num_workers: int, in_group: bool = True) -> StructInfo:
    """The tensors of all workers, one behind the other along the first axis; of a group, or of all."""
    data, workers = tensor(x, "x"), _workers(num_workers, "allgather")
    if data.extents is None:
        return data.info
    if not data.extents:
        raise DeclarationError("relax.op.ccl.allgather: a tensor of rank 0 has no first axis; reshape it to (1,)")
    return data.like([simplified(data.extents[0] * workers), *data.extents[1:]])


@operator("ccl.broadcast_from_worker0")
def broadcast_from_worker0(x: Expr) -> StructInfo:
    """The tensor of the first worker."""
    return tensor(x, "x").info


@operator("ccl.scatter_from_worker0")
def scatter_from_worker0(x: Expr, num_workers: int, axis: int = 0) -> StructInfo:
    """A part of the first worker's tensor for each worker, as large as the others along an axis."""
    data, workers = tensor(x, "x"), _workers(num_workers, "scatter_from_worker0")
    if data.extents is None:
        raise DeclarationError("relax.op.ccl.scatter_from_worker0: the shape of what is cut has to be known; match_cast it first")
    place = data.axis(axis)
    if as_int(simplified(data.extents[place] % workers)) not in (0, None):
        raise DeclarationError(f"relax.op.ccl.scatter_from_worker0: an axis of {data.extents[place]} elements has no {workers} equal parts")
    return data.like([simplified(floordiv(one, workers)) if n == place else one for n, one in enumerate(data.extents)])
