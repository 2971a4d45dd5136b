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

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, cast

from ..errors import TypeMismatchError
from .dtype import IntValue, int_limits, parse_dtype, round_float, with_lanes
from .interning import ADAPTERS, Built, Interned
from .node import Object
from .op_registry import Op
from .operators import EqualOp as EqualOp
from .operators import ExprOp as ExprOp

if TYPE_CHECKING:
    from .buffer import Buffer

    class DataProducer(Protocol):
        """What a `ProducerLoad` reads: a te.Tensor."""

        @property
        def name(self) -> str: ...
        @property
        def dtype(self) -> str: ...
        @property
        def shape(self) -> tuple[PrimExpr, ...]: ...


Lanes: TypeAlias = int  # an `IntValue`; of scalable vectors an expression of tir.vscale()
Lane: TypeAlias = int
OpName: TypeAlias = str  # an `Op`
Condition: TypeAlias = "PrimExpr"  # None makes it true


class PrimExpr(ExprOp, Object, metaclass=Interned):
    """Base of all expression nodes. `dtype` is the type of the value, with lanes for vectors."""

    __slots__ = ("__weakref__",)
    if TYPE_CHECKING:

        @property
        def dtype(self) -> str: ...

    def asobject(self) -> PrimExpr:
        """Itself."""
        return self

    def __str__(self) -> str:
        return self._printers["expr"](self) if self._printers else object.__repr__(self)

    __repr__ = __str__
    __eq__ = ExprOp.__eq__  # type: ignore[assignment]
    __hash__ = ExprOp.__hash__


