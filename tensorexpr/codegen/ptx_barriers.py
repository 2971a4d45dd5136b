"""mbarriers, and what tells them: asynchronous copies of threads, and copies in bulk by the engine of sm_90 and later.

All of a kernel's barriers are one array in shared memory, which `create_barriers` makes and whose elements the calls name by number.
Source: PTX ISA, "mbarrier" and "cp.async.bulk".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import CodegenError
from ..target.chips import BULK_COPIES, capability
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, IntImm, PrimExpr
from .context import FunctionContext
from .memo import IMPURE
from .ptx_access import needs, pointer

_BYTES, _PIECE = 8, 16
_MOST_DIMENSIONS = 5


def _asm(ctx: FunctionContext, text: str, constraints: str, *operands: str) -> str:
    """Run instructions that other threads, or the engine, may see the effect of."""
    ctx.text.emit(f'call void asm sideeffect "{text}", "{constraints},~{{memory}}"({", ".join(operands)})')
    ctx.forget_reads()
    ctx.reads |= IMPURE
    return "0"


def _array(ctx: FunctionContext) -> str:
    return f"@{ctx.name}_barriers"


def emit_create(ctx: FunctionContext, call: Call) -> str:
    """create_barriers: the array of a kernel's mbarriers."""
    needs(ctx, 80, "an mbarrier")
    count = as_int(call.args[0])
    if count is None or count < 1 or ctx.name in ctx.module.barriers:
        raise CodegenError(
            f"In {ctx.name}: create_barriers stands once in a kernel, with a constant number of mbarriers from 1 on, not {call}"
        )
    ctx.module.barriers[ctx.name] = count
    used = -(-ctx.module.shared.get(ctx.name, 0) // _BYTES) * _BYTES
    ctx.module.shared[ctx.name] = used + count * _BYTES
    ctx.module.text.constants.append(f"{_array(ctx)} = internal addrspace(3) global [{count} x i64] undef, align {_BYTES}")
    return "0"


def _place(ctx: FunctionContext, number: PrimExpr) -> str:
    """The address of a barrier in shared memory, in 32 bits, as an operand."""
    count = ctx.module.barriers.get(ctx.name)
    known = as_int(number)
    if count is None:
        raise CodegenError(
            f"In {ctx.name}: the mbarrier {number} is used in front of T.create_barriers(count), which makes room for all of them"
        )
    if known is not None and not 0 <= known < count:
        raise CodegenError(f"In {ctx.name}: there is no mbarrier {known}; create_barriers({count}) makes 0 to {count - 1}")
    offset = f"i32 {ctx.index_as('i32', number)}"
    place = ctx.text.value(f"getelementptr [{_BYTES} x i8], ptr addrspace(3) {_array(ctx)}, {offset}")
    return f"i32 {ctx.text.value(f'ptrtoint ptr addrspace(3) {place} to i32')}"


def _number(ctx: FunctionContext, expr: PrimExpr) -> str:
    return f"i32 {ctx.index_as('i32', expr)}"


def emit_init(ctx: FunctionContext, call: Call) -> str:
    """ptx_init_barrier_thread_count: so many threads arrive in each phase."""
    needs(ctx, 80, "an mbarrier")
    # The engine has to see it, too, which on one block is what this fence is for.
    fence = " fence.mbarrier_init.release.cluster;" if capability(ctx.module.target.arch) >= BULK_COPIES else ""
    return _asm(ctx, f"mbarrier.init.shared.b64 [$0], $1;{fence}", "r,r", _place(ctx, call.args[0]), _number(ctx, call.args[1]))


def emit_arrive(ctx: FunctionContext, call: Call) -> str:
    """ptx_arrive_barrier."""
    needs(ctx, 80, "an mbarrier")
    return _asm(ctx, "{ .reg .b64 %state; mbarrier.arrive.shared.b64 %state, [$0]; }", "r", _place(ctx, call.args[0]))


def emit_expect(ctx: FunctionContext, call: Call) -> str:
    """ptx_arrive_barrier_expect_tx: arrive, and announce bytes that the engine will copy."""
    needs(ctx, BULK_COPIES, "an mbarrier that counts bytes")
    text = "{ .reg .b64 %state; mbarrier.arrive.expect_tx.shared.b64 %state, [$0], $1; }"
    return _asm(ctx, text, "r,r", _place(ctx, call.args[0]), _number(ctx, call.args[1]))


def emit_wait(ctx: FunctionContext, call: Call) -> str:
    """ptx_wait_barrier: until the phase of a parity (0 for the first, then 1, 0, ...) has ended."""
    needs(ctx, BULK_COPIES, "a wait for an mbarrier")
    parity = call.args[1] if len(call.args) > 1 else IntImm("int32", 0)
    text = "{ .reg .pred %done; wait_${:uid}: mbarrier.try_wait.parity.shared.b64 %done, [$0], $1; @!%done bra wait_${:uid}; }"
    return _asm(ctx, text, "r,r", _place(ctx, call.args[0]), _number(ctx, parity))


def emit_copies_arrive(ctx: FunctionContext, call: Call) -> str:
    """ptx_cp_async_barrier: the phase ends when the copies of this thread have landed, too."""
    needs(ctx, 80, "cp.async")
    return _asm(ctx, "cp.async.mbarrier.arrive.shared.b64 [$0];", "r", _place(ctx, call.args[0]))


def _shared_address(ctx: FunctionContext, base: PrimExpr, offset: PrimExpr, itemsize: int) -> str:
    address = pointer(ctx, base, offset, itemsize, space=3, writes=True)
    return f"i32 {ctx.text.value(f'ptrtoint {address} to i32')}"


def emit_bulk(ctx: FunctionContext, call: Call) -> str:
    """ptx_cp_async_bulk: the engine copies bytes of global memory that follow each other."""
    needs(ctx, BULK_COPIES, "a copy in bulk")
    into, into_offset, source, source_offset, size, barrier = call.args
    count = as_int(size)
    if count is not None and (count < _PIECE or count % _PIECE):
        raise CodegenError(f"In {ctx.name}: a copy in bulk takes whole {_PIECE} bytes, not {count}")
    itemsize = parse_dtype(call.dtype).itemsize
    target = _shared_address(ctx, into, into_offset, itemsize)
    origin = pointer(ctx, source, source_offset, itemsize, space=1, reads=True)
    text = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];"
    address = f"i64 {ctx.text.value(f'ptrtoint {origin} to i64')}"
    return _asm(ctx, text, "r,l,r,r", target, address, _number(ctx, size), _place(ctx, barrier))


