"""Steps of instructions that compute on registers, made once for each instruction."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu
from .memory import CONSTANT, LOCAL, PARAMETER, PARAMETER_STEP, SHARED
from .parser import Instruction, Kernel

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[["Block", "Array | None"], None]
Getter = Callable[["Block", "Array | None"], Any]
_REGISTER = re.compile(r"^%[\w$.]+$")
_REGISTERS = (("%rd", 64), ("%rs", 16), ("%r", 32))  # by their names, as LLVM gives them
_INTEGERS = ("b8", "u8", "s8", "b16", "u16", "s16", "u32", "s32")


def literal(text: str, kind: str) -> Any:
    """A constant as the bits of a type.

    Raises:
        ValueError: for text that is none.
    """
    stored = alu.BITS[kind]
    if text.startswith("0f"):
        return np.uint32(int(text[2:], 16))
    if text.startswith("0d"):
        return np.uint64(int(text[2:], 16))
    if re.match(r"^-?\d+\.\d", text):
        return np.uint32(struct.unpack("<I", struct.pack("<f", float(text)))[0])
    if stored is np.bool_:
        return np.bool_(int(text, 0))
    return stored(int(text.rstrip("U"), 0) & ((1 << 8 * np.dtype(stored).itemsize) - 1))


def operand(kernel: Kernel, text: str, kind: str) -> Getter:
    """What reads an operand of a type as bits, one value for each thread that runs."""
    stored = alu.BITS[kind]
    negated = text.startswith("!")
    text = text.lstrip("!")
    if _REGISTER.match(text):
        if negated:
            return lambda block, lanes: ~block.read(text, lanes)
        if stored is np.uint8 or stored is np.uint16:
            return lambda block, lanes: block.read(text, lanes, stored).astype(stored, copy=False)
        poisoned = None if stored is np.bool_ else stored
        return lambda block, lanes: block.read(text, lanes, poisoned)
    place = symbol_address(kernel, text)
    if place is not None:
        return lambda block, lanes: np.full(block.count(lanes), place(block), stored)
    value = literal(text, kind)
    return lambda block, lanes: np.full(block.count(lanes), value, stored)


def number_operand(kernel: Kernel, text: str, kind: str) -> Getter:
    """What reads an operand as values of its type, which the caller doesn't write to; in one call, as most steps read two or three."""
    stored, wanted = alu.BITS[kind], alu.KIND[kind]
    if _REGISTER.match(text) and stored in (np.uint32, np.uint64):

        def get(block: Block, lanes: Array | None) -> Array:
            value = block.registers.get(text)
            if value is None:
                value = block.read(text, None, stored)
            if lanes is not None:
                value = value[lanes]
            return value.view(wanted) if value.dtype == stored else alu.seen(value, kind)

        return get
    general = operand(kernel, text, kind)
    if _REGISTER.match(text.lstrip("!")) or symbol_address(kernel, text) is not None:
        return lambda block, lanes: alu.seen(general(block, lanes), kind)
    number, made = alu.seen(np.asarray(literal(text, kind))[None], kind), dict[int, Array]()

    def constant(block: Block, lanes: Array | None) -> Array:
        count = block.count(lanes)
        found = made.get(count)
        if found is None:
            found = made[count] = np.repeat(number, count)
            found.flags.writeable = False
        return found

    return constant


def symbol_address(kernel: Kernel, text: str) -> Callable[[Block], int] | None:
    """The address of a variable within its space."""
    name, _, more = text.partition("+")
    offset = int(more or 0)
    if name in kernel.shared:
        at = kernel.shared[name][0] + offset
        return lambda block: at
    if name in kernel.dynamic:
        return lambda block: block.dynamic_at + offset
    if name in kernel.local:
        at = kernel.local[name][0] + offset
        return lambda block: at
    for number, (param, kind) in enumerate(kernel.params):
        if name == param and kind == "b8":
            at = PARAMETER + number * PARAMETER_STEP + offset
            return lambda block: at
    return None


