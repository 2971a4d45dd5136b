"""Calls of LLVM's own intrinsics: which are known, what they compute, and which CPU feature they need.

A call holds the intrinsic's name and its operands. Names of a CPU's instructions are only taken from the table here: LLVM
ends the process when it can't select one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dataclass import dataclass, replace
from ..errors import DeclarationError
from .arithmetic import convert
from .dtype import parse_dtype
from .expr import Call, IntImm, PrimExpr, StringImm
from .intrin import fused_multiply_add

Array = Any
PURE_CALL, CALL = "tir.call_llvm_pure_intrin", "tir.call_llvm_intrin"


@dataclass(frozen=True, slots=True)
class LLVMIntrinsic:
    """One intrinsic: the LLVM types of its operands and result, the features it needs, others that do too, and what it computes on lanes.

    An empty `operands` stands for an overloaded one, whose types are those of the call.
    """

    name: str
    evaluate: Callable[..., Array]
    operands: tuple[str, ...] = ()
    result: str = ""
    features: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    def missing(self, features: frozenset[str]) -> list[str]:
        """What a CPU lacks to have it; nothing if it has all that is needed, or what serves instead."""
        if self.instead and features.issuperset(self.instead):
            return []
        return [feature for feature in self.features if feature not in features]


def _dot_groups(group: int, saturating: bool = False) -> Callable[[Array, Array, Array], Array]:
    """acc + the sums of `group` neighbouring products; accumulators wrap, or stay at the limits of int32."""

    def evaluate(acc: Array, a: Array, b: Array) -> Array:
        products = (a.astype(np.int64) * b.astype(np.int64)).reshape(-1, group).sum(axis=1)
        total = acc.astype(np.int64) + products
        return np.clip(total, -(1 << 31), (1 << 31) - 1).astype(np.int32) if saturating else total.astype(np.int32)

    return evaluate


def _dot_bytes(saturating: bool) -> Callable[[Array, Array, Array], Array]:
    """Unsigned bytes of `a` with signed bytes of `b`, by fours, whatever the operands' dtypes are called."""
    evaluate = _dot_groups(4, saturating)
    return lambda acc, a, b: evaluate(acc, a.view(np.uint8), b.view(np.int8))


