"""Control flow: branches, and loops that are unrolled where that is little, else taken by the virtual machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import relax
from ....dataclass import dataclass
from ....errors import ModelError
from ....relax.relations import is_base_of, struct_info_lca
from ....relax.struct_info import TupleStructInfo, symbols_of
from ....tir.arithmetic import as_int
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from ..tensors import array_of
from ..values import Value, constant_value

R = relax.op
_UNROLLED = 16  # turns of a loop, each of which is a copy of its body's nodes
_UNROLLED_NODES = 400  # of all copies


@onnx_op("If")
def branches(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """One of two graphs; if it is known which, only that one is imported."""
    graphs = attrs.graph("then_branch"), attrs.graph("else_branch")
    if ctx.is_constant(0):
        chosen = graphs[0] if bool(ctx.number(0)) else graphs[1]
        found: list[Any] = ctx.importer.inner().graph(chosen, ctx.where)
        return found
    sequences = _sequences(ctx, graphs)
    if len(sequences[0].body.fields) != len(sequences[1].body.fields):
        ctx.fail("its branches have different numbers of results")
    whole = ctx.builder.emit(relax.If(inputs[0], *sequences))
    return [relax.TupleGetItem(whole, n) for n in range(len(ctx.node.output))]


def _sequences(ctx: Context, graphs: Sequence[Any]) -> list[Any]:
    """Both branches. One that the model's shapes don't fit is an error where it is taken, as the other one may be meant for them.

    Example:
        A network for two sampling rates, each with convolutions of its own: inputs of 576 samples fit one of them.
    """
    found: list[Any] = []
    failed: ModelError | None = None
    for graph in graphs:
        try:
            found.append(_sequence(ctx, graph))
        except ModelError as error:
            if failed is not None:
                raise
            failed = error
            found.append(None)
    if failed is not None:
        place = found.index(None)
        found[place] = _refusal(ctx, failed, found[1 - place].struct_info)
    return found


def _refusal(ctx: Context, error: ModelError, info: Any) -> Any:
    """A branch that stops the graph with an error, and would otherwise give zeros like the results of the other branch."""
    if any(not isinstance(one, relax.TensorStructInfo) or one.extents is None for one in info.fields):
        raise error
    outer = ctx.builder.begin_scope()
    try:
        text = f"{ctx.where}: this branch doesn't fit the shapes that the model was imported with: {error}"
        # The text is a format: braces in it are doubled.
        ctx.builder.emit(R.assert_op(relax.const(np.bool_(False)), (), text.replace("{", "{{").replace("}", "}}")))
        zeros = tuple(ctx.emit(R.zeros(one.extents, one.dtype)) for one in info.fields)
    finally:
        blocks = ctx.builder.end_scope(outer)
    return relax.SeqExpr(blocks, relax.Tuple(zeros))


def _sequence(ctx: Context, graph: Any) -> Any:
    """A branch: its bindings, and a tuple of its results."""
    outer = ctx.builder.begin_scope()
    try:
        results = ctx.importer.inner().graph(graph, ctx.where)
        fields = tuple(_expression(ctx, one) for one in results)
    finally:
        blocks = ctx.builder.end_scope(outer)
    return relax.SeqExpr(blocks, relax.Tuple(fields))


def _expression(ctx: Context, value: Value | None) -> Any:
    if value is None:
        ctx.fail("a graph inside has a result that nothing makes")
    return ctx.expression(value)


@dataclass(frozen=True)
class _Turns:
    """What is done again and again.

    Args:
        graph: the body.
        is_loop: whether it takes the turn's number and a condition, and returns one.
        scanned: tensors of which it takes an element each turn: with the axis, and whether from the end.
        length: their extents there.
    """

    graph: Any
    is_loop: bool = True
    scanned: Sequence[tuple[Any, int, bool]] = ()
    length: int = 0

    @property
    def first(self) -> int:
        """The first result that is a state."""
        return 1 if self.is_loop else 0


@onnx_op("Loop")
def loop(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Turns of a graph: so many, or as long as its condition holds."""
    body = attrs.graph("body")
    states = [ctx.value(n) for n in range(2, len(ctx.values))]
    if len(body.input) != 2 + len(states) or len(body.output) < 1 + len(states):
        ctx.fail(f"its body takes {len(body.input)} values and returns {len(body.output)}, where there are {len(states)} states")
    trips = ctx.integer(0) if ctx.has(0) and ctx.is_constant(0) else None
    start = bool(ctx.number(1)) if ctx.has(1) and ctx.is_constant(1) else None
    if start is False:
        # A first condition that is false means no turn, whatever the count says.
        trips = 0
    # A condition that the body hands on as it is can only end the loop before its first turn.
    is_asked = ctx.has(1) and not _is_kept(body)
    turns = _Turns(body)
    if trips is not None and _is_little(turns, states, trips) and (trips == 0 or (not is_asked and (start or not ctx.has(1)))):
        return _unrolled(ctx, turns, states, trips)
    return _taken(ctx, turns, states, inputs[0], inputs[1] if is_asked or start is None else None)


