"""How many vector registers a function may count on, and how many of them a value takes."""

from __future__ import annotations

from ..dataclass import dataclass
from ..target import Target
from ..target.kinds import DEVICE_KINDS, SOURCE_KINDS
from ..tir.dtype import parse_dtype
from ..tir.function import PrimFunc


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """`count` vector registers of `bits` bits; with `masks`, stores leave lanes out at no cost."""

    count: int = 32
    bits: int = 512
    masks: bool = True

    @staticmethod
    def of(func: PrimFunc) -> RegisterFile:
        """The registers of the function's target; without one those of the current target; else those of AVX-512."""
        target = func.attrs.get("target")
        return _registers(target) if isinstance(target, Target) else RegisterFile.current()

    @staticmethod
    def current() -> RegisterFile:
        """The registers of the current target; without one those of AVX-512."""
        return _registers(Target.current(allow_none=True))

    def needed(self, dtype: str) -> int:
        """The registers that one value takes; a scalar takes one."""
        parsed = parse_dtype(dtype)
        return max(1, -(-parsed.lanes * max(parsed.bits, 8) // self.bits))

    @property
    def promotable(self) -> int:
        """How many registers' worth of values may be kept out of memory: twice the file, as LLVM spills less than memory costs."""
        return 2 * self.count


# 255 registers of 32 bits, counted in accesses of four.
_OF_A_THREAD = RegisterFile(64, 128, masks=False)
# A compiler of source text has tiles of its own: a single sum is a variable, all else stays loops over arrays.
_OF_SOURCE = RegisterFile(1, 512, masks=False)


def _registers(target: Target | None) -> RegisterFile:
    if target is not None and target.kind in DEVICE_KINDS:
        return _OF_A_THREAD
    if target is not None and target.kind in SOURCE_KINDS:
        return _OF_SOURCE
    if target is None or not target.is_built:
        return RegisterFile()
    return RegisterFile(target.vector_registers, target.vector_bits, target.machine.mask_registers)