def _flushed(x: Array) -> Array:
    """float32 with denormal numbers as zeros of their sign."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def _dot_bfloat16(acc: Array, a: Array, b: Array) -> Array:
    """acc + a0*b0 + a1*b1 by two fused steps, the odd element first; denormal operands and results count as zero."""
    first, second = _flushed(a.astype(np.float32)), _flushed(b.astype(np.float32))
    products = first.astype(np.float64) * second.astype(np.float64)  # exact: 8 + 8 bits
    total = _flushed(acc)
    for lane in (1, 0):
        total = _flushed(_rounded_sum(total.astype(np.float64), products[lane::2]))
    return total


def _rounded_sum(a: Array, b: Array) -> Array:
    """float32(a + b) with one rounding: the error of the float64 sum decides ties."""
    total = a + b
    # two-sum (Knuth): what the addition rounded away, exactly
    back = total - a
    error = (a - (total - back)) + (b - back)
    # Round to odd: an inexact sum gets its last bit set, so that rounding it to float32 sees no tie where there is none.
    odd = (total.view(np.int64) & 1) == 1
    inexact = np.isfinite(total) & (error != 0) & ~odd
    # one more in the bits is one step away from zero, whatever the sign
    toward = np.where((error > 0) == (total > 0), 1, -1)
    sticky = np.where(inexact, (total.view(np.int64) + np.where(toward > 0, 1, -1)).view(np.float64), total)
    return sticky.astype(np.float32)


_BITS = {"i32": 32, "float": 32, "i16": 16, "bfloat": 16, "i8": 8, "i1": 1}


def lanes_of(llvm_type: str) -> tuple[int, str]:
    """How many numbers of which kind a type of LLVM holds: 16 and "i8" of <16 x i8>."""
    lanes, _, kind = llvm_type.strip("<>").rpartition(" x ")
    return int(lanes or 1), kind


def _vectors(kind: str, bits: int) -> str:
    return f"<{bits // _BITS[kind]} x {kind}>"


def _x86_dots() -> list[LLVMIntrinsic]:
    rows = []
    for bits in (128, 256, 512):
        narrow = ("avx512vl",) if bits < 512 else ()
        words = _vectors("i32", bits)
        for suffix, saturating in (("", False), ("s", True)):
            for stem, kind, evaluate in (("vpdpbusd", "i8", _dot_bytes(saturating)), ("vpdpwssd", "i16", _dot_groups(2, saturating))):
                operands = (words, _vectors(kind, bits), _vectors(kind, bits))
                name = f"llvm.x86.avx512.{stem}{suffix}.{bits}"
                # AVX-VNNI has the forms of 128 and 256 bits without AVX-512.
                rows.append(LLVMIntrinsic(name, evaluate, operands, words, ("avx512vnni", *narrow), ("avxvnni",) if narrow else ()))
        floats, halves = _vectors("float", bits), _vectors("bfloat", bits)
        name = f"llvm.x86.avx512bf16.dpbf16ps.{bits}"
        rows.append(LLVMIntrinsic(name, _dot_bfloat16, (floats, halves, halves), floats, ("avx512bf16", *narrow)))
    for name, bits, feature in (("avx512.pmaddw.d.512", 512, "avx512bw"), ("avx2.pmadd.wd", 256, "avx2"), ("sse2.pmadd.wd", 128, "sse2")):
        pairs = _vectors("i16", bits)
        rows.append(LLVMIntrinsic(f"llvm.x86.{name}", _sums_of_pairs, (pairs, pairs), _vectors("i32", bits), (feature,)))
    return rows


def _sums_of_pairs(a: Array, b: Array) -> Array:
    """a0*b0 + a1*b1 of neighbouring 16-bit numbers."""
    products = a.astype(np.int32) * b.astype(np.int32)
    # As the instruction: 2 * (-32768)^2 wraps to -2^31, the only sum that doesn't fit.
    return products[0::2] + products[1::2]


def _arm_dots() -> list[LLVMIntrinsic]:
    """What NEON multiplies and adds; LLVM adds the types to the names itself."""
    words, halves, narrow = "<4 x i32>", "<8 x i16>", "<8 x i8>"
    products = LLVMIntrinsic("smull", lambda a, b: a.astype(np.int16) * b.astype(np.int16), (narrow, narrow), halves, ("neon",))
    pairs = LLVMIntrinsic("saddlp", lambda a: a.astype(np.int32).reshape(-1, 2).sum(axis=1, dtype=np.int32), (halves,), words, ("neon",))
    across = LLVMIntrinsic("addp", lambda a, b: _sums_of_neighbours(np.concatenate([a, b])), (words, words), words, ("neon",))
    operands = (words, _vectors("i8", 128), _vectors("i8", 128))
    signed, unsigned = (
        LLVMIntrinsic("sdot", _dot_groups(4), operands, words, ("dotprod",)),
        LLVMIntrinsic("udot", lambda acc, a, b: _dot_groups(4)(acc, *(x.view(np.uint8) for x in (a, b))), operands, words, ("dotprod",)),
    )
    return [replace(row, name=f"llvm.aarch64.neon.{row.name}") for row in (products, pairs, across, signed, unsigned)]


def _sums_of_neighbours(words: Array) -> Array:
    return words[0::2] + words[1::2]


def _hexagon_dots() -> list[LLVMIntrinsic]:
    """HVX's sums of products, of vectors or of a vector and one word of 32 bits."""
    words = _vectors("i32", 1024)
    rows = (
        ("vrmpyub", (words, words, "i32"), lambda acc, b, a: _dot_groups(4)(acc, b.view(np.uint8), np.tile(a.view(np.uint8), acc.size))),
        ("vrmpybusv", (words, words, words), _dot_bytes(False)),
        ("vdmpyhvsat", (words, words, words), lambda acc, a, b: _dot_groups(2, True)(acc, a.view(np.int16), b.view(np.int16))),
    )
    return [LLVMIntrinsic(f"llvm.hexagon.V6.{name}.acc.128B", evaluate, given, words, ("hvx",)) for name, given, evaluate in rows]


def _amd_dots() -> list[LLVMIntrinsic]:
    def evaluate(a: Array, b: Array, acc: Array, clamp: Array) -> Array:
        return _dot_groups(4, saturating=bool(clamp[0]))(acc, a.view(np.int8), b.view(np.int8))

    return [LLVMIntrinsic("llvm.amdgcn.sdot4", evaluate, ("i32", "i32", "i32", "i1"), "i32", ("dot1-insts",))]