def _is_little(turns: _Turns, states: Sequence[Value | None], trips: int) -> bool:
    """Whether a loop is unrolled: those of sequences where they can be, as they know their elements then."""
    has_sequence = any(one is not None and isinstance(one.info, TupleStructInfo) for one in states)
    return (trips <= _UNROLLED or has_sequence) and trips * len(turns.graph.node) <= _UNROLLED_NODES


def _is_kept(body: Any) -> bool:
    """Whether the condition that a body returns is the one that it got, or a constant that is true."""
    name, makers = body.output[0].name, {name: node for node in body.node for name in node.output}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    if name in makers and makers[name].op_type == "Constant":
        value = [one for one in makers[name].attribute if one.name == "value"]
        return bool(value) and bool(array_of(value[0].t, "a condition").all())
    return bool(name == body.input[1].name)


def _turn(ctx: Context, scope: Any, turns: _Turns, turn: Any, states: Sequence[Value | None], tensors: Sequence[Any]) -> list[Value | None]:
    """One turn in a scope: its states and results, after the condition of a loop."""
    given: list[Value | None] = list(states)
    if turns.is_loop:
        given = [constant_value(np.int64(turn)) if isinstance(turn, int) else Value(turn), constant_value(np.bool_(True)), *given]
    for (_, axis, backwards), tensor in zip(turns.scanned, tensors, strict=True):
        place: Any = relax.const(turn, "int64") if isinstance(turn, int) else turn
        place = R.subtract(relax.const(turns.length - 1, "int64"), place) if backwards else place
        given.append(Value(ctx.emit(R.take(tensor, place, axis))))
    for one, value in zip(turns.graph.input, given, strict=True):
        scope.values[one.name] = value
    found: list[Value | None] = scope.graph(turns.graph, ctx.where)
    return found


def _unrolled(ctx: Context, turns: _Turns, states: list[Value | None], trips: int) -> list[Any]:
    end = turns.first + len(states)
    rows: list[list[Any]] = [[] for _ in turns.graph.output[end:]]
    for turn in range(trips):
        # A scope for each turn: the names of the body mean other values in the next one.
        found = _turn(ctx, ctx.importer.inner(), turns, turn, states, [tensor for tensor, _, _ in turns.scanned])
        states = found[turns.first : end]
        for row, value in zip(rows, found[end:], strict=True):
            row.append(_expression(ctx, value))
    if trips == 0 and rows:
        infos = _made(ctx, turns, [one.info for one in states if one is not None])[2].fields[1 + len(states) :]
        return [*states, *(_no_rows(ctx, info) for info in infos)]
    return [*states, *(_stacked(ctx, row, 0) for row in rows)]


def _stacked(ctx: Context, row: Sequence[Any], axis: int) -> Any:
    """Tensors along a new axis."""
    parts = [ctx.emit(R.expand_dims(one, axis)) for one in row]
    return R.concat(parts, axis) if len(parts) > 1 else parts[0]


def _no_rows(ctx: Context, info: Any) -> Any:
    if not isinstance(info, relax.TensorStructInfo) or info.extents is None:
        ctx.fail(f"no turn is taken, and a result of each is {info}")
    return R.zeros((0, *info.extents), info.dtype)


