"""Tensors: the values that operations compute, and how their elements are written in expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..dataclass import dataclass
from ..errors import DeclarationError
from ..later import later
from ..tir.arithmetic import convert
from ..tir.dtype import parse_dtype
from ..tir.expr import DataProducer, ExprOp, PrimExpr, ProducerLoad

if TYPE_CHECKING:
    from .operation import Operation


@dataclass(frozen=True, eq=False, repr=False)
class Tensor(ExprOp, DataProducer):
    """Output `value_index` of `op`. Identity is equality; `op.output(i)` always gives the same object.

    `A[i, j]` and `A(i, j)` are elements, as expressions. A tensor of rank 0 is one itself, also `A()` and `A[()]`.
    `+`, `-`, `*` and `/` of tensors broadcast and make a new tensor.
    """

    op: Operation
    value_index: int

    if TYPE_CHECKING:  # see `elementwise`: a tensor, or next to an expression and of rank 0 another expression

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The extents, int32 constants unless symbolic or large."""
        return self.op.output_shape(self.value_index)

    @property
    def dtype(self) -> str:
        """The dtype of an element."""
        return self.op.output_dtype(self.value_index)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def name(self) -> str:
        """The operation's name, with `.v0`, `.v1`, ... where it has several outputs."""
        return self.op.name if self.op.num_outputs == 1 else f"{self.op.name}.v{self.value_index}"

    @property
    def axis(self) -> tuple[ExprOp, ...]:
        """The spatial axes of the operation."""
        return self.op.axis

    def __getitem__(self, indices: Any) -> PrimExpr | TensorSlice:
        items = indices if isinstance(indices, tuple) else tuple(indices) if isinstance(indices, list) else (indices,)
        if len(items) < self.ndim or (len(items) == self.ndim and any(isinstance(item, slice) for item in items)):
            return TensorSlice(self, tuple(item if isinstance(item, slice) else _index(self, item) for item in items))
        return element(self, items)

    __iter__: ClassVar[None] = None  # elements are named by indices: Python's own protocols would never end
    __contains__: ClassVar[None] = None

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __call__(self, *indices: Any) -> PrimExpr:
        """The element at `indices`, one for each dimension.

        An index that depends on data (``A[B[i]]``) isn't checked: out of range it reads other memory. Build under
        ``PassContext(config={"tir.instrument_bound_checkers": True})`` to stop there.

        Raises:
            DeclarationError: for another number of indices, or indices that aren't integers.
        """
        return element(self, indices)

    def asobject(self) -> PrimExpr:
        """The only element of a tensor of rank 0.

        Raises:
            DeclarationError: for a tensor that has dimensions.
        """
        if self.ndim:
            example = ", ".join(f"i{d}" for d in range(self.ndim))
            raise DeclarationError(
                f"tensor {self.name} has {self.ndim} dimensions and is no scalar; write an element such as {self.name}[{example}]"
            )
        return ProducerLoad(self, ())

    def __str__(self) -> str:
        return f"Tensor(shape=[{', '.join(map(str, self.shape))}], op.name={self.op.name})"

    def __eq__(self, other: object) -> Any:
        """Whether `other` is this tensor; of scalars, which are values too, the comparison."""
        # a plain bool, since tensors are keys of dictionaries
        if isinstance(other, Tensor) and (self.ndim or other.ndim):
            return self is other
        return ExprOp.__eq__(self, other)

    __repr__ = __str__
    __hash__ = ExprOp.__hash__


@dataclass(frozen=True, eq=False)
class TensorSlice(ExprOp):
    """`A[i]` of a tensor with more dimensions: the leading `indices`, to be continued by further ones.

    `A[i, 0:16]`, with slices among them, is a part of the tensor, which tensor intrinsics are applied to.
    """

    tensor: Tensor
    indices: tuple[Any, ...]

    __iter__: ClassVar[None] = None
    __contains__: ClassVar[None] = None

    def __getitem__(self, indices: Any) -> PrimExpr | TensorSlice:
        items = indices if isinstance(indices, tuple) else (indices,)
        return self.tensor[self.indices + items]

    @property
    def dtype(self) -> str:
        """The dtype of an element."""
        return self.tensor.dtype

    def asobject(self) -> PrimExpr:
        """The element, if all dimensions are indexed.

        Raises:
            DeclarationError: always, since a slice lacks indices.
        """
        return element(self.tensor, self.indices)

    __eq__ = ExprOp.__eq__
    __hash__ = ExprOp.__hash__


def element(tensor: Tensor, indices: tuple[Any, ...]) -> PrimExpr:
    """The element of `tensor` at `indices` as an expression."""
    if len(indices) != tensor.ndim:
        raise DeclarationError(
            f"tensor {tensor.name} has {tensor.ndim} dimensions, indexed with {len(indices)}: one index for each is needed"
        )
    return ProducerLoad(tensor, tuple(_index(tensor, item) for item in indices))


def _index(tensor: Tensor, item: Any) -> PrimExpr:
    if isinstance(item, slice):
        raise DeclarationError(
            f"tensor {tensor.name} can't be indexed by a Python slice where an element is meant; declare a te.compute that reads the "
            "wanted elements, or give the slice to a tensor intrinsic"
        )
    index = convert(item)
    parsed = parse_dtype(index.dtype)
    if not parsed.is_int or parsed.lanes > 1:
        raise DeclarationError(
            f"tensor {tensor.name} is indexed with {item!s} ({index.dtype}); an index is a scalar integer, convert with .astype('int32')"
        )
    return index


# Programs look for operations here; they are defined in modules that know tensors.
_HOMES = {
    ".extern": "ExternOp",
    ".hybrid_op": "HybridOp",
    ".operation": "BaseComputeOp ComputeOp Operation PlaceholderOp",
    ".scan_op": "ScanOp",
    ".tensor_compute": "TensorComputeOp TensorIntrinCall",
}

__getattr__, __dir__ = later(__name__, _HOMES)
