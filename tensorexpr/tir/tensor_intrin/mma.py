"""Tensor cores of NVIDIA by `mma` and `ldmatrix` (PTX ISA, "Warp-level matrix fragment": m16n8k16 and m16n8k32).

Two instructions make a tile of 16 x 16. Threads of blocks on a CPU compute the same (`tir.warp_units`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..device_intrin import device_call
from ..expr import Var
from ..pointers import tvm_access_ptr
from ..stmt import BufferStore, Evaluate, Stmt, seq
from . import TensorIntrin, built_in
from .parts import function
from .spread import Spread, filled, loaded, multiplied, per_register, per_thread, stored, strided

WARP_SIZE, M_DIM, N_DIM = 32, 16, 16
# How dtypes are called in the names of intrinsics, and by the instruction.
SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32"}
_PTX = {"float16": "fp16", "float32": "fp32", "int8": "int8", "int32": "int32"}
# The products there are by the depth of a tile: the dtype of the operands, those of the result.
DEPTHS = {16: ("float16", ("float16", "float32")), 32: ("int8", ("int32",))}


def shared_16x16_to_ldmatrix_32x8_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a tile of 16 x 16."""
    # Four threads hold 8 elements of a row, two each; 8 rows below and 8 columns right are further registers of theirs.
    return 4 * (i % 8) + j % 8 // 2, 4 * (j // 8) + i // 8 * 2 + j % 2


