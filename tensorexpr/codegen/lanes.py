"""Values with operators, in which vector math is written: `(x * 2.0 + 1.0).sqrt()` writes the instructions at once.

A value has one lane or many; the same formula serves both. Nothing here is contracted or reassociated: a fused
multiply-add happens where a formula says `fma`, and there only if the machine has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dataclass import dataclass
from .context import FunctionContext
from .types import float_bits, splat, suffix, vector_of

_INT_OF = {"float": "i32", "double": "i64"}
_FLOAT_OF = {"i32": "float", "i64": "double"}
_DTYPE_OF = {"float": "float32", "double": "float64"}
_FRACTION_BITS = {"float": 23, "double": 52}
_BIAS = {"float": 127, "double": 1023}
# Adding this rounds a float of moderate size to an integer, which the low bits of the sum then hold.
_ROUNDER = {"float": 1.5 * 2.0**23, "double": 1.5 * 2.0**52}
_RARE = '!{!"branch_weights", i32 1, i32 2000}'
# From 2**-151 and 2**131 (2**-1077 and 2**1026), powers beyond those of normal numbers, as many steps back are well within them.
_FAR = {"float": 32, "double": 64}


def _bits_of(value: float, kind: str) -> int:
    """The bits of a float of an LLVM type as a signed integer."""
    return int(np.float32(value).view(np.int32) if kind == "float" else np.float64(value).view(np.int64))


@dataclass(frozen=True, slots=True)
class Lanes:
    """`lanes` values of the LLVM scalar type `kind`, named `text`."""

    ctx: FunctionContext
    kind: str
    lanes: int
    text: str

    @property
    def llvm_type(self) -> str:
        """The LLVM type, a vector for more than one lane."""
        return vector_of(self.kind, self.lanes)

    def like(self, instruction: str, kind: str | None = None) -> Lanes:
        """The result of an instruction, of the same type or another `kind`."""
        return Lanes(self.ctx, kind or self.kind, self.lanes, self.ctx.text.value(instruction))

    def constant(self, value: float) -> Lanes:
        """A number in every lane, rounded to the type."""
        if self.kind in _DTYPE_OF:
            # LLVM writes a float as the bits of a double, which must be one that a float has exactly.
            rounded = float(np.float32(value)) if self.kind == "float" else value
            text = float_bits(rounded, _DTYPE_OF[self.kind])
        else:
            text = str(int(value))
        return Lanes(self.ctx, self.kind, self.lanes, splat(self.kind, text, self.lanes))

    def _operand(self, other: Lanes | float) -> str:
        return other.text if isinstance(other, Lanes) else self.constant(other).text

    def _binary(self, instruction: str, other: Lanes | float) -> Lanes:
        return self.like(f"{instruction} {self.llvm_type} {self.text}, {self._operand(other)}")

    @property
    def _prefix(self) -> str:
        return "f" if self.kind in _DTYPE_OF else ""

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._binary(self._prefix + "add", other)

    def __radd__(self, other: float) -> Lanes:
        return self.constant(other) + self

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._binary(self._prefix + "sub", other)

    def __rsub__(self, other: float) -> Lanes:
        return self.constant(other) - self

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._binary(self._prefix + "mul", other)

    def __rmul__(self, other: float) -> Lanes:
        return self * other

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: float) -> Lanes:
        return self.constant(other) / self

    def __neg__(self) -> Lanes:
        return self.like(f"fneg {self.llvm_type} {self.text}")

    def __and__(self, other: Lanes | int) -> Lanes:
        return self._binary("and", other)

    def __or__(self, other: Lanes | int) -> Lanes:
        return self._binary("or", other)

    def __xor__(self, other: Lanes | int) -> Lanes:
        return self._binary("xor", other)

    def __lshift__(self, other: int) -> Lanes:
        return self._binary("shl", other)

    def __rshift__(self, other: int) -> Lanes:
        return self._binary("ashr", other)

    def fma(self, factor: Lanes | float, addend: Lanes | float) -> Lanes:
        """self * factor + addend, rounded once where the machine can."""
        operands = ", ".join(f"{self.llvm_type} {text}" for text in (self.text, self._operand(factor), self._operand(addend)))
        return self.like(f"call {self.llvm_type} @llvm.fmuladd.{suffix(self.llvm_type)}({operands})")

    def polynomial(self, coefficients: Sequence[float]) -> Lanes:
        """coefficients[0] + coefficients[1] * self + ..., by Horner's rule."""
        result = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            # Highest power first; each step rounds once where there is a fused multiply-add.
            result = result.fma(self, coefficient)
        return result

    def compare(self, relation: str, other: Lanes | float) -> Lanes:
        """A mask: where `self relation other`, by LLVM's name of the relation ("olt", "eq", ...)."""
        instruction = "fcmp" if self.kind in _DTYPE_OF else "icmp"
        return self.like(f"{instruction} {relation} {self.llvm_type} {self.text}, {self._operand(other)}", "i1")

    def choose(self, true_value: Lanes, false_value: Lanes | float) -> Lanes:
        """For a mask: true_value where it holds, else false_value."""
        kind, other = true_value.llvm_type, true_value._operand(false_value)
        return true_value.like(f"select {self.llvm_type} {self.text}, {kind} {true_value.text}, {kind} {other}")

    def _call(self, name: str) -> Lanes:
        return self.like(f"call {self.llvm_type} @llvm.{name}.{suffix(self.llvm_type)}({self.llvm_type} {self.text})")

    def sqrt(self) -> Lanes:
        """The square root, correctly rounded."""
        return self._call("sqrt")

    def abs(self) -> Lanes:
        """The magnitude of a float."""
        return self._call("fabs")

    def floor(self) -> Lanes:
        """The largest integral value not above."""
        return self._call("floor")

    def signed_as(self, other: Lanes) -> Lanes:
        """The magnitude with the sign of `other`."""
        return self.like(
            f"call {self.llvm_type} @llvm.copysign.{suffix(self.llvm_type)}({self.llvm_type} {self.text}, {self.llvm_type} {other.text})"
        )

    def flipped_by(self, other: Lanes) -> Lanes:
        """Negated where `other` has its sign bit set."""
        # The sign bit alone, so that -0.0 counts as negative.
        sign = other.bits() & self.bits().constant(-(1 << (31 if self.kind == "float" else 63)))
        return (self.bits() ^ sign).as_float()

    def at_most(self, limit: float) -> Lanes:
        """The smaller of this and `limit`; NaN stays."""
        top = self.constant(limit)
        return top.compare("olt", self).choose(top, self)  # "olt" is false for NaN

    def at_least(self, limit: float) -> Lanes:
        """The larger of this and `limit`; NaN stays."""
        bottom = self.constant(limit)
        return bottom.compare("ogt", self).choose(bottom, self)

    def bits(self) -> Lanes:
        """The bits of a float as an integer."""
        kind = _INT_OF[self.kind]
        return self.like(f"bitcast {self.llvm_type} {self.text} to {vector_of(kind, self.lanes)}", kind)

    def as_float(self) -> Lanes:
        """The float that has these bits."""
        kind = _FLOAT_OF[self.kind]
        return self.like(f"bitcast {self.llvm_type} {self.text} to {vector_of(kind, self.lanes)}", kind)

    def to_float(self) -> Lanes:
        """The float of a signed integer."""
        kind = _FLOAT_OF[self.kind]
        return self.like(f"sitofp {self.llvm_type} {self.text} to {vector_of(kind, self.lanes)}", kind)

    def converted(self, kind: str) -> Lanes:
        """A float as a double and back, an i64 cut to i32."""
        if kind == self.kind:
            return self
        instruction = {"double": "fpext", "float": "fptrunc", "i32": "trunc", "i64": "sext"}[kind]
        return self.like(f"{instruction} {self.llvm_type} {self.text} to {vector_of(kind, self.lanes)}", kind)

    def rounded(self, scale: float = 1.0) -> tuple[Lanes, Lanes]:
        """self * scale rounded to an integer, as a float and as an integer; below 2**22 (2**51) in size, or NaN."""
        rounder = _ROUNDER[self.kind]
        shifted = self.fma(scale, rounder) if scale != 1.0 else self + rounder
        # The sum stays among floats whose last bit counts 1, so a difference of bits is one of integers.
        number = shifted.bits() - shifted.bits().constant(_bits_of(rounder, self.kind))
        return shifted - rounder, number

    def scaled(self, power: Lanes, exponent: Lanes) -> Lanes:
        """self * 2**power with one rounding, into denormals, zero or infinity; `exponent` is the same number as an integer."""
        size = self._scalef_lanes()
        if size == 0:
            return self._scaled_in_two(power, exponent)
        value, scale = (lanes.resized(-(-self.lanes // size) * size) for lanes in (self, power))
        if value.lanes == size:
            return value._scalef(scale).resized(self.lanes)
        # Every lane of it is overwritten, register by register.
        result = value.like_text("poison")
        for start in range(0, value.lanes, size):
            part = value.part(start, size)._scalef(scale.part(start, size))
            name = f"llvm.vector.insert.{suffix(result.llvm_type)}.{suffix(part.llvm_type)}"
            operands = f"{result.llvm_type} {result.text}, {part.llvm_type} {part.text}, i64 {start}"
            result = result.like(f"call {result.llvm_type} @{name}({operands})")
        return result.resized(self.lanes)

    def shifted(self, exponent: Lanes) -> Lanes:
        """self * 2**exponent, which is a normal number as this is."""
        return (self.bits() + (exponent << _FRACTION_BITS[self.kind])).as_float()

    @property
    def is_scaled_in_steps(self) -> bool:
        """True for vectors for which `scaled` takes more than one instruction."""
        return self.lanes > 1 and self._scalef_lanes() == 0

    def unless_beyond(self, limit: float, anywhere: Callable[[Lanes], Lanes], within: Callable[[Lanes], Lanes]) -> Lanes:
        """`within` of these values if all are at most `limit` in size, else, behind a branch that is rarely taken, `anywhere` of them."""
        text = self.ctx.text
        size = self.bits()
        size = size & size.constant((1 << (31 if self.kind == "float" else 63)) - 1)
        native = max(1, self.ctx.module.target.vector_bits // (32 if self.kind == "float" else 64))
        # The largest of several registers needs one comparison; as integers, so that NaN is beyond any limit.
        while size.lanes > native and size.lanes % (2 * native) == 0:
            half = size.lanes // 2
            low, high = size.part(0, half), size.part(half, half)
            size = low.compare("sgt", high).choose(low, high)
        beyond, plain, done = text.fresh("beyond"), text.fresh("within"), text.fresh("done")
        # Lanes that nothing reads may be poison, which a branch must not depend on.
        flag = text.value(f"freeze i1 {size.compare('sgt', _bits_of(limit, self.kind)).any()}")
        text.branch(flag, beyond, plain, f", !prof !{self.ctx.module.text.node(_RARE)}")
        found = []
        for label, formula in ((beyond, anywhere), (plain, within)):
            text.start(label)
            found.append((formula(self).text, text.block))
            text.jump(done)
        text.start(done)
        return self.like_text(text.phi(self.llvm_type, *found))

    def _scaled_in_two(self, power: Lanes, exponent: Lanes) -> Lanes:
        """Times 2**(power + c) or 2**(power - c), which is normal and exact, then 2**-c or 2**c, which rounds."""
        far = _FAR[self.kind]
        # Towards normal numbers: a power below 2**-126 is made larger first, one above 2**127 smaller.
        back = power.bits().compare("slt", 0).choose(self.constant(2.0**-far), 2.0**far)
        # The exponent fields: that of `back` is its power + bias, so one bias and the rest of the power are left.
        biased = (exponent + 2 * _BIAS[self.kind]) << _FRACTION_BITS[self.kind]
        return self * (biased - back.bits()).as_float() * back

    def _scalef_lanes(self) -> int:
        """Lanes of the registers in which AVX-512 scales these values; 0 without it, and for a single value."""
        bits, features = 32 if self.kind == "float" else 64, self.ctx.module.features
        most = self.ctx.module.target.vector_bits
        wanted = min(most, max(128, 1 << (self.lanes * bits - 1).bit_length()))
        return wanted // bits if self.lanes > 1 and ("avx512f" if wanted == 512 else "avx512vl") in features else 0

    def _scalef(self, power: Lanes) -> Lanes:
        """One instruction of AVX-512 that has no portable name on floats."""
        width = self.lanes * (32 if self.kind == "float" else 64)
        mask, current_rounding = ("i16" if self.lanes == 16 else "i8"), ", i32 4" if width == 512 else ""
        operands = ", ".join(f"{self.llvm_type} {text}" for text in (self.text, power.text, "zeroinitializer"))
        name = f"llvm.x86.avx512.mask.scalef.{'ps' if self.kind == 'float' else 'pd'}.{width}"
        return self.like(f"call {self.llvm_type} @{name}({operands}, {mask} -1{current_rounding})")

    def like_text(self, text: str) -> Lanes:
        """A value of this type that has a name or is a constant."""
        return Lanes(self.ctx, self.kind, self.lanes, text)

    def part(self, start: int, lanes: int) -> Lanes:
        """`lanes` lanes from a multiple of that number on."""
        kind = vector_of(self.kind, lanes)
        operands = f"{self.llvm_type} {self.text}, i64 {start}"
        text = self.ctx.text.value(f"call {kind} @llvm.vector.extract.{suffix(kind)}.{suffix(self.llvm_type)}({operands})")
        return Lanes(self.ctx, self.kind, lanes, text)

    def resized(self, lanes: int) -> Lanes:
        """The first lanes, or these and undefined ones behind them."""
        if lanes == self.lanes:
            return self
        picked = ", ".join(f"i32 {lane if lane < self.lanes else 'poison'}" for lane in range(lanes))
        instruction = f"shufflevector {self.llvm_type} {self.text}, {self.llvm_type} poison, <{lanes} x i32> <{picked}>"
        return Lanes(self.ctx, self.kind, lanes, self.ctx.text.value(instruction))

    def power_of_two(self) -> Lanes:
        """2**self as a float, for an integer within the normal range."""
        kind = _FLOAT_OF[self.kind]
        return ((self + _BIAS[kind]) << _FRACTION_BITS[kind]).as_float()

    def any(self) -> str:
        """For a mask: whether it holds in any lane, as an i1."""
        if self.lanes == 1:
            return self.text
        return self.ctx.text.value(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.llvm_type} {self.text})")