def widened(register: str, kind: str, value: Array) -> Array:
    """What a narrow load or conversion leaves in a register: its sign, or zeros, in the bits above.

    Example:
        ld.global.s8 %r2: -24 is 0xFFFFFFE8 in the 32 bits of %r2.
    """
    wide = next((bits for prefix, bits in _REGISTERS if register.startswith(prefix)), 16)
    if kind not in _INTEGERS or 8 * value.dtype.itemsize >= wide:
        return value
    signed, unsigned = np.dtype(f"int{wide}"), np.dtype(f"uint{wide}")
    return value.view(f"int{8 * value.dtype.itemsize}").astype(signed).view(unsigned) if kind[0] == "s" else value.astype(unsigned)


def _typed(one: Instruction) -> str:
    return one.words[-1]


def _binary(kernel: Kernel, one: Instruction) -> Step:
    op, kind, words = one.words[0], _typed(one), one.words
    into, left, right = one.operands
    a = number_operand(kernel, left, kind)
    b = number_operand(kernel, right, "u32" if op in ("shl", "shr") else kind)

    def run(block: Block, lanes: Array | None) -> None:
        block.write(into, lanes, alu.bits(alu.binary(op, words, kind, a(block, lanes), b(block, lanes)), kind))

    return run


def _multiply(kernel: Kernel, one: Instruction) -> Step:
    """mul and mad: of integers the low half, the high half, or the whole; packed halves as floats."""
    words, kind = one.words, _typed(one)
    first, second = (number_operand(kernel, text, kind) for text in one.operands[1:3])
    has_sum = words[0] in ("mad", "fma")
    wide = "wide" in words
    wanted = {"16": "32", "32": "64"}[kind[1:]] if wide else ""
    result_kind = kind[0] + wanted if wide else kind
    third = number_operand(kernel, one.operands[3], result_kind) if has_sum else None
    into, floating = one.operands[0], kind[0] in "fb" and kind not in ("b16", "b32", "b64")
    if floating and third is not None:
        last = third

        def fused(block: Block, lanes: Array | None) -> None:
            made = alu.fused(first(block, lanes), second(block, lanes), last(block, lanes))
            block.write(into, lanes, alu.bits(made, kind))

        return fused

    def run(block: Block, lanes: Array | None) -> None:
        a, b = first(block, lanes), second(block, lanes)
        c = third(block, lanes) if third is not None else None
        if wide:
            a, b = a.astype(alu.KIND[result_kind]), b.astype(alu.KIND[result_kind])
        result = alu.binary("mul", words, kind, a, b)
        block.write(into, lanes, alu.bits(result if c is None else result + c, result_kind))

    return run


def _unary(kernel: Kernel, one: Instruction) -> Step:
    op, kind = one.words[0], _typed(one)
    into, get = one.operands[0], operand(kernel, one.operands[1], kind)
    result_kind = "u32" if op in ("popc", "clz") else kind

    def run(block: Block, lanes: Array | None) -> None:
        block.write(into, lanes, alu.bits(alu.unary(op, kind, alu.seen(get(block, lanes), kind)), result_kind))

    return run


def _move(kernel: Kernel, one: Instruction) -> Step:
    kind = _typed(one)
    into, source = one.operands
    if into.startswith("{") or source.startswith("{"):
        return _packing(kernel, kind, into, source)
    get = operand(kernel, source, kind)
    return lambda block, lanes: block.write(into, lanes, np.array(get(block, lanes)))


def _packing(kernel: Kernel, kind: str, into: str, source: str) -> Step:
    """mov between a register and the parts of it."""
    names = [name.strip() for name in (source if source.startswith("{") else into).strip("{}").split(",")]
    part = f"b{alu.SIZE[kind] * 8 // len(names)}"
    stored = alu.BITS[part]
    if source.startswith("{"):
        getters = [operand(kernel, name, part) for name in names]

        def pack(block: Block, lanes: Array | None) -> None:
            columns = np.stack([get(block, lanes).astype(stored, copy=False) for get in getters], axis=-1)
            block.write(into, lanes, np.ascontiguousarray(columns).view(alu.BITS[kind])[:, 0])

        return pack
    get = operand(kernel, source, kind)

    def unpack(block: Block, lanes: Array | None) -> None:
        columns = np.ascontiguousarray(get(block, lanes)).view(stored).reshape(-1, len(names))
        for number, name in enumerate(names):
            block.write(name, lanes, columns[:, number].copy())

    return unpack


