"""What a tensor says of itself when the graph runs: `x.ndim`, `x.shape[0]`, `x.dtype.bits`, `x.strides[0]`, as DLPack's fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dataclass import dataclass, field
from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int
from ...tir.dtype import DataType, from_numpy, parse_dtype
from ...tir.expr import IntImm
from ..expr import Call, PrimValue, RelaxExpr
from ..struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from .row import Expr, Prim, operator, tensor

# DLPack's DLDataTypeCode, and the codes that TVM had for 8-bit floats.
_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 1}
_FLOAT8 = {"e4m3": 6, "e5m2": 7}


def _number(value: Any) -> PrimStructInfo:
    return PrimStructInfo("int64", value if value is None or not isinstance(value, int) else IntImm("int64", value))


def _code(dtype: DataType) -> int:
    text = str(dtype)
    found = next((code for name, code in _FLOAT8.items() if name in text), _CODES.get(dtype.code))
    if found is None:
        raise DeclarationError(f"{text} has no code among the dtypes of DLPack")
    return found


def _of_dtype(name: str, field: Any, what: str) -> Any:
    def rule(data: Expr) -> StructInfo:
        known = tensor(data, "data").dtype
        return _number(field(parse_dtype(known)) if known else None)

    rule.__doc__ = what
    return operator(f"inspect.tensor_dtype_{name}", numpy=lambda data: field(parse_dtype(from_numpy(data.dtype))), as_is=True)(rule)


tensor_dtype_code = _of_dtype("code", _code, "The kind of a tensor's elements: 0 int, 1 uint and bool, 2 float, 4 bfloat.")
tensor_dtype_bits = _of_dtype("bits", lambda dtype: dtype.bits, "The bits of a tensor's elements.")
tensor_dtype_lanes = _of_dtype("lanes", lambda dtype: dtype.lanes, "The lanes of a tensor's elements.")


@operator("inspect.tensor_ndim", numpy=lambda data: data.ndim, as_is=True)
def tensor_ndim(data: Expr) -> StructInfo:
    """How many axes a tensor has."""
    ndim = tensor(data, "data").ndim
    return _number(None if ndim < 0 else ndim)


def _extent(data: Expr, axis: Prim) -> Any:
    """The extent of an axis, where both are known."""
    info: Any = axis.struct_info
    number, operand = as_int(info.value) if info.value is not None else None, tensor(data, "data")
    if number is not None and (number < 0 or number >= operand.ndim >= 0):
        raise DeclarationError(f"axis {number} of a tensor of {operand.ndim} axes")
    return operand.extents[number] if number is not None and operand.extents is not None else None


@operator("inspect.tensor_shape_i", numpy=lambda data, axis: data.shape[axis], as_is=True)
def tensor_shape_i(data: Expr, axis: Prim) -> StructInfo:
    """The extent of one axis of a tensor."""
    return _number(_extent(data, axis))


@operator("inspect.tensor_stride_i", numpy=lambda data, axis: data.strides[axis] // data.itemsize, as_is=True)
def tensor_stride_i(data: Expr, axis: Prim) -> StructInfo:
    """How many elements the neighbours along one axis of a tensor are apart."""
    _extent(data, axis)
    return _number(None)


@operator("inspect.tensor_byte_offset", numpy=lambda data: 0, as_is=True)
def tensor_byte_offset(data: Expr) -> StructInfo:
    """How many bytes behind its pointer a tensor begins: none, as pointers are those of first elements."""
    tensor(data, "data")
    return _number(0)


@operator("inspect.tensor_elem_offset", numpy=lambda data: 0, as_is=True)
def tensor_elem_offset(data: Expr) -> StructInfo:
    """As `tensor_byte_offset`, in elements."""
    tensor(data, "data")
    return _number(0)


@dataclass(frozen=True)
class DTypeOf:
    """The dtype of a value when the graph runs; two are equal if as much is known of them.

    Args:
        known: the dtype, or "".
        value: the tensor.
    """

    known: str
    value: RelaxExpr = field(compare=False, repr=False)

    @property
    def type_code(self) -> Call:
        """Its kind, see `tensor_dtype_code`."""
        return tensor_dtype_code(self.value)  # type: ignore[no-any-return]

    @property
    def bits(self) -> Call:
        """Its bits."""
        return tensor_dtype_bits(self.value)  # type: ignore[no-any-return]

    @property
    def lanes(self) -> Call:
        """Its lanes."""
        return tensor_dtype_lanes(self.value)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class NumbersOf:
    """Numbers of the axes of a value when the graph runs: `x.shape`, `x.strides`."""

    value: RelaxExpr
    of_axis: Any

    def __getitem__(self, axis: Any) -> Call:
        if not isinstance(axis, (int, PrimValue, RelaxExpr)) and not hasattr(axis, "dtype"):
            raise TypeMismatchError(f"axes are numbers, not {axis!r}")
        return self.of_axis(self.value, axis)  # type: ignore[no-any-return]

    def __len__(self) -> int:
        info: Any = self.value.struct_info
        if info.ndim < 0:
            raise TypeMismatchError(f"{self.value} is {info}: how many axes it has is known when the graph runs, see its `ndim`")
        return int(info.ndim)

    def __iter__(self) -> Iterator[Call]:
        return (self[axis] for axis in range(len(self)))


def of_tensor(value: RelaxExpr, name: str) -> Any:
    """What a value says of itself under a name.

    Raises:
        AttributeError: for a value that is no tensor, so that it has no such attribute.
    """
    info = value.struct_info
    if not isinstance(info, TensorStructInfo):
        raise AttributeError(f"{value} is {info}: only a tensor has {name!r}")
    if name == "dtype":
        return DTypeOf(info.dtype, value)
    if name in ("shape", "strides"):
        return NumbersOf(value, tensor_shape_i if name == "shape" else tensor_stride_i)
    return {"ndim": tensor_ndim, "byte_offset": tensor_byte_offset, "elem_offset": tensor_elem_offset}[name](value)