class Type(Object):
    """Base of the types of variables and functions."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PrimType(Type):
    """The type of a scalar value that a pointer points to."""

    dtype: str

    def __str__(self) -> str:
        return f"T.{self.dtype}"


@dataclass(frozen=True, slots=True)
class PointerType(Type):
    """A pointer to elements of `element_type` that live in `storage_scope`."""

    element_type: PrimType
    storage_scope: str = "global"

    def __str__(self) -> str:
        scope = f', "{self.storage_scope}"' if self.storage_scope else ""
        return f'T.handle("{self.element_type.dtype}"{scope})'


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """The type of several values; of none, of what returns nothing."""

    fields: tuple[Type, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))

    def __str__(self) -> str:
        return f"T.Tuple({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class FuncType(Type):
    """The type of a function."""

    arg_types: tuple[Type, ...]
    ret_type: Type

    def __post_init__(self) -> None:
        object.__setattr__(self, "arg_types", tuple(self.arg_types))

    def __str__(self) -> str:
        return f"I.FuncType([], [{', '.join(map(str, self.arg_types))}], {self.ret_type})"


class Var(PrimExpr):
    """A variable. Two variables are the same only if they are one object, whatever their names."""

    __slots__ = ("dtype", "name", "type_annotation")
    _unique: ClassVar[bool] = True
    dtype: str
    name: str
    type_annotation: PointerType | None

    def __init__(
        self, name: str = "v", dtype: str | Type = "int32", type_annotation: PointerType | None = None, span: object = None
    ) -> None:
        if isinstance(dtype, Type):  # the place of a type in TVM
            dtype, type_annotation = (dtype.dtype, None) if isinstance(dtype, PrimType) else ("handle", cast(PointerType, dtype))
        object.__setattr__(self, "name", str(name))
        object.__setattr__(self, "dtype", str(parse_dtype(str(dtype))))
        object.__setattr__(self, "type_annotation", type_annotation)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"variable {self.name} is immutable; make a new tir.Var instead of setting {key}")

    @property
    def name_hint(self) -> str:
        """The name."""
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.dtype, self.type_annotation)


class SizeVar(Var):
    """A variable that is known to be at least 0: a symbolic size."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class IntImm(PrimExpr):
    """An integer or bool constant."""

    dtype: str
    value: int

    def __post_init__(self) -> None:
        if type(self.value) is not int:
            object.__setattr__(self, "value", int(self.value))
        low, high = int_limits(self.dtype)
        if not low <= self.value <= high:
            raise TypeMismatchError(f"{self.value} does not fit {self.dtype} [{low}, {high}]; use a wider dtype")

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class FloatImm(PrimExpr):
    """A floating point constant, already rounded to `dtype`."""

    dtype: str
    value: float

    def __float__(self) -> float:
        return self.value

    @staticmethod
    def _normal(values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Rounded, so that equal constants are one."""
        value = round_float(float(values[1]), str(values[0]))
        return (str(values[0]), value if value == value else math.nan)  # all NaNs are one

    @staticmethod
    def _intern_key(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[0], struct.pack("<d", values[1]))  # keeps -0.0 and 0.0 apart, and NaN equal to itself


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class StringImm(PrimExpr):
    """A string constant: an attribute's value or an extern symbol."""

    value: str

    @property
    def dtype(self) -> str:
        return "handle"


def _check_same_dtype(node: BinaryExpr | CmpExpr) -> None:
    if node.a.dtype != node.b.dtype:
        raise TypeMismatchError(
            f"{type(node).__name__} of {node.a} ({node.a.dtype}) and {node.b} ({node.b.dtype}): "
            "both sides need one dtype; convert one with .astype(...)"
        )


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BinaryExpr(PrimExpr):
    """Two operands of one dtype, which is also the result's."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_dtype(self)
        object.__setattr__(self, "dtype", self.a.dtype)


class Add(BinaryExpr):
    """a + b; integers wrap."""

    __slots__ = ()


class Sub(BinaryExpr):
    """a - b; integers wrap."""

    __slots__ = ()


class Mul(BinaryExpr):
    """a * b; integers wrap."""

    __slots__ = ()


class Div(BinaryExpr):
    """a / b: IEEE on floats, truncated towards zero on integers."""

    __slots__ = ()


class Mod(BinaryExpr):
    """The remainder of the truncated integer division; it has the sign of a."""

    __slots__ = ()


class FloorDiv(BinaryExpr):
    """The integer quotient rounded towards minus infinity."""

    __slots__ = ()


class FloorMod(BinaryExpr):
    """The remainder of `FloorDiv`; it has the sign of b."""

    __slots__ = ()


class Min(BinaryExpr):
    """The smaller operand. If exactly one is NaN the result is b's comparison a < b: b."""

    __slots__ = ()


class Max(BinaryExpr):
    """The larger operand. If exactly one is NaN the result is b (a > b is false)."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class CmpExpr(PrimExpr):
    """A comparison of two operands of one dtype; the result is bool with their lanes."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_same_dtype(self)
        object.__setattr__(self, "dtype", with_lanes("bool", parse_dtype(self.a.dtype).lanes))


class EQ(CmpExpr):
    """a == b."""

    __slots__ = ()


class NE(CmpExpr):
    """a != b."""

    __slots__ = ()


class LT(CmpExpr):
    """a < b."""

    __slots__ = ()


class LE(CmpExpr):
    """a <= b."""

    __slots__ = ()


class GT(CmpExpr):
    """a > b."""

    __slots__ = ()


class GE(CmpExpr):
    """a >= b."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class LogicalExpr(PrimExpr):
    """A connective of two bools."""

    a: PrimExpr
    b: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.a.dtype != self.b.dtype or parse_dtype(self.a.dtype).code != "bool":
            raise TypeMismatchError(f"{type(self).__name__} takes bools, not {self.a} ({self.a.dtype}) and {self.b} ({self.b.dtype})")
        object.__setattr__(self, "dtype", self.a.dtype)


class And(LogicalExpr):
    """a and b; b may be left unevaluated where a is false."""

    __slots__ = ()


class Or(LogicalExpr):
    """a or b; b may be left unevaluated where a is true."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Not(PrimExpr):
    """not a."""

    a: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


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

    dtype: str
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


def vector_dtype(dtype: str, lanes: Any) -> str:
    """The dtype of `lanes` elements, a number or for scalable vectors `tir.vscale() * number`."""
    if isinstance(lanes, PrimExpr):
        number = next((side.value for side in (lanes.a, lanes.b) if isinstance(side, IntImm)), None) if isinstance(lanes, Mul) else 1
        scaled = isinstance(lanes, Call) or (
            isinstance(lanes, Mul) and any(isinstance(s, Call) and s.op == "tir.vscale" for s in (lanes.a, lanes.b))
        )
        if number is None or not scaled:
            raise TypeMismatchError(f"the lanes {lanes} are neither a number nor tir.vscale() times a number")
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
        object.__setattr__(self, "dtype", self.body.dtype)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Call(PrimExpr):
    """A call of the intrinsic named `op` (``"tir.exp"``); `intrin` lists them with their properties."""

    dtype: str
    op: OpName
    args: tuple[PrimExpr, ...]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Range(Object):
    """The integers from `min` up to, not including, `min + extent`: `Range(begin, end)`, or `Range(end)` from 0."""

    min: PrimExpr
    extent: PrimExpr

    def __init__(self, begin: Any, end: Any = None, span: object = None) -> None:
        first, last = (0, begin) if end is None else (begin, end)
        convert, subtract = ExprOp._build["convert"], ExprOp._build["sub"]
        if not isinstance(first, ExprOp) and isinstance(last, ExprOp):
            first = ExprOp._build["const"](first, convert(last).dtype)
        object.__setattr__(self, "min", convert(first))
        object.__setattr__(self, "extent", convert(last) if end is None else subtract(last, first))

    @staticmethod
    def from_min_extent(min: Any, extent: Any, span: object = None) -> Range:
        """The range that starts at `min` and has `extent` elements."""
        convert = ExprOp._build["convert"]
        made: Range = object.__new__(Range)
        object.__setattr__(made, "min", min if isinstance(min, PrimExpr) else convert(min))
        object.__setattr__(made, "extent", extent if isinstance(extent, PrimExpr) else convert(extent))
        return made

    @property
    def end(self) -> PrimExpr:
        """The first integer behind it."""
        return self.min + self.extent

    def __reduce__(self) -> tuple[Any, ...]:
        return Range.from_min_extent, (self.min, self.extent)

    def __repr__(self) -> str:
        return f"Range({self.min}, {self.end})"


def as_range(value: Any) -> Range | None:
    """A range as `Range`, a pair (begin, end), or None."""
    return value if value is None or isinstance(value, Range) else Range(*value)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class IterVar(ExprOp, Object, metaclass=Built):
    """An axis: a variable, the range it takes and its role. Identity is equality.

    `iter_type` is one of `IterVar.DATA_PAR` (a spatial axis), `COMM_REDUCE`, `THREAD_INDEX`, ... as numbered by TE.
    """

    dom: Range | None
    var: Var
    iter_type: int = 0
    thread_tag: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.var, str):
            dtype = "int32" if self.dom is None else self.dom.extent.dtype
            object.__setattr__(self, "var", Var(self.var, dtype))

    DATA_PAR: ClassVar[int] = 0
    THREAD_INDEX: ClassVar[int] = 1
    COMM_REDUCE: ClassVar[int] = 2
    ORDERED: ClassVar[int] = 3
    DIM_INFO: ClassVar[int] = 4
    UNROLLED: ClassVar[int] = 5
    VECTORIZED: ClassVar[int] = 6
    PARALLELIZED: ClassVar[int] = 7
    TENSORIZED: ClassVar[int] = 8
    DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.var.name

    @property
    def dtype(self) -> str:
        """The variable's dtype."""
        return self.var.dtype

    def asobject(self) -> PrimExpr:
        """The variable."""
        return self.var

    __eq__ = ExprOp.__eq__  # type: ignore[assignment]
    __hash__ = ExprOp.__hash__


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class CommReducer(ExprOp, Object, metaclass=Built):
    """A combiner: `result` in terms of the accumulators `lhs` and the new values `rhs`, and the identity elements.

    It is taken to be associative and commutative: that is what reordering a reduction relies on.
    """

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[PrimExpr, ...]
    identity_element: tuple[PrimExpr, ...]

    __eq__ = ExprOp.__eq__  # type: ignore[assignment]
    __hash__ = ExprOp.__hash__


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Reduce(PrimExpr):
    """The reduction of `source` over `axis` where `condition` holds; element `value_index` of the tuple.

    `init` replaces the combiner's identity elements as the starting value; empty means the identity.
    """

    _aliases: ClassVar[dict[str, str]] = {"src": "source", "rdom": "axis"}

    combiner: CommReducer
    source: tuple[PrimExpr, ...]
    axis: tuple[IterVar, ...]
    condition: Condition
    value_index: int = 0
    init: tuple[PrimExpr, ...] = ()
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.source[self.value_index].dtype)


def _sequence(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, (list, tuple)) or hasattr(value, "__iter__"):
        return tuple(value)
    return (value,)


def _int(value: Any) -> int:
    """An integer field: numbers and constants of any kind, without loss."""
    number = value.value if isinstance(value, (IntImm, FloatImm)) else value
    whole = int(number)
    if whole != number and not isinstance(number, str):
        raise TypeMismatchError(f"{value} is no integer")
    return whole


def _lanes(value: Any) -> Any:
    return value if isinstance(value, PrimExpr) and not isinstance(value, IntImm) else IntValue(_int(value))


def refuse(kind: str) -> Callable[[Any], Any]:
    """An adapter that takes nothing: the field holds a `kind`."""

    def refuse(value: Any) -> Any:
        raise TypeMismatchError(f"{value!r} ({type(value).__name__}) is no {kind}")

    return refuse


def each(classes: type, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The adapter of a sequence of `classes`, whose other items `convert` makes such."""
    return tuple, lambda value: tuple(item if isinstance(item, classes) else convert(item) for item in _sequence(value)), classes


def _expr(value: Any) -> PrimExpr:
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
