"""Expressions as strict JSON, for computations that travel to other processes.

A document is a table of rows, each a list that begins with the name of its node and refers to earlier rows by number;
so shared subexpressions stay shared and reading needs no recursion. What an expression refers to outside itself is
up to the caller: variables by name, tensors and buffers by JSON values of the caller's choice.

    writer = ExprWriter(variables={i: "i"}, producer=lambda tensor: tensor.name)
    document = {"rows": writer.rows, "body": writer.expr(body)}
    reader = ExprReader(document["rows"], variables={"i": i}, producer=tensors.__getitem__)
    body = reader.expr(document["body"])

Reading checks everything and raises `RecordError` on whatever isn't exactly so; it never runs what it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import RecordError, TensorExprError
from . import expr as ir
from .buffer import Buffer
from .dtype import int_limits, parse_dtype
from .expr import CommReducer, IterVar, PrimExpr, Range, Var
from .intrin import INTRINSICS
from .rewriting import children

JSON = Any
Row = list[JSON]

_BINARY = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
_COMPARE = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may hold: rows, characters of a string, lanes of a vector, nodes once sharing is undone, depth."""

    rows: int = 100_000
    text: int = 4_096
    lanes: int = 1_024
    tree: int = 10_000_000
    depth: int = 5_000


class ExprWriter:
    """Collects the rows of any number of expressions, axes and reducers."""

    def __init__(
        self,
        variables: Mapping[Var, str] | None = None,
        producer: Callable[[Any], JSON] | None = None,
        buffer: Callable[[Buffer], JSON] | None = None,
    ) -> None:
        self.rows: list[Row] = []
        self._variables = dict(variables or {})
        self._producer = producer
        self._buffer = buffer
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids are keys, so what they belong to must live

    def _add(self, thing: Any, row: Row) -> int:
        self._kept.append(thing)
        self._numbers[id(thing)] = len(self.rows)
        self.rows.append(row)
        return len(self.rows) - 1

    def expr(self, expr: PrimExpr) -> int:
        """The number of the row of an expression, written if it isn't there yet."""
        stack = [expr]
        while stack:
            node = stack[-1]
            waiting = [c for c in _operands(node) if id(c) not in self._numbers] if id(node) not in self._numbers else []
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if id(node) not in self._numbers:
                self._add(node, self._row(node))
        return self._numbers[id(expr)]

    def axis(self, axis: IterVar) -> int:
        """The number of the row of an axis."""
        if id(axis) not in self._numbers:
            dom = None if axis.dom is None else [self.expr(axis.dom.min), self.expr(axis.dom.extent)]
            self._add(axis, ["IterVar", self.expr(axis.var), dom, axis.iter_type, axis.thread_tag])
        return self._numbers[id(axis)]

    def reducer(self, combiner: CommReducer) -> int:
        """The number of the row of a combiner."""
        if id(combiner) not in self._numbers:
            parts = (combiner.lhs, combiner.rhs, combiner.result, combiner.identity_element)
            self._add(combiner, ["CommReducer", *([self.expr(e) for e in part] for part in parts)])
        return self._numbers[id(combiner)]

    def _row(self, node: PrimExpr) -> Row:
        """The row of a node whose operands have theirs."""
        name, at = type(node).__name__, self._numbers
        match node:
            case ir.Var() if node in self._variables:
                return ["Outer", self._variables[node]]
            case ir.Var():
                return [name, node.name, node.dtype]
            case ir.IntImm():
                return [name, node.dtype, node.value]
            case ir.FloatImm():
                return [name, node.dtype, node.value if math.isfinite(node.value) else str(node.value)]
            case ir.StringImm():
                return [name, node.value]
            case ir.Cast():
                return [name, node.dtype, at[id(node.value)]]
            case ir.Ramp():
                return [name, at[id(node.base)], at[id(node.stride)], node.lanes]
            case ir.Broadcast():
                return [name, at[id(node.value)], node.lanes]
            case ir.Shuffle():
                return [name, [at[id(v)] for v in node.vectors], list(node.indices)]
            case ir.Call():
                return [name, node.dtype, node.op, [at[id(arg)] for arg in node.args]]
            case ir.Reduce():
                return self._reduce_row(node)
            case ir.ProducerLoad():
                return [name, _ask(self._producer, "producer")(node.producer), [at[id(i)] for i in node.indices]]
            case ir.BufferLoad():
                mask = None if node.predicate is None else at[id(node.predicate)]
                return [name, _ask(self._buffer, "buffer")(node.buffer), [at[id(i)] for i in node.indices], mask]
        return [name, *(at[id(child)] for child in children(node))]

    def _reduce_row(self, node: ir.Reduce) -> Row:
        at = self._numbers
        source, init = [at[id(e)] for e in node.source], [at[id(e)] for e in node.init]
        axes = [self.axis(axis) for axis in node.axis]
        return ["Reduce", self.reducer(node.combiner), source, axes, at[id(node.condition)], node.value_index, init]


