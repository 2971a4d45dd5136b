"""A buffer: typed, shaped, strided memory behind one pointer variable. Identity is equality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import DeclarationError
from .arithmetic import convert
from .dtype import parse_dtype, with_lanes
from .expr import BufferLoad, IntImm, PointerType, PrimExpr, PrimType, Ramp, Range, Var


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """Memory of `dtype` elements with `shape`, seen through `data`.

    `strides` are in elements; empty means compact, last index fastest. `elem_offset` is in elements,
    `data_alignment` in bytes. Several buffers may share one `data` variable (a flattened view does).
    """

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
        elem_offset: where the first element stands behind `data`, in elements.
        data_alignment: promised alignment of `data` in bytes; -1 means 64.

    Raises:
        DeclarationError: if there is not one integer stride for each dimension.
    """
    dtype = dtype or "float32"
    parse_dtype(dtype)
    extents = shape if isinstance(shape, (list, tuple)) else (shape,)
    steps = _strides(name, len(extents), strides)
    return Buffer(
        data if data is not None else pointer_var(name, dtype, scope or "global"),
        dtype,
        tuple(convert(s) for s in extents),
        steps,
        convert(elem_offset if elem_offset is not None else 0),
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
