"""A buffer: typed, shaped, strided memory behind one pointer variable. Identity is equality."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

from ..dataclass import dataclass, field, replace
from ..errors import DeclarationError
from .arithmetic import as_int, convert, floordiv
from .dtype import DType, parse_dtype, with_lanes
from .expr import BufferLoad, ExprOp, IntImm, PointerType, PrimExpr, PrimType, Ramp, Range, Var, each, refuse
from .interning import ADAPTERS, Built
from .node import Object
from .pointers import READ, WRITE, access_mask_of, tvm_access_ptr


@dataclass(frozen=True, eq=False, slots=True)
class Buffer(Built, Object):
    """Memory of `dtype` elements with `shape`, seen through `data`.

    `strides` are in elements; empty means compact, last index fastest. `elem_offset` is in elements,
    `data_alignment` in bytes. Several buffers may share one `data` variable (a flattened view does).
    """

    READ: ClassVar[int] = READ
    WRITE: ClassVar[int] = WRITE
    DEFAULT: ClassVar[int] = 1
    AUTO_BROADCAST: ClassVar[int] = 2
    _store: ClassVar[Any]  # BufferStore, which `stmt` puts here: statements know buffers, not the other way round

    data: Var
    dtype: DType
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...] = ()
    elem_offset: PrimExpr = field(default_factory=lambda: IntImm("int32", 0))
    name: str = "buffer"
    data_alignment: int = 64
    offset_factor: int = 1
    buffer_type: int = 1
    axis_separators: tuple[PrimExpr, ...] = ()

    # The iteration protocol over __getitem__ would never end.
    __iter__ = None
    __contains__ = None

    def __post_init__(self) -> None:
        cuts = [-1 if (cut := as_int(separator)) is None else cut for separator in self.axis_separators]
        if any(not low <= cut <= len(self.shape) for low, cut in zip([0, *cuts], cuts, strict=False)):
            raise DeclarationError(
                f"buffer {self.name}: axis_separators {cuts} are no increasing positions between its {len(self.shape)} dimensions"
            )

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

    def __getitem__(self, indices: Any) -> Any:
        """A load; with slices the region of them (which reads as a vector), with steps a load of a vector."""
        items = indices if isinstance(indices, (tuple, list)) else (indices,)
        slices = [item for item in items if isinstance(item, slice)]
        if not slices:
            return BufferLoad(self, tuple(convert(i) for i in items))
        if len(items) > len(self.shape):
            raise DeclarationError(f"buffer {self.name} has {len(self.shape)} dimensions, accessed with {len(items)} indices")
        if all(item.step is None for item in slices):
            return BufferRegion(self, tuple(self._range(d, item) for d, item in enumerate(items)))
        return BufferLoad(self, tuple(self._lanes(d, item) if isinstance(item, slice) else convert(item) for d, item in enumerate(items)))

    def _range(self, dimension: int, item: Any) -> Range:
        if not isinstance(item, slice):
            return Range.from_min_extent(item, IntImm(convert(item).dtype, 1))
        start = convert(0 if item.start is None else item.start)
        stop = convert(self.shape[dimension] if item.stop is None else item.stop)
        return Range.from_min_extent(start, difference(stop, start))

    def _lanes(self, dimension: int, item: slice) -> PrimExpr:
        box = self._range(dimension, item)
        step = convert(1 if item.step is None else item.step)
        # Rounded up: 0:7:3 has the lanes 0, 3 and 6, and 7:0:-3 the lanes 7, 4 and 1.
        rounding = step + 1 if (as_int(step) or 1) < 0 else step - 1
        lanes = as_int(floordiv(box.extent + rounding, step))
        if lanes is None or lanes < 1:
            raise DeclarationError(
                f"buffer {self.name}: a slice with a step is a vector, whose lanes must be a constant, not {box.extent} // {step}"
            )
        return box.min if lanes == 1 else Ramp(box.min, step, lanes)

    def vload(self, begin: Sequence[Any], dtype: str | None = None, predicate: Any = None) -> PrimExpr:
        """The load at `begin`, of one element, or of as many as the lanes of `dtype` along the last axis."""
        return BufferLoad(self, self._vector_indices(begin, dtype), predicate)

    def vstore(self, begin: Sequence[Any], value: Any, predicate: Any = None) -> Any:
        """The statement that stores `value` at `begin`; a vector goes to as many elements along the last axis."""
        stored = convert(value)
        return Buffer._store(self, stored, self._vector_indices(begin, stored.dtype), predicate)

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
        """The number of elements up to the end of the last row, with what stands between rows."""
        if self.strides and self.shape:
            sizes = [as_int(step) for step in self.strides]
            # The slowest dimension is the first; only constants can say that it is another, as in column-major memory.
            slowest = 0 if None in sizes else max(range(len(sizes)), key=lambda d: sizes[d] or 0)
            return self.strides[slowest] * self.shape[slowest]
        return product(self.shape)

    def _by_axis(self) -> list[range]:
        """The dimensions that each axis of the storage holds, as the separators say."""
        cuts = [0, *(as_int(cut) or 0 for cut in self.axis_separators), len(self.shape)]
        return [range(low, high) for low, high in pairwise(cuts)]

    def offset_of(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """Where an element stands, in elements behind `data`: one number for each axis of the storage, simplified.

        Raises:
            DeclarationError: if there is not one index for each dimension.
        """
        if len(indices) != len(self.shape):
            raise DeclarationError(f"buffer {self.name} has {len(self.shape)} dimensions, accessed with {len(indices)} indices")
        found: list[PrimExpr] = []
        for dims in self._by_axis():
            place: PrimExpr = IntImm("int32", 0)
            for d in dims:
                place = place + convert(indices[d]) * self.strides[d] if self.strides else place * self.shape[d] + convert(indices[d])
            found.append(place)
        # The other axes of the storage have no offset.
        found[0] = found[0] + self.elem_offset
        # "analyzer" joins quotients with remainders; the other one, before and after it, writes sums in TVM's form.
        return [simplified(simplified(simplified(place), "analyzer")) for place in found]

    def get_flattened_buffer(self) -> Buffer:
        """This buffer as its storage has it: one dimension for each axis of it; itself if it is flat."""
        axes = self._by_axis()
        # Equally many need not be one each: cut at 1 and again at 1, three dimensions are the axes of one, none and two.
        if all(len(dims) == 1 for dims in axes) and not self.strides:
            return self
        if self.strides:
            # The first dimension of each axis is its slowest: its stride times its extent is all there is.
            sizes = [simplified(self.strides[dims[0]] * self.shape[dims[0]]) if len(dims) else IntImm("int32", 1) for dims in axes]
        else:
            sizes = [product([self.shape[d] for d in dims]) for dims in axes]
        cuts = tuple(IntImm("int32", place) for place in range(1, len(axes)))
        return replace(self, shape=tuple(sizes), strides=(), buffer_type=Buffer.DEFAULT, axis_separators=cuts)

    def _vector_indices(self, begin: Sequence[Any], dtype: str | None) -> tuple[PrimExpr, ...]:
        indices = [convert(i) for i in (begin if isinstance(begin, (list, tuple)) else (begin,))]
        lanes = parse_dtype(dtype).lanes if dtype else 1
        if lanes > 1:
            indices[-1] = Ramp(indices[-1], IntImm(indices[-1].dtype, 1), lanes)
        return tuple(indices)

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {self.dtype!r}, [{', '.join(map(str, self.shape))}])"


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BufferRegion(Built, ExprOp, Object):
    """A box inside a buffer. In an expression it is the vector of its elements along one dimension."""

    buffer: Buffer
    region: tuple[Range, ...]

    __iter__ = None
    __eq__ = ExprOp.__eq__  # type: ignore[assignment]
    __hash__ = ExprOp.__hash__

    @property
    def dtype(self) -> str:
        """That of the vector."""
        return self.asobject().dtype

    def asobject(self) -> PrimExpr:
        """The load of all elements, with constant extents.

        Raises:
            DeclarationError: for an extent that is no constant.
        """
        indices = []
        for side in self.region:
            lanes = as_int(side.extent)
            if lanes is None:
                raise DeclarationError(f"{self}: a vector has a constant number of lanes, not {side.extent}")
            indices.append(side.min if lanes == 1 else Ramp(side.min, IntImm(side.min.dtype, 1), lanes))
        return BufferLoad(self.buffer, tuple(indices))

    def __str__(self) -> str:
        sides = (str(r.min) if as_int(r.extent) == 1 else f"{r.min}:{r.end}" for r in self.region)
        return f"{self.buffer.name}[{', '.join(sides)}]"

    __repr__ = __str__

    @staticmethod
    def full_region(buffer: Buffer) -> BufferRegion:
        """All of a buffer."""
        return BufferRegion(buffer, tuple(Range.from_min_extent(IntImm(extent.dtype, 0), extent) for extent in buffer.shape))

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
        return BufferRegion(buffer, tuple(Range.from_min_extent(index, IntImm(index.dtype, 1)) for index in point))


ADAPTERS.update({
    "tuple[Buffer, ...]": each(Buffer, refuse("buffer")),
    "BufferRegion": (BufferRegion, refuse("region"), None),
    "tuple[BufferRegion, ...]": each(BufferRegion, refuse("region")),
})  # fmt: skip


def product(extents: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements of a box."""
    total: PrimExpr | None = None
    for extent in extents:
        total = extent if total is None else total * extent
    return IntImm("int32", 1) if total is None else total


