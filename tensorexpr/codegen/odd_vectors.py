"""Vectors of 3, 7 or 14 lanes in memory: one masked access of the next power of two, where the CPU masks at no cost.

LLVM takes such a vector apart into pieces of 8, 4, 2 and 1 lanes. With AVX-512 a constant mask costs nothing, and lanes
outside it are neither read nor written. The other way round, a constant mask is taken apart where masked stores are dear: on
AMD's cores before Zen 4 one is microcode of a dozen cycles, and no x86 before AVX-512 masks elements of 8 or 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from .context import FunctionContext
from .types import suffix, vector_of

# Bits of an element -> the feature that masks vectors of them.
_FEATURES = {8: "avx512bw", 16: "avx512bw", 32: "avx512f", 64: "avx512f"}
_LEAST_LANES = 3
# Bytes of the smallest elements that AVX and AVX2 mask, and the most stores that a run of less than eight lanes takes.
_LEAST_MASKED = 4
_MOST_PIECES = 3


def widened(ctx: FunctionContext, lanes: int, unit: int) -> int | None:
    """The lanes of the masked access that replaces one of `lanes` elements of `unit` bytes; None to leave it alone."""
    target = ctx.module.target
    # Powers of two are one access as they are.
    if lanes < _LEAST_LANES or lanes & (lanes - 1) == 0 or _FEATURES.get(8 * unit) not in target.features:
        return None
    # Of a power of two this would be the double; those have been sent away.
    wide = 1 << lanes.bit_length()
    bits = 8 * unit * wide
    if bits > target.vector_bits or (bits < 512 and "avx512vl" not in target.features):
        return None
    return wide


def load(ctx: FunctionContext, kind: str, lanes: int, wide: int, pointer: str, alignment: int) -> str:
    """`lanes` elements from `pointer` on."""
    vector = vector_of(kind, wide)
    where = f"ptr align {alignment} {pointer}, {_mask(lanes, wide)}"
    whole = ctx.text.value(f"call {vector} @llvm.masked.load.{suffix(vector)}.p0({where}, {vector} zeroinitializer)")
    return ctx.text.value(f"shufflevector {vector} {whole}, {vector} poison, <{lanes} x i32> {_indices(range(lanes))}")


def store(ctx: FunctionContext, kind: str, lanes: int, wide: int, value: str, pointer: str, alignment: int) -> None:
    """Store the `lanes` elements of `value` from `pointer` on."""
    vector, narrow = vector_of(kind, wide), vector_of(kind, lanes)
    indices = ", ".join(f"i32 {n}" if n < lanes else "i32 poison" for n in range(wide))
    whole = ctx.text.value(f"shufflevector {narrow} {value}, {narrow} poison, <{wide} x i32> <{indices}>")
    where = f"ptr align {alignment} {pointer}, {_mask(lanes, wide)}"
    ctx.text.emit(f"call void @llvm.masked.store.{suffix(vector)}.p0({vector} {whole}, {where})")


def run_of(ctx: FunctionContext, mask: Sequence[int] | None, unit: int) -> range | None:
    """The lanes of a constant mask that a store of `unit` bytes a lane is better made of alone; None to store under the mask."""
    machine = ctx.module.target.machine
    if mask is None or machine.mask_registers or (unit >= _LEAST_MASKED and machine.masked_store_cycles <= _MOST_PIECES):
        return None
    lanes = [lane for lane, runs in enumerate(mask) if runs]
    return range(lanes[0], lanes[-1] + 1) if lanes and len(lanes) == lanes[-1] + 1 - lanes[0] else None  # one run without a hole


def store_run(ctx: FunctionContext, kind: str, lanes: int, run: range, value: str, pointer: str, alignment: int, unit: int) -> None:
    """Store the lanes `run` of a vector of `lanes` elements of `unit` bytes, whose first is at `pointer`."""
    vector, offset = vector_of(kind, lanes), run.start * unit
    if len(run) == 1:
        part = ctx.text.value(f"extractelement {vector} {value}, i64 {run.start}")
    else:
        part = ctx.text.value(f"shufflevector {vector} {value}, {vector} poison, <{len(run)} x i32> {_indices(run)}")
    where = ctx.text.value(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer
    ctx.text.emit(f"store {vector_of(kind, len(run))} {part}, ptr {where}, align {(alignment | offset) & -(alignment | offset)}")


def _mask(lanes: int, wide: int) -> str:
    return f"<{wide} x i1> <{', '.join('i1 true' if n < lanes else 'i1 false' for n in range(wide))}>"


def _indices(numbers: range) -> str:
    return f"<{', '.join(f'i32 {n}' for n in numbers)}>"
