"""Matrix cores of AMD (AMD Matrix Core programming, `v_mfma`): tiles of 16 x 16 over the registers of 64 threads.

Tensorized functions print and are analysed; a GPU runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..expr import PrimExpr, Var
from ..intrin import reinterpret
from ..llvm_intrin import call_llvm_pure_intrin
from ..stmt import BufferStore, Stmt
from . import TensorIntrin, built_in
from .parts import function
from .spread import Spread, filled, loaded, multiplied, per_register, per_thread, stored, strided

WARP_SIZE, M_DIM, N_DIM = 64, 16, 16
SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}
# The instructions by depth and dtype of the operands.
LLVM = {(4, "float32"): "f32.16x16x4f32", (16, "float16"): "f32.16x16x16f16", (16, "int8"): "i32.16x16x16i8"}


def shared_16x4_to_local_64x1_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a left operand of 16 x 4."""
    return j * 16 + i, 0


def thread_id_shared_access_64x1_to_16x4_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a left operand of 16 x 4 that a register of a thread holds."""
    return thread_id % 16, thread_id // 16 + local_id


def shared_4x16_to_local_64x1_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a right operand of 4 x 16."""
    return i * 16 + j, 0


def thread_id_shared_access_64x1_to_4x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a right operand of 4 x 16 that a register of a thread holds."""
    return thread_id // 16, thread_id % 16 + local_id


def shared_16x16_to_local_64x4_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a left operand of 16 x 16."""
    return i + 16 * (j // 4), j % 4


def thread_id_shared_access_64x4_to_16x16_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a left operand of 16 x 16 that a register of a thread holds."""
    return thread_id % 16, thread_id // 16 * 4 + local_id


def shared_16x16_to_local_64x4_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """Thread and register of an element of a right operand of 16 x 16."""
    return j + i // 4 * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a right operand of 16 x 16 that a register of a thread holds."""
    return local_id + thread_id // 16 * 4, thread_id % 16


# Results lie as right operands do.
shared_16x16_to_local_64x4_layout_C = shared_16x16_to_local_64x4_layout_B
thread_id_shared_access_64x4_to_16x16_layout_C = thread_id_shared_access_64x4_to_16x16_layout_B

# The registers of an operand by depth and role, and what a register holds.
_OPERANDS = {
    (4, "a"): (Spread((16, 4), 64, 1, shared_16x4_to_local_64x1_layout_A), thread_id_shared_access_64x1_to_16x4_layout_A),
    (4, "b"): (Spread((4, 16), 64, 1, shared_4x16_to_local_64x1_layout_B), thread_id_shared_access_64x1_to_4x16_layout_B),
    (16, "a"): (Spread((16, 16), 64, 4, shared_16x16_to_local_64x4_layout_A), thread_id_shared_access_64x4_to_16x16_layout_A),
    (16, "b"): (Spread((16, 16), 64, 4, shared_16x16_to_local_64x4_layout_B), thread_id_shared_access_64x4_to_16x16_layout_B),
}
_TOTAL = _OPERANDS[16, "b"][0]


def fill(dtype: str) -> TensorIntrin:
    """Zeros in an accumulator."""
    warp = _TOTAL.buffer("C_warp", dtype)
    body = per_thread(64, lambda tx: per_register(4, lambda local: BufferStore(warp, const(0, dtype), (tx, local))))
    return TensorIntrin(filled(_TOTAL, _TOTAL.buffer("C_warp", dtype, 0)), function([warp], [], [warp], body))


def load(depth: int, dtype: str, scope: str, role: str, trans: bool = False) -> TensorIntrin:
    """An operand from memory, where its transpose may stand."""
    spread, held = _OPERANDS[depth, role]
    spread = spread.transposed() if trans else spread
    desc = loaded(spread, spread.buffer("reg", dtype), decl_buffer(spread.shape, dtype, "memory", scope=scope, offset_factor=1))
    reg, memory = spread.buffer("reg", dtype), strided("memory", spread.shape, dtype, scope)

    def body(tx: Var, local: Var) -> Stmt:
        place = held(tx, local)
        return BufferStore(reg, memory[place[::-1] if trans else place], (tx, local))

    each = per_thread(64, lambda tx: per_register(spread.registers, partial(body, tx)))
    return TensorIntrin(desc, function([reg, memory], [memory], [reg], each))


def sync(depth: int, dtype: str, result: str, trans_b: bool = False) -> TensorIntrin:
    """A product of tiles added to an accumulator; of a transposed right operand, B[j, k] meets A[i, k]."""
    left, right = _OPERANDS[depth, "a"][0], _OPERANDS[depth, "b"][0]

    def buffers() -> tuple[Buffer, Buffer, Buffer]:
        return left.buffer("A", dtype), right.buffer("B", dtype), _TOTAL.buffer("C", result)

    a, b, c = buffers()
    desc = multiplied((left, right.transposed() if trans_b else right, _TOTAL), (a, b, c))
    a, b, c = buffers()

    def body(tx: Var) -> Stmt:
        lanes = f"x{left.registers}" if left.registers > 1 else ""
        values: list[PrimExpr] = [buffer.vload([tx, 0], f"{dtype}{lanes}") for buffer in (a, b)]
        if dtype == "int8":  # the instruction takes four bytes as a word
            values = [reinterpret("int32", value) for value in values]
        vector = f"{result}x{_TOTAL.registers}"
        # cbsz, abid and blgp of the instruction: operands are neither broadcast nor permuted.
        flags = [const(0, "int32")] * 3
        name = f"llvm.amdgcn.mfma.{LLVM[depth, dtype]}"
        # 6 is the number of operands behind it, which TVM writes in front of them
        made = call_llvm_pure_intrin(vector, name, const(6, "uint32"), *values, c.vload([tx, 0], vector), *flags)
        done: Stmt = c.vstore([tx, 0], made)
        return done

    return TensorIntrin(desc, function([a, b, c], [a, b, c], [c], per_thread(64, body)))


def store(dtype: str, scope: str) -> TensorIntrin:
    """An accumulator to memory."""
    desc = stored(_TOTAL, _TOTAL.buffer("C_warp", dtype, 0), decl_buffer((16, 16), dtype, "C", scope=scope))
    warp, memory = _TOTAL.buffer("C_warp", dtype), strided("C", (16, 16), dtype, scope)

    def body(tx: Var) -> Stmt:
        place = thread_id_shared_access_64x4_to_16x16_layout_C
        return per_register(4, lambda local: BufferStore(memory, warp[tx, local], place(tx, local)))

    return TensorIntrin(desc, function([warp, memory], [warp], [memory], per_thread(64, body)))


def result_of(dtype: str) -> str:
    """The dtype in which products of a dtype are summed."""
    return "int32" if dtype == "int8" else "float32"


def _table() -> dict[str, Callable[[], TensorIntrin]]:
    """What there is, by the names that schedules use, which aren't all built alike."""
    found: dict[str, Callable[[], TensorIntrin]] = {}
    for depth, dtype in LLVM:
        result = result_of(dtype)
        short = SHORT[dtype]
        found[f"rocm_mfma_{short}{short}{SHORT[result]}"] = partial(sync, depth, dtype, result)
        found[f"rocm_mfma_load_16x{depth}_a_shared_{short}"] = partial(load, depth, dtype, "shared", "a")
        found[f"rocm_mfma_load_b_16x{depth}_shared_{short}"] = partial(load, depth, dtype, "shared", "b")
        found[f"rocm_mfma_store_16x16_{SHORT[result]}"] = partial(store, result, "global")
        found[f"ROCM_mfma_fill_16x16_{'i32' if result == 'int32' else 'f32'}"] = partial(fill, result)
    return found


NAMES = tuple(_table())
for _name, _make in _table().items():
    built_in(_name, _make)