def difference(stop: PrimExpr, start: PrimExpr) -> PrimExpr:
    """stop - start, simplified where they aren't constants."""
    size = stop - start
    return size if isinstance(size, IntImm) else simplified(size)


def simplified(expr: PrimExpr, analyzer: str = "index_analyzer") -> PrimExpr:
    """An index as the algebra of indices has it, which stands in a higher row and is loaded when it is asked.

    analyzer: the module whose Analyzer does it. "analyzer" brings quotients together with their remainders whatever the divisor,
        "index_analyzer" writes sums as TVM does.
    """
    if isinstance(expr, (IntImm, Var)):
        return expr
    found: PrimExpr = importlib.import_module(f"tensorexpr.arith.{analyzer}").Analyzer().simplify(expr)
    return found


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
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
    span: object = None,
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
        buffer_type: "auto_broadcast" makes every stride a variable, which is 0 where an argument has one element.
        axis_separators: positions between the dimensions: storage has an axis for each group that they cut off.

    Raises:
        DeclarationError: if there is not one integer stride for each dimension, or the separators are no increasing positions.
    """
    dtype = str(dtype or "float32")
    if buffer_type not in ("", "default", "auto_broadcast"):
        raise DeclarationError(f'buffer {name}: buffer_type is "" or "auto_broadcast", not {buffer_type!r}')
    parse_dtype(dtype)
    extents = shape if isinstance(shape, (list, tuple)) else (shape,)
    steps = _strides(name, len(extents), strides)
    if buffer_type == "auto_broadcast" and not steps:
        steps = tuple(Var(f"{name}_stride{d}", convert(extent).dtype) for d, extent in enumerate(extents))
    # Without a promise the offset is 0; with one, binding the buffer says what it is.
    if elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", convert(extents[0]).dtype if extents else "int32") if offset_factor else 0
    return Buffer(
        data if data is not None else pointer_var(name, dtype, scope or "global"),
        dtype,
        tuple(convert(s) for s in extents),
        steps,
        convert(elem_offset),
        name,
        data_alignment if data_alignment > 0 else 64,
        offset_factor or 1,
        Buffer.AUTO_BROADCAST if buffer_type == "auto_broadcast" else Buffer.DEFAULT,
        tuple(convert(cut) for cut in axis_separators or ()),
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
