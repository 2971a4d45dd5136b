"""What each kind of row must hold, and the node that it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import DeclarationError, RecordError
from .. import expr as ir
from ..arithmetic import const
from ..dtype import int_limits, parse_dtype
from ..expr import CommReducer, IterVar, PrimExpr, Range, Var
from ..intrin import INTRINSICS
from ..llvm_intrin import CALL, PURE_CALL, intrinsic_operands

if TYPE_CHECKING:
    from .reader import ExprReader

JSON = Any

_BINARY = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
_COMPARE = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)


def shown(value: JSON) -> str:
    """A value in a message, cut to a length that nobody is hurt by."""
    # Python refuses to print very long integers, and takes quadratic time for long ones.
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value[:100] if isinstance(value, str) else value) if value is None or isinstance(value, (str, int, float)) else ""
    return text[:80] or f"a {type(value).__name__}"


def _fail(message: str) -> NoReturn:
    raise RecordError(message)


def _int_imm(reader: ExprReader, dtype: JSON, value: JSON) -> PrimExpr:
    name = reader.dtype(dtype)
    if parse_dtype(name).lanes > 1:
        _fail(f"an IntImm is a scalar, not {name}")
    return ir.IntImm(name, reader.integer(value, *int_limits(name)))


_SPECIAL_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _float_imm(reader: ExprReader, dtype: JSON, value: JSON) -> PrimExpr:
    name = reader.dtype(dtype)
    parsed = parse_dtype(name)
    if not parsed.is_float or parsed.lanes > 1:
        _fail(f"a FloatImm is a float scalar, not {name}")
    number = _SPECIAL_FLOATS.get(value) if isinstance(value, str) else value
    # By `type`: True and 1 are no floats. Infinities come as texts, as JSON has none; 1e999 would read as one.
    if type(number) is not float or (not isinstance(value, str) and not math.isfinite(number)):
        _fail(f"{shown(value)} is no float")
    made = const(number, name)
    if not isinstance(made, ir.FloatImm) or (number not in (made.value, float(made)) and not math.isnan(number)):
        _fail(f"{number} is no {name}")
    return made


def _binary(kind: type[ir.BinaryExpr] | type[ir.CmpExpr]) -> Callable[..., PrimExpr]:
    def read(reader: ExprReader, a: JSON, b: JSON) -> PrimExpr:
        left, right = reader.expr(a), reader.expr(b)
        if left.dtype == "handle":
            _fail(f"{kind.__name__} of a handle")
        return kind(left, right)

    return read


def _not(reader: ExprReader, a: JSON) -> PrimExpr:
    operand = reader.expr(a)
    return ir.Not(operand) if parse_dtype(operand.dtype).code == "bool" else _fail(f"Not of {operand.dtype}")


def _select(reader: ExprReader, condition: JSON, yes: JSON, no: JSON) -> PrimExpr:
    node = ir.Select(reader.expr(condition), reader.expr(yes), reader.expr(no))
    if parse_dtype(node.condition.dtype).lanes not in (1, parse_dtype(node.dtype).lanes):
        _fail(f"a Select of {node.dtype} on {node.condition.dtype}")
    return node


def _cast(reader: ExprReader, dtype: JSON, value: JSON) -> PrimExpr:
    target, operand = reader.dtype(dtype), reader.expr(value)
    if "handle" in (target, operand.dtype) or parse_dtype(target).lanes != parse_dtype(operand.dtype).lanes:
        _fail(f"a Cast of {operand.dtype} to {target}")
    return ir.Cast(target, operand)


def _ramp(reader: ExprReader, base: JSON, stride: JSON, lanes: JSON) -> PrimExpr:
    first, step = reader.scalar(base), reader.scalar(stride)
    if first.dtype != step.dtype or not parse_dtype(first.dtype).is_int:
        _fail(f"a Ramp from {first.dtype} by {step.dtype}")
    return ir.Ramp(first, step, reader.lanes(lanes))


def _shuffle(reader: ExprReader, vectors: JSON, indices: JSON) -> PrimExpr:
    sources = reader.exprs(vectors)
    total = sum(parse_dtype(v.dtype).lanes for v in sources)
    # of no vectors the range is empty, so each pick is refused
    picks = tuple(reader.integer(i, 0, total - 1) for i in reader.list(indices))
    if not picks or len({str(parse_dtype(v.dtype).scalar) for v in sources}) != 1 or sources[0].dtype == "handle":
        _fail("a Shuffle without lanes, or of vectors of different types")
    return ir.Shuffle(sources, picks)


def _let(reader: ExprReader, var: JSON, value: JSON, body: JSON) -> PrimExpr:
    name, bound = reader.variable(var), reader.expr(value)
    if name.dtype != bound.dtype:
        _fail(f"a Let of {bound.dtype} as {name.dtype}")
    return ir.Let(name, bound, reader.expr(body))


def _call(reader: ExprReader, dtype: JSON, op: JSON, args: JSON) -> PrimExpr:
    row = INTRINSICS.get(reader.text(op))
    if row is None:
        _fail(f"no intrinsic {shown(op)}")
    operands = reader.exprs(args)
    if row.arity not in (-1, len(operands)):
        _fail(f"{op} takes {row.arity} arguments, not {len(operands)}")
    call = ir.Call(reader.dtype(dtype), op, operands)
    if op in (CALL, PURE_CALL):
        try:
            intrinsic_operands(call)
        except DeclarationError as error:
            _fail(str(error))
    return call


def _producer_load(reader: ExprReader, producer: JSON, indices: JSON) -> PrimExpr:
    tensor, at = reader.produced(producer), reader.exprs(indices)
    if len(tensor.shape) != len(at) or not all(parse_dtype(i.dtype).is_int for i in at):
        _fail(f"tensor {tensor.name} has {len(tensor.shape)} dimensions with integer indices, not {len(at)} indices")
    return ir.ProducerLoad(tensor, at)


def _buffer_load(reader: ExprReader, buffer: JSON, indices: JSON, predicate: JSON) -> PrimExpr:
    mask = None if predicate is None else reader.expr(predicate)
    at = reader.exprs(indices)
    if not all(parse_dtype(i.dtype).is_int for i in at) or (mask is not None and parse_dtype(mask.dtype).code != "bool"):
        _fail("a load with an index that is no integer, or a predicate that is no bool")
    return ir.BufferLoad(reader.stored(buffer), at, mask)


def _iter_var(reader: ExprReader, var: JSON, dom: JSON, iter_type: JSON, tag: JSON) -> IterVar:
    if dom is None:
        span = None
    else:
        bounds = reader.exprs(dom)
        if len(bounds) != 2 or not all(parse_dtype(b.dtype).is_int for b in bounds):
            _fail("the domain of an axis is its minimum and its extent, both integers")
        span = Range.from_min_extent(*bounds)
    return IterVar(span, reader.variable(var), reader.integer(iter_type, 0, IterVar.TENSORIZED), reader.text(tag))


def _comm_reducer(reader: ExprReader, lhs: JSON, rhs: JSON, result: JSON, identity: JSON) -> CommReducer:
    left, right = (tuple(reader.variable(n) for n in reader.list(part)) for part in (lhs, rhs))
    results, neutral = reader.exprs(result), reader.exprs(identity)
    kinds = [tuple(e.dtype for e in part) for part in (left, right, results, neutral)]
    if not results or len(set(kinds)) != 1 or len(set(left + right)) != 2 * len(left):
        _fail("a combiner has as many accumulators, new values, results and identities, of the same types")
    return CommReducer(left, right, results, neutral)


def _reduce(reader: ExprReader, combiner: JSON, source: JSON, axis: JSON, condition: JSON, index: JSON, init: JSON) -> PrimExpr:
    reducer, values, start = reader.reducer(combiner), reader.exprs(source), reader.exprs(init)
    wanted = [e.dtype for e in reducer.result]
    if [e.dtype for e in values] != wanted or (start and [e.dtype for e in start] != wanted):
        _fail(f"a Reduce of {[e.dtype for e in values]} with a combiner of {wanted}")
    guard = reader.expr(condition)
    if guard.dtype != "bool":
        _fail(f"the condition of a Reduce is {guard.dtype}, not bool")
    axes = tuple(reader.axis(a) for a in reader.list(axis))
    return ir.Reduce(reducer, values, axes, guard, reader.integer(index, 0, len(values) - 1), start)


def _variable(kind: type[Var]) -> Callable[..., Var]:
    return lambda reader, name, dtype: kind(reader.text(name), reader.dtype(dtype))


# By name: the number of fields and the function that reads them.
READERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "Outer": (1, lambda reader, name: reader.outer(name)),
    "Var": (2, _variable(Var)),
    "SizeVar": (2, _variable(ir.SizeVar)),
    "IntImm": (2, _int_imm),
    "FloatImm": (2, _float_imm),
    "StringImm": (1, lambda reader, value: ir.StringImm(reader.text(value))),
    **{kind.__name__: (2, _binary(kind)) for kind in (*_BINARY, *_COMPARE)},
    "And": (2, lambda reader, a, b: ir.And(reader.expr(a), reader.expr(b))),
    "Or": (2, lambda reader, a, b: ir.Or(reader.expr(a), reader.expr(b))),
    "Not": (1, _not),
    "Select": (3, _select),
    "Cast": (2, _cast),
    "Ramp": (3, _ramp),
    "Broadcast": (2, lambda reader, value, lanes: ir.Broadcast(reader.scalar(value), reader.lanes(lanes))),
    "Shuffle": (2, _shuffle),
    "Let": (3, _let),
    "Call": (3, _call),
    "ProducerLoad": (2, _producer_load),
    "BufferLoad": (3, _buffer_load),
    "IterVar": (4, _iter_var),
    "CommReducer": (4, _comm_reducer),
    "Reduce": (6, _reduce),
}