def emit_bulk_tensor(ctx: FunctionContext, call: Call) -> str:
    """ptx_cp_async_bulk_tensor: the engine copies the box of a tensor map that begins at some coordinates, the last along memory."""
    needs(ctx, BULK_COPIES, "a copy of a tensor's box in bulk")
    into, into_offset, described, barrier, *coordinates = call.args
    if not 1 <= len(coordinates) <= _MOST_DIMENSIONS:
        raise CodegenError(f"In {ctx.name}: a box has 1 to {_MOST_DIMENSIONS} coordinates, not {len(coordinates)}")
    target = _shared_address(ctx, into, into_offset, parse_dtype(call.dtype).itemsize)
    address = f"i64 {ctx.text.value(f'ptrtoint ptr {ctx.value(described)} to i64')}"
    starts = [_number(ctx, one) for one in reversed(coordinates)]
    names = ", ".join(f"${number + 2}" for number in range(len(starts)))
    text = (
        f"cp.async.bulk.tensor.{len(starts)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        f"[$0], [$1, {{{names}}}], [${len(starts) + 2}];"
    )
    constraints = ",".join(["r", "l", *["r"] * len(starts), "r"])
    return _asm(ctx, text, constraints, target, address, *starts, _place(ctx, barrier))


CALLS: Mapping[str, Callable[[FunctionContext, Call], str]] = {
    "tir.create_barriers": emit_create,
    "tir.ptx_init_barrier_thread_count": emit_init,
    "tir.ptx_arrive_barrier": emit_arrive,
    "tir.ptx_arrive_barrier_expect_tx": emit_expect,
    "tir.ptx_wait_barrier": emit_wait,
    "tir.ptx_cp_async_barrier": emit_copies_arrive,
    "tir.ptx_cp_async_bulk": emit_bulk,
    "tir.ptx_cp_async_bulk_tensor": emit_bulk_tensor,
}
