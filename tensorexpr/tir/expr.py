"""Scalar and vector expressions: the nodes, their operators and nothing else.

    expr ::= Var | IntImm | FloatImm | StringImm
           | Add | Sub | Mul | Div | Mod | FloorDiv | FloorMod | Min | Max      (a, b)
           | EQ | NE | LT | LE | GT | GE                                        (a, b) -> bool
           | And | Or | Not                                                     bool -> bool
           | Select(condition, true_value, false_value)                         evaluates both arms
           | Cast(dtype, value)
           | BufferLoad(buffer, indices, predicate)                             memory, in loop IR
           | ProducerLoad(producer, indices)                                    a tensor element, in te
           | Reduce(combiner, source, axis, condition, value_index, init)       in te, at the top of a body
           | Ramp(base, stride, lanes) | Broadcast(value, lanes) | Shuffle(vectors, indices)
           | Let(var, value, body)
           | Call(dtype, op, args)                                              intrinsics, see `intrin`

`Div` and `Mod` truncate on integers and divide on floats; `FloorDiv` and `FloorMod` floor.
All nodes but `Var` are hash-consed: structurally equal means identical (`a is b`), and `==` builds a
comparison whose truth value is that identity. Constants stand on the right of commutative operators
wherever the builders of `arithmetic` made the node.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING, TypeAlias

from ..dataclass import dataclass, field
from ..errors import TypeMismatchError
from ..later import later
from .atoms import ConstExpr, FloatImm, IntImm, IntImmEnum, PrimExpr, SizeVar, StringImm, Var
from .dtype import DType, IntValue, parse_dtype, with_lanes
from .interning import ADAPTERS
from .node import Object
from .op_registry import Op
from .operations import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sub,
)  # fmt: skip
from .operators import EqualOp, ExprOp, NotEqualOp, div_ambiguity_error
from .reduce import CommReducer, IterVar, Range, Reduce, as_range
from .types import FuncType, PointerType, PrimType, TupleType, Type

if TYPE_CHECKING:
    from .buffer import Buffer


class DataProducer(Object):
    """What a `ProducerLoad` reads, such as a te.Tensor: its subclasses have name, dtype and shape."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def dtype(self) -> str: ...
        @property
        def shape(self) -> tuple[PrimExpr, ...]: ...


Lanes: TypeAlias = int  # an `IntValue`; of scalable vectors an expression of tir.vscale()
Lane: TypeAlias = int
OpName: TypeAlias = str  # an `Op`


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Select(PrimExpr):
    """condition ? true_value : false_value with both arms evaluated; lane by lane on vectors."""

    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.true_value.dtype != self.false_value.dtype:
            raise TypeMismatchError(f"the arms of Select are {self.true_value.dtype} and {self.false_value.dtype}")
        if parse_dtype(self.condition.dtype).code != "bool":
            raise TypeMismatchError(f"the condition of Select is {self.condition.dtype}, not bool")
        object.__setattr__(self, "dtype", self.true_value.dtype)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Cast(PrimExpr):
    """`value` converted to `dtype`."""

    dtype: DType
    value: PrimExpr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BufferLoad(PrimExpr):
    """An element, or with a `Ramp` as the last index a vector, of a buffer.

    `predicate` (bool per lane) leaves lanes unread where it is false; their value is then zero.
    """

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.buffer.access_dtype(self.indices))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ProducerLoad(PrimExpr):
    """An element of a tensor that some other operation produces."""

    producer: DataProducer
    indices: tuple[PrimExpr, ...]
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.producer.dtype)


def vector_dtype(dtype: str, lanes: typing.Any) -> str:
    """The dtype of `lanes` elements, a number or for scalable vectors `tir.vscale() * number`.

    Raises:
        TypeMismatchError: for lanes of which there are fewer than two, or of elements that are vectors already.
    """
    if parse_dtype(dtype).lanes != 1:
        raise TypeMismatchError(f"a vector is made of scalars, not of {dtype}")
    if isinstance(lanes, int) and lanes < 2:
        raise TypeMismatchError(f"a vector has at least two lanes, not {lanes}")
    if isinstance(lanes, PrimExpr):
        number = next((side.value for side in (lanes.a, lanes.b) if isinstance(side, IntImm)), None) if isinstance(lanes, Mul) else 1
        scaled = isinstance(lanes, Call) or (
            isinstance(lanes, Mul) and any(isinstance(s, Call) and s.op == "tir.vscale" for s in (lanes.a, lanes.b))
        )
        if number is None or not scaled:
            raise TypeMismatchError(f"the lanes {lanes} are neither a number nor tir.vscale() times a number")
        # Lanes of scalable vectors are negative: -4 for 4 * vscale, see `DataType`.
        return with_lanes(dtype, -number)
    return with_lanes(dtype, lanes)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Ramp(PrimExpr):
    """The vector base, base + stride, ..., base + (lanes - 1) * stride."""

    base: PrimExpr
    stride: PrimExpr
    lanes: Lanes
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.stride.dtype != self.base.dtype:
            # A Python number comes as int32, whatever the base is: of int64, Ramp(i, 1, 4) steps by an int64.
            object.__setattr__(self, "stride", ExprOp._build["cast"](self.stride, self.base.dtype))
        object.__setattr__(self, "dtype", vector_dtype(self.base.dtype, self.lanes))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Broadcast(PrimExpr):
    """The scalar `value` in every one of `lanes` lanes."""

    value: PrimExpr
    lanes: Lanes
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", vector_dtype(self.value.dtype, self.lanes))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Shuffle(PrimExpr):
    """Lanes picked by number out of the concatenation of `vectors`."""

    vectors: tuple[PrimExpr, ...]
    indices: tuple[Lane, ...]
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", with_lanes(self.vectors[0].dtype, len(self.indices)))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Let(PrimExpr):
    """`body` with `var` standing for `value`."""

    var: Var
    value: PrimExpr
    body: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.var.dtype != self.value.dtype:
            raise TypeMismatchError(f"{self.var} is {self.var.dtype}, the value that it stands for, {self.value}, {self.value.dtype}")
        object.__setattr__(self, "dtype", self.body.dtype)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Call(PrimExpr):
    """A call of the intrinsic named `op` (``"tir.exp"``); `intrin` lists them with their properties."""

    dtype: DType
    op: OpName
    args: tuple[PrimExpr, ...]