def _operands(node: PrimExpr) -> list[PrimExpr]:
    """What must have a row before `node`; axes and combiners are written along with it."""
    return [child for child in children(node) if isinstance(child, PrimExpr)]


def _ask(callback: Callable[[Any], JSON] | None, name: str) -> Callable[[Any], JSON]:
    if callback is None:
        raise RecordError(f"the expression reads a {name}; pass `{name}` to say how it is written")
    return callback


class ExprReader:
    """Makes expressions of rows. All rows are checked and built at once; what they describe is fetched by number."""

    def __init__(
        self,
        rows: JSON,
        variables: Mapping[str, Var] | None = None,
        producer: Callable[[JSON], Any] | None = None,
        buffer: Callable[[JSON], Buffer] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._variables = dict(variables or {})
        self._producer = producer
        self._buffer = buffer
        self._made: list[Any] = []
        self._weights: list[tuple[int, int]] = []  # by row: nodes of its tree, depth
        if not isinstance(rows, list) or len(rows) > self._limits.rows:
            raise RecordError(f"an expression table is a list of at most {self._limits.rows} rows")
        for number, row in enumerate(rows):
            self._read(number, row)

    def expr(self, number: JSON) -> PrimExpr:
        """The expression of a row."""
        return self._get(number, PrimExpr)

    def axis(self, number: JSON) -> IterVar:
        """The axis of a row."""
        return self._get(number, IterVar)

    def reducer(self, number: JSON) -> CommReducer:
        """The combiner of a row."""
        return self._get(number, CommReducer)

    def _get(self, number: JSON, kind: type[Any]) -> Any:
        if type(number) is not int or not 0 <= number < len(self._made):
            raise RecordError(f"{_shown(number)} is no row of the table, which has {len(self._made)} so far")
        if not isinstance(self._made[number], kind):
            raise RecordError(f"row {number} is a {type(self._made[number]).__name__}; a {kind.__name__} is needed")
        self._used.append(number)
        return self._made[number]

    _used: list[int]

    def _read(self, number: int, row: JSON) -> None:
        """Check one row and build what it describes."""
        if not isinstance(row, list) or not row or not isinstance(row[0], str) or row[0] not in _READERS:
            raise RecordError(f"row {number} is no known node: {_shown(row)}")
        arity, read = _READERS[row[0]]
        if len(row) != arity + 1:
            raise RecordError(f"row {number}: {row[0]} has {arity} fields, not {len(row) - 1}")
        self._used = []
        try:
            made = read(self, *row[1:])
        except RecordError as error:
            raise RecordError(f"row {number}: {error}") from None
        except TensorExprError as error:
            raise RecordError(f"row {number} is an ill-typed {row[0]}: {error}") from error
        self._weigh(number)
        self._made.append(made)

    def _weigh(self, number: int) -> None:
        """Refuse what would explode when somebody walks it without sharing, or is too deep to be meant."""
        size, depth = 1, 1
        for used in self._used:
            size += self._weights[used][0]
            depth = max(depth, self._weights[used][1] + 1)
        if size > self._limits.tree or depth > self._limits.depth:
            raise RecordError(f"row {number} stands for {size} nodes, {depth} deep; at most {self._limits.tree} and {self._limits.depth}")
        self._weights.append((size, depth))

    # Checked fields.

    def exprs(self, numbers: JSON) -> tuple[PrimExpr, ...]:
        """A list of rows that are expressions."""
        return tuple(self.expr(number) for number in self._list(numbers))

    def _list(self, value: JSON) -> list[JSON]:
        if not isinstance(value, list):
            raise RecordError(f"{_shown(value)} is no list")
        return value

    def text(self, value: JSON) -> str:
        """A string within the limit."""
        if not isinstance(value, str) or len(value) > self._limits.text:
            raise RecordError(f"{_shown(value)} is no string of at most {self._limits.text} characters")
        return value

    def dtype(self, value: JSON) -> str:
        """A known dtype, spelled as the IR does, with few enough lanes."""
        dtype = self.text(value)
        if len(dtype) > 32 or not dtype.isascii():
            raise RecordError(f"{_shown(dtype)} is no dtype")
        parsed = parse_dtype(dtype)
        if str(parsed) != dtype or parsed.lanes > self._limits.lanes:
            raise RecordError(f"{dtype} is no dtype of at most {self._limits.lanes} lanes")
        return dtype

    def integer(self, value: JSON, low: int, high: int) -> int:
        """An integer in [low, high]."""
        if type(value) is not int or not low <= value <= high:
            raise RecordError(f"{_shown(value)} is no integer from {low} to {high}")
        return value

    def lanes(self, value: JSON) -> int:
        """A number of lanes."""
        return self.integer(value, 2, self._limits.lanes)

    def scalar(self, number: JSON) -> PrimExpr:
        """A row that is an expression of one lane and no handle."""
        expr = self.expr(number)
        if parse_dtype(expr.dtype).lanes > 1 or expr.dtype == "handle":
            raise RecordError(f"row {number} is {expr.dtype}, not a scalar")
        return expr

    def outer(self, name: JSON) -> Var:
        """A variable that the caller knows by name."""
        found = self._variables.get(self.text(name))
        if found is None:
            raise RecordError(f"no variable {_shown(name)}; known: {', '.join(self._variables) or 'none'}")
        return found

    def produced(self, value: JSON) -> Any:
        """The tensor that the caller sees in `value`."""
        return self._called(self._producer, "producer", value)

    def stored(self, value: JSON) -> Buffer:
        """The buffer that the caller sees in `value`."""
        found = self._called(self._buffer, "buffer", value)
        if not isinstance(found, Buffer):
            raise RecordError(f"{_shown(value)} is no buffer")
        return found

    def _called(self, callback: Callable[[JSON], Any] | None, name: str, value: JSON) -> Any:
        if callback is None:
            raise RecordError(f"the table reads a {name}, which has no place here")
        try:
            return callback(value)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise RecordError(f"{_shown(value)} names no {name}") from error


def _shown(value: JSON) -> str:
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


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
    if type(number) is not float or (not isinstance(value, str) and not math.isfinite(number)):
        _fail(f"{_shown(value)} is no float")
    return ir.FloatImm(name, number)


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
    picks = tuple(reader.integer(i, 0, total - 1) for i in reader._list(indices))
    if not picks or len({str(parse_dtype(v.dtype).scalar) for v in sources}) != 1 or sources[0].dtype == "handle":
        _fail("a Shuffle without lanes, or of vectors of different types")
    return ir.Shuffle(sources, picks)


def _let(reader: ExprReader, var: JSON, value: JSON, body: JSON) -> PrimExpr:
    name, bound = reader._get(var, Var), reader.expr(value)
    if name.dtype != bound.dtype:
        _fail(f"a Let of {bound.dtype} as {name.dtype}")
    return ir.Let(name, bound, reader.expr(body))


def _call(reader: ExprReader, dtype: JSON, op: JSON, args: JSON) -> PrimExpr:
    row = INTRINSICS.get(reader.text(op))
    if row is None:
        _fail(f"no intrinsic {_shown(op)}")
    operands = reader.exprs(args)
    if row.arity not in (-1, len(operands)):
        _fail(f"{op} takes {row.arity} arguments, not {len(operands)}")
    return ir.Call(reader.dtype(dtype), op, operands)


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
        span = Range(*bounds)
    return IterVar(span, reader._get(var, Var), reader.integer(iter_type, 0, IterVar.TENSORIZED), reader.text(tag))


def _comm_reducer(reader: ExprReader, lhs: JSON, rhs: JSON, result: JSON, identity: JSON) -> CommReducer:
    left, right = (tuple(reader._get(n, Var) for n in reader._list(part)) for part in (lhs, rhs))
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
    axes = tuple(reader.axis(a) for a in reader._list(axis))
    return ir.Reduce(reducer, values, axes, guard, reader.integer(index, 0, len(values) - 1), start)


def _variable(kind: type[Var]) -> Callable[..., Var]:
    return lambda reader, name, dtype: kind(reader.text(name), reader.dtype(dtype))


# By name: the number of fields and the function that reads them.
_READERS: dict[str, tuple[int, Callable[..., Any]]] = {
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


def to_json(exprs: Sequence[PrimExpr] | PrimExpr, writer: ExprWriter | None = None) -> dict[str, JSON]:
    """One expression, or several that share rows, as a document for `from_json`."""
    writer = writer or ExprWriter()
    roots = [exprs] if isinstance(exprs, PrimExpr) else list(exprs)
    numbers = [writer.expr(root) for root in roots]
    return {"rows": writer.rows, "roots": numbers}


def from_json(
    data: JSON,
    variables: Mapping[str, Var] | None = None,
    producer: Callable[[JSON], Any] | None = None,
    buffer: Callable[[JSON], Buffer] | None = None,
    limits: Limits | None = None,
) -> tuple[PrimExpr, ...]:
    """The expressions of a document that `to_json` made.

    Args:
        variables: variables that exist already, by the names that the writer was given.
        producer: the tensor of what the writer's `producer` returned; a KeyError or the like means there is none.
        buffer: likewise for buffers.
        limits: what a document may hold; the defaults fit every real program.

    Raises:
        RecordError: for anything that is not exactly such a document.
    """
    if not isinstance(data, dict) or set(data) != {"rows", "roots"} or not isinstance(data["roots"], list):
        raise RecordError("an expression document has the fields rows and roots")
    reader = ExprReader(data["rows"], variables, producer, buffer, limits)
    return tuple(reader.expr(number) for number in data["roots"])
