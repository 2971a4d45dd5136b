"""Matrix units of NVIDIA's GPUs: what `mma.sync` multiplies, and `ldmatrix` fetches, told for all threads of a warp.

A tile that the units work on is spread over a warp: a tensor [32 threads, registers] holds it, in scope "warp". Of 16-byte chunks a
tile of operands has two along the sum, of E elements each, whatever their type; P of them fill a register of 32 bits.

    A (i, k)   thread (i % 8) * 4 + k % E // P,   register ((k // E) * 2 + i // 8) * P + k % P
    B (j, k)   thread (j % 8) * 4 + k % E // P,   register ((j // 8) * 2 + k // E) * P + k % P
    C (i, j)   thread (i % 8) * 4 + j % 8 // 2,   register (j // 8) * 4 + i // 8 * 2 + j % 2

Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and its like for 8 and 32, and "ldmatrix".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

from ...dataclass import dataclass
from ...tir.arithmetic import cast, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.device_intrin import device_call
from ...tir.expr import IntImm, IterVar, PrimExpr, Var
from ...tir.pointers import tvm_access_ptr
from ...tir.stmt import BufferStore, Evaluate, For, ForKind, Stmt, seq
from ..declare import compute, placeholder, reduce_axis
from ..reducer import sum as te_sum
from ..tensor_intrin import TensorIntrin, built_in, decl_tensor_intrin

WARP, SIDE = 32, 16
"""Threads of a warp, and the side of a tile of results."""
_EIGHT = 8  # rows that lie together
_CHUNK = 16  # bytes of a row that ldmatrix takes
_SWIZZLED = 128  # bytes of a row that the copy engine swizzles


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """What one kind of instruction multiplies and sums.

    Args:
        dtype: of the operands in memory.
        out: of the sums.
        ptx: what the instruction calls the operands' type; for "tf32" it leaves out the last 13 bits of each float32.
        least: the first architecture that has it.
    """

    dtype: str
    out: str
    ptx: str
    least: int = 80

    @property
    def bytes(self) -> int:
        """Of an element of the operands."""
        return {"int8": 1, "uint8": 1, "float32": 4}.get(self.dtype, 2)

    @property
    def chunk(self) -> int:
        """Elements of 16 bytes: as many registers, in elements, a thread has of a tile of an operand."""
        return _CHUNK // self.bytes

    @property
    def depth(self) -> int:
        """Products of a tile that are summed."""
        return 2 * self.chunk

    @property
    def name(self) -> str:
        """Of the tensor intrinsics' last part."""
        return f"{self.ptx}_{self.out}"

    def operand(self, role: str, eight: Any, i: Any, chunk: Any, element: Any) -> tuple[Any, Any]:
        """Thread and register of an element: row or column `i` of eight, product `element` of a chunk; a tile has two of each."""
        packed = 4 // self.bytes
        half, part = (chunk % 2, eight % 2) if role == "a" else (eight % 2, chunk % 2)
        return i * 4 + element // packed, (half * 2 + part) * packed + element % packed

    def place(self, thread: Any, register: Any, role: str) -> tuple[Any, Any]:
        """The row or column, and the product, that a register of a thread holds of an operand."""
        packed = 4 // self.bytes
        half, part = register // (2 * packed), register % (2 * packed) // packed
        eight, chunk = (part, half) if role == "a" else (half, part)
        return thread // 4 + eight * 8, chunk * self.chunk + thread % 4 * packed + register % packed


def result(i: Any, j: Any, width: int = SIDE) -> tuple[Any, Any]:
    """Thread and register of a result at row `i` and column `j`, which may count on over tiles of so many columns."""
    return i % 8 * 4 + j % 8 // 2, j % width // 8 * 4 + i % 16 // 8 * 2 + j % 2


def result_place(thread: Any, register: Any) -> tuple[Any, Any]:
    """The row and the column that a register of a thread holds of the results."""
    return thread // 4 + register % 4 // 2 * 8, register // 4 * 8 + thread % 4 * 2 + register % 2


UNITS = (
    MatrixUnit("float16", "float32", "fp16"),
    MatrixUnit("float16", "float16", "fp16"),
    MatrixUnit("bfloat16", "float32", "bf16"),
    MatrixUnit("float32", "float32", "tf32"),
    MatrixUnit("int8", "int32", "int8"),
    MatrixUnit("uint8", "int32", "uint8"),
)
_SHORT = {"float32": "fp32", "float16": "fp16", "int32": "int32"}


def _per_thread(body: Callable[[Var], Stmt]) -> Stmt:
    """What each thread of a warp does."""
    thread = Var("lane", "int32")
    axis = IterVar(None, Var("threadIdx.x", "int32"), IterVar.THREAD_INDEX, "threadIdx.x")
    return For(thread, IntImm("int32", 0), IntImm("int32", WARP), ForKind.THREAD_BINDING, body(thread), thread_binding=axis)


