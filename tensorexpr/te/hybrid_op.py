"""Operations whose statement was read from a function in Python's syntax: `te.hybrid.script`."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import DeclarationError
from ..tir.analysis import undefined_vars
from ..tir.scopes import buffer_vars
from .extern import ExternOp


@dataclass(frozen=True, eq=False, repr=False)
class HybridOp(ExternOp):
    """An extern whose statement is a hybrid function: it may also write the tensors that it was given."""


def verify_hybrid(op: HybridOp) -> None:
    """Check that a hybrid function has outputs and mentions nothing that nothing defines.

    Raises:
        DeclarationError: otherwise.
    """
    where = f"hybrid function {op.name}"
    if not op.output_placeholders:
        raise DeclarationError(f"{where}: it returns no output_tensor; return at least one")
    given = {var for buffer, _ in op.pairs() for var in (buffer.data, *buffer_vars(buffer))}
    missing = [var for var in undefined_vars(op.body, tuple(given)) if var.dtype == "handle"]
    if missing:
        raise DeclarationError(f"{where}: nothing defines the memory {', '.join(v.name for v in missing)}")


__all__ = ["HybridOp", "verify_hybrid"]
