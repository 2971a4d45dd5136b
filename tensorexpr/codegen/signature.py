"""What a caller must know to call an emitted function.

The C form is `int32_t name(p0, ..., s0, ...)`: one argument per parameter in order (a buffer: the address of its
element 0; an integer, bool or bare address: i64; a float: double), then one i64 per entry of `symbols`. It returns 0, or the
number of the entry of `errors` (counted from 1) that says what failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TypeAlias

from ..dataclass import dataclass
from ..tir.buffer import Buffer
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import walk

# What code calls to run a registered Python function (see packed_calls.py), and the error of a call that raised.
PACKED_SYMBOL = "tensorexpr_call_packed"
RAISED = "the Python function {} raised an error"


@dataclass(frozen=True, slots=True)
class BufferParam:
    """An array argument. `alignment` in bytes is what the code relies on; strides (empty: compact) and offset are in elements.

    With `broadcasts`, the stride of an axis along which the array has one element is 0, whatever the array says.
    """

    name: str
    dtype: str
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    elem_offset: PrimExpr
    alignment: int
    is_read: bool
    is_written: bool
    broadcasts: bool = False


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A number. `var` is the variable that it sets, which may stand in shapes."""

    name: str
    dtype: str
    var: Var


Param: TypeAlias = BufferParam | ScalarParam


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of an emitted function, the shape variables that its caller finds in the arrays, and its error messages.

    With `returns`, the dtype of a number, the last parameter is an array of one element that the function writes it to.
    """

    name: str
    params: tuple[Param, ...]
    symbols: tuple[Var, ...]
    errors: tuple[str, ...] = ()
    returns: str | None = None


def natural_alignment(buffer: Buffer) -> int:
    """What every array of the dtype satisfies, unless the buffer promises less.

    More is not asked of callers: NumPy aligns to 16 bytes only, and the vector instructions take any address at one speed.
    """
    return min(parse_dtype(buffer.dtype).itemsize, buffer.data_alignment)


def describe(name: str, func: PrimFunc, reads: Set[Var], writes: Set[Var]) -> Signature:
    """The signature of a function that reads and writes through the given pointer variables."""
    params: list[Param] = []
    for var in func.params:
        buffer = func.buffer_map.get(var)
        if buffer is None:
            # A pointer that no buffer stands behind is an address, a number; the caller answers for the memory there.
            number = Var(var.name, "uint64") if var.dtype == "handle" else var
            params.append(ScalarParam(number.name, number.dtype, number))
            continue
        placed = (buffer.shape, buffer.strides, buffer.elem_offset, natural_alignment(buffer))
        broadcasts = buffer.buffer_type == Buffer.AUTO_BROADCAST
        params.append(BufferParam(buffer.name, buffer.dtype, *placed, buffer.data in reads, buffer.data in writes, broadcasts))
    return Signature(name, tuple(params), tuple(shape_symbols(func)))


def shape_symbols(func: PrimFunc) -> Iterator[Var]:
    """The variables of the buffers' shapes, strides and offsets that are no parameters, in order of first use."""
    known = set(func.params)
    for var in func.params:
        buffer = func.buffer_map.get(var)
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset) if buffer is not None else ():
            for node in walk(expr):  # also in expressions, such as n in n + 1
                if isinstance(node, Var) and node not in known:
                    known.add(node)
                    yield node