def _registers(tensor: Any) -> Buffer:
    """A tile in the registers of a warp, one after the other."""
    count = tensor.shape[1]
    return decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope="warp", offset_factor=1, strides=[count, 1])


def load(unit: MatrixUnit, role: str, along_sum: bool) -> TensorIntrin:
    """A tile of an operand from shared memory, where chunks of 16 bytes lie along the sum, or along rows or columns.

    The tile is [chunk, the other axis, element] there. Only elements of 16 bits can be turned on the way.
    """
    chunk = unit.chunk
    tile = placeholder((2, SIDE, chunk), unit.dtype, name="tile")

    def element(thread: PrimExpr, register: PrimExpr) -> Any:
        i, k = unit.place(thread, register, role)
        return tile[k // chunk, i, k % chunk] if along_sum else tile[i // 8, k, i % 8]

    held = compute((WARP, chunk), element, name="held")
    memory = decl_buffer(tile.shape, tile.dtype, "tile", scope="shared.dyn", offset_factor=1, strides=[Var("chunks", "int32"), chunk, 1])

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        (source,), (into,) = ins, outs

        def row(thread: Var) -> Stmt:
            # Four matrices of eight rows; threads 8 n to 8 n + 7 tell where those of matrix n are.
            eight, two = thread % 8, thread // 16
            one = thread // 8 % 2
            if along_sum:
                piece, at = (two, one * 8 + eight) if role == "a" else (one, two * 8 + eight)
            else:
                piece, at = (one, two * 8 + eight) if role == "a" else (two, one * 8 + eight)
            begin = source.elem_offset + piece * source.strides[0] + at * chunk
            pointer = tvm_access_ptr(unit.dtype, source.data, begin, IntImm("int32", chunk), Buffer.READ)
            place = into.elem_offset + thread * chunk
            return Evaluate(device_call("ptx_ldmatrix", unit.dtype, not along_sum, 4, ".b16", into.data, place, pointer, 0))

        return _per_thread(row)

    name = f"ldmatrix_{role}{'' if along_sum else '_trans'}_{unit.ptx}"
    return decl_tensor_intrin(held.op, body, name, binds={tile: memory, held: _registers(held)})


def multiply(unit: MatrixUnit) -> TensorIntrin:
    """The product of two tiles, added to a tile of sums of 16 x 16, by two instructions."""
    chunk = unit.chunk
    a, b = (placeholder((WARP, chunk), unit.dtype, name=name) for name in "ab")
    k = reduce_axis((0, unit.depth), name="k")

    def total(thread: PrimExpr, register: PrimExpr) -> PrimExpr:
        i, j = result_place(thread, register)
        at = (k.var // chunk, k.var % chunk)
        left, right = a[unit.operand("a", i // 8, i % 8, *at)], b[unit.operand("b", j // 8, j % 8, *at)]
        if unit.out != unit.dtype:
            left, right = cast(left, unit.out), cast(right, unit.out)
        return te_sum(left * right, axis=k)

    out = compute((WARP, 8), total, name="out")
    dtypes = (unit.ptx, unit.ptx, _SHORT[unit.out])

    def statements(ins: list[Buffer], outs: list[Buffer]) -> tuple[None, Stmt, Stmt]:
        (left, right), (sums,) = ins, outs

        def zero(thread: Var) -> Stmt:
            return seq(*(BufferStore(sums, const(0, unit.out), (thread, IntImm("int32", register))) for register in range(8)))

        def update(thread: Var) -> Stmt:
            halves = []
            for half in (0, 1):  # columns 0 to 7 and 8 to 15
                places = [(left, chunk, 0), (right, chunk, half * chunk // 2), (sums, 8, half * 4)]
                operands = [part for one, count, skip in places for part in (one.data, one.elem_offset + thread * count + skip)]
                halves.append(
                    Evaluate(
                        device_call("ptx_mma", unit.out, f"m16n8k{unit.depth}", "row", "col", *dtypes, *operands, const(False, "bool"))
                    )
                )
            return seq(*halves)

        return None, _per_thread(zero), _per_thread(update)

    return decl_tensor_intrin(out.op, statements, f"mma_{unit.name}", binds={one: _registers(one) for one in (a, b, out)})


def multiply_in_group(unit: MatrixUnit, width: int, depth: int, turned_a: bool, turned_b: bool, swizzled: bool = False) -> TensorIntrin:
    """Sums of 16 x width of a warp, one of four that work together, from operands in shared memory (`wgmma`).

    Both operands are [chunk, row, element] there with chunks along the sum, or, turned, [chunk, product, element] with chunks along
    rows or columns. Chunks are 16 bytes; swizzled ones, which the copy engine brings, 128 bytes, a whole part of the sum. A part of
    `depth` products is one group of instructions, whose results are waited for.
    """
    chunk = _SWIZZLED // unit.bytes if swizzled else unit.chunk

    def shape(rows: int, turned: bool) -> tuple[int, int, int]:
        return (max(1, rows // chunk), depth, min(rows, chunk)) if turned else (depth // chunk, rows, chunk)

    sides = ((SIDE, turned_a), (width, turned_b))
    a, b = (placeholder(shape(rows, turned), unit.dtype, name=name) for (rows, turned), name in zip(sides, "ab", strict=True))
    k = reduce_axis((0, depth), name="k")

    def element(tensor: Any, i: Any, turned: bool) -> Any:
        found = tensor[i // chunk, k, i % chunk] if turned else tensor[k.var // chunk, i, k.var % chunk]
        return cast(found, unit.out)

    def total(thread: PrimExpr, register: PrimExpr) -> Any:
        i, j = result_place(thread, register)
        return te_sum(element(a, i, turned_a) * element(b, j, turned_b), axis=k)

    out = compute((WARP, width // 2), total, name="out")

    def memory(tensor: Any) -> Buffer:
        strides = [Var(f"{tensor.name}_chunks", "int32"), chunk, 1]
        return decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope="shared.dyn", offset_factor=1, strides=strides)

    def statements(ins: list[Buffer], outs: list[Buffer]) -> tuple[None, Stmt, Stmt]:
        (sums,) = outs

        def zero(thread: Var) -> Stmt:
            return seq(*(BufferStore(sums, const(0, unit.out), (thread, IntImm("int32", number))) for number in range(width // 2)))

        def operand(source: Buffer, rows: int, turned: bool, step: int) -> tuple[Any, ...]:
            chunks, eight = source.strides[0], IntImm("int32", _EIGHT * chunk)
            first = step * unit.depth
            begin = source.elem_offset + (first * chunk if turned else chunks * (first // chunk) + first % chunk)
            # From the first element that is read to behind the last one; how far chunks are apart is a number when this is lowered.
            within = ((unit.depth if turned else rows) - 1) * chunk + (min(chunk, rows) if turned else min(chunk, unit.depth))
            extent = chunks * ((max(1, rows // chunk) if turned else max(1, unit.depth // chunk)) - 1) + within
            return tvm_access_ptr(unit.dtype, source.data, begin, extent, Buffer.READ), chunks, eight, int(turned)

        def update(thread: Var) -> Stmt:
            steps, place = [], sums.elem_offset + thread * (width // 2)
            for step in range(depth // unit.depth):
                operands = [part for one, side in zip(ins, sides, strict=True) for part in operand(one, *side, step)]
                mode = [_SWIZZLED] if swizzled else []
                steps.append(Evaluate(device_call("ptx_wgmma", unit.dtype, width, unit.depth, sums.data, place, *operands, *mode)))
            before, after, wait = (
                Evaluate(device_call(f"ptx_wgmma_{name}", *args))
                for name, *args in (("fence", width, sums.data, place), ("commit_group",), ("wait_group", 0, width, sums.data, place))
            )
            return seq(before, *steps, after, wait)

        return None, _per_thread(zero), _per_thread(update)

    binds = {a: memory(a), b: memory(b), out: _registers(out)}
    return decl_tensor_intrin(out.op, statements, group_name(unit, width, depth, turned_a, turned_b, swizzled), binds=binds)


def group_name(unit: MatrixUnit, width: int, depth: int, turned_a: bool, turned_b: bool, swizzled: bool = False) -> str:
    """The name of the tensor intrinsic of `multiply_in_group`."""
    return f"wgmma_{unit.ptx}_{width}x{depth}{'_trans_a' * turned_a}{'_trans_b' * turned_b}{'_swizzled' * swizzled}"


GROUP_WIDTHS, GROUP_DEPTHS = (64, 128, 256), (16, 32, 64)
"""Columns and products that there are intrinsics of `multiply_in_group` for."""


def _declare() -> None:
    for unit, width, depth, turned_a, turned_b in product(UNITS, GROUP_WIDTHS, GROUP_DEPTHS, (False, True), (False, True)):
        if unit.bytes == 2 and unit.out == "float32":
            for swizzled in (False, True) if depth * unit.bytes == _SWIZZLED else (False,):
                made = partial(multiply_in_group, unit, width, depth, turned_a, turned_b, swizzled)
                built_in(group_name(unit, width, depth, turned_a, turned_b, swizzled))(cache(made))
    for unit in UNITS:
        built_in(f"mma_{unit.name}")(cache(lambda unit=unit: multiply(unit)))
    for unit in {unit.ptx: unit for unit in UNITS}.values():
        for role in "ab":
            for along_sum in (True, False) if unit.bytes == 2 else (True,):
                name = f"ldmatrix_{role}{'' if along_sum else '_trans'}_{unit.ptx}"
                built_in(name)(cache(lambda unit=unit, role=role, along_sum=along_sum: load(unit, role, along_sum)))


_declare()
