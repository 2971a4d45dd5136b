"""What the dot products of vector units share: each output, of 32 bits, adds the products of one group of bytes or halves.

out[i] += sum(a[k] * b[i, k])          one group of `a` for all outputs, 32 bits of it; `b` packed as [outputs][group]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...tir.arithmetic import cast, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import Broadcast, PrimExpr
from ...tir.intrin import reinterpret
from ...tir.llvm_intrin import call_llvm_pure_intrin
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
