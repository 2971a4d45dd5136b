"""What is known of a value of a graph before it runs: that it is a tensor, and of which shape and dtype; a shape; a tuple; a function.

    R.Tensor((n, 16), "float32")    TensorStructInfo: extents are integer expressions of int64, such as symbols that a call binds
    R.Tensor(dtype="float32", ndim=2), R.Tensor    less is known: an ndim of -1 and a dtype of "" are unknown ones
    R.Shape([n, 16]), R.Prim("int64"), R.Tuple(...), R.Callable((...), ...), R.Object

Struct infos are values: equal ones compare equal, symbols being equal to themselves alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from ..dataclass import dataclass, field
from ..errors import DeclarationError, TypeMismatchError
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import IntImm, PrimExpr, Var
from ..tir.global_info import VDevice
from ..tir.rewriting import substitute, variables
from ..tir.structural import structural_equal
from ..tir.structural_digest import structural_hash
from ..tir.structured import Parts, Structured
from .extents import Extent

SYMBOL_DTYPE = "int64"


class StructInfo(Structured):
    """Base of what is known of values."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # Nearly all comparisons are of tensors of constant sizes, for which the structures needn't be walked.
        if isinstance(self, TensorStructInfo) and isinstance(other, TensorStructInfo) and self.plain and other.plain:
            return self.plain == other.plain
        return isinstance(other, StructInfo) and structural_equal(self, other)

    def __hash__(self) -> int:
        return structural_hash(self)

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__

    def same_as(self, other: object) -> bool:
        """Whether `other` says the same."""
        return self == other


