"""Which nodes saved graphs have: expressions. Whoever saves more than expressions adds rows of `NodeType` to EXPRESSIONS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ...errors import RecordError
from .. import expr as ir
from ..arithmetic import as_int, const
from ..dtype import int_limits, parse_dtype
from ..expr import IntImm, PointerType, PrimExpr, PrimType, Var
from ..intrin import INTRINSICS
from .graph_fields import FLOAT, INTEGER, SPAN, TEXT, Field, NodeType, Scalar
from .rows import shown

MAX_LANES = 1_024


@dataclass(frozen=True, slots=True)
class Op:
    """What a call calls: an intrinsic."""

    name: str


def _read_dtype(text: str) -> str:
    # One spelling alone: what isn't printed as it was read, such as int032, is no dtype of a file.
    if text == "" or (len(text) <= 32 and text.isascii() and str(parse_dtype(text)) == text and parse_dtype(text).lanes <= MAX_LANES):
        return text
    raise RecordError(f"{shown(text)} is no dtype of at most {MAX_LANES} lanes")


DTYPE = Scalar(str, _read_dtype)
_DTYPE_FIELD = Field("dtype", DTYPE)


def expression(key: str, cls: type[PrimExpr], make: Callable[..., PrimExpr], *fields: Field, shared: bool = True) -> NodeType:
    """The row of a kind of expression, whose dtype must be what its operands make it."""

    def checked(dtype: str, span: None, **values: Any) -> PrimExpr:
        made = make(**values)
        if made.dtype != dtype:
            raise RecordError(f"its dtype is {made.dtype}, not {dtype}")
        return made

    return NodeType(key, cls, (_DTYPE_FIELD, *fields, SPAN), checked, shared)


def _typed(key: str, cls: type[PrimExpr], make: Callable[..., PrimExpr], *fields: Field, shared: bool = True) -> NodeType:
    """The row of a kind of expression that has its dtype from nowhere else."""
    return NodeType(key, cls, (_DTYPE_FIELD, *fields, SPAN), lambda span, **values: make(**values), shared)


def _variable(cls: type[Var]) -> Callable[..., Var]:
    def make(dtype: str, name: str, type_annotation: PrimType | PointerType) -> Var:
        pointer = type_annotation if isinstance(type_annotation, PointerType) else None
        if pointer is not None and dtype != "handle":
            raise RecordError(f"a variable of {dtype} is no pointer")
        return cls(name, dtype, pointer)

    return make


def _annotation(var: Var) -> PrimType | PointerType:
    return var.type_annotation or PrimType(var.dtype)


def _int_imm(dtype: str, value: int) -> PrimExpr:
    parsed = parse_dtype(dtype)
    if not (parsed.is_int or parsed.code == "bool") or parsed.lanes > 1:
        raise RecordError(f"an IntImm is an integer, not {dtype}")
    low, high = int_limits(dtype)
    if not low <= value <= high:
        raise RecordError(f"{shown(value)} is no {dtype}")
    return IntImm(dtype, value)


def _float_imm(dtype: str, value: float) -> PrimExpr:
    parsed = parse_dtype(dtype)
    made = const(value, dtype) if parsed.is_float and parsed.lanes == 1 else None
    if not isinstance(made, ir.FloatImm) or (value not in (made.value, float(made)) and not math.isnan(value)):
        raise RecordError(f"{value} is no {dtype}")
    return made


def _cast(dtype: str, value: PrimExpr) -> PrimExpr:
    if "handle" in (dtype, value.dtype) or parse_dtype(dtype).lanes != parse_dtype(value.dtype).lanes:
        raise RecordError(f"a Cast of {value.dtype} to {dtype}")
    return ir.Cast(dtype, value)


def _lanes(lanes: PrimExpr) -> int:
    number = as_int(lanes)
    if number is None or not 2 <= number <= MAX_LANES:
        raise RecordError(f"{lanes} is no number of lanes from 2 to {MAX_LANES}")
    return number


def _ramp(base: PrimExpr, stride: PrimExpr, lanes: PrimExpr) -> PrimExpr:
    if base.dtype != stride.dtype or not parse_dtype(base.dtype).is_int or parse_dtype(base.dtype).lanes > 1:
        raise RecordError(f"a Ramp from {base.dtype} by {stride.dtype}")
    return ir.Ramp(base, stride, _lanes(lanes))


def _broadcast(value: PrimExpr, lanes: PrimExpr) -> PrimExpr:
    if parse_dtype(value.dtype).lanes > 1 or value.dtype == "handle":
        raise RecordError(f"a Broadcast of {value.dtype}")
    return ir.Broadcast(value, _lanes(lanes))


def _let(var: Var, value: PrimExpr, body: PrimExpr) -> PrimExpr:
    if var.dtype != value.dtype:
        raise RecordError(f"a Let of {value.dtype} as {var.dtype}")
    return ir.Let(var, value, body)


def _not(a: PrimExpr) -> PrimExpr:
    if parse_dtype(a.dtype).code != "bool":
        raise RecordError(f"Not of {a.dtype}")
    return ir.Not(a)


def _call(dtype: str, op: Op, args: tuple[PrimExpr, ...]) -> PrimExpr:
    row = INTRINSICS[op.name]
    if row.arity not in (-1, len(args)):
        raise RecordError(f"{op.name} takes {row.arity} arguments, not {len(args)}")
    return ir.Call(dtype, op.name, args)


def _op(name: str) -> Op:
    if name not in INTRINSICS:
        raise RecordError(f"no intrinsic {shown(name)}")
    return Op(name)


def _two_sided(cls: type[ir.BinaryExpr] | type[ir.CmpExpr] | type[ir.LogicalExpr]) -> Callable[..., PrimExpr]:
    def make(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        if a.dtype == "handle":
            raise RecordError(f"{cls.__name__} of a handle")
        return cls(a, b)

    return make


def _one(name: str) -> Field:
    return Field(name, PrimExpr)


def _lane_count(name: str = "lanes") -> Field:
    return Field(name, PrimExpr, get=lambda node: IntImm("int32", node.lanes))


_TwoSided = tuple[type[ir.BinaryExpr] | type[ir.CmpExpr] | type[ir.LogicalExpr], ...]
_ARITHMETIC: _TwoSided = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
_LOGIC: _TwoSided = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE, ir.And, ir.Or)

TYPES: tuple[NodeType, ...] = (
    NodeType("PrimType", PrimType, (_DTYPE_FIELD,), PrimType, shared=False),
    NodeType("PointerType", PointerType, (Field("element_type", PrimType), Field("storage_scope", str)), PointerType, shared=False),
    NodeType("Op", Op, (), _op, shared=False, repr_text=lambda op: op.name),
)

# In the order in which they are visited. Constants are written wherever they occur, as there each is an object of its own.
EXPRESSIONS: tuple[NodeType, ...] = (
    *TYPES,
    *(
        _typed(key, cls, _variable(cls), Field("name", str), Field("type_annotation", (PrimType, PointerType), get=_annotation))
        for key, cls in (("tir.Var", Var), ("tir.SizeVar", ir.SizeVar))
    ),
    _typed("IntImm", IntImm, _int_imm, Field("value", INTEGER), shared=False),
    _typed("FloatImm", ir.FloatImm, _float_imm, Field("value", FLOAT), shared=False),
    expression("tir.StringImm", ir.StringImm, ir.StringImm, Field("value", str), shared=False),
    *(expression(f"tir.{cls.__name__}", cls, _two_sided(cls), _one("a"), _one("b")) for cls in (*_ARITHMETIC, *_LOGIC)),
    expression("tir.Not", ir.Not, _not, _one("a")),
    expression("tir.Select", ir.Select, ir.Select, _one("condition"), _one("true_value"), _one("false_value")),
    _typed("tir.Cast", ir.Cast, _cast, _one("value")),
    expression("tir.Ramp", ir.Ramp, _ramp, _one("base"), _one("stride"), _lane_count()),
    expression("tir.Broadcast", ir.Broadcast, _broadcast, _one("value"), _lane_count()),
    expression("tir.Let", ir.Let, _let, Field("var", Var), _one("value"), _one("body")),
    _typed("tir.Call", ir.Call, _call, Field("op", Op, get=lambda call: Op(call.op)), Field("args", PrimExpr, many=True)),
)

__all__ = ["DTYPE", "EXPRESSIONS", "INTEGER", "TEXT", "Op", "expression"]
