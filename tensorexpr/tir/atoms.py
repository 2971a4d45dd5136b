"""The base of all expressions, and those without operands: variables and constants."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, cast

from ..dataclass import dataclass
from ..errors import TypeMismatchError
from .dtype import DType, full_dtype, int_limits, parse_dtype, round_float, rounded_float, shortest_decimal
from .interning import ADAPTERS, Interned
from .node import Object
from .operators import ExprOp
from .types import PointerType, PrimType, Type

if TYPE_CHECKING:
    from typing_extensions import Self


ADAPTERS["DType"] = ((), full_dtype, None)


class PrimExpr(Interned, ExprOp, Object):
    """Base of all expression nodes. `dtype` is the type of the value, with lanes for vectors."""

    __slots__ = ("__weakref__",)
    if TYPE_CHECKING:

        @property
        def dtype(self) -> str: ...

    def asobject(self) -> PrimExpr:
        """Itself."""
        return self

    def __str__(self) -> str:
        return self._printers["expr"](self)

    __repr__ = __str__


class Var(PrimExpr):
    """A variable. Two variables are the same only if they are one object, whatever their names."""

    __slots__ = ("dtype", "name", "type_annotation")
    dtype: str
    name: str
    type_annotation: PointerType | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A new variable, whatever others there are."""
        # Past interning, whose key would make two variables of one name and type the same.
        return object.__new__(cls)

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


class ConstExpr(PrimExpr):
    """Base of constants."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class IntImm(ConstExpr):
    """An integer or bool constant."""

    dtype: DType
    value: int

    def __post_init__(self) -> None:
        # True and 1 are one key of the table: the node has an int, whichever came first.
        if type(self.value) is not int:
            object.__setattr__(self, "value", int(self.value))
        low, high = int_limits(self.dtype)
        if not low <= self.value <= high:
            raise TypeMismatchError(f"{self.value} does not fit {self.dtype} [{low}, {high}]; use a wider dtype")

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class FloatImm(ConstExpr):
    """A floating point constant. `value` is the decimal that was written, `float(...)` the constant that `dtype` rounds it to."""

    dtype: DType
    value: float

    def __float__(self) -> float:
        return rounded_float(self.value, self.dtype)

    @staticmethod
    def _normal(values: tuple[Any, ...]) -> tuple[Any, ...]:
        """What `dtype` has is the shortest decimal for it, as literals are: a computed 0.30000000119 and a written 0.3 are one."""
        dtype, written = str(values[0]), float(values[1])
        rounded = round_float(written, dtype)
        value = shortest_decimal(rounded, dtype) if rounded == written else written
        return (dtype, value if value == value else math.nan)  # all NaNs are one

    @staticmethod
    def _intern_key(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[0], struct.pack("<d", values[1]))  # keeps -0.0 and 0.0 apart, and NaN equal to itself


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class StringImm(ConstExpr):
    """A string constant: an attribute's value or an extern symbol."""

    value: str

    @property
    def dtype(self) -> str:
        return "handle"


class IntImmEnum(ExprOp):
    """A number of an enumeration, which is a constant where an expression is asked for."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def asobject(self) -> IntImm:
        """The constant."""
        return IntImm("int32", self.value)