class RelaxExpr(Structured):
    """Base of the expressions of graphs. Operators make calls: `x + y` is `relax.op.add(x, y)`."""

    # Functions by the name of a Python operator; the operators of graphs enter them here, as they are made of expressions.
    _operators: ClassVar[dict[str, Callable[..., Any]]] = {}

    @cached_property
    def struct_info(self) -> StructInfo:
        """What is known of the value.

        Raises:
            DeclarationError: if operands don't fit.
        """
        # Operands first: of a network of hundreds of layers, each within the next, they would be too deep for the stack.
        waiting = [(one, False) for one in self._operands()]
        while waiting:
            one, is_ready = waiting.pop()
            operands = one._operands() if isinstance(one, RelaxExpr) else ()
            if not operands or "struct_info" in one.__dict__:
                continue
            if is_ready:
                one.struct_info  # noqa: B018  # kept there
            else:
                waiting += [(one, True), *((inner, False) for inner in operands)]
        return self._derived()

    def _derived(self) -> StructInfo:
        return ObjectStructInfo()

    def _operands(self) -> Sequence[Any]:
        """The values that decide what is known of this one."""
        return ()

    @property
    def struct_info_(self) -> StructInfo:
        """As `struct_info`."""
        return self.struct_info

    @property
    def shape_(self) -> Any:
        """The shape of a tensor, by the name of 2022."""
        return getattr(self.struct_info, "shape", None)

    @property
    def shape(self) -> Any:
        """The extents of a tensor as values of the graph: `x.shape[0]`; what is known of them stands in `struct_info`."""
        return self._by("of_tensor", self, "shape")

    @property
    def dtype(self) -> Any:
        """The dtype of a tensor as values of the graph: `x.dtype.bits`."""
        return self._by("of_tensor", self, "dtype")

    @property
    def ndim(self) -> Any:
        """The number of axes of a tensor as a value of the graph."""
        return self._by("of_tensor", self, "ndim")

    @property
    def strides(self) -> Any:
        """How far the elements along axes of a tensor are apart, as values of the graph: `x.strides[0]`."""
        return self._by("of_tensor", self, "strides")

    @property
    def byte_offset(self) -> Any:
        """How many bytes behind its pointer a tensor begins, as a value of the graph."""
        return self._by("of_tensor", self, "byte_offset")

    @property
    def elem_offset(self) -> Any:
        """As `byte_offset`, in elements."""
        return self._by("of_tensor", self, "elem_offset")

    @property
    def checked_type(self) -> Any:
        """The type: what is known of the value without extents, such as `DynTensorType(2, "float32")`."""
        return self._by("static_type", self.struct_info)

    _checked_type_ = checked_type

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__

    def _by(self, name: str, *args: Any) -> Any:
        return self._operators[name](*args)

    def astype(self, dtype: str) -> Any:
        """The tensor in another dtype."""
        return self._by("astype", self, dtype)

    def __neg__(self) -> Any:
        return self._by("negative", self)

    def __add__(self, other: Any) -> Any:
        return self._by("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._by("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._by("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._by("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._by("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._by("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._by("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._by("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._by("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._by("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._by("floor_mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._by("floor_mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._by("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._by("power", other, self)

    def __lt__(self, other: Any) -> Any:
        return self._by("less", self, other)

    def __le__(self, other: Any) -> Any:
        return self._by("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._by("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._by("greater_equal", self, other)

    def __bool__(self) -> bool:
        raise TypeMismatchError("a value of a graph is known when the graph runs: no condition of Python's; write R's `if`, or relax.If")

    def __getitem__(self, index: Any) -> Any:
        return self._by("element", self, index)

    def __call__(self, *args: Any, attrs: Mapping[str, Any] | None = None) -> Any:
        """A call of the value, which is a function."""
        return self._by("call", self, args, attrs)


def extent(value: Any) -> PrimExpr:
    """A size as an expression of int64.

    Raises:
        TypeMismatchError: for what is no integer.
    """
    if isinstance(value, IntImm) and value.dtype == SYMBOL_DTYPE:  # most are, and this is asked for each extent of each value
        return value
    if isinstance(value, RelaxExpr) and hasattr(value, "value") and isinstance(value.value, PrimExpr):  # a PrimValue
        value = value.value
    number = as_int(value) if not hasattr(value, "__index__") else int(value)
    # True is an index for Python, and no size.
    if number is not None and not isinstance(value, bool):
        return IntImm(SYMBOL_DTYPE, number)
    if isinstance(value, PrimExpr) and parse_dtype(value.dtype).code == "int":
        return value
    raise TypeMismatchError(f"an extent is an integer or an integer expression, not {value!r}")


@dataclass(frozen=True, eq=False, repr=False)
class ShapeExpr(RelaxExpr):
    """A shape as a value.

    Args:
        values: extents; integers become int64.
    """

    values: tuple[PrimExpr, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(extent(value) for value in self.values))

    def _derived(self) -> StructInfo:
        return ShapeStructInfo(self.values)

    def structural_parts(self) -> Parts:
        """The extents."""
        return (("values", tuple(map(Extent, self.values))),)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[PrimExpr]:
        return iter(self.values)


@dataclass(frozen=True, eq=False, repr=False)
class ObjectStructInfo(StructInfo):
    """Any value: nothing is known."""


@dataclass(frozen=True, eq=False, repr=False)
class PrimStructInfo(StructInfo):
    """A number.

    Args:
        dtype: of it; "" if unknown.
        value: an expression of it, where one is known.
    """

    dtype: str = ""
    value: PrimExpr | None = None

    def __post_init__(self) -> None:
        given: Any = self.dtype
        if isinstance(given, PrimExpr):  # PrimStructInfo(value)
            object.__setattr__(self, "value", given)
        dtype = self.value.dtype if isinstance(self.value, PrimExpr) else given or ""
        object.__setattr__(self, "dtype", str(dtype))


def _ndim(values: Sequence[PrimExpr] | None, ndim: int) -> int:
    """The number of dimensions, of extents or as it is stated.

    Raises:
        DeclarationError: if the two differ, or a stated one is below -1.
    """
    if ndim < -1 or (values is not None and ndim not in (-1, len(values))):
        counted = "unknown extents" if values is None else f"{len(values)} extents"
        raise DeclarationError(f"ndim={ndim} doesn't fit {counted}: leave it out, or state -1 for an unknown one")
    return ndim if values is None else len(values)


@dataclass(frozen=True, eq=False, repr=False)
class ShapeStructInfo(StructInfo):
    """A shape.

    Args:
        values: its extents, where they are known.
        ndim: how many there are; -1 if unknown.
    """

    values: Any = None
    ndim: int = -1

    def __post_init__(self) -> None:
        values = None if self.values is None else tuple(extent(value) for value in self.values)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "ndim", _ndim(values, self.ndim))

    def structural_parts(self) -> Parts:
        """The extents and their number."""
        return ("values", None if self.values is None else tuple(map(Extent, self.values))), ("ndim", self.ndim)


@dataclass(frozen=True, eq=False, repr=False)
class TensorStructInfo(StructInfo):
    """A tensor.

    Args:
        shape: a sequence of extents, or an expression that is a shape, which the field is then; None if unknown.
        dtype: of elements; "" if unknown.
        vdevice: where it lives, if that is stated; also as a text, such as "cuda:0".
        ndim: how many dimensions there are; -1 if unknown.
    """

    shape: Any = None
    dtype: str = "float32"
    vdevice: VDevice | None = None
    ndim: int = field(default=-1)

    def __post_init__(self) -> None:
        shape: Any = self.shape
        # A ShapeExpr is iterable, too.
        if isinstance(shape, Iterable) and not isinstance(shape, (RelaxExpr, str)):
            shape = ShapeExpr(tuple(shape))
        # Of a shape that is written out nothing else is known.
        known = shape if isinstance(shape, ShapeExpr) else shape.struct_info if isinstance(shape, RelaxExpr) else None
        if shape is not None and not isinstance(known, (ShapeExpr, ShapeStructInfo)):
            raise TypeMismatchError(f"the shape of a tensor is a tuple of extents or a value that is a shape, not {shape!r}")
        dtype = "" if self.dtype in (None, "", "void") else str(self.dtype)
        if dtype:
            parse_dtype(dtype)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "vdevice", VDevice.of(self.vdevice))
        extents = known.values if isinstance(known, (ShapeExpr, ShapeStructInfo)) else None
        # The rank of a shape that is a variable stands in what is known of that.
        stated = known.ndim if isinstance(known, ShapeStructInfo) and extents is None else self.ndim
        object.__setattr__(self, "ndim", _ndim(extents, stated))

    @cached_property
    def plain(self) -> tuple[Any, ...] | None:
        """Dtype and extents as they compare quickly, of a tensor of constant sizes; None for others."""
        if not isinstance(self.shape, ShapeExpr) or self.vdevice is not None:
            return None
        extents = [(one.value, one.dtype) for one in self.shape.values if isinstance(one, IntImm)]
        return (self.dtype, *extents) if len(extents) == len(self.shape.values) else None

    @property
    def extents(self) -> tuple[PrimExpr, ...] | None:
        """The extents, where they are known."""
        if isinstance(self.shape, ShapeExpr):
            return self.shape.values
        return self.shape.struct_info.values if self.shape is not None else None


@dataclass(frozen=True, eq=False, repr=False)
class TupleStructInfo(StructInfo):
    """A tuple of values.

    Args:
        fields: what is known of each.
    """

    fields: tuple[StructInfo, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))


@dataclass(frozen=True, eq=False, repr=False)
class FuncStructInfo(StructInfo):
    """A function.

    Args:
        params: what its arguments are; None if any are taken.
        ret: what it returns.
        purity: whether calls have no effect but their value.
        derive_func: what a call returns, by the call; for functions of any arguments.
    """

    params: tuple[StructInfo, ...] | None
    ret: StructInfo
    purity: bool = True
    derive_func: Callable[..., StructInfo] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", None if self.params is None else tuple(self.params))

    @staticmethod
    def opaque_func(*, ret: StructInfo | None = None, derive_func: Any = None, purity: bool = False) -> FuncStructInfo:
        """A function of any arguments."""
        return FuncStructInfo(None, ret or ObjectStructInfo(), purity, derive_func)


def symbols_of(info: StructInfo) -> tuple[Var, ...]:
    """The symbols in a struct info, in order of occurrence."""
    found: dict[Var, None] = {}
    for expr in _expressions(info):
        # Sorted: the order of a set changes from run to run.
        found.update(dict.fromkeys(sorted(variables(expr), key=lambda var: var.name)))
    return tuple(found)


def _expressions(info: StructInfo) -> Iterator[PrimExpr]:
    match info:
        case TensorStructInfo():
            yield from info.extents or ()
        case ShapeStructInfo():
            yield from info.values or ()
        case PrimStructInfo():
            yield from () if info.value is None else (info.value,)
        case TupleStructInfo():
            for one in info.fields:
                yield from _expressions(one)
        case FuncStructInfo():
            for one in (*(info.params or ()), info.ret):
                yield from _expressions(one)


def with_symbols(info: StructInfo, values: Mapping[Var, PrimExpr]) -> StructInfo:
    """A struct info with expressions in place of symbols."""
    if not values or values.keys().isdisjoint(symbols_of(info)):
        return info
    match info:
        case TensorStructInfo():
            new = [substitute(value, values) for value in info.extents or ()]
            return TensorStructInfo(new, info.dtype, info.vdevice)
        case ShapeStructInfo():
            return ShapeStructInfo(tuple(substitute(value, values) for value in info.values or ()))
        case PrimStructInfo(dtype, value) if value is not None:
            return PrimStructInfo(dtype, substitute(value, values))
        case TupleStructInfo(fields):
            return TupleStructInfo(tuple(with_symbols(one, values) for one in fields))
        case FuncStructInfo(params, ret, purity, derive):
            return FuncStructInfo(
                None if params is None else tuple(with_symbols(one, values) for one in params), with_symbols(ret, values), purity, derive
            )
    return info