_OVERLOADED: dict[str, Callable[..., Array]] = {
    "sqrt": np.sqrt, "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "copysign": np.copysign, "minnum": np.fmin, "maxnum": np.fmax, "fma": fused_multiply_add,
    "fmuladd": fused_multiply_add, "smin": np.minimum,
    "smax": np.maximum, "umin": np.minimum, "umax": np.maximum,
}  # fmt: skip
LLVM_INTRINSICS: dict[str, LLVMIntrinsic] = {
    row.name: row for family in (_x86_dots, _arm_dots, _hexagon_dots, _amd_dots) for row in family()
}


def llvm_intrinsic(name: str) -> LLVMIntrinsic | None:
    """The row of an intrinsic by its full name ("llvm.sqrt.v16f32"), or None."""
    found = LLVM_INTRINSICS.get(name)
    if found is None and name.startswith("llvm."):
        evaluate = _OVERLOADED.get(name.split(".")[1])
        found = None if evaluate is None else LLVMIntrinsic(name, evaluate)
    return found


def known_llvm_intrinsics() -> str:
    """The names that are known, for messages."""
    return f"{', '.join(sorted(LLVM_INTRINSICS))}, and llvm.<op> of {', '.join(sorted(_OVERLOADED))}"


def intrinsic_operands(call: Call) -> tuple[str, tuple[PrimExpr, ...]]:
    """The name and the operands of a call of an LLVM intrinsic.

    Raises:
        DeclarationError: for an intrinsic that isn't known, or a wrong number of operands.
    """
    name = call.args[0] if call.args else None
    if not isinstance(name, StringImm):
        raise DeclarationError(f"{call.op} takes the intrinsic's name first, as a string")
    row = llvm_intrinsic(name.value)
    if row is None:
        raise DeclarationError(f"no LLVM intrinsic {name.value!r} is known; known are {known_llvm_intrinsics()}")
    operands = call.args[1:]
    if row.operands and len(operands) != len(row.operands):
        raise DeclarationError(f"{name.value} takes {len(row.operands)} operands, not {len(operands)}")
    for operand, wanted in zip((*operands, call), (*row.operands, row.result), strict=bool(row.operands)) if row.operands else ():
        _check_width(name.value, operand, wanted)
    return name.value, operands


def _check_width(name: str, operand: PrimExpr, wanted: str) -> None:
    """An operand (or the result) has as many bits as the vector `wanted`; 32-bit groups may be written by their bytes."""
    parsed = parse_dtype(operand.dtype)
    lanes, kind = lanes_of(wanted)
    bits = lanes * _BITS[kind]
    if parsed.bits * parsed.lanes != bits:
        raise DeclarationError(f"{name}: {operand.dtype} stands where {wanted} belongs, which has {bits} bits")


def _call(op: str, dtype: str, name: str, args: tuple[Any, ...]) -> PrimExpr:
    operands = tuple(convert(arg) for arg in args)
    row = llvm_intrinsic(name)
    count = len(row.operands) if row is not None and row.operands else None
    if row is None and name.startswith("llvm."):  # one that code generation will refuse by name
        return Call(dtype, op, (StringImm(name), *operands))
    has_one_more = count is None or len(operands) == count + 1
    if has_one_more and operands and isinstance(operands[0], IntImm) and operands[0].dtype == "uint32":
        operands = operands[1:]  # the number of operands that overload the name, which the name itself spells
    call = Call(dtype, op, (StringImm(name), *operands))
    intrinsic_operands(call)
    return call


def call_llvm_pure_intrin(dtype: str, name: str, *args: Any) -> PrimExpr:
    """A call of the LLVM intrinsic `name` without side effects. A leading uint32 constant (a count of operands) is left out.

    Raises:
        DeclarationError: for a name that doesn't begin with "llvm.", and for an intrinsic whose operands are known, for a
            wrong number of them, or operands of a wrong width. Code generation refuses intrinsics that it doesn't know.
    """
    return _call(PURE_CALL, dtype, name, args)


def call_llvm_intrin(dtype: str, name: str, *args: Any) -> PrimExpr:
    """`call_llvm_pure_intrin` of an intrinsic with side effects: it is neither moved nor dropped."""
    return _call(CALL, dtype, name, args)
