"""Matrix units: `mma.sync` on fragments in a thread's own memory, `ldmatrix`, and the `wmma` intrinsics of TVM.

A fragment is what each thread of a warp holds of a tile. LLVM keeps it in registers where every index of it is a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..dataclass import dataclass
from ..errors import CodegenError
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, IntImm, PrimExpr, StringImm, Var
from .context import FunctionContext
from .memo import IMPURE
from .ptx_access import emit_call, needs, pointer
from .types import VALUE_TYPE


@dataclass(frozen=True, slots=True)
class Registers:
    """`count` registers of an LLVM type that hold a fragment."""

    count: int
    kind: str

    @property
    def bytes(self) -> int:
        """Bytes of one register."""
        return 8 if self.kind == "double" else 4


@dataclass(frozen=True, slots=True)
class Mma:
    """An instruction of the matrix units: the end of its name, the least architecture, and its fragments."""

    name: str
    least: int
    a: Registers
    b: Registers
    c: Registers


def _words(a: int, b: int, c: int, kind: str) -> tuple[Registers, Registers, Registers]:
    return Registers(a, "i32"), Registers(b, "i32"), Registers(c, kind)


def _halves(a: int, b: int, c: Registers) -> tuple[Registers, Registers, Registers]:
    return Registers(a, "<2 x half>"), Registers(b, "<2 x half>"), c


_F32, _F16 = Registers(4, "float"), Registers(2, "<2 x half>")
_BYTES = {("int8", "int8"): "s8", ("uint8", "uint8"): "u8", ("int8", "uint8"): "s8.u8", ("uint8", "int8"): "u8.s8"}
MMA: Mapping[tuple[str, str, str, str], Mma] = {
    ("m16n8k16", "fp16", "fp16", "fp32"): Mma("f32.f32", 80, *_halves(4, 2, _F32)),
    ("m16n8k16", "fp16", "fp16", "fp16"): Mma("f16.f16", 80, *_halves(4, 2, _F16)),
    ("m16n8k8", "fp16", "fp16", "fp32"): Mma("f32.f32", 75, *_halves(2, 1, _F32)),
    ("m16n8k8", "fp16", "fp16", "fp16"): Mma("f16.f16", 75, *_halves(2, 1, _F16)),
    ("m16n8k16", "bf16", "bf16", "fp32"): Mma("bf16", 80, *_words(4, 2, 4, "float")),
    ("m16n8k8", "bf16", "bf16", "fp32"): Mma("bf16", 80, *_words(2, 1, 4, "float")),
    ("m16n8k8", "tf32", "tf32", "fp32"): Mma("tf32", 80, *_words(4, 2, 4, "float")),
    ("m16n8k4", "tf32", "tf32", "fp32"): Mma("tf32", 80, *_words(2, 1, 4, "float")),
    ("m8n8k4", "fp64", "fp64", "fp64"): Mma("f64", 80, Registers(1, "double"), Registers(1, "double"), Registers(2, "double")),
    **{("m16n8k32", *pair, "int32"): Mma(name, 80, *_words(4, 2, 4, "i32")) for pair, name in _BYTES.items()},
    **{("m16n8k16", *pair, "int32"): Mma(name, 80, *_words(2, 1, 4, "i32")) for pair, name in _BYTES.items()},
    **{("m8n8k16", *pair, "int32"): Mma(name, 75, *_words(1, 1, 2, "i32")) for pair, name in _BYTES.items()},
}
_SHORT = {
    **{"float16": "fp16", "float32": "fp32", "bfloat16": "bf16", "float64": "fp64", "tensorfloat32": "tf32"},
    **{"s8": "int8", "u8": "uint8", "s32": "int32", ".s8": "int8", ".u8": "uint8", "f16": "fp16", "f32": "fp32"},
}
_ELEMENT = {"fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4, "fp64": 8, "int8": 1, "uint8": 1, "int32": 4}


def _load(ctx: FunctionContext, address: str, registers: Registers) -> list[str]:
    """The registers of a fragment, with their types."""
    found = []
    for number in range(registers.count):
        place = ctx.text.value(f"getelementptr i8, {address}, i32 {number * registers.bytes}") if number else address.removeprefix("ptr ")
        found.append(f"{registers.kind} {ctx.text.value(f'load {registers.kind}, ptr {place}, align {registers.bytes}')}")
    return found


def _store(ctx: FunctionContext, address: str, registers: Registers, result: str) -> None:
    """The registers of a result, a struct unless it is one, to a fragment."""
    struct = _struct(registers)
    for number in range(registers.count):
        value = result if registers.count == 1 else ctx.text.value(f"extractvalue {struct} {result}, {number}")
        place = ctx.text.value(f"getelementptr i8, {address}, i32 {number * registers.bytes}") if number else address.removeprefix("ptr ")
        ctx.text.emit(f"store {registers.kind} {value}, ptr {place}, align {registers.bytes}")
    ctx.forget_reads()
    ctx.reads |= IMPURE


def _struct(registers: Registers) -> str:
    return registers.kind if registers.count == 1 else "{ " + ", ".join([registers.kind] * registers.count) + " }"


def _word(arg: PrimExpr) -> str:
    return str(arg.value) if isinstance(arg, StringImm) else str(arg)


def emit_mma(ctx: FunctionContext, call: Call) -> str:
    """ptx_mma: c = a b + c, on fragments."""
    shape, a_layout, b_layout = map(_word, call.args[:3])
    dtypes = tuple(_SHORT.get(name, name) for name in map(_word, call.args[3:6]))
    row = MMA.get((shape, *dtypes))  # type: ignore[arg-type]
    if row is None or (a_layout, b_layout) != ("row", "col"):
        known = ", ".join(sorted({f"{key[0]} {key[1]} {key[3]}" for key in MMA}))
        raise CodegenError(
            f"In {ctx.name}: no mma.sync {shape} {a_layout}.{b_layout} of {', '.join(dtypes)}; A is row, B is col, and there are {known}"
        )
    needs(ctx, row.least, f"mma.sync {shape} of {dtypes[0]}")
    places = [
        pointer(ctx, call.args[at], call.args[at + 1], _ELEMENT[dtype], reads=True, writes=at == 10)
        for at, dtype in zip((6, 8, 10), dtypes, strict=True)
    ]
    operands = [each for place, regs in zip(places, (row.a, row.b, row.c), strict=True) for each in _load(ctx, place, regs)]
    saturates = len(call.args) > 12 and bool(as_int(call.args[12])) and dtypes[2] == "int32"
    name = f"llvm.nvvm.mma.{shape}.row.col.{'satfinite.' if saturates else ''}{row.name}"
    _store(ctx, places[2], row.c, emit_call(ctx, name, _struct(row.c), *operands))
    return "0"


def emit_ldmatrix(ctx: FunctionContext, call: Call) -> str:
    """ptx_ldmatrix: 1, 2 or 4 tiles of 8 x 8 halves from shared memory; each thread gives the address of a row."""
    needs(ctx, 75, "ldmatrix")
    trans, num, kind, local, local_offset, shared, shared_offset = call.args
    count = as_int(num)
    if count not in (1, 2, 4) or _word(kind).removeprefix(".") != "b16":
        raise CodegenError(f"In {ctx.name}: ldmatrix reads 1, 2 or 4 matrices of .b16, not {num} of {_word(kind)}")
    itemsize = parse_dtype(call.dtype).itemsize
    into = pointer(ctx, local, local_offset, itemsize, writes=True)
    source = pointer(ctx, shared, shared_offset, itemsize, space=3, reads=True)
    registers = Registers(count, "i32")
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if as_int(trans) else ''}.b16.p3"
    _store(ctx, into, registers, emit_call(ctx, name, _struct(registers), source))
    return "0"


# wmma: the layout within a fragment is the hardware's own


@dataclass(frozen=True, slots=True)
class Fragment:
    """What the matrix units hold of a tile: registers by shape and element type."""

    shape: str
    suffix: str
    registers: Registers
    least: int


_HALF8, _WORDS4 = Registers(8, "<2 x half>"), Registers(4, "i32")
_SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16")
_BYTE_WORDS = {"a": (2, 4, 1), "b": (2, 1, 4)}


def _fragments() -> Mapping[tuple[str, str, str], Fragment]:
    found: dict[tuple[str, str, str], Fragment] = {}
    for number, shape in enumerate(_SHAPES):
        for part in "ab":
            found[shape, part, "float16"] = Fragment(shape, "f16", _HALF8, 70)
            words = Registers(_BYTE_WORDS[part][number], "i32")
            found[shape, part, "int8"] = Fragment(shape, "s8", words, 72)
            found[shape, part, "uint8"] = Fragment(shape, "u8", words, 72)
            halves = Registers(2 * _BYTE_WORDS[part][number], "i32")
            found[shape, part, "bfloat16"] = Fragment(shape, "bf16", halves, 80)
        found[shape, "c", "float32"] = Fragment(shape, "f32", Registers(8, "float"), 70)
        found[shape, "c", "float16"] = Fragment(shape, "f16", Registers(4, "<2 x half>"), 70)
        found[shape, "c", "int32"] = Fragment(shape, "s32", Registers(8, "i32"), 72)
    return found


FRAGMENTS = _fragments()
_PARTS = {"wmma.matrix_a": "a", "wmma.matrix_b": "b", "wmma.accumulator": "c"}
_LAYOUTS = {"row_major": "row", "col_major": "col"}
_FRAGMENT_BYTES = 32  # of one fragment in the memory of its thread


def _fragment(ctx: FunctionContext, data: PrimExpr, dims: tuple[PrimExpr, ...]) -> tuple[Fragment, str]:
    """The fragment behind a pointer variable, and its part."""
    annotation = data.type_annotation if isinstance(data, Var) else None
    part = _PARTS.get(annotation.storage_scope if annotation is not None else "")
    element = getattr(getattr(annotation, "element_type", None), "dtype", "")
    shape = "m{}n{}k{}".format(*map(as_int, dims))
    if part is None or (shape, part, element) not in FRAGMENTS:
        raise CodegenError(
            f"In {ctx.name}: {data} is no fragment {shape}; it needs scope {', '.join(_PARTS)}, a shape of {', '.join(_SHAPES)}, and "
            "elements float16, bfloat16, int8 or uint8, of accumulators float32, float16 or int32"
        )
    found = FRAGMENTS[shape, part, element]
    ctx.module.fragment_shapes[data] = dims  # type: ignore[index]
    needs(ctx, found.least, f"wmma {shape} of {element}")
    return found, part


def _place(ctx: FunctionContext, data: PrimExpr, index: PrimExpr, writes: bool = False) -> str:
    return pointer(ctx, data, index, _FRAGMENT_BYTES, reads=True, writes=writes)


def emit_load_fragment(ctx: FunctionContext, call: Call) -> str:
    """tvm_load_matrix_sync."""
    data, *dims, index, source, stride, layout = call.args
    fragment, part = _fragment(ctx, data, tuple(dims))
    major = _LAYOUTS[_word(layout)]
    ctx.module.fragment_layouts[data] = major  # type: ignore[index]
    name = f"llvm.nvvm.wmma.{fragment.shape}.load.{part}.{major}.stride.{fragment.suffix}.p0"
    address = pointer(ctx, source, IntImm("int32", 0), 1, reads=True)
    result = emit_call(ctx, name, _struct(fragment.registers), address, f"i32 {ctx.index_as('i32', stride)}")
    _store(ctx, _place(ctx, data, index, writes=True), fragment.registers, result)
    return "0"


def emit_store_fragment(ctx: FunctionContext, call: Call) -> str:
    """tvm_store_matrix_sync."""
    data, *dims, index, target, stride, layout = call.args
    fragment, _ = _fragment(ctx, data, tuple(dims))
    values = _load(ctx, _place(ctx, data, index), fragment.registers)
    name = f"llvm.nvvm.wmma.{fragment.shape}.store.d.{_LAYOUTS[_word(layout)]}.stride.{fragment.suffix}.p0"
    address = pointer(ctx, target, IntImm("int32", 0), 1, writes=True)
    emit_call(ctx, name, "void", address, *values, f"i32 {ctx.index_as('i32', stride)}")
    ctx.forget_reads()
    ctx.reads |= IMPURE
    return "0"


def emit_fill_fragment(ctx: FunctionContext, call: Call) -> str:
    """tvm_fill_fragment."""
    data, *dims, index, value = call.args
    registers = _fragment(ctx, data, tuple(dims))[0].registers
    scalar, kind = ctx.value(value), VALUE_TYPE[value.dtype]
    if registers.kind == "<2 x half>":
        half = ctx.text.value(f"{'bitcast i16' if kind == 'i16' else 'fptrunc ' + kind} {scalar} to half")
        first = ctx.text.value(f"insertelement <2 x half> poison, half {half}, i64 0")
        scalar = ctx.text.value(f"insertelement <2 x half> {first}, half {half}, i64 1")
    place = _place(ctx, data, index, writes=True)
    for number in range(registers.count):
        address = ctx.text.value(f"getelementptr i8, {place}, i32 {number * registers.bytes}")
        ctx.text.emit(f"store {registers.kind} {scalar}, ptr {address}, align {registers.bytes}")
    ctx.forget_reads()
    ctx.reads |= IMPURE
    return "0"


def emit_multiply_fragments(ctx: FunctionContext, call: Call) -> str:
    """tvm_mma_sync: d = a b + c."""
    d, d_index, a, a_index, b, b_index, c, c_index = call.args
    layouts = [ctx.module.fragment_layouts.get(data) for data in (a, b)]  # type: ignore[call-overload]
    if None in layouts:
        raise CodegenError(f"In {ctx.name}: tvm_mma_sync multiplies fragments that tvm_load_matrix_sync has not loaded before")
    row = _multiplied(ctx, a, b, c)
    operands = [
        each
        for data, index, fragment in zip((a, b, c), (a_index, b_index, c_index), row, strict=True)
        for each in _load(ctx, _place(ctx, data, index), fragment.registers)
    ]
    accumulator = row[2]
    ends = f"{accumulator.suffix}.{accumulator.suffix}" if row[0].suffix == "f16" else row[0].suffix
    name = f"llvm.nvvm.wmma.{accumulator.shape}.mma.{layouts[0]}.{layouts[1]}.{ends}"
    result = emit_call(ctx, name, _struct(accumulator.registers), *operands)
    _store(ctx, _place(ctx, d, d_index, writes=True), accumulator.registers, result)
    return "0"


def _multiplied(ctx: FunctionContext, a: PrimExpr, b: PrimExpr, c: PrimExpr) -> tuple[Fragment, Fragment, Fragment]:
    dims = ctx.module.fragment_shapes.get(c)  # type: ignore[call-overload]
    parts = [_fragment(ctx, data, dims)[0] for data in (a, b, c)] if dims is not None else []
    if len(parts) != 3:
        raise CodegenError(f"In {ctx.name}: the accumulator of tvm_mma_sync was neither filled nor loaded before")
    return parts[0], parts[1], parts[2]


CALLS: Mapping[str, Callable[[FunctionContext, Call], str]] = {
    "tir.ptx_mma": emit_mma,
    "tir.ptx_ldmatrix": emit_ldmatrix,
    "tir.tvm_load_matrix_sync": emit_load_fragment,
    "tir.tvm_store_matrix_sync": emit_store_fragment,
    "tir.tvm_fill_fragment": emit_fill_fragment,
    "tir.tvm_mma_sync": emit_multiply_fragments,
}