def _made(ctx: Context, turns: _Turns, infos: Sequence[Any]) -> tuple[Any, list[Any], Any]:
    """A turn as a function of its number, states and values from outside; the latter; what it returns."""
    outside: dict[str, tuple[Any, Any]] = {}

    def captured(name: str, expr: Any) -> Any:
        if name not in outside:
            outside[name] = expr, relax.Var(ctx.builder.get_unique_name("captured"), expr.struct_info)
        return outside[name][1]

    def capture(name: str, value: Value) -> Value:
        # Constants go into the body as they are: shapes may be computed of them, which those of parameters can't be.
        if isinstance(value.expr, relax.Constant) or (value.known is not None and value.known.is_constant):
            return Value(value.expr, value.known, value.roots)
        if value.expr is None:
            ctx.fail(f"the shape {name!r} of symbols around a loop is used in its body; state the model's shapes by shape_dict")
        return Value(captured(name, value.expr), None, value.roots)

    scope = ctx.importer.inner()
    scope.capture = capture
    turn = relax.Var("turn", relax.TensorStructInfo((), "int64"))
    states = [relax.Var(ctx.builder.get_unique_name("state"), info) for info in infos]
    tensors = [captured(f"{n} ", tensor) for n, (tensor, _, _) in enumerate(turns.scanned)]  # no name of a value ends so
    outer = ctx.builder.begin_scope()
    try:
        found = _turn(ctx, scope, turns, turn, [Value(var) for var in states], tensors)
        fields = [_expression(ctx, one) for one in found]
        if not turns.is_loop:
            # A scan has no condition: its count alone ends it.
            fields.insert(0, relax.const(np.bool_(True)))
        elif fields[0].struct_info.ndim != 0:
            # Conditions of shape [1] are allowed in models; the machine's have no axes.
            fields[0] = ctx.emit(R.reshape(fields[0], ()))
    finally:
        blocks = ctx.builder.end_scope(outer)
    params = (turn, *states, *(var for _, var in outside.values()))
    function = relax.Function(params, relax.SeqExpr(blocks, relax.Tuple(tuple(fields))))
    return function, [expr for expr, _ in outside.values()], function.ret_struct_info


def _taken(ctx: Context, turns: _Turns, states: Sequence[Value | None], trips: Any, condition: Any) -> list[Any]:
    """A loop of the virtual machine. Of states whose shapes change from turn to turn is known what all turns have in common."""
    given = [_expression(ctx, one) for one in states]
    infos = [one.struct_info for one in given]
    while True:
        function, captured, returned = _made(ctx, turns, infos)
        after = list(returned.fields[1 : 1 + len(infos)])
        if all(is_base_of(a, b) for a, b in zip(infos, after, strict=True)):
            break
        # It ends: each round knows less of a state, an extent or at last the rank.
        wider = [struct_info_lca(a, b) for a, b in zip(infos, after, strict=True)]
        if wider == infos:
            ctx.fail(f"its states are {infos}, and after a turn {after}")
        infos = wider
    rows = list(returned.fields[1 + len(infos) :])
    for row in rows:
        if not isinstance(row, relax.TensorStructInfo):
            ctx.fail(f"a result of each turn is {row}, and only tensors can be stacked")
    whole_rows = (relax.TensorStructInfo(None, row.dtype, ndim=row.ndim + 1 if row.ndim >= 0 else -1) for row in rows)
    stated = TupleStructInfo((*infos, *whole_rows))
    limits = [one if one is None or one.struct_info.ndim == 0 else ctx.emit(R.reshape(one, ())) for one in (trips, condition)]
    name = ctx.builder.add_func(function, "turn")
    whole = ctx.builder.emit(R.loop(name, tuple(given), tuple(captured), limits[0], limits[1], stated))
    made = [ctx.emit(relax.TupleGetItem(whole, n)) for n in range(len(stated.fields))]
    for n, row in enumerate(rows, len(infos)):
        # Symbols of the body are bound at its call, and say nothing outside of it.
        if row.extents is not None and not symbols_of(row):
            made[n] = ctx.builder.match_cast(made[n], relax.TensorStructInfo((ctx.symbol("turns"), *row.extents), row.dtype))
    return made