def _sequence(value: typing.Any) -> tuple[typing.Any, ...]:
    if value is None:
        return ()
    if isinstance(value, (list, tuple)) or hasattr(value, "__iter__"):
        return tuple(value)
    return (value,)


def _int(value: typing.Any) -> int:
    """An integer field: numbers and constants of any kind, without loss."""
    number = value.value if isinstance(value, (IntImm, FloatImm)) else value
    whole = int(number)
    if whole != number and not isinstance(number, str):
        raise TypeMismatchError(f"{value} is no integer")
    return whole


def _lanes(value: typing.Any) -> typing.Any:
    return value if isinstance(value, PrimExpr) and not isinstance(value, IntImm) else IntValue(_int(value))


def refuse(kind: str) -> Callable[[typing.Any], typing.Any]:
    """An adapter that takes nothing: the field holds a `kind`."""

    def refuse(value: typing.Any) -> typing.Any:
        raise TypeMismatchError(f"{value!r} ({type(value).__name__}) is no {kind}")

    return refuse


def each(classes: type, convert: Callable[[typing.Any], typing.Any]) -> tuple[typing.Any, ...]:
    """The adapter of a sequence of `classes`, whose other items `convert` makes such."""
    return tuple, lambda value: tuple(item if isinstance(item, classes) else convert(item) for item in _sequence(value)), classes


def _expr(value: typing.Any) -> PrimExpr:
    return ExprOp._build["convert"](value)


ADAPTERS.update({
    "PrimExpr": (PrimExpr, _expr, None),
    "PrimExpr | None": ((PrimExpr, NoneType), _expr, None),
    "tuple[PrimExpr, ...]": each(PrimExpr, _expr),
    "Condition": (PrimExpr, lambda value: _expr(True if value is None else value), None),
    "Range | None": ((Range, NoneType), as_range, None),
    "tuple[Range, ...]": each(Range, as_range),
    "tuple[Var, ...]": each(Var, refuse("variable")),
    "tuple[IterVar, ...]": each(IterVar, refuse("axis")),
    "str": (str, str, None),
    "int": (int, _int, None),
    "OpName": (Op, Op.of, None),
    "Lanes": (IntValue, _lanes, None),
    "tuple[Lane, ...]": each(IntValue, lambda value: IntValue(_int(value))),
})  # fmt: skip

# `Any` here is the class of unknown extents; names that programs of several releases import from here.
_defined_elsewhere, __dir__ = later(__name__, {".arithmetic": "const", ".unknown": "Any"})


def __getattr__(name: str) -> typing.Any:
    return BufferLoad if name == "Load" else _defined_elsewhere(name)


# Classes by other names: all operators of two operands, and all that has operators.
BinaryOpExpr: TypeAlias = BinaryExpr
PrimExprWithOp: TypeAlias = PrimExpr

__all__ = [
    "EQ", "GE", "GT", "LE", "LT", "NE", "Add", "And", "BinaryExpr", "BinaryOpExpr", "Broadcast", "BufferLoad", "Call", "Cast",
    "CmpExpr", "CommReducer", "ConstExpr", "DataProducer", "Div", "EqualOp", "ExprOp", "FloatImm", "FloorDiv", "FloorMod",
    "FuncType", "IntImm", "IntImmEnum", "IterVar", "Lane", "Lanes", "Let", "LogicalExpr", "Max", "Min", "Mod", "Mul", "Not",
    "NotEqualOp", "OpName", "Or", "PointerType", "PrimExpr", "PrimExprWithOp", "PrimType", "ProducerLoad", "Ramp", "Range",
    "Reduce", "Select", "Shuffle", "SizeVar", "StringImm", "Sub", "TupleType", "Type", "Var", "as_range", "div_ambiguity_error",
    "each", "refuse", "vector_dtype",
]  # fmt: skip
