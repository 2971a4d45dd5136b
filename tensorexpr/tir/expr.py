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

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ..errors import TypeMismatchError
from .dtype import parse_dtype, with_lanes
from .interning import Interned
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


class PrimExpr(ExprOp, metaclass=Interned):
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

    # The printer registers itself here: `str(expr)` is its text, without a cycle between the two modules.
    _printers: ClassVar[dict[str, Callable[..., str]]] = {}

    __eq__ = ExprOp.__eq__
    __hash__ = ExprOp.__hash__


@dataclass(frozen=True, slots=True)
class PrimType:
    """The type of a scalar value that a pointer points to."""

    dtype: str


@dataclass(frozen=True, slots=True)
class PointerType:
    """A pointer to elements of `element_type` that live in `storage_scope`."""

    element_type: PrimType
    storage_scope: str = "global"


class Var(PrimExpr):
    """A variable. Two variables are the same only if they are one object, whatever their names."""

    __slots__ = ("dtype", "name", "type_annotation")
    _unique: ClassVar[bool] = True
    dtype: str
    name: str
    type_annotation: PointerType | None

    def __init__(self, name: str = "v", dtype: str = "int32", type_annotation: PointerType | None = None) -> None:
        parse_dtype(dtype)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "type_annotation", type_annotation)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"variable {self.name} is immutable; make a new tir.Var instead of setting {key}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype!r})"


class SizeVar(Var):
    """A variable that is known to be at least 0: a symbolic size."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class IntImm(PrimExpr):
    """An integer or bool constant."""

    dtype: str
    value: int

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, eq=False, slots=True)
class FloatImm(PrimExpr):
    """A floating point constant, already rounded to `dtype`."""

    dtype: str
    value: float

    def __float__(self) -> float:
        return self.value

    @staticmethod
    def _intern_key(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[0], struct.pack("<d", values[1]))  # keeps -0.0 and 0.0 apart, and NaN equal to itself


@dataclass(frozen=True, eq=False, slots=True)
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


@dataclass(frozen=True, eq=False, slots=True)
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


@dataclass(frozen=True, eq=False, slots=True)
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


@dataclass(frozen=True, eq=False, slots=True)
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


@dataclass(frozen=True, eq=False, slots=True)
class Not(PrimExpr):
    """not a."""

    a: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)


@dataclass(frozen=True, eq=False, slots=True)
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


@dataclass(frozen=True, eq=False, slots=True)
class Cast(PrimExpr):
    """`value` converted to `dtype`."""

    dtype: str
    value: PrimExpr


@dataclass(frozen=True, eq=False, slots=True)
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


@dataclass(frozen=True, eq=False, slots=True)
class ProducerLoad(PrimExpr):
    """An element of a tensor that some other operation produces."""

    producer: DataProducer
    indices: tuple[PrimExpr, ...]
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.producer.dtype)


@dataclass(frozen=True, eq=False, slots=True)
class Ramp(PrimExpr):
    """The vector base, base + stride, ..., base + (lanes - 1) * stride."""

    base: PrimExpr
    stride: PrimExpr
    lanes: int
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", with_lanes(self.base.dtype, self.lanes))


@dataclass(frozen=True, eq=False, slots=True)
class Broadcast(PrimExpr):
    """The scalar `value` in every one of `lanes` lanes."""

    value: PrimExpr
    lanes: int
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", with_lanes(self.value.dtype, self.lanes))


@dataclass(frozen=True, eq=False, slots=True)
class Shuffle(PrimExpr):
    """Lanes picked by number out of the concatenation of `vectors`."""

    vectors: tuple[PrimExpr, ...]
    indices: tuple[int, ...]
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", with_lanes(self.vectors[0].dtype, len(self.indices)))


@dataclass(frozen=True, eq=False, slots=True)
class Let(PrimExpr):
    """`body` with `var` standing for `value`."""

    var: Var
    value: PrimExpr
    body: PrimExpr
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.body.dtype)


@dataclass(frozen=True, eq=False, slots=True)
class Call(PrimExpr):
    """A call of the intrinsic named `op` (``"tir.exp"``); `intrin` lists them with their properties."""

    dtype: str
    op: str
    args: tuple[PrimExpr, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from `min` up to, not including, `min + extent`."""

    min: PrimExpr
    extent: PrimExpr

    @staticmethod
    def from_min_extent(min: Any, extent: Any) -> Range:
        """The range that starts at `min` and has `extent` elements."""
        convert = ExprOp._build["convert"]
        return Range(convert(min), convert(extent))


@dataclass(frozen=True, eq=False, slots=True)
class IterVar(ExprOp):
    """An axis: a variable, the range it takes and its role. Identity is equality.

    `iter_type` is one of `IterVar.DATA_PAR` (a spatial axis), `COMM_REDUCE`, `THREAD_INDEX`, ... as numbered by TE.
    """

    dom: Range | None
    var: Var
    iter_type: int = 0
    thread_tag: str = ""

    DATA_PAR: ClassVar[int] = 0
    THREAD_INDEX: ClassVar[int] = 1
    COMM_REDUCE: ClassVar[int] = 2
    ORDERED: ClassVar[int] = 3
    DIM_INFO: ClassVar[int] = 4
    UNROLLED: ClassVar[int] = 5
    VECTORIZED: ClassVar[int] = 6
    PARALLELIZED: ClassVar[int] = 7
    TENSORIZED: ClassVar[int] = 8

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

    __eq__ = ExprOp.__eq__
    __hash__ = ExprOp.__hash__


@dataclass(frozen=True, eq=False, slots=True)
class CommReducer(ExprOp):
    """A combiner: `result` in terms of the accumulators `lhs` and the new values `rhs`, and the identity elements.

    It is taken to be associative and commutative: that is what reordering a reduction relies on.
    """

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[PrimExpr, ...]
    identity_element: tuple[PrimExpr, ...]

    __eq__ = ExprOp.__eq__
    __hash__ = ExprOp.__hash__


@dataclass(frozen=True, eq=False, slots=True)
class Reduce(PrimExpr):
    """The reduction of `source` over `axis` where `condition` holds; element `value_index` of the tuple.

    `init` replaces the combiner's identity elements as the starting value; empty means the identity.
    """

    combiner: CommReducer
    source: tuple[PrimExpr, ...]
    axis: tuple[IterVar, ...]
    condition: PrimExpr
    value_index: int = 0
    init: tuple[PrimExpr, ...] = ()
    dtype: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.source[self.value_index].dtype)
