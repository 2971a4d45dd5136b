"""The steps of a build, by the names that programs of the TE era call them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..lower.phase0.schedule_to_func import schedule_to_func
from ..lower.pipeline import lower
from ..runtime.module import Module as OperatorModule
from ..schedule.te_schedule import Schedule
from ..te.tensor import Tensor
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import Var
from ..tir.function import IRModule, PrimFunc
from .build import build


def get_binds(
    args: Sequence[Buffer | Tensor | Var], compact: bool = False, binds: Mapping[Tensor, Buffer] | None = None
) -> tuple[dict[Tensor, Buffer], list[Buffer | Var]]:
    """The buffers that tensors become as arguments of a function.

    Args:
        args: tensors, buffers and scalar variables, in the order of the function's parameters.
        compact: whether buffers are compact; a buffer without strides is, in any case.
        binds: buffers to use for tensors; the others get a compact one of their shape.

    Returns:
        the buffers by tensor, and the arguments with buffers in place of tensors.

    Raises:
        DeclarationError: for an argument that is none of these.
    """
    bound, arguments = dict(binds or {}), list[Buffer | Var]()
    for arg in args:
        if isinstance(arg, Tensor):
            if arg not in bound:
                bound[arg] = decl_buffer(arg.shape, arg.dtype, arg.name)
            arguments.append(bound[arg])
        elif isinstance(arg, (Buffer, Var)):
            arguments.append(arg)
        else:
            raise DeclarationError(f"get_binds takes tensors, buffers and variables, not {arg!r}")
    return bound, arguments


def schedule_to_module(
    sch: Schedule, args: Sequence[Any] | None = None, name: str = "main", binds: Mapping[Tensor, Buffer] | None = None
) -> IRModule:
    """The loop nests of a schedule as a module, before any pass.

    Args:
        args: tensors, buffers and scalar variables, in the order of the function's parameters.
        name: the function's name.
        binds: buffers to use for tensors.
    """
    return IRModule({name: schedule_to_func(sch, args or (), name, binds)})


form_irmodule = schedule_to_module  # as releases 0.7 and 0.8 call it


def lower_schedule(
    sch: Schedule,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """A schedule through the passes of the pipeline; `lower` with its type."""
    return lower(sch, args, name, binds, simple_mode)


def lower_primfunc(func: PrimFunc, name: str = "main", simple_mode: bool = False) -> IRModule:
    """A function through the passes of the pipeline."""
    return lower(func, name=name, simple_mode=simple_mode)


__all__ = ["OperatorModule", "build", "get_binds", "lower", "lower_primfunc", "lower_schedule", "schedule_to_module"]
