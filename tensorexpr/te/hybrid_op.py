"""Operations whose statement was read from a function in Python's syntax: `te.hybrid.script`."""

from __future__ import annotations

from functools import cached_property

from ..dataclass import dataclass
from ..errors import DeclarationError
from ..tir.analysis import undefined_vars
from ..tir.expr import BufferLoad, IterVar
from ..tir.rewriting import walk
from ..tir.scopes import buffer_vars
from ..tir.stmt import BufferStore, Stmt
from .declare import placeholder
from .extern import ExternOp
from .hybrid_compute import as_compute
from .operation import ComputeOp
from .tensor_form import with_tensors


@dataclass(frozen=True, eq=False, repr=False)
class HybridOp(ExternOp):
    """An extern whose statement is a hybrid function: it may also write the tensors that it was given.

    Programs see its `body` speak of tensors, as in TE; `statement` is what is lowered.
    """

    @cached_property
    def compute(self) -> ComputeOp | None:
        """The compute that the function is, whose loops can be scheduled; None if it is anything else."""
        return as_compute(self)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The loops of a function that is a compute; none of others."""
        return self.compute.axis if self.compute is not None else ()

    @cached_property
    def body(self) -> Stmt:
        """The statement with the inputs as tensors, and placeholders of their names for the outputs and its own storage."""
        tensors = dict(zip(self.input_placeholders, self.inputs, strict=True))
        for node in walk(self.statement):
            if isinstance(node, (BufferLoad, BufferStore)) and node.buffer not in tensors:
                buffer = node.buffer
                tensors[buffer] = placeholder(buffer.shape, buffer.dtype, buffer.name)
        return with_tensors(self.statement, tensors, ())


def verify_hybrid(op: HybridOp) -> None:
    """Check that a hybrid function has outputs and mentions nothing that nothing defines.

    Raises:
        DeclarationError: otherwise.
    """
    where = f"hybrid function {op.name}"
    if not op.output_placeholders:
        raise DeclarationError(f"{where}: it returns no output_tensor; return at least one")
    given = {var for buffer, _ in op.pairs() for var in (buffer.data, *buffer_vars(buffer))}
    missing = [var for var in undefined_vars(op.statement, tuple(given)) if var.dtype == "handle"]
    if missing:
        raise DeclarationError(f"{where}: nothing defines the memory {', '.join(v.name for v in missing)}")
