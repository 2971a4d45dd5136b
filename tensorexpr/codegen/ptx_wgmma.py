"""Matrix units of four warps together, which read both operands from shared memory: `wgmma` of sm_90a.

An operand is told by a descriptor of 64 bits: where it begins, and how far apart its pieces of 8 rows by 16 bytes are. Either each piece
lies in one run of 128 bytes, or rows of 128 bytes follow each other, whose 16-byte pieces are swizzled as the copy engine does it.
Source: PTX ISA, "Asynchronous warpgroup level matrix instructions", matrix descriptors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import CodegenError
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, Call, IntImm, PrimExpr
from .context import FunctionContext
from .memo import IMPURE
from .ptx_access import pointer

_TYPES = {"float16": "f16", "bfloat16": "bf16"}
_WARP_BYTES = 16 * 16  # of the 16 rows of a warp in a chunk; turned, they are two chunks
_WARP, _WARPS = 32, 4
_PIECE = 16  # bytes, in which a descriptor counts
_SWIZZLED = 128  # bytes of a row that is swizzled
_SWIZZLED_MODE = 1 << 62  # in a descriptor


def _check_chip(ctx: FunctionContext) -> None:
    arch = ctx.module.target.arch
    if arch != "sm_90a":
        raise CodegenError(f"In {ctx.name}: wgmma is of sm_90a alone, and the target is {arch}; use ptx_mma")


def _effect(ctx: FunctionContext) -> str:
    ctx.forget_reads()
    ctx.reads |= IMPURE
    return "0"


def emit_wgmma(ctx: FunctionContext, call: Call) -> str:
    """ptx_wgmma: 16 x width sums of a warp, one of four that run it together, plus 16 products each."""
    _check_chip(ctx)
    width, depth = as_int(call.args[0]), as_int(call.args[1])
    if call.dtype not in _TYPES or width is None or width % 8 or not 8 <= width <= 256 or depth != 16:
        raise CodegenError(f"In {ctx.name}: wgmma sums 16 products of float16 or bfloat16 for 8, 16, ... 256 columns, not {call}")
    threads = ctx.module.launches.get(ctx.name, {}).get("threadIdx.x")
    if threads != _WARP:  # warps are told by threadIdx.y
        raise CodegenError(
            f"In {ctx.name}: wgmma needs threadIdx.x of {_WARP} threads, one warp, not of {threads}; bind warps to threadIdx.y"
        )
    registers = width // 2
    # The pointer is to the rows of the calling warp, and the descriptor of those of all four.
    ctx.module.text.declare("llvm.nvvm.read.ptx.sreg.tid.y", "i32")
    warp = ctx.once(("thread", "threadIdx.y"), lambda: ctx.text.value("call i32 @llvm.nvvm.read.ptx.sreg.tid.y()"))
    swizzle = as_int(call.args[12]) if len(call.args) > 12 else 0
    if swizzle not in (0, _SWIZZLED):
        raise CodegenError(
            f"In {ctx.name}: rows of wgmma's operands are swizzled within {_SWIZZLED} bytes, or not at all, not within {swizzle}"
        )
    size, turned_a = parse_dtype(call.dtype).itemsize, bool(as_int(call.args[7]))
    if swizzle:
        rows = 2 * size * 8 if turned_a else 2 * _bytes(ctx, call.args[6], size)
    else:
        rows = 2 * _bytes(ctx, call.args[5], size) if turned_a else _WARP_BYTES
    skipped = ctx.text.value(f"mul i32 {ctx.text.value(f'and i32 {warp}, {_WARPS - 1}')}, {rows}")
    a = _descriptor(ctx, call, 4, skipped)
    b = _descriptor(ctx, call, 8, "0")
    names = ", ".join(f"${number}" for number in range(registers))
    kind, turned = _TYPES[call.dtype], [as_int(call.args[at]) or 0 for at in (7, 11)]
    text = (
        f"wgmma.mma_async.sync.aligned.m64n{width}k16.f32.{kind}.{kind} {{{names}}}, ${2 * registers}, ${2 * registers + 1}, 1, 1, 1, "
        f"{turned[0]}, {turned[1]};"
    )
    _through(ctx, registers, call.args[2], call.args[3], text, a, b)
    return _effect(ctx)


def _through(ctx: FunctionContext, registers: int, base: PrimExpr, index: PrimExpr, text: str, *descriptors: str) -> None:
    """Run an instruction with the sums behind a pointer in registers that are the same before and after it."""
    place = pointer(ctx, base, index, 4, reads=True, writes=True).removeprefix("ptr ")
    places = [ctx.text.value(f"getelementptr i8, ptr {place}, i32 {number * 4}") for number in range(registers)]
    values = [f"float {ctx.text.value(f'load float, ptr {one}, align 4')}" for one in places]
    constraints = ",".join([*["=f"] * registers, *map(str, range(registers)), *["l"] * len(descriptors), "~{memory}"])
    struct = "{ " + ", ".join(["float"] * registers) + " }"
    result = ctx.text.value(f'call {struct} asm sideeffect "{text}", "{constraints}"({", ".join([*values, *descriptors])})')
    for number, one in enumerate(places):
        ctx.text.emit(f"store float {ctx.text.value(f'extractvalue {struct} {result}, {number}')}, ptr {one}, align 4")


def _descriptor(ctx: FunctionContext, call: Call, at: int, skipped: str) -> str:
    """The descriptor of an operand: where it begins, and the bytes between its chunks of 16 bytes and its groups of 8 rows."""
    write, size = ctx.text.value, parse_dtype(call.dtype).itemsize
    plain, further = _without_constant(call.args[at], size)
    source = ctx.keep(plain)
    chunk, eight = (_bytes(ctx, call.args[at + number], size) for number in (1, 2))
    # Along the sum the first distance is that of chunks; of a turned operand chunks go along the rows, whose distance is the second.
    is_swizzled = len(call.args) > 12 and bool(as_int(call.args[12]))
    first, second = (eight, chunk) if as_int(call.args[at + 3]) and not is_swizzled else (chunk, eight)
    layout = (first // 16) << 16 | (second // 16) << 32 | (_SWIZZLED_MODE if is_swizzled else 0)

    def begin() -> str:
        address = pointer(ctx, source, IntImm("int32", 0), size, space=3, reads=True)
        place = write(f"ptrtoint {address} to i32")
        place = place if skipped == "0" else write(f"sub i32 {place}, {skipped}")
        low = write(f"lshr i32 {place}, 4")
        return write(f"or i64 {write(f'zext i32 {low} to i64')}, {layout}")

    # Steps of the sum are so many pieces on: one addition, as the field of the place has no more bits than shared memory needs.
    whole = ctx.once(("descriptor", source, skipped, layout), begin)
    return f"i64 {write(f'add i64 {whole}, {further // _PIECE}') if further else whole}"


def _without_constant(source: PrimExpr, size: int) -> tuple[PrimExpr, int]:
    """A pointer without the constant that is added to its offset, where that is whole pieces, and this constant in bytes."""
    if not isinstance(source, Call) or source.op != "tir.tvm_access_ptr":
        return source, 0
    offset, count = _split(source.args[2])
    if count < 0 or count * size % _PIECE:
        return source, 0
    varying = IntImm("int32", 0) if offset is None else offset
    return replace(source, args=(*source.args[:2], varying, *source.args[3:])), count * size


def _split(expr: PrimExpr) -> tuple[PrimExpr | None, int]:
    """A sum as what varies of it, if anything, and a constant."""
    if isinstance(expr, IntImm):
        return None, expr.value
    if not isinstance(expr, Add):
        return expr, 0
    (left, a), (right, b) = _split(expr.a), _split(expr.b)
    return left if right is None else right if left is None else left + right, a + b


def _bytes(ctx: FunctionContext, elements: PrimExpr, size: int) -> int:
    count = as_int(elements)
    if count is None or count * size % 16:
        raise CodegenError(f"In {ctx.name}: operands of wgmma have pieces at constant multiples of 16 bytes, not {elements} elements apart")
    return count * size


def _of_sums(name: str, operands: int) -> Callable[[FunctionContext, Call], str]:
    """What orders products and accesses to their sums; for LLVM too, if it is told where the sums are."""

    def emit(ctx: FunctionContext, call: Call) -> str:
        _check_chip(ctx)
        numbers, sums = [str(as_int(arg)) for arg in call.args[:operands]], call.args[operands:]
        text = f"wgmma.{name}.sync.aligned {', '.join(numbers)};"
        width = as_int(sums[0]) if sums else None
        if not sums:
            ctx.text.emit(f'call void asm sideeffect "{text}", "~{{memory}}"()')
        elif width is None or len(sums) != 3:
            raise CodegenError(
                f"In {ctx.name}: {call.op.removeprefix('tir.')} takes columns (a constant), pointer and index of sums, or none"
            )
        else:
            _through(ctx, width // 2, sums[1], sums[2], text)
        return _effect(ctx)

    return emit


def emit_proxy_fence(ctx: FunctionContext, call: Call) -> str:
    """ptx_fence_proxy_async: the units see what this thread has written to shared memory."""
    _check_chip(ctx)
    ctx.text.emit('call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()')
    return _effect(ctx)


CALLS: Mapping[str, Callable[[FunctionContext, Call], str]] = {
    "tir.ptx_wgmma": emit_wgmma,
    "tir.ptx_wgmma_fence": _of_sums("fence", 0),
    "tir.ptx_wgmma_commit_group": _of_sums("commit_group", 0),
    "tir.ptx_wgmma_wait_group": _of_sums("wait_group", 1),
    "tir.ptx_fence_proxy_async": emit_proxy_fence,
}