def _compare(kernel: Kernel, one: Instruction) -> Step:
    words, kind = one.words, _typed(one)
    operation = alu.COMPARE[words[1]]
    into = one.operands[0]
    joined = words[2] if words[2] in ("and", "or", "xor") else ""
    third = operand(kernel, one.operands[3], "pred") if joined else None
    unsigned = {"lo", "ls", "hi", "hs"} & {words[1]}
    view = kind.replace("b", "u") if kind.startswith("b") and kind != "bf16" else kind.replace("s", "u") if unsigned else kind
    a, b = (number_operand(kernel, text, view) for text in one.operands[1:3])

    def run(block: Block, lanes: Array | None) -> None:
        result = operation(a(block, lanes), b(block, lanes))
        if third is not None:
            other = third(block, lanes)
            result = result & other if joined == "and" else result | other if joined == "or" else result ^ other
        for number, name in enumerate(into.split("|")):
            block.write(name, lanes, result if number == 0 else ~result)

    return run


_TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


def _test(kernel: Kernel, one: Instruction) -> Step:
    """testp: which kind of number a float is."""
    kind, into, test = one.words[2], one.operands[0], _TESTS[one.words[1]]
    get = operand(kernel, one.operands[1], kind)
    return lambda block, lanes: block.write(into, lanes, test(alu.seen(get(block, lanes), kind)))


def _select(kernel: Kernel, one: Instruction) -> Step:
    kind = _typed(one)
    into, *rest = one.operands
    a, b = (operand(kernel, text, kind) for text in rest[:2])
    condition = operand(kernel, rest[2], "pred")
    return lambda block, lanes: block.write(into, lanes, np.asarray(np.where(condition(block, lanes), a(block, lanes), b(block, lanes))))


def _convert(kernel: Kernel, one: Instruction) -> Step:
    words = one.words
    types = [word for word in words[1:] if word in alu.KIND]
    if "f16x2" in types or "bf16x2" in types:
        return _convert_pair(kernel, one, types)
    want, have = types
    into, get = one.operands[0], operand(kernel, one.operands[1], have)

    def run(block: Block, lanes: Array | None) -> None:
        block.write(into, lanes, widened(into, want, alu.converted(get(block, lanes), words, want, have)))

    return run


def _convert_pair(kernel: Kernel, one: Instruction, types: list[str]) -> Step:
    """cvt of two floats into the halves of a register: the second operand is the lower one."""
    half = alu.KIND[types[0]]
    into, high, low = one.operands[0], *(operand(kernel, text, types[1]) for text in one.operands[1:3])

    def run(block: Block, lanes: Array | None) -> None:
        both = np.stack([alu.seen(get(block, lanes), types[1]).astype(half) for get in (low, high)], axis=-1)
        block.write(into, lanes, np.ascontiguousarray(both).view(np.uint32)[:, 0])

    return run


def _convert_address(kernel: Kernel, one: Instruction) -> Step:
    """cvta: between addresses of a space and generic ones."""
    space = next(word for word in one.words if word in ("global", "shared", "local", "const", "param"))
    base = {"global": 0, "shared": SHARED, "local": LOCAL, "const": CONSTANT, "param": 0}[space]
    to_space = "to" in one.words
    into, get = one.operands[0], operand(kernel, one.operands[1], "u64")

    def run(block: Block, lanes: Array | None) -> None:
        value = get(block, lanes).astype(np.uint64)
        block.write(into, lanes, value - np.uint64(base) if to_space else value + np.uint64(base))

    return run


