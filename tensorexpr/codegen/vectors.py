"""Vectors made of scalars and of each other: Ramp, Broadcast, Shuffle."""

from __future__ import annotations

from ..errors import InternalError
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, Broadcast, FloatImm, IntImm, Mul, PrimExpr, Ramp, Shuffle
from .context import FunctionContext
from .masks import splat_value
from .types import VALUE_TYPE, vector_constant


def emit_broadcast(ctx: FunctionContext, node: PrimExpr) -> str:
    """Broadcast."""
    assert isinstance(node, Broadcast)
    return splat_value(ctx, VALUE_TYPE[node.value.dtype], ctx.value(node.value), node.lanes)


def emit_ramp(ctx: FunctionContext, node: PrimExpr) -> str:
    """Ramp as a value: base + lane * stride."""
    assert isinstance(node, Ramp)
    scalar, vector = VALUE_TYPE[node.base.dtype], VALUE_TYPE[node.dtype]
    parsed = parse_dtype(node.base.dtype)
    if parsed.is_float:
        steps = Shuffle(tuple(FloatImm(node.base.dtype, float(lane)) for lane in range(node.lanes)), tuple(range(node.lanes)))
        return ctx.value(ctx.keep(Add(Broadcast(node.base, node.lanes), Mul(Broadcast(node.stride, node.lanes), steps))))
    stride = node.stride.value if isinstance(node.stride, IntImm) else 1
    # Of constants alone the whole ramp is one constant.
    first = node.base.value if isinstance(node.base, IntImm) and isinstance(node.stride, IntImm) else 0
    steps_text = vector_constant(scalar, tuple(str((first + lane * stride) % (1 << parsed.bits)) for lane in range(node.lanes)))
    if not isinstance(node.stride, IntImm):
        factor = splat_value(ctx, scalar, ctx.value(node.stride), node.lanes)
        steps_text = ctx.text.value(f"mul {vector} {factor}, {steps_text}")
    elif isinstance(node.base, IntImm):
        return steps_text
    base = splat_value(ctx, scalar, ctx.value(node.base), node.lanes)
    return ctx.text.value(f"add {vector} {base}, {steps_text}")


def emit_shuffle(ctx: FunctionContext, node: PrimExpr) -> str:
    """Shuffle: lanes by number out of the joined vectors."""
    assert isinstance(node, Shuffle)
    scalar = VALUE_TYPE[str(parse_dtype(node.dtype).scalar)]
    lanes = [parse_dtype(vector.dtype).lanes for vector in node.vectors]
    values = _masked_operands(ctx, node, lanes)
    if len(node.indices) == 1:
        # A Shuffle of one index is a scalar, not a vector of one lane.
        return _extract(ctx, node.indices[0], values, lanes, scalar)
    if all(count == 1 for count in lanes):
        return _gathered(ctx, [values[index] for index in node.indices], scalar)
    joined, total = values[0], lanes[0]
    if total == 1:
        joined = _gathered(ctx, [joined], scalar)
    for value, count in zip(values[1:], lanes[1:], strict=True):
        joined, total = _joined(ctx, scalar, (joined, total), (value, count)), total + count
    if node.indices == tuple(range(total)):
        return joined
    picked = ", ".join(f"i32 {index}" for index in node.indices)
    vector = f"<{total} x {scalar}>"
    return ctx.text.value(f"shufflevector {vector} {joined}, {vector} poison, <{len(node.indices)} x i32> <{picked}>")


def _extract(ctx: FunctionContext, index: int, values: list[str], lanes: list[int], scalar: str) -> str:
    for value, count in zip(values, lanes, strict=True):
        if index < count:
            return value if count == 1 else ctx.text.value(f"extractelement <{count} x {scalar}> {value}, i64 {index}")
        index -= count
    raise InternalError(f"a Shuffle picks lane {index} beyond its operands")


def _gathered(ctx: FunctionContext, values: list[str], scalar: str) -> str:
    vector, result = f"<{len(values)} x {scalar}>", "poison"
    for lane, value in enumerate(values):
        result = ctx.text.value(f"insertelement {vector} {result}, {scalar} {value}, i64 {lane}")
    return result


def _joined(ctx: FunctionContext, scalar: str, left: tuple[str, int], right: tuple[str, int]) -> str:
    """Two vectors side by side."""
    (a, n), (b, m) = left, right
    if m == 1:
        b = _gathered(ctx, [b], scalar)
    width = max(n, m)  # shufflevector takes two vectors of one length
    a, b = _padded(ctx, scalar, a, n, width), _padded(ctx, scalar, b, m, width)
    picked = ", ".join(f"i32 {lane if lane < n else width + lane - n}" for lane in range(n + m))
    return ctx.text.value(f"shufflevector <{width} x {scalar}> {a}, <{width} x {scalar}> {b}, <{n + m} x i32> <{picked}>")


def _padded(ctx: FunctionContext, scalar: str, value: str, lanes: int, width: int) -> str:
    if lanes == width:
        return value
    picked = ", ".join(f"i32 {lane}" if lane < lanes else "i32 poison" for lane in range(width))
    vector = f"<{lanes} x {scalar}>"
    return ctx.text.value(f"shufflevector {vector} {value}, {vector} poison, <{width} x i32> <{picked}>")


def _masked_operands(ctx: FunctionContext, node: Shuffle, lanes: list[int]) -> list[str]:
    """The operands; under a vector conditional each is guarded by the lanes that end up with its elements."""
    if ctx.mask is None:
        return [ctx.value(vector) for vector in node.vectors]
    mask, have = ctx.mask
    values, first = [], 0
    for vector, count in zip(node.vectors, lanes, strict=True):
        # Which lanes of the result show each element.
        users = [[out for out, index in enumerate(node.indices) if index == first + lane] for lane in range(count)]
        first += count
        if count == 1 or have != len(node.indices) or any(len(user) > 1 for user in users):
            # Left to the mask's own rule for other lane counts: read if any lane is on.
            with ctx.masked(mask, have) if count != have else ctx.masked(*_any_lane(ctx, mask, have)):
                values.append(ctx.value(vector))
            continue
        # Lane `have` is the first of the zeros: an element that nobody shows isn't read.
        picked = ", ".join(f"i32 {user[0] if user else have}" for user in users)
        source = f"<{have} x i1>"
        moved = ctx.text.value(f"shufflevector {source} {mask}, {source} zeroinitializer, <{count} x i32> <{picked}>")
        with ctx.masked(moved, count):
            values.append(ctx.value(vector))
    return values


def _any_lane(ctx: FunctionContext, mask: str, lanes: int) -> tuple[str, int]:
    wanted = ctx.text.value(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {mask})")
    return splat_value(ctx, "i1", wanted, lanes), lanes
