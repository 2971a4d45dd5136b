"""Loads and stores of memory: one element, a contiguous vector, or lanes at a stride or anywhere; all of them masked if need be.

A contiguous vector is one instruction. Lanes at a known stride are loads of their own put together (on the CPUs at hand
that beats the gather instruction); lanes anywhere, or guarded by a mask that isn't constant, are a gather. Without masks in
registers of their own, that is a branch for each lane: then the lanes left out read the first element, and forget it.
"""

from __future__ import annotations

from functools import cache

from ..dataclass import dataclass
from ..errors import CodegenError
from ..tir.arithmetic import binary, cast
from ..tir.buffer import Buffer
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, Broadcast, BufferLoad, IntImm, Mul, PrimExpr, Ramp, Sub, Var
from ..tir.stmt import BufferStore, Stmt
from . import nontemporal, odd_vectors, registers
from .address import element_pointer
from .context import FunctionContext
from .masks import Mask, access_mask, splat_value
from .types import MEMORY_TYPE, VALUE_TYPE, suffix, vector_of, zero

_GATHERED = (4, 8)  # bytes of the elements that AVX-512 gathers under a mask


@dataclass(slots=True)
class Access:
    """Where the lanes of an access lie: lane i at `base + i * stride` (in `unit` bytes), or at the vector `base`."""

    data: Var
    base: PrimExpr
    stride: int | None
    lanes: int
    memory_type: str  # of one lane
    unit: int


def as_ramp(expr: PrimExpr) -> tuple[PrimExpr, int] | None:
    """(base, stride) of an integer vector whose lanes are equally far apart by a constant, else None."""
    match expr:
        case Ramp(base, IntImm(_, stride), _):
            return base, stride
        case Broadcast(value, _):
            return value, 0
        case Add(a, b) | Sub(a, b):
            left, right = as_ramp(a), as_ramp(b)
            if left is None or right is None:
                return None
            sign = 1 if isinstance(expr, Add) else -1
            return binary(type(expr), left[0], right[0]), left[1] + sign * right[1]
        case Mul(a, Broadcast(IntImm(_, factor), _)):
            inner = as_ramp(a)
            return None if inner is None else (binary(Mul, inner[0], IntImm(inner[0].dtype, factor)), inner[1] * factor)
    return None


