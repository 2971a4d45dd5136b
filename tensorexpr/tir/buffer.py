"""A buffer: typed, shaped, strided memory behind one pointer variable. Identity is equality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..errors import DeclarationError
from .arithmetic import convert, floordiv
from .dtype import parse_dtype, with_lanes
from .expr import BufferLoad, IntImm, PointerType, PrimExpr, PrimType, Ramp, Range, Var
from .pointers import access_mask_of, tvm_access_ptr


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """Memory of `dtype` elements with `shape`, seen through `data`.

    `strides` are in elements; empty means compact, last index fastest. `elem_offset` is in elements,
    `data_alignment` in bytes. Several buffers may share one `data` variable (a flattened view does).
    """

    _store: ClassVar[Any]  # BufferStore, which `stmt` puts here: statements know buffers, not the other way round

    data: Var
    dtype: str
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...] = ()
    elem_offset: PrimExpr = field(default_factory=lambda: IntImm("int32", 0))
    name: str = "buffer"
    data_alignment: int = 64
    offset_factor: int = 1

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def scope(self) -> str:
        """The storage scope: "global", "local", "register", ..."""
        annotation = self.data.type_annotation
        return annotation.storage_scope if annotation else "global"

    def access_dtype(self, indices: tuple[PrimExpr, ...]) -> str:
        """The dtype of a load at `indices`: vector lanes of the indices and of the element type multiply."""
        if len(indices) != len(self.shape):
            raise DeclarationError(f"buffer {self.name} has {len(self.shape)} dimensions, accessed with {len(indices)} indices")
        lanes = parse_dtype(self.dtype).lanes
        for index in indices:
            lanes *= parse_dtype(index.dtype).lanes
        return with_lanes(self.dtype, lanes)

    def __getitem__(self, indices: Any) -> PrimExpr:
        items = indices if isinstance(indices, tuple) else (indices,)
        return BufferLoad(self, tuple(convert(i) for i in items))

    def vload(self, begin: Sequence[Any], dtype: str | None = None) -> PrimExpr:
        """The load at `begin`, of one element, or of as many as the lanes of `dtype` along the last axis."""
        return BufferLoad(self, self._vector_indices(begin, dtype))

    def vstore(self, begin: Sequence[Any], value: Any) -> Any:
        """The statement that stores `value` at `begin`; a vector goes to as many elements along the last axis."""
        stored = convert(value)
        return Buffer._store(self, stored, self._vector_indices(begin, stored.dtype))

    def access_ptr(
        self, access_mask: str | int, ptr_type: str = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None
    ) -> PrimExpr:
        """The pointer to the first element, for an intrinsic or a C function.

        Args:
            access_mask: what happens behind it: "r", "w" or "rw".
            ptr_type: "handle"; the dtype of the pointer.
            content_lanes: how many elements count as one in the pointer's offset and extent.
            offset: in elements, where it points behind the first element.
            extent: how many elements it gives access to; all behind the offset if None.

        Raises:
            DeclarationError: for an access_mask that is none.
        """
        try:
            mask = access_mask_of(access_mask)
        except ValueError as error:
            raise DeclarationError(f"buffer {self.name}: {error}") from None
        if ptr_type != "handle":
            raise DeclarationError(f"buffer {self.name}: a pointer is a handle, not {ptr_type}")
        start, size = convert(offset), self._span()
        count = size - start if extent is None else convert(extent)
        first = self.elem_offset + start
        if content_lanes > 1:
            count, first = floordiv(count, content_lanes), floordiv(first, content_lanes)
        return tvm_access_ptr(with_lanes(self.dtype, content_lanes * parse_dtype(self.dtype).lanes), self.data, first, count, mask)

    def _span(self) -> PrimExpr:
        """The number of elements from the first to the last."""
        if self.strides and self.shape:
            return sum(((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True)), start=IntImm("int32", 1))
        total: PrimExpr = IntImm("int32", 1)
        for extent in self.shape:
            total = total * extent
        return total

    def _vector_indices(self, begin: Sequence[Any], dtype: str | None) -> tuple[PrimExpr, ...]:
        indices = [convert(i) for i in begin]
        lanes = parse_dtype(dtype).lanes if dtype else 1
        if lanes > 1:
            indices[-1] = Ramp(indices[-1], IntImm(indices[-1].dtype, 1), lanes)
        return tuple(indices)

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {self.dtype!r}, [{', '.join(map(str, self.shape))}])"


@dataclass(frozen=True, eq=False, slots=True)
class BufferRegion:
    """A box inside a buffer."""

    buffer: Buffer
    region: tuple[Range, ...]

    @staticmethod
    def full_region(buffer: Buffer) -> BufferRegion:
        """All of a buffer."""
        return BufferRegion(buffer, tuple(Range(IntImm(extent.dtype, 0), extent) for extent in buffer.shape))

    @staticmethod
    def from_point(buffer: Buffer, indices: Sequence[Any]) -> BufferRegion:
        """One element of a buffer.

        Raises:
            DeclarationError: if there is not one index for each dimension.
        """
        if len(indices) != buffer.ndim:
            raise DeclarationError(
                f"buffer {buffer.name} has {buffer.ndim} dimensions, and a point of it as many indices, not {len(indices)}"
            )
        point = tuple(convert(index) for index in indices)
        return BufferRegion(buffer, tuple(Range(index, IntImm(index.dtype, 1)) for index in point))


def pointer_var(name: str, dtype: str, scope: str = "global") -> Var:
    """A fresh variable that points to `dtype` elements in `scope`."""
    return Var(name, "handle", PointerType(PrimType(dtype), scope))


def decl_buffer(
    shape: Sequence[Any],
    dtype: str | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
) -> Buffer:
    """Declare a buffer.

    Args:
        shape: extents, integers or expressions.
        dtype: element type, default float32; may have lanes.
        data: the pointer variable; a fresh one if None.
        strides: in elements; None or empty means compact.
        elem_offset: where the first element stands behind `data`, in elements; None means 0, or with an
            offset_factor a variable that binding the buffer defines.
        data_alignment: promised alignment of `data` in bytes; -1 means 64.
        offset_factor: promised divisor of elem_offset; 0 promises nothing.

    Raises:
        DeclarationError: if there is not one integer stride for each dimension.
    """
    dtype = dtype or "float32"
    parse_dtype(dtype)
    extents = shape if isinstance(shape, (list, tuple)) else (shape,)
    steps = _strides(name, len(extents), strides)
    if elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", "int32") if offset_factor else 0
    return Buffer(
        data if data is not None else pointer_var(name, dtype, scope or "global"),
        dtype,
        tuple(convert(s) for s in extents),
        steps,
        convert(elem_offset),
        name,
        data_alignment if data_alignment > 0 else 64,
        offset_factor or 1,
    )


def _strides(name: str, ndim: int, strides: Sequence[Any] | None) -> tuple[PrimExpr, ...]:
    """The strides as expressions, one for each dimension, or none."""
    steps = tuple(convert(s) for s in strides or ())
    if steps and len(steps) != ndim:
        raise DeclarationError(f"buffer {name} has {ndim} dimensions and {len(steps)} strides; give one for each dimension, or none")
    odd = next((step for step in steps if not parse_dtype(step.dtype).is_int), None)
    if odd is not None:
        raise DeclarationError(f"buffer {name}: the stride {odd} is no integer; strides count elements")
    return steps
