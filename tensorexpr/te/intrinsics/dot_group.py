"""What the dot products of vector units share: 16 outputs, each adding the products of one group of bytes or halves.

out[i] += sum(a[k] * b[i, k])          one group of `a` for all outputs, 32 bits of it; `b` packed as [16][group]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...tir.arithmetic import cast, const
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import Broadcast, PrimExpr
from ...tir.intrin import reinterpret
from ...tir.llvm_intrin import call_llvm_pure_intrin
from ..declare import compute, placeholder, reduce_axis
from ..reducer import sum as te_sum
from ..tensor_intrin import TensorIntrin, decl_tensor_intrin

OUTPUTS = 16


@dataclass(frozen=True, slots=True)
class DotGroup:
    """One instruction: LLVM's name for it and its element types. A group of `a` and one of `b` fill 32 bits each."""

    name: str
    llvm: str
    left: str
    right: str
    out: str
    group: int

    def declare(self) -> TensorIntrin:
        """The tensor intrinsic of this instruction."""
        a = placeholder((self.group,), self.left, name="a")
        b = placeholder((OUTPUTS, self.group), self.right, name="b")
        k = reduce_axis((0, self.group), name="k")
        out = compute((OUTPUTS,), lambda i: te_sum(cast(a[k], self.out) * cast(b[i, k], self.out), axis=k), name="out")
        packed = decl_buffer(b.shape, b.dtype, "b", offset_factor=1, strides=[self.group, 1])
        return decl_tensor_intrin(out.op, self._statements, self.name, binds={b: packed})

    def _statements(self, ins: list[Buffer], outs: list[Buffer]) -> tuple[Any, Any, Any]:
        """Everything, the first value, one more group."""
        zero = Broadcast(const(0, self.out), OUTPUTS)
        out = outs[0]
        old = out.vload([0], f"{self.out}x{OUTPUTS}")
        return out.vstore([0], self._dot(zero, ins)), out.vstore([0], zero), out.vstore([0], self._dot(old, ins))

    def _dot(self, accumulator: PrimExpr, ins: list[Buffer]) -> PrimExpr:
        a, b = ins
        lanes = OUTPUTS * self.group
        group = reinterpret("int32", a.vload([0], f"{self.left}x{self.group}"))  # one broadcast of 32 bits
        spread = reinterpret(f"{self.left}x{lanes}", Broadcast(group, OUTPUTS))
        return call_llvm_pure_intrin(f"{self.out}x{OUTPUTS}", self.llvm, accumulator, spread, b.vload([0, 0], f"{self.right}x{lanes}"))