def shared_16x32_to_ldmatrix_32x16_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a left operand of 16 x 32 bytes."""
    # A register of 32 bits holds four bytes, so a thread has four elements of a row side by side.
    return 4 * (i % 8) + j % 16 // 4, 8 * (j // 16) + i // 8 * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a right operand of 32 x 16 bytes."""
    return i % 16 // 4 + 4 * (j % 8), 8 * (j // 8) + i // 16 * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a tile of 16 x 16 that a register of a thread holds."""
    return 8 * (local_id % 4 // 2) + thread_id // 4, 8 * (local_id // 4) + thread_id % 4 * 2 + local_id % 2


_TOTAL = Spread((16, 16), 32, 8, shared_16x16_to_ldmatrix_32x8_layout)
_BYTES = Spread((16, 32), 32, 16, shared_16x32_to_ldmatrix_32x16_layout)


def operand(depth: int, role: str, trans: bool) -> Spread:
    """The registers of an operand, "a" or "b", as it stands in memory; for a transposed one, the tile's transpose stands there."""
    if depth == 16:
        return _TOTAL
    return _BYTES if role == "a" or trans else Spread((32, 16), 32, 16, shared_32x16_to_ldmatrix_32x16_layout)


def fill(dtype: str) -> TensorIntrin:
    """Zeros in an accumulator."""
    warp = _TOTAL.buffer("C_warp", dtype)
    body = per_thread(32, lambda tx: Evaluate(device_call("mma_fill", dtype, 8, warp.data, warp.elem_offset)))
    return TensorIntrin(filled(_TOTAL, _TOTAL.buffer("C_warp", dtype, 0)), function([warp], [], [warp], body))


def ldmatrix(depth: int, role: str, trans: bool, scope: str) -> TensorIntrin:
    """An operand from shared memory."""
    spread, dtype = operand(depth, role, trans), DEPTHS[depth][0]
    factor = spread.shape[1]
    desc = loaded(
        spread, spread.buffer("warp", dtype, factor), decl_buffer(spread.shape, dtype, "shared", scope=scope, offset_factor=factor)
    )
    warp, shared = spread.buffer("warp", dtype, factor), strided("shared", spread.shape, dtype, scope, factor)
    flipped = (role == "b") != trans  # the instruction takes the right operand column by column

    def body(tx: Var) -> Stmt:
        pointer = tvm_access_ptr(dtype, shared.data, shared.elem_offset, shared.strides[0] * spread.shape[0], Buffer.READ)
        place = warp.elem_offset + spread.registers * tx
        return Evaluate(
            device_call("ptx_ldmatrix", dtype, flipped, 4, ".b16", warp.data, place, pointer, _row_of(shared, tx, depth, role, trans))
        )

    return TensorIntrin(desc, function([warp, shared], [shared], [warp], per_thread(32, body)))


def _row_of(shared: Buffer, tx: Var, depth: int, role: str, trans: bool) -> Any:
    """The element at which the row of 16 bytes begins that a thread asks for: four matrices of 8 rows lie in the tile."""
    row, half = shared.strides[0], depth // 2
    if depth == 32 and role == "b" and not trans:
        return row  # no instruction turns bytes: registers are filled one by one
    if trans:
        return row * 8 * (tx // 16) + row * (tx % 8) + half * (tx % 16 // 8)
    return row * (tx % 16) + half * (tx // 16)


def sync(depth: int, result: str, trans_a: bool, trans_b: bool) -> TensorIntrin:
    """A product of tiles added to an accumulator."""
    dtype = DEPTHS[depth][0]
    left, right = operand(depth, "a", trans_a), operand(depth, "b", trans_b)
    spreads = (left.transposed() if trans_a else left, right.transposed() if trans_b else right, _TOTAL)

    def buffers() -> tuple[Buffer, Buffer, Buffer]:
        return left.buffer("A", dtype, left.shape[1]), right.buffer("B", dtype, right.shape[1]), _TOTAL.buffer("C", result, 16)

    a, b, c = buffers()
    desc = multiplied(spreads, (a, b, c))
    # Description and implementation are two functions: each has buffers of its own.
    a, b, c = buffers()

    def body(tx: Var) -> Stmt:
        halves = []
        for half in (0, 1):  # columns 0 to 7 and 8 to 15
            places = [(a, 0), (b, half * right.registers // 2), (c, half * 4)]
            operands = [part for one, skip in places for part in (one.data, one.elem_offset + tx * one.shape[1] + skip)]
            dtypes = [_PTX[name] for name in (dtype, dtype, result)]
            # The last argument: sums wrap, and don't stay at the limits of their dtype.
            halves.append(
                Evaluate(device_call("ptx_mma", result, f"m16n8k{depth}", "row", "col", *dtypes, *operands, const(False, "bool")))
            )
        return seq(*halves)

    return TensorIntrin(desc, function([a, b, c], [c, a, b], [c], per_thread(32, body)))


def store(dtype: str, scope: str, by_instruction: bool) -> TensorIntrin:
    """An accumulator to memory, by `mma_store` or element by element."""
    desc = stored(_TOTAL, _TOTAL.buffer("C_warp", dtype, 0), decl_buffer((16, 16), dtype, "C", scope=scope))
    warp, memory = _TOTAL.buffer("C_warp", dtype), strided("C", (16, 16), dtype, scope)

    def body(tx: Var) -> Stmt:
        if by_instruction:
            pointer = tvm_access_ptr(dtype, memory.data, memory.elem_offset, memory.strides[0] * 16, Buffer.WRITE)
            return Evaluate(device_call("mma_store", dtype, 16, 16, pointer, warp.data, warp.elem_offset, memory.strides[0]))
        return per_register(8, lambda local: BufferStore(memory, warp[tx, local], ldmatrix_32x8_to_shared_16x16_layout(tx, local)))

    return TensorIntrin(desc, function([warp, memory], [warp], [memory], per_thread(32, body)))


def _table() -> dict[str, Callable[[], TensorIntrin]]:
    """What there is, by the names that schedules use."""
    found: dict[str, Callable[[], TensorIntrin]] = {}
    both = (False, True)
    for depth, (dtype, results) in DEPTHS.items():
        short = SHORT[dtype]
        for trans_a, trans_b in ((a, b) for a in both for b in both if depth == 16 or not a):
            turned = "_trans_a" * trans_a + "_trans_b" * trans_b
            for result in results:
                found[f"mma_{short}{short}{SHORT[result]}{turned}"] = partial(sync, depth, result, trans_a, trans_b)
        for role, trans in ((role, trans) for role in "ab" for trans in both if depth == 16 or role == "b" or not trans):
            for suffix, scope in (("", "shared"), ("_dyn", "shared.dyn")):
                found[f"mma_ldmatrix_{short}_{role}{'_trans' * trans}{suffix}"] = partial(ldmatrix, depth, role, trans, scope)
        for result in results:
            found[f"mma_fill_16x16_{SHORT[result]}"] = partial(fill, result)
            for scope in ("global", "shared", "shared.dyn"):
                for by_instruction in both:
                    name = f"mma_store_16x16_{SHORT[result]}_{scope.replace('.', '_')}_{'' if by_instruction else 'simple_'}"
                    found[name] = partial(store, result, scope, by_instruction)
    return found


NAMES = tuple(_table())
for _name, _make in _table().items():
    built_in(_name, _make)