def _one_index(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    """The place in memory of an element of storage with several axes, the last of which may have lanes."""
    *outer, last = indices
    if not outer:
        return last
    sizes = [cast(extent, outer[0].dtype) for extent in buffer.shape]
    line = outer[0]
    # `sizes` has one more: the last is the length of a line.
    for index, size in zip(outer[1:], sizes[1:], strict=False):
        line = binary(Add, binary(Mul, line, size), index)
    line = binary(Mul, line, sizes[-1])
    if isinstance(last, Ramp):
        return Ramp(binary(Add, line, last.base), last.stride, last.lanes)
    return binary(Add, line, last)


def _classify(ctx: FunctionContext, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> Access:
    if len(indices) == 1 + len(buffer.axis_separators):
        indices = (_one_index(buffer, indices),)
    if len(indices) != 1:
        raise CodegenError(
            f"In {ctx.name}: {buffer.name} is accessed with {len(indices)} indices; "
            "lower the function through phase 1, which flattens buffers"
        )
    index = indices[0]
    per_element, memory_type, unit = _element(buffer.dtype)
    count = parse_dtype(index.dtype).lanes
    ramp = (index, 1) if count == 1 else as_ramp(index)
    if per_element == 1:
        base, stride = ramp if ramp is not None else (index, None)
        # An expression made here has to be kept: memos go by id, which a dead one would pass on.
        return Access(buffer.data, base if base is index else ctx.keep(base), stride, count, memory_type, unit)
    if ramp is None or (count > 1 and ramp[1] != 1):
        raise CodegenError(
            f"In {ctx.name}: {buffer.name}[{index}] picks vectors of {buffer.dtype} that don't lie side by side; "
            "declare the buffer with scalar elements, or read the vectors one by one"
        )
    base = ctx.keep(binary(Mul, ramp[0], IntImm(ramp[0].dtype, per_element)))
    return Access(buffer.data, base, 1, count * per_element, memory_type, unit)


@cache
def _element(dtype: str) -> tuple[int, str, int]:
    """The lanes of an element, and the type and size in memory of one."""
    parsed = parse_dtype(dtype)
    return parsed.lanes, MEMORY_TYPE[str(parsed.scalar)], parsed.itemsize


# Loads


def emit_load(ctx: FunctionContext, node: PrimExpr) -> str:
    """A BufferLoad; lanes that its predicate leaves out are zero."""
    assert isinstance(node, BufferLoad)
    if registers.is_register(node.buffer):
        return _register_load(ctx, node)
    access = _classify(ctx, node.buffer, node.indices)
    mask = None if node.predicate is None and ctx.mask is None else access_mask(ctx, node.predicate, access.lanes)
    # A value made of this load is forgotten when the memory is written.
    ctx.reads |= ctx.memory_bit(access.data)
    ctx.read_through.add(access.data)
    if mask is not None and mask.is_empty:
        return zero(node.dtype)
    if access.lanes == 1 or access.stride == 0:
        loaded = _load_one(ctx, access, mask)
    elif access.stride == 1:
        loaded = _load_block(ctx, access, mask)
    elif access.stride is not None and (mask is None or mask.constant is not None):
        loaded = _load_each(ctx, access, access.stride, mask)
    else:
        loaded = _gather(ctx, access, mask, _has_elements(ctx, node.buffer))
    return from_memory(ctx, node.dtype, loaded)


def _register_load(ctx: FunctionContext, node: BufferLoad) -> str:
    value = registers.load(ctx, node.buffer, node.indices)
    mask = access_mask(ctx, node.predicate, parse_dtype(node.dtype).lanes) if node.predicate is not None else None
    if mask is None:
        return value
    llvm_type, lanes = VALUE_TYPE[node.dtype], parse_dtype(node.dtype).lanes
    return ctx.text.value(f"select {vector_of('i1', lanes)} {mask.text}, {llvm_type} {value}, {llvm_type} {zero(node.dtype)}")


def from_memory(ctx: FunctionContext, dtype: str, loaded: str) -> str:
    """A value of `dtype` from what a load gave: bools are bytes in memory, true unless zero."""
    memory_type = MEMORY_TYPE[dtype]
    # A constant, as that of an empty mask, is a value of the type already.
    if memory_type == VALUE_TYPE[dtype] or not loaded.startswith("%"):
        return loaded
    nothing = "0" if memory_type == "i8" else "zeroinitializer"
    return ctx.text.value(f"icmp ne {memory_type} {loaded}, {nothing}")


def to_memory(ctx: FunctionContext, dtype: str, value: str) -> str:
    """What a store of a value of `dtype` writes."""
    memory_type, value_type = MEMORY_TYPE[dtype], VALUE_TYPE[dtype]
    return value if memory_type == value_type else ctx.text.value(f"zext {value_type} {value} to {memory_type}")


def _load_one(ctx: FunctionContext, access: Access, mask: Mask | None) -> str:
    """One element, in every lane; under a mask it is read only if some lane wants it."""
    kind, lanes = access.memory_type, access.lanes
    if mask is None:
        return splat_value(ctx, kind, _load_scalar(ctx, access), lanes)
    text = ctx.text
    wanted = mask.text if lanes == 1 else text.value(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {mask.text})")
    with ctx.scope():  # what is computed behind the branch isn't known after it
        read, done, before = text.fresh("read"), text.fresh("done"), text.block
        text.branch(wanted, read, done)
        text.start(read)
        value = _load_scalar(ctx, access)
        after = text.block
        text.jump(done)
    text.start(done)
    nothing = "0x0000000000000000" if kind in ("float", "double") else "null" if kind == "ptr" else "0"
    value = text.value(f"phi {kind} [ {nothing}, %{before} ], [ {value}, %{after} ]")
    if lanes == 1:
        return value
    vector = vector_of(kind, lanes)
    spread = splat_value(ctx, kind, value, lanes)
    return text.value(f"select <{lanes} x i1> {mask.text}, {vector} {spread}, {vector} zeroinitializer")


def _load_scalar(ctx: FunctionContext, access: Access) -> str:
    pointer, alignment = element_pointer(ctx, access.data, access.base, access.unit)
    return ctx.text.value(f"load {access.memory_type}, ptr {pointer}, align {alignment}")


def _load_block(ctx: FunctionContext, access: Access, mask: Mask | None) -> str:
    pointer, alignment = element_pointer(ctx, access.data, access.base, access.unit)
    vector = vector_of(access.memory_type, access.lanes)
    if mask is None:
        wide = odd_vectors.widened(ctx, access.lanes, access.unit)
        if wide is not None:
            return odd_vectors.load(ctx, access.memory_type, access.lanes, wide, pointer, alignment)
        return _in_order(ctx, access, access.lanes, 0)
    return ctx.text.value(
        f"call {vector} @llvm.masked.load.{suffix(vector)}.p0(ptr align {alignment} {pointer}, "
        f"<{access.lanes} x i1> {mask.text}, {vector} zeroinitializer)"
    )


def _in_order(ctx: FunctionContext, access: Access, lanes: int, first: int) -> str:
    """Neighbours in memory, register by register: a load of several is taken apart by LLVM in any order, which no prefetcher follows.

    (znver1, the squares of 16 MB summed by eight registers, loaded from the middle to both ends: 1.10 ms, in order 0.74.)
    """
    half, odd = divmod(lanes, 2)
    vector = vector_of(access.memory_type, lanes)
    if odd or 8 * lanes * access.unit <= ctx.module.target.vector_bits:
        pointer, alignment = _displaced(ctx, access, first * access.unit)
        return ctx.text.value(f"load {vector}, ptr {pointer}, align {alignment}")
    low, high = (_in_order(ctx, access, half, first + start) for start in (0, half))
    indices, part = ", ".join(f"i32 {lane}" for lane in range(lanes)), vector_of(access.memory_type, half)
    return ctx.text.value(f"shufflevector {part} {low}, {part} {high}, <{lanes} x i32> <{indices}>")


def _displaced(ctx: FunctionContext, access: Access, offset: int) -> tuple[str, int]:
    """The address so many bytes behind an element, and its alignment."""
    pointer, alignment = element_pointer(ctx, access.data, access.base, access.unit)
    if offset == 0:
        return pointer, alignment
    moved = ctx.once(("displaced", pointer, offset), lambda: ctx.text.value(f"getelementptr i8, ptr {pointer}, i64 {offset}"))
    # The lowest bit that is set in either: both are multiples of it.
    return moved, (alignment | offset) & -(alignment | offset)


def _load_each(ctx: FunctionContext, access: Access, stride: int, mask: Mask | None) -> str:
    kind = access.memory_type
    vector = vector_of(kind, access.lanes)
    # Without a mask every lane is written; with one those left out must read as zero.
    result = "poison" if mask is None else "zeroinitializer"
    for lane in range(access.lanes):
        if mask is None or (mask.constant is not None and mask.constant[lane]):
            pointer, alignment = _displaced(ctx, access, lane * stride * access.unit)
            element = ctx.text.value(f"load {kind}, ptr {pointer}, align {alignment}")
            result = ctx.text.value(f"insertelement {vector} {result}, {kind} {element}, i64 {lane}")
    return result


def _pointers(ctx: FunctionContext, access: Access, mask: Mask | None = None) -> str:
    """The vector of the addresses of all lanes; of those that a mask leaves out, that of the first element."""
    lanes, text = access.lanes, ctx.text
    if access.stride is not None:
        pointer, _ = element_pointer(ctx, access.data, access.base, access.unit)
        offsets = ", ".join(f"i64 {lane * access.stride * access.unit}" for lane in range(lanes))
        found = text.value(f"getelementptr i8, ptr {pointer}, <{lanes} x i64> <{offsets}>")
        if mask is None:
            return found
        first = splat_value(ctx, "ptr", ctx.variable(access.data), lanes)
        return text.value(f"select <{lanes} x i1> {mask.text}, <{lanes} x ptr> {found}, <{lanes} x ptr> {first}")
    index = ctx.value(access.base)
    kind = VALUE_TYPE[access.base.dtype]
    if mask is not None:
        index = text.value(f"select <{lanes} x i1> {mask.text}, {kind} {index}, {kind} zeroinitializer")
    # getelementptr extends narrow indices by their sign.
    if access.base.dtype.startswith(("uint", "bool")):
        wide = f"<{lanes} x i64>"
        index, kind = text.value(f"zext {kind} {index} to {wide}"), wide
    return text.value(f"getelementptr {access.memory_type}, ptr {ctx.variable(access.data)}, {kind} {index}")


def _lane_alignment(ctx: FunctionContext, access: Access) -> int:
    # A lane may lie at any element, so nothing beyond an element's own size is known.
    return min(access.unit, ctx.alignments.get(access.data, 0) or 1)


def _has_elements(ctx: FunctionContext, buffer: Buffer) -> bool:
    """Whether there is a first element for sure: the caller's array was checked, or the storage is the function's own."""
    ctx.variable(buffer.data)  # in a parallel body its alignment is known once it was asked for
    return buffer.data in ctx.alignments and all(isinstance(extent, IntImm) and extent.value > 0 for extent in buffer.shape)


def _gather(ctx: FunctionContext, access: Access, mask: Mask | None, has_elements: bool) -> str:
    vector, lanes, text = vector_of(access.memory_type, access.lanes), access.lanes, ctx.text
    is_native = "avx512vl" in ctx.module.features and access.unit in _GATHERED
    replaced = mask if has_elements and not is_native else None
    pointers = _pointers(ctx, access, replaced)
    wanted = mask.text if mask is not None and replaced is None else "splat (i1 true)"
    loaded = text.value(
        f"call {vector} @llvm.masked.gather.{suffix(vector)}.v{lanes}p0(<{lanes} x ptr> align {_lane_alignment(ctx, access)} {pointers}, "
        f"<{lanes} x i1> {wanted}, {vector} zeroinitializer)"
    )
    return loaded if replaced is None else text.value(f"select <{lanes} x i1> {replaced.text}, {vector} {loaded}, {vector} zeroinitializer")


# Stores


def emit_store(ctx: FunctionContext, stmt: Stmt) -> None:
    """A BufferStore; lanes that its predicate leaves out stay as they are."""
    assert isinstance(stmt, BufferStore)
    buffer = stmt.buffer
    # Before the mask is looked at: the value may have effects.
    value = registers.value_of(ctx, buffer, stmt.value)
    mask = None if stmt.predicate is None else access_mask(ctx, stmt.predicate, parse_dtype(stmt.value.dtype).lanes)
    if mask is not None and mask.is_empty:
        return
    if registers.is_register(buffer):
        registers.store(ctx, buffer, stmt.indices, value, None if mask is None else mask.text)
        return
    access = _classify(ctx, buffer, stmt.indices)
    ctx.written_through.add(access.data)
    value = to_memory(ctx, stmt.value.dtype, value)
    if access.lanes == 1:
        _store_one(ctx, access, value, mask)
    elif access.stride == 1:
        _store_block(ctx, access, value, mask)
    # Lanes at stride 0 are scattered too, so that the last one stays.
    elif access.stride and (mask is None or mask.constant is not None):
        _store_each(ctx, access, access.stride, value, mask)
    else:
        _scatter(ctx, access, value, mask)
    ctx.invalidate(ctx.memory_bit(access.data))


def _store_one(ctx: FunctionContext, access: Access, value: str, mask: Mask | None) -> None:
    text = ctx.text
    if mask is None:
        pointer, alignment = element_pointer(ctx, access.data, access.base, access.unit)
        text.emit(f"store {access.memory_type} {value}, ptr {pointer}, align {alignment}")
        return
    write, done = text.fresh("write"), text.fresh("done")
    text.branch(mask.text, write, done)
    text.start(write)
    with ctx.scope():
        pointer, alignment = element_pointer(ctx, access.data, access.base, access.unit)
        text.emit(f"store {access.memory_type} {value}, ptr {pointer}, align {alignment}")
    text.jump(done)
    text.start(done)


def _store_block(ctx: FunctionContext, access: Access, value: str, mask: Mask | None) -> None:
    pointer, alignment = element_pointer(ctx, access.data, access.base, access.unit)
    vector = vector_of(access.memory_type, access.lanes)
    wide = odd_vectors.widened(ctx, access.lanes, access.unit) if mask is None else None
    if wide is not None:
        odd_vectors.store(ctx, access.memory_type, access.lanes, wide, value, pointer, alignment)
        return
    if mask is None:
        hint = nontemporal.hint(ctx, access.data, alignment, access.lanes * access.unit)
        ctx.text.emit(f"store {vector} {value}, ptr {pointer}, align {alignment}{hint}")
        return
    run = odd_vectors.run_of(ctx, mask.constant, access.unit)
    if run is not None:
        odd_vectors.store_run(ctx, access.memory_type, access.lanes, run, value, pointer, alignment, access.unit)
        return
    ctx.text.emit(
        f"call void @llvm.masked.store.{suffix(vector)}.p0({vector} {value}, ptr align {alignment} {pointer}, "
        f"<{access.lanes} x i1> {mask.text})"
    )


def _store_each(ctx: FunctionContext, access: Access, stride: int, value: str, mask: Mask | None) -> None:
    kind, vector = access.memory_type, vector_of(access.memory_type, access.lanes)
    for lane in range(access.lanes):
        if mask is None or (mask.constant is not None and mask.constant[lane]):
            element = ctx.text.value(f"extractelement {vector} {value}, i64 {lane}")
            pointer, alignment = _displaced(ctx, access, lane * stride * access.unit)
            ctx.text.emit(f"store {kind} {element}, ptr {pointer}, align {alignment}")


def _scatter(ctx: FunctionContext, access: Access, value: str, mask: Mask | None) -> None:
    """Where lanes meet in one place the last of them stays, as LLVM promises."""
    vector, lanes = vector_of(access.memory_type, access.lanes), access.lanes
    pointers = _pointers(ctx, access)
    wanted = mask.text if mask is not None else "splat (i1 true)"
    ctx.text.emit(
        f"call void @llvm.masked.scatter.{suffix(vector)}.v{lanes}p0({vector} {value}, "
        f"<{lanes} x ptr> align {_lane_alignment(ctx, access)} {pointers}, <{lanes} x i1> {wanted})"
    )