def _three(function: Callable[..., Array], kind: str) -> Callable[[Kernel, Instruction], Step]:
    def make(kernel: Kernel, one: Instruction) -> Step:
        into = one.operands[0]
        getters = [operand(kernel, text, kind) for text in one.operands[1:4]]
        return lambda block, lanes: block.write(into, lanes, function(*(get(block, lanes) for get in getters)))

    return make


def _logic(kernel: Kernel, one: Instruction) -> Step:
    into, table = one.operands[0], int(one.operands[4], 0)
    getters = [operand(kernel, text, "b32") for text in one.operands[1:4]]

    def run(block: Block, lanes: Array | None) -> None:
        a, b, c = (get(block, lanes) for get in getters)
        block.write(into, lanes, alu.combined(a, b, c, table))

    return run


def _bit_field(kernel: Kernel, one: Instruction) -> Step:
    kind = _typed(one)
    into = one.operands[0]
    a, start, length = (operand(kernel, text, kind if number == 0 else "u32") for number, text in enumerate(one.operands[1:4]))

    def run(block: Block, lanes: Array | None) -> None:
        value, low, count = a(block, lanes), start(block, lanes), length(block, lanes)
        width = value.dtype.itemsize * 8
        wide = value.astype(np.uint64) >> np.minimum(low, 63).astype(np.uint64)
        size = np.minimum(count, width).astype(np.uint64)
        mask = np.where(size >= 64, np.uint64(2**64 - 1), (np.uint64(1) << np.minimum(size, np.uint64(63))) - np.uint64(1))
        field = wide & mask
        if kind.startswith("s"):
            sign = (field >> np.maximum(size, np.uint64(1)) - np.uint64(1)) & np.uint64(1)
            field = np.where((sign == 1) & (size > 0), field | ~mask, field)
        block.write(into, lanes, field.astype(value.dtype))

    return run


def _funnel(kernel: Kernel, one: Instruction) -> Step:
    """shf: a shift of two registers as one."""
    into, left = one.operands[0], one.words[1] == "l"
    low, high, amount = (operand(kernel, text, "u32") for text in one.operands[1:4])

    def run(block: Block, lanes: Array | None) -> None:
        joined = high(block, lanes).astype(np.uint64) << np.uint64(32) | low(block, lanes)
        by = amount(block, lanes).astype(np.uint64)
        by = by & np.uint64(31) if "wrap" in one.words else np.minimum(by, np.uint64(32))
        result = (joined << by) >> np.uint64(32) if left else joined >> by
        block.write(into, lanes, (result & np.uint64(0xFFFFFFFF)).astype(np.uint32))

    return run


def _dot(kernel: Kernel, one: Instruction) -> Step:
    into = one.operands[0]
    kinds = [np.int8 if word == "s32" else np.uint8 for word in one.words[1:3]]
    a, b, c = (operand(kernel, text, "u32") for text in one.operands[1:4])

    def run(block: Block, lanes: Array | None) -> None:
        left, right = (
            np.ascontiguousarray(get(block, lanes)).view(kind).reshape(-1, 4).astype(np.int64)
            for get, kind in zip((a, b), kinds, strict=True)
        )
        total = (left * right).sum(axis=1) + c(block, lanes).view(np.int32)
        block.write(into, lanes, total.astype(np.int32).view(np.uint32))

    return run


MAKERS: dict[str, Callable[[Kernel, Instruction], Step]] = {
    **dict.fromkeys(("add", "sub", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr", "copysign"), _binary),
    **dict.fromkeys(("mul", "mad", "fma"), _multiply),
    **dict.fromkeys(alu.UNARY, _unary),
    "mov": _move,
    "setp": _compare,
    "selp": _select,
    "testp": _test,
    "cvt": _convert,
    "cvta": _convert_address,
    "prmt": _three(alu.permuted, "b32"),
    "lop3": _logic,
    "bfe": _bit_field,
    "shf": _funnel,
    "dp4a": _dot,
}
