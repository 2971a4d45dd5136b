"""Dot products of groups of small integers by one instruction of a CPU: NEON and its sdot and udot on ARM, HVX on Hexagon.

C[i] += sum over k of A[k] * B[i, k], for `outputs` values of i. The x86 ones are made of te's declarations, in `schedule.blocks`.
Tensorized functions print, are interpreted, and are compiled for a CPU that has the instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dataclass import dataclass, replace
from ..arithmetic import const
from ..buffer import Buffer, decl_buffer
from ..dtype import parse_dtype
from ..expr import Broadcast, PrimExpr, Shuffle, Var
from ..foreign import call_packed
from ..intrin import reinterpret
from ..llvm_intrin import call_llvm_pure_intrin
from ..stmt import Evaluate
from . import TensorIntrin, built_in
from .parts import function, over, reduced, spatial


@dataclass(frozen=True)
class GroupDot:
    """An intrinsic: its shape and data types, and the sum that it makes of C, A and B as vectors.

    `scope` is the memory that all three stand in.
    """

    outputs: int
    group: int
    left: str
    right: str
    result: str
    total: Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr]
    scope: str = "global"

    def make(self) -> TensorIntrin:
        """The two functions."""
        a, b, c = self._buffers()

        def made(i: Var, k: Var) -> tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]:
            return c, (i,), c[i] + a[k].astype(c.dtype) * b[i, k].astype(c.dtype)

        axes = [*spatial(i=self.outputs), *reduced(k=self.group)]
        desc = function([a, b, c], [c, a, b], [c], over(axes, "update", made, lambda i, k: [(c, (i,)), (a, (k,)), (b, (i, k))]))
        # Description and implementation are two functions: each has buffers of its own.
        a, b, c = self._buffers()
        sums = c.vload([0], f"{self.result}x{self.outputs}")
        rows = b.vload([0, 0], f"{self.right}x{self.outputs * self.group}")
        body = c.vstore([0], self.total(sums, a.vload([0], f"{self.left}x{self.group}"), rows))
        return TensorIntrin(desc, function([a, b, c], [c, a, b], [c], body))

    def _buffers(self) -> list[Buffer]:
        rows = (("A", (self.group,), self.left), ("B", (self.outputs, self.group), self.right), ("C", (self.outputs,), self.result))
        return [decl_buffer(shape, dtype, name, scope=self.scope, offset_factor=1) for name, shape, dtype in rows]


def _word(group: PrimExpr, dtype: str = "int32") -> PrimExpr:
    """A group of numbers as one of 32 bits."""
    return reinterpret(dtype, group)


def by_dot(name: str) -> Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr]:
    """sdot, udot: the group repeated for each output."""

    def total(sums: PrimExpr, group: PrimExpr, rows: PrimExpr) -> PrimExpr:
        word = "uint32" if sums.dtype.startswith("uint") else "int32"
        spread = reinterpret(rows.dtype, Broadcast(_word(group, word), 4))
        return call_llvm_pure_intrin(sums.dtype, f"llvm.aarch64.neon.{name}", const(3, "uint32"), sums, spread, rows)

    return total


def by_neon(sums: PrimExpr, group: PrimExpr, rows: PrimExpr) -> PrimExpr:
    """Widening products of two outputs at a time, whose neighbours are added twice."""
    spread = reinterpret("int8x8", Broadcast(_word(group), 2))
    halves = [Shuffle((rows,), tuple(range(first, first + 8))) for first in (0, 8)]
    pairs = [_neon("int32x4", "saddlp", 1, _neon("int16x8", "smull", 2, spread, half)) for half in halves]
    return sums + _neon("int32x4", "addp", 2, *pairs)


def _neon(dtype: str, name: str, count: int, *args: PrimExpr) -> PrimExpr:
    return call_llvm_pure_intrin(dtype, f"llvm.aarch64.neon.{name}", const(count, "uint32"), *args)


def by_hvx(name: str, spread: bool) -> Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr]:
    """HVX: vectors of 1024 bits; the group comes as a word, or repeated."""

    def total(sums: PrimExpr, group: PrimExpr, rows: PrimExpr) -> PrimExpr:
        words = reinterpret(sums.dtype, rows)
        operands = (Broadcast(_word(group), 32), words) if spread else (words, _word(group))
        return call_llvm_pure_intrin(sums.dtype, f"llvm.hexagon.V6.{name}.acc.128B", const(3, "uint32"), sums, *operands)

    return total


def dma_load(size: int, dtype: str) -> TensorIntrin:
    """A copy to Hexagon's vector memory by its DMA engine."""

    def buffers() -> tuple[Buffer, Buffer]:
        return decl_buffer((size,), dtype, "A", offset_factor=1), decl_buffer((size,), dtype, "C", scope="global.vtcm", offset_factor=1)

    a, c = buffers()
    desc = function([a, c], [a], [c], over(spatial(i=size), "load", lambda i: (c, (i,), a[i]), lambda i: [(a, (i,))]))
    a, c = buffers()
    copy = call_packed("device_api.hexagon.dma_copy_dltensor", c, a, size * parse_dtype(dtype).itemsize, const(False, "bool"))
    return TensorIntrin(desc, function([a, c], [a], [c], Evaluate(copy)))


DOTS = {
    "dot_4x4_i8i8s32_neon": GroupDot(4, 4, "int8", "int8", "int32", by_neon),
    "dot_4x4_i8i8s32_sdot": GroupDot(4, 4, "int8", "int8", "int32", by_dot("sdot")),
    "dot_4x4_u8u8u32_udot": GroupDot(4, 4, "uint8", "uint8", "uint32", by_dot("udot")),
    "dot_4x4_u8u8i32_hdot": GroupDot(4, 4, "uint8", "uint8", "int32", by_dot("udot")),
    "dot_32x4_u8u8i32_vrmpy": GroupDot(32, 4, "uint8", "uint8", "int32", by_hvx("vrmpyub", False)),
    "dot_32x4_u8i8i32_vrmpy": GroupDot(32, 4, "uint8", "int8", "int32", by_hvx("vrmpybusv", True)),
    "dot_product_32x2_i16i16i32_vdmpy": GroupDot(32, 2, "int16", "int16", "int32", by_hvx("vdmpyhvsat", True)),
}
for _name in ("u8u8i32", "u8i8i32"):  # the same in vector memory
    DOTS[f"dot_32x4_{_name}_vtcm_vrmpy"] = replace(DOTS[f"dot_32x4_{_name}_vrmpy"], scope="global.vtcm")
for _name, _dot in DOTS.items():
    built_in(_name, _dot.make)
built_in("dma_read_128_u8", lambda: dma_load(128, "uint8"))
built_in("dma_read_128_i8", lambda: dma_load(128, "int8"))