def _check_counts(ctx: Context, body: Any, counts: tuple[int, int], lists: Sequence[Sequence[Any]], operands: int) -> None:
    """A scan has states and at least one tensor that it goes along, of which lists say something each; its body takes and makes them."""
    states, scanned = counts
    if len(body.input) != operands or len(body.output) < states:
        ctx.fail(f"its body takes {len(body.input)} values of {operands} and returns {len(body.output)}, where there are {states} states")
    if states < 0 or states + scanned != operands or any(len(one) != scanned for one in lists):
        said = ", ".join(str(len(one)) for one in lists)
        ctx.fail(f"{operands} operands are {states} states and {scanned} scanned tensors, of which lists of {said} say something")


def _scanned_inputs(ctx: Context, attrs: Attributes) -> int:
    """How many operands a scan goes along: looked at before there are lists of as many."""
    found: int = attrs.int("num_scan_inputs")
    if not 1 <= found <= len(ctx.values):
        ctx.fail(f"{len(ctx.values)} operands, of which num_scan_inputs says that it goes along {found}")
    return found


@onnx_op("Scan")
def scan_batches(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Turns along an axis of tensors, for each of several batches by itself."""
    body, scanned = attrs.graph("body"), _scanned_inputs(ctx, attrs)
    count = len(body.input) - scanned
    if ctx.has(0):
        ctx.fail("sequences of different lengths in Scan")
    backwards = [one == 1 for one in attrs.ints("directions", [0] * scanned)]
    batches = ctx.extents(1)[0]
    if not isinstance(batches, int) or batches * len(body.node) > _UNROLLED_NODES:
        ctx.fail(f"Scan of opset 8 over {batches} batches: there are kernels for some, whose number is known")
    _check_counts(ctx, body, (count, scanned), [backwards], len(inputs) - 1)
    parts: list[list[Any]] = []
    for n in range(batches):
        own = [Value(ctx.emit(R.take(one, relax.const(n, "int64"), 0))) for one in inputs[1:]]
        found = _scanned(ctx, body, own[:count], own[count:], [0] * scanned, backwards)
        parts.append([_expression(ctx, one) if isinstance(one, Value) else ctx.emit(one) for one in found])
    return [_stacked(ctx, row, 0) for row in zip(*parts, strict=True)]


@onnx_op("Scan", since=9)
def scan(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Turns along axes of tensors; the results of each are stacked."""
    body, scanned = attrs.graph("body"), _scanned_inputs(ctx, attrs)
    count = len(ctx.values) - scanned
    stated = attrs.ints("scan_input_axes", [0] * scanned)
    backwards = [one == 1 for one in attrs.ints("scan_input_directions", [0] * scanned)]
    _check_counts(ctx, body, (count, scanned), [stated, backwards], len(inputs))
    axes = [ctx.axis(axis, count + n) for n, axis in enumerate(stated)]
    found = _scanned(ctx, body, ctx.values[:count], ctx.values[count:], axes, backwards)
    rows = len(found) - count
    places = attrs.ints("scan_output_axes", [0] * rows)
    mirrored = attrs.ints("scan_output_directions", [0] * rows)
    if len(places) != rows or len(mirrored) != rows:
        ctx.fail(f"{len(places)} axes and {len(mirrored)} directions of {rows} results")
    for n in range(rows):
        made = ctx.emit(found[count + n])
        made = ctx.emit(R.flip(made, 0)) if mirrored[n] else made
        rank = made.struct_info.ndim
        if place := ctx.axis(places[n], rank=rank):
            order = list(range(1, rank))
            order.insert(place, 0)
            made = ctx.emit(R.permute_dims(made, order))
        found[count + n] = made
    return found


def _scanned(
    ctx: Context,
    body: Any,
    states: Sequence[Value | None],
    scanned: Sequence[Value | None],
    axes: Sequence[int],
    backwards: Sequence[bool],
) -> list[Any]:
    """States after all turns, and results of each stacked along the first axis."""
    tensors = [_expression(ctx, one) for one in scanned]
    extents = tensors[0].struct_info.extents
    length = None if extents is None else as_int(extents[axes[0]])
    if length is None:
        ctx.fail("along an axis whose extent isn't known; state the model's shapes by shape_dict")
    turns = _Turns(body, False, tuple(zip(tensors, axes, backwards, strict=True)), length)
    if _is_little(turns, states, length):
        return _unrolled(ctx, turns, list(states), length)
    return _taken(ctx, turns, states, relax.const(length, "int64"), None)
