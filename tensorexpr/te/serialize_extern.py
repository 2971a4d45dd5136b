"""Externs as strict JSON: the statement with its buffers, inputs' first.

What comes from a file may call functions of the math library and Python functions that the reading program registered
itself, by name; no other foreign function, since a file must not be able to run what the program doesn't offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import RecordError
from ..tir.attrs import FrozenMap
from ..tir.buffer import Buffer
from ..tir.expr import Call, PrimExpr, StringImm, Var
from ..tir.foreign import LIBM_FUNCTIONS
from ..tir.rewriting import walk
from ..tir.scopes import buffer_vars
from ..tir.serialize import Limits, stmt_from_json, stmt_to_json
from ..tir.stmt import Stmt
from .extern import ExternOp, scalar_symbols, verify_extern
from .tensor import Tensor

JSON = Any
_MOST_OUTPUTS = 256


def extern_symbols(op: ExternOp) -> tuple[Var, ...]:
    """The scalar variables that an extern takes from outside: sizes, and strides and offsets of its own, too."""
    layout = (var for buffer, _ in op.pairs() for var in buffer_vars(buffer))
    return tuple(dict.fromkeys((*layout, *scalar_symbols(op))))


def write_extern(op: ExternOp, names: Mapping[Var, str]) -> dict[str, JSON]:
    """What the record of an extern holds besides its name, attributes and inputs."""
    placeholders = (*op.input_placeholders, *op.output_placeholders)
    known = {var: names[var] for var in extern_symbols(op)}
    return {"outputs": op.num_outputs, "statement": stmt_to_json(op.statement, placeholders, known)}


def read_extern(fields: Mapping[str, JSON], inputs: int, symbols: Mapping[str, Var], limits: Limits) -> tuple[Stmt, tuple[Buffer, ...]]:
    """The statement and the buffers of a record.

    Raises:
        RecordError: for anything that `write_extern` doesn't write, and calls that a file can't make.
    """
    outputs = fields["outputs"]
    if type(outputs) is not int or not 0 < outputs <= _MOST_OUTPUTS:
        raise RecordError(f"an extern has from 1 to {_MOST_OUTPUTS} outputs")
    body, buffers = stmt_from_json(fields["statement"], inputs + outputs, symbols, limits)
    check_calls(body)
    return body, buffers


def check_calls(root: Stmt | PrimExpr) -> None:
    """Refuse foreign functions other than those of the math library.

    Raises:
        RecordError: naming the function.
    """
    for node in walk(root):
        if isinstance(node, Call) and node.op in ("tir.call_extern", "tir.call_pure_extern"):
            name = node.args[0].value if node.args and isinstance(node.args[0], StringImm) else "?"
            if name not in LIBM_FUNCTIONS:
                raise RecordError(f"the computation calls the C function {name!r}; a file may call functions of the math library only")


def extern_of(name: str, tag: str, attrs: FrozenMap, inputs: tuple[Tensor, ...], body: Stmt, buffers: tuple[Buffer, ...]) -> ExternOp:
    """The operation of what was read, checked as a declaration is."""
    for tensor, buffer in zip(inputs, buffers, strict=False):
        if tensor.dtype != buffer.dtype or tensor.ndim != buffer.ndim:
            raise RecordError(f"the buffer {buffer.name} doesn't fit the input {tensor.name}")
    op = ExternOp(name, tag, attrs, inputs, buffers[: len(inputs)], buffers[len(inputs) :], body)
    verify_extern(op)
    return op
