"""What the dot products of vector units share: each output, of 32 bits, adds the products of one group of bytes or halves.

out[i] += sum(a[k] * b[i, k])          one group of `a` for all outputs, 32 bits of it; `b` packed as [outputs][group]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass, replace
from ...tir.arithmetic import cast, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import Broadcast, PrimExpr
from ...tir.intrin import reinterpret
from ...tir.llvm_intrin import call_llvm_pure_intrin, lanes_of, llvm_intrinsic
from ..declare import compute, placeholder, reduce_axis
from ..reducer import sum as te_sum
from ..tensor_intrin import TensorIntrin, decl_tensor_intrin


@dataclass(frozen=True, slots=True)
class DotGroup:
    """One instruction: LLVM's name for it and its element types. A group of `a` and one of `b` fill 32 bits each.

    Args:
        name: of the tensor intrinsic.
        llvm: the instruction.
        left, right, out: dtypes of `a`, `b` and the outputs.
        group: elements that are summed into one output.
        outputs: lanes of the vector of outputs.
        widened: the dtype that both are converted to first, if the instruction multiplies wider numbers and adds to nothing.
    """

    name: str
    llvm: str
    left: str
    right: str
    out: str
    group: int
    outputs: int = 16
    widened: str = ""

    def is_wide_left_of(self, other: DotGroup) -> bool:
        """Whether this is another instruction, with its left operand converted already."""
        wide = replace(other, name=self.name, left=other.widened)
        return other.left != other.widened and self == wide

    def declare(self) -> TensorIntrin:
        """The tensor intrinsic of this instruction."""
        a = placeholder((self.group,), self.left, name="a")
        b = placeholder((self.outputs, self.group), self.right, name="b")
        k = reduce_axis((0, self.group), name="k")
        out = compute((self.outputs,), lambda i: te_sum(cast(a[k], self.out) * cast(b[i, k], self.out), axis=k), name="out")
        packed = decl_buffer(b.shape, b.dtype, "b", offset_factor=1, strides=[self.group, 1])
        return decl_tensor_intrin(out.op, self._statements, self.name, binds={b: packed})

    def _statements(self, ins: list[Buffer], outs: list[Buffer]) -> tuple[Any, Any, Any]:
        """Everything, the first value, one more group."""
        zero = Broadcast(const(0, self.out), self.outputs)
        out = outs[0]
        old = out.vload([0], f"{self.out}x{self.outputs}")
        return out.vstore([0], self._dot(zero, ins)), out.vstore([0], zero), out.vstore([0], self._dot(old, ins))

    def _dot(self, accumulator: PrimExpr, ins: list[Buffer]) -> PrimExpr:
        a, b = ins
        lanes, result = self.outputs * self.group, f"{self.out}x{self.outputs}"
        left, right = a.vload([0], f"{self.left}x{self.group}"), b.vload([0, 0], f"{self.right}x{lanes}")
        if self.widened:
            left, right = cast(left, f"{self.widened}x{self.group}"), cast(right, f"{self.widened}x{lanes}")
        # One broadcast of 32 bits.
        spread = reinterpret(f"{self.widened or self.left}x{lanes}", Broadcast(reinterpret("int32", left), self.outputs))
        if self.widened:
            return accumulator + call_llvm_pure_intrin(result, self.llvm, spread, right)
        return call_llvm_pure_intrin(result, self.llvm, accumulator, spread, right)


def by_words(llvm: str, spread: PrimExpr, packed: PrimExpr) -> PrimExpr:
    """Sums of four products of unsigned and signed bytes, by an instruction that multiplies 16-bit words and adds pairs; exact.

    Args:
        llvm: the instruction.
        spread: the unsigned bytes, two in each word, the same four for all sums.
        packed: the signed bytes [sums][4] as words.
    """
    lanes = parse_dtype(packed.dtype).lanes
    byte, low = Broadcast(const(8, "int16"), lanes), Broadcast(const(255, "int16"), lanes)

    def multiplied(left: PrimExpr, right: PrimExpr) -> PrimExpr:
        return call_llvm_pure_intrin(f"int32x{lanes // 2}", llvm, left, right)

    # The unsigned operand's low bytes by a mask; the signed one's by shifts up and back, which extend the sign.
    return multiplied(spread & low, (packed << byte) >> byte) + multiplied((spread >> byte) & low, packed >> byte)


def dot_of_fours(bits: int, features: frozenset[str]) -> Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr] | None:
    """What adds products of bytes to sums of int32 in vectors of so many bits; None if a CPU has no instruction for it.

    The function takes the sums, four unsigned bytes as one int32, and the signed ones [sums][4]; the result is exact within int32.
    """
    lanes = bits // 32
    fours = llvm_intrinsic(f"llvm.x86.avx512.vpdpbusd.{bits}")
    if fours is not None and not fours.missing(features):
        name = fours.name
        return lambda sums, a, b: call_llvm_pure_intrin(sums.dtype, name, sums, reinterpret(b.dtype, Broadcast(a, lanes)), b)
    words = f"int16x{2 * lanes}"
    for name in ("llvm.x86.avx512.pmaddw.d.512", "llvm.x86.avx2.pmadd.wd", "llvm.x86.sse2.pmadd.wd"):
        row = llvm_intrinsic(name)
        if row is not None and lanes_of(row.result)[0] == lanes and not row.missing(features):
            return lambda sums, a, b: sums + by_words(name, reinterpret(words, Broadcast(a, lanes)), reinterpret(words, b))
    return None
